//! SYN cookies as the reconciler runs them: from which rate on, on which interfaces XDP answers, and which listeners are flooded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use aya::maps::{HashMap, MapData};
use router_common::maps::{GATE_ANSWERS, GATE_ANSWERS_TAGGED, GatePressure, names};
use router_listener::ListenerState;
use router_sys::abi::Raw;
use router_table::table::RoutingTable;

use super::known_sockets::KnownSockets;
use crate::clock::monotonic_ns;
use crate::gate::{CookieListener, cookie_listeners};
use crate::host::state::HostState;
use crate::interfaces::Interfaces;
use crate::kernel::{AttachedMode, KernelError, KernelPrograms};
use crate::maps::{into_io, removed, written};
use crate::netlink::queries::Netlink;

/// Whether connection tracking takes a segment without a SYN for a new connection. Absent without connection tracking.
const PICKS_UP: &str = "/proc/sys/net/netfilter/nf_conntrack_tcp_loose";
/// How long a listener is reported as flooded after its last cookie.
const REPORTED: Duration = Duration::from_secs(10);
/// How long the XDP program stays attached after the last cookie.
const STAYS: Duration = Duration::from_secs(30);

/// State of SYN cookies, as the agent's views show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CookieReport {
    /// Listening addresses whose SYNs are answered with cookies.
    pub flooded: Vec<String>,
    /// Interfaces that have the XDP program, where it leaves the answers to TC: what it sends back would be lost.
    pub silent: Vec<String>,
    /// Listening addresses whose SYNs are not answered, and the host's rule that drops what completes such handshakes.
    pub lost: Vec<(String, String)>,
}

/// The maps of SYN cookies, and what they are to hold.
pub struct CookieReconciler {
    pressure: HashMap<MapData, u32, Raw<GatePressure>>,
    answers: HashMap<MapData, u32, u32>,
    sockets: KnownSockets,
    wanted: BTreeMap<u32, CookieListener>,
    netlink: Netlink,
    asks: bool,
}

impl CookieReconciler {
    /// Takes the maps.
    ///
    /// # Errors
    /// [`KernelError::Map`].
    pub fn new(kernel: &mut KernelPrograms) -> Result<Self, KernelError> {
        Ok(CookieReconciler {
            pressure: HashMap::try_from(kernel.take(names::GATE_PRESSURE)?)?,
            answers: HashMap::try_from(kernel.take(names::GATE_ANSWERS)?)?,
            sockets: KnownSockets::new(kernel)?,
            wanted: BTreeMap::new(),
            netlink: Netlink::open().map_err(aya::maps::MapError::IoError)?,
            asks: false,
        })
    }

    /// Writes the rates of the listeners. What the programs have counted at one is lost when its rate changes.
    ///
    /// # Errors
    /// The system call's.
    pub fn follow(
        &mut self,
        table: &RoutingTable,
        listeners: &[ListenerState],
        local: &[IpAddr],
        host: &HostState,
    ) -> io::Result<()> {
        let picks_up = fs::read_to_string(PICKS_UP).map_or(true, |text| text.trim() != "0");
        self.wanted = cookie_listeners(table, listeners, local, |listener| host.loses_cookies(listener, picks_up));
        let held = self.entries()?;
        for id in held.keys().filter(|id| !self.wanted.contains_key(id)) {
            removed(self.pressure.remove(id))?;
        }
        for (id, listener) in &self.wanted {
            if held.get(id).is_none_or(|held| held.above != listener.above) {
                let value = GatePressure { above: listener.above, ..GatePressure::default() };
                written(self.pressure.insert(id, Raw(value), 0))?;
            }
        }
        Ok(())
    }

    /// Reads which listeners are flooded, and whether the XDP program is to be attached for one.
    ///
    /// # Errors
    /// The system call's.
    pub fn look(&mut self, report: &mut CookieReport) -> io::Result<bool> {
        let (held, now) = (self.entries()?, monotonic_ns());
        let is_within = |held: &GatePressure, time: Duration| {
            held.answered_ns != 0 && u128::from(now.saturating_sub(held.answered_ns)) < time.as_nanos()
        };
        self.asks = held.values().any(|held| is_within(held, STAYS));
        let flooded = held.iter().filter(|(_, held)| is_within(held, REPORTED));
        let flooded = flooded.filter_map(|(id, _)| self.wanted.get(id)).flat_map(|listener| &listener.addresses);
        report.flooded = flooded.map(ToString::to_string).collect();
        let lost = self.wanted.values().filter_map(|listener| Some((&listener.addresses, listener.lost.as_ref()?)));
        let each = lost.flat_map(|(addresses, why)| addresses.iter().map(move |address| (address, why)));
        report.lost = each.map(|(address, why)| (address.to_string(), why.to_string())).collect();
        Ok(self.asks)
    }

    /// Whether the XDP program is to be attached for a listener, as of the last look.
    pub fn asks(&self) -> bool {
        self.asks
    }

    /// Writes the interfaces that XDP answers on, and the sockets that there may be.
    ///
    /// # Errors
    /// The system call's.
    pub fn follow_links(
        &mut self,
        links: &[(u32, String, AttachedMode)],
        interfaces: &Interfaces,
        report: &mut CookieReport,
    ) -> io::Result<()> {
        let ways: BTreeMap<u32, u32> =
            links.iter().map(|(index, _, mode)| (*index, self.way(*index, *mode, interfaces))).collect();
        report.silent =
            links.iter().filter(|(index, ..)| ways.get(index) == Some(&0)).map(|(_, name, _)| name.clone()).collect();
        let held: BTreeMap<u32, u32> = self.answers.iter().collect::<Result<_, _>>().map_err(into_io)?;
        for index in held.keys().filter(|index| ways.get(index).is_none_or(|way| *way == 0)) {
            removed(self.answers.remove(index))?;
        }
        let answers = self.asks && ways.values().any(|way| *way != 0);
        for (index, way) in ways {
            if way != 0 && held.get(&index) != Some(&way) {
                written(self.answers.insert(index, way, 0))?;
            }
        }
        let of_listeners = self.wanted.values().filter(|listener| answers && listener.above != 0);
        let ports: BTreeSet<u16> = of_listeners.flat_map(|listener| &listener.addresses).map(|at| at.port()).collect();
        self.sockets.follow(&ports)
    }

    /// Which frames arrive that XDP sends back on an interface. A driver drops those to a veth pair's other end without a program
    /// of its own, and untagged ones may be of a VLAN of which it has taken out the tag.
    fn way(&mut self, index: u32, mode: AttachedMode, interfaces: &Interfaces) -> u32 {
        let has_vlan = interfaces.above.values().any(|below| *below == index);
        let takes = |pair| self.netlink.other_end_has_xdp(pair).unwrap_or(false);
        match mode {
            AttachedMode::Generic => GATE_ANSWERS,
            AttachedMode::Native if interfaces.veths.contains(&index) => {
                if interfaces.pairs.get(&index).copied().is_some_and(takes) { GATE_ANSWERS } else { 0 }
            }
            AttachedMode::Native if has_vlan => GATE_ANSWERS_TAGGED,
            AttachedMode::Native => GATE_ANSWERS,
        }
    }

    fn entries(&self) -> io::Result<BTreeMap<u32, GatePressure>> {
        let entries = self.pressure.iter().map(|entry| entry.map(|(id, Raw(value))| (id, value)));
        entries.collect::<Result<_, _>>().map_err(into_io)
    }
}
