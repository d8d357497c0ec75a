//! `sluice bpf`: decodes the kernel's actual state.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use router_datapath::PinFolder;
use router_datapath::dump::{MAPS, dump, stats};
use router_datapath::kernel::{self, BpfObject, KernelPrograms, LogLevel};
use serde_json::{Value, json};

use super::table;
use crate::admin::{self, View};
use crate::cli::arguments::{Output, StateArgs};

/// Verbs of `sluice bpf`.
#[derive(Debug, Subcommand)]
pub enum BpfVerb {
    /// List the maps.
    Maps(BpfArguments),
    /// Show the entries of a map.
    Dump {
        /// Name of the map.
        name: String,
        #[command(flatten)]
        common: BpfArguments,
    },
    /// Compare the kernel's configuration maps with those that the running agent intends: exit 0 if equal, 4 if not.
    Diff {
        #[command(flatten)]
        common: BpfArguments,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Show counters: connections by decision and reason, dials by outcome, connections by route.
    Stats(BpfArguments),
    /// Remove what a killed agent left in the kernel: programs, maps, and the connections that they carry.
    Cleanup {
        /// Name of the agent's kernel objects.
        #[arg(long, default_value = "default", value_name = "NAME")]
        instance: String,
    },
    /// Load every program, print the verifier's log, and unload.
    Verify,
}

/// Arguments of all verbs.
#[derive(Debug, Args)]
pub struct BpfArguments {
    /// Name of the agent's kernel objects.
    #[arg(long, default_value = "default", value_name = "NAME")]
    pub(super) instance: String,
    /// Format of the output.
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) output: Output,
}

/// Runs the verb.
pub fn run(verb: BpfVerb) -> anyhow::Result<ExitCode> {
    match verb {
        BpfVerb::Maps(common) => {
            let pins = PinFolder::of(&common.instance);
            let rows: Vec<_> = MAPS
                .iter()
                .map(|(name, holds)| {
                    let entries = dump(&pins, name).map(|entries| entries.len());
                    json!({"name": name, "entries": entries.as_ref().ok(), "holds": holds, "pin": pins.map(name),
                        "error": entries.as_ref().err().map(ToString::to_string)})
                })
                .collect();
            show(
                &rows,
                common.output,
                &[("NAME", "/name"), ("ENTRIES", "/entries"), ("HOLDS", "/holds"), ("PIN", "/pin")],
            );
        }
        BpfVerb::Dump { name, common } => {
            let rows = dump(&PinFolder::of(&common.instance), &name)?;
            match common.output {
                Output::Json => println!("{:#}", Value::Array(rows)),
                _ => rows.iter().for_each(|row| println!("{row}")),
            }
        }
        BpfVerb::Stats(common) => {
            let counted = stats(&PinFolder::of(&common.instance))?;
            match common.output {
                Output::Json => println!("{counted:#}"),
                Output::Table | Output::Wide => show_stats(&counted),
            }
        }
        BpfVerb::Diff { common, state } => return diff(&common, &state),
        BpfVerb::Cleanup { instance } => clean_up(&instance)?,
        BpfVerb::Verify => verify()?,
    }
    Ok(ExitCode::SUCCESS)
}

/// One table each, without zero counts.
fn show_stats(counted: &Value) {
    let show_part = |part: &str, counters: &[&str], columns: &[(&str, &str)]| {
        let rows = counted[part].as_array().cloned().unwrap_or_default().into_iter();
        let some = |row: &Value| counters.iter().any(|counter| row[*counter].as_u64() != Some(0));
        table::print(&rows.filter(some).collect::<Vec<_>>(), columns);
    };
    let reasons = [("VERDICT", "/verdict"), ("REASON", "/reason"), ("CONNECTIONS", "/connections")];
    show_part("reasons", &["connections"], &reasons);
    println!();
    show_part("dials", &["count"], &[("DIALS", "/counter"), ("COUNT", "/count")]);
    println!();
    let routes = [
        ("ROUTE", "/name"),
        ("ROUTER ID", "/router"),
        ("STEERED", "/steer"),
        ("PASSED", "/pass"),
        ("DROPPED", "/drop"),
        ("ENDED", "/ended"),
        ("BYTES IN", "/bytesIn"),
        ("BYTES OUT", "/bytesOut"),
    ];
    show_part("routes", &["steer", "pass", "drop"], &routes);
}

fn show(rows: &[Value], output: Output, columns: &[(&str, &str)]) {
    match output {
        Output::Json => println!("{:#}", Value::Array(rows.to_vec())),
        Output::Table | Output::Wide => table::print(rows, columns),
    }
}

fn diff(common: &BpfArguments, state: &StateArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let intended = runtime.block_on(admin::ask(&state.folder(), View::Intended))?;
    let intended = intended.as_object().filter(|maps| !maps.is_empty()).context("the agent has no kernel data path")?;
    let mut differences = Vec::new();
    for (map, wanted) in intended {
        let by_text = |rows: &[Value]| -> BTreeMap<String, Value> {
            rows.iter().map(|row| (row.to_string(), row.clone())).collect()
        };
        let wanted = by_text(wanted.as_array().context("the agent's answer has no entries")?);
        let real = by_text(&dump(&PinFolder::of(&common.instance), map)?);
        let missing = wanted.iter().filter(|(text, _)| !real.contains_key(*text));
        let extra = real.iter().filter(|(text, _)| !wanted.contains_key(*text));
        differences.extend(missing.map(|(_, entry)| json!({"map": map, "only": "intended", "entry": entry})));
        differences.extend(extra.map(|(_, entry)| json!({"map": map, "only": "kernel", "entry": entry})));
    }
    show(&differences, common.output, &[("MAP", "/map"), ("ONLY", "/only"), ("ENTRY", "/entry")]);
    Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(4) })
}

fn clean_up(instance: &str) -> anyhow::Result<()> {
    let removed = kernel::clean_up(instance)?;
    if removed.is_empty() {
        eprintln!("nothing of the instance {instance} is pinned");
    }
    removed.iter().for_each(|folder| println!("removed {folder}"));
    Ok(())
}

fn verify() -> anyhow::Result<()> {
    let mut objects = vec![("", BpfObject::Plain)];
    if BpfObject::can_log() {
        let levels =
            [(" (log: off)", LogLevel::Off), (" (log: debug)", LogLevel::Debug), (" (log: trace)", LogLevel::Trace)];
        objects.extend(levels.map(|(name, level)| (name, BpfObject::Logging(level))));
    }
    let mut rows = Vec::new();
    for (as_what, object) in objects {
        rows.extend(KernelPrograms::load(object)?.programs()?.into_iter().map(|program| {
            json!({"program": format!("{}{as_what}", program.name), "instructions": program.instructions,
                "verified": program.verified, "share": format!("{:.1} %", f64::from(program.verified) / 10_000.0),
                "jited": program.jited_bytes, "stack": format!("{} of {}", program.stack, kernel::STACK_LIMIT)})
        }));
    }
    table::print(
        &rows,
        &[
            ("PROGRAM", "/program"),
            ("INSTRUCTIONS", "/instructions"),
            ("VERIFIED", "/verified"),
            ("OF THE VERIFIER'S LIMIT", "/share"),
            ("STACK BYTES", "/stack"),
            ("MACHINE CODE BYTES", "/jited"),
        ],
    );
    Ok(())
}
