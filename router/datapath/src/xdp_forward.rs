//! Interfaces between which XDP forwards established connections (`--xdp-forward`).
//!
//! A frame that XDP forwards passes neither the stack's offloads nor the hooks of the interface that it leaves by. So both
//! interfaces must have XDP in their drivers, merge no segments, and have no hook that would miss packets. This is checked
//! repeatedly, and each permission expires soon, so that packets take the ordinary path if no agent runs.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use aya::maps::{HashMap, MapData};
use router_common::maps::{GateForward, names};
use router_sys::abi::Raw;

use crate::clock::monotonic_ns;
use crate::egress_hooks::EgressHooks;
use crate::interfaces::Interfaces;
use crate::kernel::{AttachedMode, GateMode, KernelError, KernelPrograms};
use crate::maps::{into_io, removed, written};
use crate::netlink::queries::Netlink;
use crate::netlink::{Ethtool, Netdev};

/// Nanoseconds until a permission expires.
const STANDS_NS: u64 = 15_000_000_000;
/// Interval between two checks without a change of interfaces or links.
const CHECKED: Duration = Duration::from_secs(5);
/// The loopback interface of every network namespace.
const LOOPBACK: u32 = 1;

/// Whether XDP forwards, as the agent's views show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForwardReport {
    /// Interfaces between which it does.
    pub open: Vec<String>,
    /// The other interfaces, and why it does not.
    pub closed: Vec<(String, String)>,
}

/// Attached programs, by interface.
type Links = Vec<(u32, String, AttachedMode)>;

/// Interfaces, each with a reason.
type Reasons = Vec<(String, String)>;

/// The map of permissions.
pub struct XdpForward {
    map: HashMap<MapData, u32, Raw<GateForward>>,
    mode: GateMode,
    netlink: Netlink,
    checked: Option<(Instant, Links, Interfaces)>,
    report: ForwardReport,
}

impl XdpForward {
    /// Takes the map.
    ///
    /// # Errors
    /// [`KernelError::Map`].
    pub fn new(kernel: &mut KernelPrograms, mode: GateMode) -> Result<Self, KernelError> {
        Ok(XdpForward {
            map: HashMap::try_from(kernel.take(names::GATE_FORWARDS)?)?,
            mode,
            netlink: Netlink::open().map_err(aya::maps::MapError::IoError)?,
            checked: None,
            report: ForwardReport::default(),
        })
    }

    /// Checks the interfaces, if they have changed or it is time, and writes the permissions.
    pub fn renew(&mut self, kernel: &KernelPrograms, interfaces: &Interfaces) -> &ForwardReport {
        let links = kernel.gate_links();
        let is_fresh = self.checked.as_ref().is_some_and(|(at, of_links, of_interfaces)| {
            at.elapsed() < CHECKED && *of_links == links && of_interfaces == interfaces
        });
        if is_fresh {
            return &self.report;
        }
        let (open, mut closed) = self.check(kernel, interfaces, &links);
        // One interface alone forwards to none.
        let is_alone = open.len() < 2;
        if is_alone {
            closed.extend(open.iter().map(|(name, _)| (name.clone(), "no other interface can".to_owned())));
            closed.sort();
        }
        let permitted = if is_alone { Vec::new() } else { open };
        if let Err(error) = self.write(&permitted, interfaces) {
            tracing::warn!(%error, "cannot write the permissions of XDP to forward");
        }
        let report = ForwardReport { open: permitted.into_iter().map(|(name, _)| name).collect(), closed };
        if report != self.report {
            let interfaces = report.open.join(", ");
            tracing::info!(target: "datapath", interfaces, "XDP forwards established connections between these interfaces");
            self.report = report;
        }
        self.checked = Some((Instant::now(), links, interfaces.clone()));
        &self.report
    }

    fn write(&mut self, open: &[(String, u32)], interfaces: &Interfaces) -> io::Result<()> {
        let held: Vec<u32> = self.map.keys().collect::<Result<_, _>>().map_err(into_io)?;
        for index in held.iter().filter(|held| !open.iter().any(|(_, index)| index == *held)) {
            removed(self.map.remove(index))?;
        }
        let until_ns = monotonic_ns() + STANDS_NS;
        open.iter().try_for_each(|(_, index)| {
            let hardware = interfaces.hardware.get(index).copied().unwrap_or_default();
            written(self.map.insert(index, Raw(GateForward { until_ns, hardware, pad: [0; 2] }), 0))
        })
    }

