//! Interfaces that permit `bpf_redirect_peer`.
//!
//! Packets to a pod on this host pass a veth pair: one end here, the other in the pod's network namespace.
//! `bpf_redirect_peer` hands them to the other end without the backlog queue between the two, and so without a softirq
//! turn. But egress hooks of this end do not see them. So an interface permits it only if it has no such hooks. They
//! are checked repeatedly, and each permission expires soon, so that packets take the ordinary path if no agent runs.

use std::io;

use aya::maps::{HashMap, MapData};

use super::clock::monotonic_ns;
use super::egress_hooks::EgressHooks;
use super::interfaces::{Interfaces, Pair};
use super::kernel::KernelPrograms;
use super::maps::into_io;
use super::netlink::Ethtool;
use crate::netlink::queries::Netlink;

/// Nanoseconds until a permission expires.
const STANDS_NS: u64 = 15_000_000_000;

/// Whether `bpf_redirect_peer` is used (`--peer-redirect`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum PeerRedirect {
    /// On interfaces without egress hooks (queueing discipline, filter, TCX program or chain of nftables) that leave
    /// segmentation and checksums to their other end, where no XDP program is attached.
    #[default]
    Auto,
    /// Never: every packet leaves by its interface.
    Never,
}

/// The map of permissions.
#[derive(Debug)]
pub struct Peers {
    map: HashMap<MapData, u32, u64>,
    wanted: PeerRedirect,
    last: Vec<String>,
}

impl Peers {
    /// Uses the map of a loaded object.
    pub fn new(map: HashMap<MapData, u32, u64>, wanted: PeerRedirect) -> Self {
        Peers { map, wanted, last: Vec::new() }
    }

    /// Names of the interfaces that permit it, as of the last check.
    pub fn names(&self) -> &[String] {
        &self.last
    }

    /// Checks the interfaces and writes the permissions. `false` if only their expiry changed.
    pub fn renew(&mut self, kernel: &KernelPrograms, interfaces: &Interfaces, netlink: &mut Netlink) -> bool {
        let open = match self.wanted {
            PeerRedirect::Auto => find(kernel, interfaces, netlink),
            PeerRedirect::Never => Vec::new(),
        };
        if let Err(error) = self.write(&open) {
            tracing::warn!(%error, "cannot write the permissions of bpf_redirect_peer");
        }
        let names: Vec<String> = open.into_iter().map(|(name, _)| name).collect();
        let changed = names != self.last;
        if changed {
            let interfaces = names.join(", ");
            tracing::info!(target: "datapath", interfaces, "packets are redirected to the peers of these interfaces");
            self.last = names;
        }
        changed
    }

    fn write(&mut self, open: &[(String, u32)]) -> io::Result<()> {
        let held: Vec<u32> = self.map.keys().collect::<Result<_, _>>().map_err(into_io)?;
        for index in held.iter().filter(|held| !open.iter().any(|(_, index)| index == *held)) {
            self.map.remove(index).map_err(into_io)?;
        }
        let until = monotonic_ns() + STANDS_NS;
        open.iter().try_for_each(|(_, index)| self.map.insert(index, until, 0).map_err(into_io))
    }
}

/// The interfaces that permit it, by name and index, in the order of their names.
fn find(kernel: &KernelPrograms, interfaces: &Interfaces, netlink: &mut Netlink) -> Vec<(String, u32)> {
    if interfaces.pairs.is_empty() {
        return Vec::new();
    }
    let mut look = match PeerCheck::begin(kernel, netlink) {
        Ok(look) => look,
        Err(error) => {
            tracing::debug!(target: "datapath", %error, "cannot read the egress hooks");
            return Vec::new();
        }
    };
    let pairs = kernel.attached_to().filter_map(|(name, index)| Some((name, index, *interfaces.pairs.get(&index)?)));
    let open = pairs.filter(|(name, index, pair)| {
        look.is_open(name, *index, *pair).unwrap_or_else(|error| {
            tracing::debug!(target: "datapath", interface = name, %error, "cannot read the egress hooks");
            false
        })
    });
    open.map(|(name, index, _)| (name.to_owned(), index)).collect()
}

/// What one check reads.
struct PeerCheck<'a> {
    hooks: EgressHooks<'a>,
    ethtool: Ethtool,
}

impl<'a> PeerCheck<'a> {
    fn begin(kernel: &'a KernelPrograms, netlink: &'a mut Netlink) -> io::Result<Self> {
        Ok(PeerCheck { hooks: EgressHooks::begin(kernel, netlink)?, ethtool: Ethtool::open()? })
    }

    /// True if no hook of an interface misses packets that bypass it.
    fn is_open(&mut self, name: &str, index: u32, pair: Pair) -> io::Result<bool> {
        // One that queues neither delays nor drops packets only if there is none.
        if self.hooks.first(name, index, |queue| queue == "noqueue")?.is_some() {
            return Ok(false);
        }
        let features = self.ethtool.features(index)?;
        Ok(OFFLOADS.iter().all(|offload| features.contains(*offload))
            && !self.hooks.netlink().other_end_has_xdp(pair)?)
    }
}

/// Offloads that an interface leaves to its other end. Without all of those for TCP, packets are segmented and
/// checksummed on their way out, for a receiver that cannot do so.
const OFFLOADS: [&str; 5] = [
    "tx-checksum-ip-generic",
    "tx-generic-segmentation",
    "tx-scatter-gather",
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
];
