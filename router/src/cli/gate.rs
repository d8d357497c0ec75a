//! `sluice gate`: what the XDP gate does to packets.

mod tally;

use std::io::{IsTerminal, Write, stdout};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand, value_parser};
use router_api::gate::source_prefix;
use router_datapath::PinFolder;
use router_datapath::dump::DropRecord;
use serde_json::Value;

use super::bpf::BpfArguments;
use super::table;
use crate::cli::arguments::Output;
use tally::Tally;

/// Longest time between two readings of the record, which has two seconds.
const READING: Duration = Duration::from_secs(1);
/// Moves the cursor to the first line and clears the screen (ECMA-48).
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Verbs of `sluice gate`.
#[derive(Debug, Subcommand)]
pub enum GateVerb {
    /// Show which sources are rejected, at which listener, why, and how many packets a second: again and again.
    Top(TopArgs),
}

/// Arguments of `sluice gate top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Seconds that a table is about.
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Show one table and exit.
    #[arg(long)]
    once: bool,
    /// Most rows of a table.
    #[arg(long, default_value_t = 20, value_name = "N")]
    rows: usize,
    /// Bits of IPv4 and IPv6 addresses that make a source.
    #[arg(long, default_value = "32,64", value_name = "V4,V6", value_parser = source_prefix)]
    source_prefix: (u8, u8),
    #[command(flatten)]
    common: BpfArguments,
}

/// Runs the verb.
pub fn run(verb: GateVerb) -> anyhow::Result<ExitCode> {
    let GateVerb::Top(args) = verb;
    let mut record = DropRecord::open(&PinFolder::of(&args.common.instance))?;
    // What was rejected before.
    record.read()?;
    loop {
        let mut tally = Tally::new(args.source_prefix);
        let end = Instant::now() + Duration::from_secs(args.seconds);
        while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            thread::sleep(left.min(READING));
            record.read()?.iter().for_each(|drop| tally.add(drop));
        }
        show(&tally.rows(args.seconds, args.rows), args.common.output)?;
        if args.once {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn show(rows: &[Value], output: Output) -> anyhow::Result<()> {
    let columns = [
        ("SOURCE", "/source"),
        ("LISTENER", "/listener"),
        ("REASON", "/reason"),
        ("EFFECT", "/effect"),
        ("PACKETS/S", "/perSecond"),
    ];
    match output {
        Output::Json => println!("{:#}", Value::Array(rows.to_vec())),
        Output::Table | Output::Wide => {
            if stdout().is_terminal() {
                print!("{CLEAR}");
            }
            table::print(rows, &columns);
        }
    }
    Ok(stdout().flush()?)
}