    /// The interfaces that may forward, by name and index, and the others with the reason; in the order of their names.
    fn check(
        &mut self,
        kernel: &KernelPrograms,
        interfaces: &Interfaces,
        links: &Links,
    ) -> (Vec<(String, u32)>, Reasons) {
        let mut check = Check::begin(kernel, &mut self.netlink);
        let modes: BTreeMap<u32, AttachedMode> = links.iter().map(|(index, _, mode)| (*index, *mode)).collect();
        let (mut open, mut closed) = (Vec::new(), Vec::new());
        for (name, index) in interfaces.attachable.iter().filter(|(_, index)| **index != LOOPBACK) {
            let why = prevents(self.mode, *index, modes.get(index).copied(), interfaces).map(str::to_owned);
            let why = why.or_else(|| match &mut check {
                Ok(check) => check.of(name, *index, interfaces).unwrap_or_else(|error| Some(error.to_string())),
                Err(error) => Some(error.to_string()),
            });
            match why {
                None => open.push((name.clone(), *index)),
                Some(why) => closed.push((name.clone(), why)),
            }
        }
        (open, closed)
    }
}

/// What about an interface prevents it, as far as the programs and the links say.
fn prevents(
    mode: GateMode,
    index: u32,
    attached: Option<AttachedMode>,
    interfaces: &Interfaces,
) -> Option<&'static str> {
    if mode == GateMode::Off {
        return Some("`--xdp off`");
    }
    if interfaces.above.contains_key(&index) {
        return Some("its packets arrive on the interface below it first (VLAN, macvlan)");
    }
    if interfaces.veths.contains(&index) && mode == GateMode::Auto {
        return Some(
            "it is an end of a veth pair, and native XDP takes the other end's segmentation offload; `--xdp native`",
        );
    }
    match attached {
        None => return Some("XDP is not attached"),
        Some(AttachedMode::Generic) => return Some("XDP is not in its driver"),
        Some(AttachedMode::Native) => {}
    }
    if interfaces.above.values().any(|below| *below == index) {
        return Some("VLANs or macvlans are above it, whose frames XDP may not tell apart");
    }
    interfaces.bonds.contains(&index).then_some("it is a bond, and XDP sees its members")
}

/// What one check asks the kernel.
struct Check<'a> {
    hooks: EgressHooks<'a>,
    ethtool: Ethtool,
    netdev: Netdev,
}

impl<'a> Check<'a> {
    fn begin(kernel: &'a KernelPrograms, netlink: &'a mut Netlink) -> io::Result<Self> {
        let lacks = |_| io::Error::other("the kernel does not say what its driver can do (before Linux 6.3)");
        let netdev = Netdev::open().map_err(lacks)?;
        Ok(Check { hooks: EgressHooks::begin(kernel, netlink)?, ethtool: Ethtool::open()?, netdev })
    }

    /// What prevents it; `None`: nothing.
    fn of(&mut self, name: &str, index: u32, interfaces: &Interfaces) -> io::Result<Option<String>> {
        let can = self.netdev.xdp_features(index)?;
        if !can.redirects || !can.sends {
            let veth = interfaces.veths.contains(&index);
            let why = if veth {
                "the other end of the veth pair has neither an XDP program nor GRO"
            } else {
                "its driver cannot"
            };
            return Ok(Some(why.to_owned()));
        }
        let features = self.ethtool.features(index)?;
        if let Some(merges) = MERGES.iter().find(|feature| features.contains(**feature)) {
            return Ok(Some(format!("it merges segments ({merges}), which only the stack can split again")));
        }
        let hook = self.hooks.first(name, index, is_passed_by)?;
        Ok(hook.map(|hook| format!("{hook} would miss packets")))
    }
}

/// Features by which a card merges the segments that it receives.
const MERGES: [&str; 2] = ["rx-lro", "rx-gro-hw"];

/// True if packets may bypass a queueing discipline: it only shares the link, and limits no rate.
fn is_passed_by(discipline: &str) -> bool {
    matches!(discipline, "noqueue" | "mq" | "fq_codel" | "fq" | "pfifo_fast" | "pfifo" | "bfifo")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cards_with_xdp_in_the_driver_forward() {
        let interfaces =
            Interfaces { above: [(5, 4)].into(), veths: [6].into(), bonds: [7].into(), ..Interfaces::default() };
        let native = Some(AttachedMode::Native);
        let why = |mode, index, attached| prevents(mode, index, attached, &interfaces);
        assert_eq!(why(GateMode::Auto, 3, native), None);
        assert_eq!(why(GateMode::Native, 6, native), None);
        let closed = [
            (GateMode::Off, 3, native, "--xdp off"),
            (GateMode::Auto, 3, None, "not attached"),
            (GateMode::Auto, 3, Some(AttachedMode::Generic), "not in its driver"),
            (GateMode::Auto, 4, native, "are above it"),
            (GateMode::Auto, 5, None, "arrive on the interface below"),
            (GateMode::Auto, 6, native, "veth pair"),
            (GateMode::Auto, 7, native, "bond"),
        ];
        for (mode, index, attached, part) in closed {
            assert!(why(mode, index, attached).is_some_and(|why| why.contains(part)), "{part}");
        }
    }

    #[test]
    fn shapers_see_every_packet() {
        assert!(["noqueue", "mq", "fq_codel", "fq", "pfifo_fast"].into_iter().all(is_passed_by));
        assert!(!["", "tbf", "htb", "cake", "netem", "hfsc", "taprio", "mqprio"].into_iter().any(is_passed_by));
    }
}
