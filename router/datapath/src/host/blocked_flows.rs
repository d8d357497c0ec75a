//! Carried connections that rules of this host stop.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use router_common::maps::{Flow, FlowKey, STATE_CLOSING};
use router_sys::batch::MapWalk;

use crate::address::address;
use crate::flows::{is_client, other_direction};
use crate::host::state::HostState;
use crate::netfilter::firewall::{Leg, LegOutcome};
use crate::netfilter::{Interface, Loss};

/// A connection to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Key of the client's entry.
    pub client: FlowKey,
    /// Monotonic nanoseconds of its dial.
    pub started_ns: u64,
    /// True if the client must get no reset, because a rule drops its packets.
    pub silent: bool,
}

/// Finds the connections that rules stop. Connections with the same client address, listener and endpoint are checked
/// once, unless rules depend on ports.
///
/// # Errors
/// The system call's.
pub fn lost(
    walk: &mut MapWalk<FlowKey, Flow>,
    host: &HostState,
    link: impl Fn(u32) -> Interface,
) -> io::Result<Vec<Lost>> {
    let mut judge = Judge { host, link, known: HashMap::new(), rules: BTreeMap::new() };
    let mut found = Vec::new();
    walk.all(|key, flow| {
        if flow.state == STATE_CLOSING {
            return;
        }
        if let Some(silent) = judge.ends(leg(flow)) {
            let client = if is_client(flow) { *key } else { other_direction(flow) };
            found.push(Lost { client, started_ns: flow.started_ns, silent });
        }
    })?;
    for (rule, connections) in judge.rules {
        tracing::info!(target: "datapath", connections, "carried connections are ended: {rule}");
    }
    Ok(found)
}

/// The leg towards the receiver of an entry's packets.
fn leg(flow: &Flow) -> Leg {
    let to = &flow.rewrite.to;
    Leg {
        ours: SocketAddr::new(address(&to.source), to.source_port),
        theirs: SocketAddr::new(address(&to.destination), to.destination_port),
        interface: flow.interface,
        accepted: !is_client(flow),
    }
}

struct Judge<'h, L> {
    host: &'h HostState,
    link: L,
    known: HashMap<Leg, LegOutcome>,
    /// Number of connections that each rule ends.
    rules: BTreeMap<Arc<str>, usize>,
}

impl<L: Fn(u32) -> Interface> Judge<'_, L> {
    /// `Some` if the connection must end: true if its client must get no reset.
    fn ends(&mut self, leg: Leg) -> Option<bool> {
        let (why, silent) = match self.outcome(leg) {
            LegOutcome::Lost { incoming, loss: Loss { why, rejected } } => (why, leg.accepted && incoming && !rejected),
            _ if self.host.protects(leg) => ("IPsec transforms or blocks their packets".into(), false),
            _ => return None,
        };
        *self.rules.entry(why).or_default() += 1;
        Some(silent)
    }

    fn outcome(&mut self, leg: Leg) -> LegOutcome {
        let Judge { host, link, known, .. } = self;
        let of_any = leg.of_any_port();
        match known.entry(of_any).or_insert_with(|| host.outcome(of_any, link(of_any.interface))) {
            LegOutcome::DependsOnPort => host.outcome(leg, link(leg.interface)),
            outcome => outcome.clone(),
        }
    }
}
