//! Runs one script on both data paths: client and endpoint observe the same on both.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, Result, ensure};
use router_common::verdict::{DialCounter, Reason};

use super::setup::{Family, HOST};
use super::stage::Stage;
use crate::netns::Netns;
use crate::sluice::DataPath;
use crate::stream::{self, Pair};

/// Bytes in each direction of a connection.
const LENGTH: u64 = 200_000;
/// Key of connections that the programs dialed, among the reasons for leaving connections to the agent.
const STEERED: &str = "steered";

/// Expected carrier of connections on the kernel's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// The kernel programs.
    Kernel,
    /// The agent, by the programs' decision, with this reason.
    Agent(Reason),
    /// The agent; the programs do not inspect the packets, because of their interface or listener.
    AgentAlone,
}

/// Observations at both ends of a connection, beside the bytes, which arrived unchanged.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    /// The client's own address and its peer's.
    pub client: (IpAddr, SocketAddr),
    /// The endpoint's own address and its peer's.
    pub endpoint: (SocketAddr, IpAddr),
}

/// Runs a script for each version of IP, once over each data path, each time in a fresh world: a [`Stage`], or one with
/// more. The script returns the observations of client and endpoint, without those that vary (ports of clients).
///
/// # Errors
/// Those of the world and of the script; or the observations differ between data paths.
/// Those of the world and of the script; when the two saw something else over one path than over the other.
pub fn alike<W, S: PartialEq + Debug>(
    world: impl Fn(DataPath, Family) -> Result<W>,
    script: impl Fn(&W) -> Result<S>,
) -> Result<()> {
    for family in [Family::V4, Family::V6] {
        let seen = |data_path| {
            let told = || format!("{family:?}, {data_path:?}");
            world(data_path, family).and_then(|world| script(&world)).with_context(told)
        };
        let (kernel, relay) = (seen(DataPath::Kernel)?, seen(DataPath::UserSpace)?);
        ensure!(kernel == relay, "{family:?}: over the kernel's path {kernel:#?}, over the relay {relay:#?}");
    }
    Ok(())
}

impl Stage {
    /// A connection of the stage's client, with bytes both ways and both ends; `carrier` is the expected one in the
    /// kernel run.
    ///
    /// # Errors
    /// Bytes are lost, or the carrier is another one.
    pub fn talk(&self, carrier: Carrier) -> Result<Seen> {
        self.talk_from(&self.client, self.address, carrier)
    }

    /// As [`Stage::talk`], of a client anywhere, through any listener of the router.
    ///
    /// # Errors
    /// As [`Stage::talk`].
    pub fn talk_from(&self, client: &Netns, to: SocketAddr, carrier: Carrier) -> Result<Seen> {
        self.carried_by(carrier, || {
            let pair = stream::connect(client, to, &self.listener, HOST)?;
            let seen = Seen::of(&pair)?;
            pair.greet()?;
            pair.exchange(1, LENGTH, LENGTH)?;
            Ok(seen)
        })
    }

    /// Checks that `carrier` carried all connections of a script on the kernel's path; at least one, unless the
    /// programs do not inspect them.
    ///
    /// # Errors
    /// Those of the script; when another has carried one of them.
    pub fn carried_by<T>(&self, carrier: Carrier, script: impl FnOnce() -> Result<T>) -> Result<T> {
        let before = self.decided()?;
        let done = script()?;
        if self.steers() {
            let mut decided = self.decided()?;
            decided.iter_mut().for_each(|(what, count)| *count -= before.get(what).copied().unwrap_or_default());
            decided.retain(|_, count| *count > 0);
            let expected = match carrier {
                Carrier::Kernel => Some(STEERED),
                Carrier::Agent(reason) => Some(reason.text()),
                Carrier::AgentAlone => None,
            };
            ensure!(decided.keys().map(String::as_str).eq(expected), "{decided:?} instead of {carrier:?}");
        }
        Ok(done)
    }

    /// Decisions of the programs by reason.
    fn decided(&self) -> Result<BTreeMap<String, u64>> {
        let steered = (STEERED.to_owned(), self.dial_counter(DialCounter::Dialed)?);
        Ok(self.passed_up()?.into_iter().chain([steered]).collect())
    }
}

impl Seen {
    /// Observations at the ends of a connection.
    ///
    /// # Errors
    /// It has ended.
    pub fn of(pair: &Pair) -> Result<Seen> {
        let Pair { client, origin } = pair;
        Ok(Seen {
            client: (client.local_addr()?.ip(), client.peer_addr()?),
            endpoint: (origin.local_addr()?, origin.peer_addr()?.ip()),
        })
    }
}
