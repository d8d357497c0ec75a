//! The thread that looks at the host: twenty thousand rules are read in a second, and everything that is known of ways to
//! endpoints is judged by them, while the data path's own thread sweeps and writes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, mpsc};
use std::time::Instant;
use std::{io, thread};

use router_common::maps::{Flow, FlowKey};
use router_sys::batch::Walk;
use tokio::sync::Notify;

use super::carried::{self, Lost};
use crate::egress_routes::{KernelPaths, Path, Paths};
use crate::host::state::Host;
use crate::netfilter::{self, HostFirewall};
use crate::netlink::Policies;
use crate::netlink::queries::Netlink;
use crate::obstacles::{AgentAlone, Obstacle};

/// What is asked of the thread.
#[derive(Debug)]
pub enum Order {
    /// To look whether something has changed.
    Look(Question),
    /// Which connections the host would not let go on, by what was read last.
    Carried,
}

/// What there is to look at.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The ways are asked for also if the host is as it was.
    pub ways: bool,
    /// Addresses of this host.
    pub local: BTreeSet<IpAddr>,
    /// MTU in bytes of the interfaces that the programs are attached to, by index.
    pub attached: BTreeMap<u32, u32>,
    /// Names of interfaces, by index.
    pub names: BTreeMap<u32, String>,
    /// Where endpoints are.
    pub endpoints: Vec<SocketAddr>,
    /// Where it is listened.
    pub listeners: Vec<SocketAddr>,
}

/// What the thread says.
#[derive(Debug)]
pub enum Told {
    /// Nothing has changed, or could.
    Nothing,
    /// How it is now.
    Looked(Answer),
    /// These end.
    Lost(Vec<Lost>),
}

/// How it is.
#[derive(Debug)]
pub struct Answer {
    /// What the host does to packets; the same as before if it is the same pointer.
    pub host: Arc<Host>,
    /// The ways to the endpoints that were asked for.
    pub ways: HashMap<SocketAddr, Result<Path, Obstacle>>,
    /// Why the agent takes all connections to a listener, of those that were asked for.
    pub taken: HashMap<SocketAddr, Option<AgentAlone>>,
}

/// The thread, from outside. It ends when this goes.
#[derive(Debug)]
pub struct Watch {
    orders: mpsc::Sender<Order>,
    told: mpsc::Receiver<Told>,
    come: Arc<Notify>,
}

impl Watch {
    /// Starts it, in this thread's network namespace. `flows` are the connections that the kernel carries.
    ///
    /// # Errors
    /// The system calls'.
    pub fn start(firewall: HostFirewall, flows: Walk<FlowKey, Flow>) -> io::Result<Watch> {
        let ((orders, next), (tell, told)) = (mpsc::channel(), mpsc::channel());
        let come = Arc::new(Notify::new());
        let mut looker = Looker {
            firewall: (firewall == HostFirewall::Respect).then(netfilter::Watch::default),
            paths: KernelPaths::new(Netlink::open()?),
            flows,
        };
        let notify = Arc::clone(&come);
        thread::Builder::new().name("host".to_owned()).spawn(move || {
            while let Ok(order) = next.recv() {
                if tell.send(looker.follow(order)).is_err() {
                    return;
                }
                notify.notify_one();
            }
        })?;
        Ok(Watch { orders, told, come })
    }

    /// Gives an order. Each is answered.
    pub fn order(&self, order: Order) {
        // The thread ends before this only if it panics, which was printed.
        let _ = self.orders.send(order);
    }

    /// Blocks until the next answer is there; `None` if there will be none.
    pub fn wait(&self) -> Option<Told> {
        self.told.recv().ok()
    }

    /// Waits for the next answer.
    pub async fn told(&self) -> Told {
        loop {
            match self.told.try_recv() {
                Ok(told) => return told,
                Err(mpsc::TryRecvError::Empty) => self.come.notified().await,
                Err(mpsc::TryRecvError::Disconnected) => std::future::pending().await,
            }
        }
    }
}

struct Looker {
    /// `None`: rules are not looked at.
    firewall: Option<netfilter::Watch>,
    paths: KernelPaths,
    flows: Walk<FlowKey, Flow>,
}

impl Looker {
    fn follow(&mut self, order: Order) -> Told {
        match order {
            Order::Look(question) => self.look(question),
            Order::Carried => {
                let begin = Instant::now();
                let KernelPaths { host, names, .. } = &self.paths;
                let lost = carried::lost(&mut self.flows, host, |index| netfilter::Link::of(index, names));
                tracing::debug!(target: "timing", took = ?begin.elapsed(), "carried connections judged");
                lost.map_or_else(
                    |error| {
                        tracing::warn!(%error, "cannot go through the map of flows");
                        Told::Nothing
                    },
                    Told::Lost,
                )
            }
        }
    }

    fn look(&mut self, question: Question) -> Told {
        let changed = self.read(&question.local);
        let moved = question.attached != self.paths.attached || question.names != self.paths.names;
        if !changed && !moved && !question.ways {
            return Told::Nothing;
        }
        let begin = Instant::now();
        (self.paths.attached, self.paths.names) = (question.attached, question.names);
        let ways = question.endpoints.into_iter().map(|to| (to, self.paths.path(to))).collect();
        let host = Arc::clone(&self.paths.host);
        let taken = question.listeners.into_iter().map(|listener| (listener, host.takes(listener))).collect();
        tracing::debug!(target: "timing", took = ?begin.elapsed(), changed, "ways judged");
        Told::Looked(Answer { host, ways, taken })
    }

    /// Reads what the host does to packets. `false` if it is as it was.
    fn read(&mut self, local: &BTreeSet<IpAddr>) -> bool {
        let last = Arc::clone(&self.paths.host);
        let policies = or_as_before(Policies::read(), "the IPsec policies", &last.policies);
        let routing = or_as_before(self.paths.netlink().routing_rules(), "the rules of routing", &last.routing);
        let firewall = self.firewall.as_mut().map(|watch| (watch.look(local), Arc::clone(watch.last())));
        let others = firewall.as_ref().is_some_and(|(changed, _)| *changed || last.firewall.is_none());
        if !others && policies == last.policies && routing == last.routing {
            return false;
        }
        let firewall = firewall.map(|(_, firewall)| firewall);
        self.paths.follow(Arc::new(Host { policies, routing, firewall }));
        true
    }
}

fn or_as_before<T: Clone>(read: io::Result<T>, what: &str, before: &T) -> T {
    read.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot read {what}");
        before.clone()
    })
}
