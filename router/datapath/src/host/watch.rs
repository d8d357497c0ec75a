//! The thread that inspects the host: reading twenty thousand rules and judging every route to an endpoint by them
//! takes a second, during which the data path's own thread sweeps and writes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, mpsc};
use std::time::Instant;
use std::{io, thread};

use router_common::maps::{Flow, FlowKey};
use router_sys::batch::MapWalk;
use tokio::sync::Notify;

use super::blocked_flows::{self, Lost};
use crate::egress_routes::{KernelPaths, Path, Paths};
use crate::host::state::HostState;
use crate::netfilter::{self, HostFirewall};
use crate::netlink::Policies;
use crate::netlink::queries::Netlink;
use crate::obstacles::{AgentAlone, Obstacle};

/// An order to the thread.
#[derive(Debug)]
pub enum WatchRequest {
    /// Check whether the host has changed.
    Look(Question),
    /// Find connections that the host's rules stop, by the last reading.
    Carried,
}

/// What to inspect.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Look up the routes to endpoints even if the host is unchanged.
    pub ways: bool,
    /// Addresses of this host.
    pub local: BTreeSet<IpAddr>,
    /// MTU in bytes of the interfaces that the programs are attached to, by index.
    pub attached: BTreeMap<u32, u32>,
    /// Names of interfaces, by index.
    pub names: BTreeMap<u32, String>,
    /// Addresses of endpoints.
    pub endpoints: Vec<SocketAddr>,
    /// Listening addresses.
    pub listeners: Vec<SocketAddr>,
}

/// A result of the thread.
#[derive(Debug)]
pub enum WatchReply {
    /// No change.
    Nothing,
    /// The new state.
    Looked(HostReport),
    /// Connections to end.
    Lost(Vec<Lost>),
}

/// State of the host, as far as the data path depends on it.
#[derive(Debug)]
pub struct HostReport {
    /// How the host treats packets; unchanged if the pointer is.
    pub host: Arc<HostState>,
    /// The routes to the endpoints asked about.
    pub ways: HashMap<SocketAddr, Result<Path, Obstacle>>,
    /// Why all connections to a listener are relayed, for the listeners asked about.
    pub taken: HashMap<SocketAddr, Option<AgentAlone>>,
}

/// Handle of the thread, which ends when this is dropped.
#[derive(Debug)]
pub struct HostWatch {
    orders: mpsc::Sender<WatchRequest>,
    replies: mpsc::Receiver<WatchReply>,
    come: Arc<Notify>,
}

impl HostWatch {
    /// Starts it, in this thread's network namespace. `flows` are the connections that the kernel carries.
    ///
    /// # Errors
    /// The system calls'.
    pub fn start(firewall: HostFirewall, flows: MapWalk<FlowKey, Flow>) -> io::Result<HostWatch> {
        let ((orders, next), (reply, replies)) = (mpsc::channel(), mpsc::channel());
        let come = Arc::new(Notify::new());
        let mut looker = Looker {
            firewall: (firewall == HostFirewall::Respect).then(netfilter::RulesetWatch::default),
            paths: KernelPaths::new(Netlink::open()?),
            flows,
        };
        let notify = Arc::clone(&come);
        thread::Builder::new().name("host".to_owned()).spawn(move || {
            while let Ok(order) = next.recv() {
                if reply.send(looker.follow(order)).is_err() {
                    return;
                }
                notify.notify_one();
            }
        })?;
        Ok(HostWatch { orders, replies, come })
    }

    /// Sends an order. Each has one result.
    pub fn order(&self, order: WatchRequest) {
        // The thread ends earlier only by a panic, which was printed.
        let _ = self.orders.send(order);
    }

    /// Blocks until the next result; `None` if the thread has ended.
    pub fn wait(&self) -> Option<WatchReply> {
        self.replies.recv().ok()
    }

    /// Waits for the next result.
    pub async fn reply(&self) -> WatchReply {
        loop {
            match self.replies.try_recv() {
                Ok(reply) => return reply,
                Err(mpsc::TryRecvError::Empty) => self.come.notified().await,
                Err(mpsc::TryRecvError::Disconnected) => std::future::pending().await,
            }
        }
    }
}

struct Looker {
    /// `None`: rules are not read.
    firewall: Option<netfilter::RulesetWatch>,
    paths: KernelPaths,
    flows: MapWalk<FlowKey, Flow>,
}

impl Looker {
    fn follow(&mut self, order: WatchRequest) -> WatchReply {
        match order {
            WatchRequest::Look(question) => self.look(question),
            WatchRequest::Carried => {
                let begin = Instant::now();
                let KernelPaths { host, names, .. } = &self.paths;
                let lost = blocked_flows::lost(&mut self.flows, host, |index| netfilter::Interface::of(index, names));
                tracing::debug!(target: "timing", took = ?begin.elapsed(), "carried connections checked");
                lost.map_or_else(
                    |error| {
                        tracing::warn!(%error, "cannot iterate over the map of flows");
                        WatchReply::Nothing
                    },
                    WatchReply::Lost,
                )
            }
        }
    }

    fn look(&mut self, question: Question) -> WatchReply {
        let changed = self.read(&question.local);
        let moved = question.attached != self.paths.attached || question.names != self.paths.names;
        if !changed && !moved && !question.ways {
            return WatchReply::Nothing;
        }
        let begin = Instant::now();
        (self.paths.attached, self.paths.names) = (question.attached, question.names);
        let ways = question.endpoints.into_iter().map(|to| (to, self.paths.path(to))).collect();
        let host = Arc::clone(&self.paths.host);
        let taken = question.listeners.into_iter().map(|listener| (listener, host.takes(listener))).collect();
        tracing::debug!(target: "timing", took = ?begin.elapsed(), changed, "routes to endpoints checked");
        WatchReply::Looked(HostReport { host, ways, taken })
    }

    /// Reads how the host treats packets. `false` if it is unchanged.
    fn read(&mut self, local: &BTreeSet<IpAddr>) -> bool {
        let last = Arc::clone(&self.paths.host);
        let policies = or_as_before(Policies::read(), "the IPsec policies", &last.policies);
        let routing = or_as_before(self.paths.netlink().routing_rules(), "the routing rules", &last.routing);
        let firewall = self.firewall.as_mut().map(|watch| (watch.look(local), Arc::clone(watch.last())));
        let others = firewall.as_ref().is_some_and(|(changed, _)| *changed || last.firewall.is_none());
        if !others && policies == last.policies && routing == last.routing {
            return false;
        }
        let firewall = firewall.map(|(_, firewall)| firewall);
        self.paths.follow(Arc::new(HostState { policies, routing, firewall }));
        true
    }
}

fn or_as_before<T: Clone>(read: io::Result<T>, what: &str, before: &T) -> T {
    read.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot read {what}");
        before.clone()
    })
}
