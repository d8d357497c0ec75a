//! `bench gate`: what the XDP gate costs when nothing happens, and how many new connections come about while one processor
//! sends SYNs, from denied sources and from sources of which nothing is known.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;

use self::flood::Flood;
use super::bars::{self, Bar};
use super::document::{self, machine};
use super::http::backend;
use super::network::Network;
use super::passthrough::backends;
use super::passthrough::groups::Group;
use super::passthrough::measure::{Column, Plan, rounds};
use super::passthrough::ways::{Lane, Way};
use super::tools::Tools;
use crate::process;

mod flood;
mod frames;
mod receiver;
mod report;
mod route;

/// Arguments of `bench gate`.
#[derive(Clone, Args)]
pub struct Arguments {
    /// Rounds, of which the middle one counts.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Nothing is written.
    #[arg(long)]
    dry: bool,
    /// Only new connections in a flood. Nothing is written.
    #[arg(long)]
    floods: bool,
}

/// The ways that are measured at rest: the first is what the others are compared with. Without a policy nothing is attached then.
const AT_REST: [Way; 4] = [Way::Kernel, Way::GateIdle, Way::GateGeneric, Way::GateNative];
/// The other ways of floods.
const COOKIES: [Way; 2] = [Way::CookiesGeneric, Way::CookiesNative];
/// Groups of `bench passthrough` that are measured.
const MEASURED: [&str; 4] = ["bulk-down", "bulk-up", "round-trips", "new-connections"];

fn is_measured(group: &Group) -> bool {
    MEASURED.contains(&group.id)
}

/// Measures, prints, writes docs/benchmarks.md, and fails when a bar is missed.
pub fn run(root: &Path, arguments: &Arguments) -> Result<()> {
    ensure!(process::is_root(), "the benchmark makes network namespaces and attaches XDP programs: run it with sudo");
    let tools = Tools::new(root)?;
    // In a flood, this process has one processor.
    let machine = machine()?;
    let network = Network::new()?;
    let _backends = (backends(&tools, &network)?, backend::start(&tools, &network)?);
    let open = |way| Lane::open(&tools, &network, way);
    let mut lanes = AT_REST.into_iter().map(open).collect::<Result<Vec<_>>>()?;
    let plan = Plan { rounds: arguments.rounds.into(), parts: 5, milliseconds: 100, pause: Duration::from_secs(12) };
    let columns = if arguments.floods { Vec::new() } else { rounds(&tools, &network, &lanes, is_measured, plan)? };
    lanes.retain(|lane| lane.way != Way::GateIdle);
    lanes.extend(COOKIES.into_iter().map(open).collect::<Result<Vec<_>>>()?);
    let with_twin = |lane: Lane| Lane::open_twin(&tools, &network, lane.way).map(|twin| (lane, twin));
    let pairs = lanes.into_iter().map(with_twin).collect::<Result<Vec<_>>>()?;
    let floods = flood::measure(&tools, &network, &pairs, plan.rounds)?;
    let bars: Vec<Bar> = report::idle(&columns, is_measured).into_iter().chain(report::bars(&floods)).collect();
    let text = text(&tools, &machine, &columns, &floods, &bars)?;
    println!("{text}");
    if arguments.dry || arguments.floods {
        return Ok(());
    }
    document::write_section(root, "Gate", &text)?;
    let missed: Vec<_> = bars.iter().filter(|bar| !bar.figure.as_ref().is_some_and(|(_, met)| *met)).collect();
    ensure!(
        missed.is_empty(),
        "bars missed: {}",
        missed.iter().map(|bar| bar.what.as_str()).collect::<Vec<_>>().join("; ")
    );
    Ok(())
}

fn text(tools: &Tools, machine: &str, columns: &[Column], floods: &[Flood], bars: &[Bar]) -> Result<String> {
    let mut text = format!(
        "`cargo xtask bench gate`, on {}, of {}. Network, load and rounds are those of `bench passthrough`. `Sluice kernel` has no
gate (`--xdp off`); without a policy it is as by default (`auto`), and attached to nothing; the others have a policy that concerns no client.
In parentheses the median of the ratios to the first in the same round.

{}
One processor sends SYNs of 131,072 sources to the listener, as fast as it can; another one receives them, where the agent, the clients and
the backends work as well. In generic mode and without XDP that is by receive packet steering. In native mode the interface receives all
packets, undisturbed ones too, as that of a network card does: as XDP frames of 60 bytes or more, which further veth pairs make on the sending
processor, in softirq, at most 200 µs after they came, as with a card that moderates its interrupts (`gro_flush_timeout` 200000,
`napi_defer_hard_irqs` 2, which DPDK's guide to AF_XDP recommends for busy polling; a timer causes the polls). The sending processor polls its interfaces at most
100 µs after a packet. Clients make new connections meanwhile, one at a time, which leaves the receiving processor time, and 16, which leave it
none. Undisturbed, clients connect to another router of the same kind, and the same is sent to an interface of its own. In a round, twelve times
400 ms of both (in native mode; else four times) are measured by turns, so that a machine whose speed changes is as fast for one as for the
other. Passthrough: a hello to a backend, which the kernel
carries; edge: a full handshake of TLS 1.3 with the proxy and a request; clear text: a request to the proxy. The ways of the gate deny the
sources. The ways of cookies have no policy, the default rate, and `tcp_syncookies` 1: undisturbed, XDP is attached to the client's end of its
link alone, which drops what is sent to the flood's sources, on the sending processor; what passes is handled by the receiving one, so that
clients send from there, and the router's interface is polled there in both states (checked before the first round). In the flood, connections
are counted once XDP answers.
`Sluice kernel` has no XDP: TC answers. The cost of a SYN is the time of the receiving processor in a flood without clients, by the SYNs that
XDP drops or answers in it: where it has no other time, a flood leaves what these leave.

{}",
        machine,
        tools.build,
        report::at_rest(columns, is_measured),
        report::in_floods(floods),
    );
    bars::write(&mut text, bars)?;
    Ok(text)
}
