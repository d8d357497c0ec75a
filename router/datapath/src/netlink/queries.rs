//! Queries of the kernel: interfaces, addresses, and the route to an address.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_DUMP, NetlinkSerializable, ParseableParametrized};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoMacVlan, LinkAttribute, LinkInfo, LinkLayerType, LinkMessage, MacVlanMode,
};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteMetric, RouteType, RouteVia};
use netlink_sys::protocols::NETLINK_ROUTE;

use crate::interfaces::{Interfaces, LeftAlone, Pair};
use crate::netlink::channel::{Channel, RawMessage};

const PROTOCOL_TCP: u8 = 6;

/// The kernel's route for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteLookup {
    /// The source address that the kernel would choose.
    pub source: IpAddr,
    /// The interface that the packet would leave by.
    pub interface: u32,
    /// The route's own MTU in bytes, if it has one.
    pub mtu: Option<u32>,
    /// True if the route encapsulates packets (`RTA_ENCAP_TYPE`).
    pub encapsulated: bool,
    /// The neighbour that packets are sent to; `None`: the destination itself.
    pub gateway: Option<IpAddr>,
}

/// Properties of a packet, besides its destination, that routing rules may match (ip-rule(8)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoutingSelector {
    /// A socket of this process that connects by TCP to a port.
    Socket {
        /// The port.
        port: u16,
    },
    /// The kernel programs, which look up a next hop.
    Program {
        /// Source address.
        source: IpAddr,
        /// Output interface.
        interface: u32,
        /// `SO_MARK` of the packets.
        mark: u32,
    },
}

/// Queries of the kernel. Blocking, because the kernel answers at once.
#[derive(Debug)]
pub struct Netlink {
    pub(super) channel: Channel,
}

impl Netlink {
    /// Opens a socket in this thread's network namespace.
    ///
    /// # Errors
    /// The system call's.
    pub fn open() -> io::Result<Self> {
        Ok(Netlink { channel: Channel::open(NETLINK_ROUTE)? })
    }

    /// Interfaces and addresses as they are now.
    ///
    /// # Errors
    /// The system call's, or the kernel's.
    pub fn interfaces(&mut self) -> io::Result<Interfaces> {
        let mut found = Interfaces::default();
        let mut taken = BTreeSet::new();
        self.ask(RouteNetlinkMessage::GetLink(LinkMessage::default()), NLM_F_DUMP, |answer| {
            if let RouteNetlinkMessage::NewLink(link) = answer {
                note_link(&mut found, &link);
                taken.extend(link_taken(&link));
            }
        })?;
        for (name, _) in found.attachable.extract_if(.., |_, index| taken.contains(index)) {
            found.left_alone.insert(name, LeftAlone::Master);
        }
        self.ask(RouteNetlinkMessage::GetAddress(AddressMessage::default()), NLM_F_DUMP, |answer| {
            if let RouteNetlinkMessage::NewAddress(message) = answer {
                found.addresses.extend(own_address(&message));
            }
        })?;
        Ok(found)
    }

    /// The route of a packet from this host to an address; `None` if there is none.
    ///
    /// # Errors
    /// The system call's. The kernel's answers (unreachable, prohibited, …) are no errors, but `None`.
    pub fn hop_to(&mut self, to: IpAddr) -> io::Result<Option<RouteLookup>> {
        self.hop_for(to, None)
    }

    /// The same, with the properties of the sender that routing rules may match.
    ///
    /// # Errors
    /// As of [`Netlink::hop_to`].
    pub fn hop_for(&mut self, to: IpAddr, asker: Option<RoutingSelector>) -> io::Result<Option<RouteLookup>> {
        let mut question = RouteMessage::default();
        (question.header.address_family, question.header.destination_prefix_length) = match to {
            IpAddr::V4(_) => (netlink_packet_route::AddressFamily::Inet, 32),
            IpAddr::V6(_) => (netlink_packet_route::AddressFamily::Inet6, 128),
        };
        question.attributes.push(RouteAttribute::Destination(to.into()));
        match asker {
            Some(RoutingSelector::Socket { port }) => {
                question.attributes.extend([RouteAttribute::IpProto(PROTOCOL_TCP), RouteAttribute::Dport(port)])
            }
            Some(RoutingSelector::Program { source, interface, mark }) => {
                question.header.source_prefix_length = question.header.destination_prefix_length;
                question.attributes.extend([
                    RouteAttribute::Source(source.into()),
                    RouteAttribute::Oif(interface),
                    RouteAttribute::IpProto(PROTOCOL_TCP),
                    RouteAttribute::Mark(mark),
                ]);
            }
            None => {}
        }
        let mut hop = None;
        let asked = self.ask(RouteNetlinkMessage::GetRoute(question), 0, |answer| {
            if let RouteNetlinkMessage::NewRoute(route) = answer {
                hop = usable_hop(&route);
            }
        });
        match asked {
            Err(error) if is_transport_failure(&error) => Err(error),
            Err(_) => Ok(None),
            Ok(()) => Ok(hop),
        }
    }

    /// Sends a request, and passes the answers that the library can parse to the callback.
    pub(super) fn ask(
        &mut self,
        question: RouteNetlinkMessage,
        flags: u16,
        mut take: impl FnMut(RouteNetlinkMessage),
    ) -> io::Result<()> {
        let mut payload = vec![0; NetlinkSerializable::buffer_len(&question)];
        question.serialize(&mut payload);
        self.channel.ask(RawMessage { kind: question.message_type(), payload }, flags, |answer| {
            if let Ok(answer) = RouteNetlinkMessage::parse_with_param(&answer.payload, answer.kind) {
                take(answer);
            }
        })
    }
}

/// True if the socket failed, not the look-up; such errors are not the kernel's answer about a route.
fn is_transport_failure(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBADF | libc::ENOBUFS | libc::ENOMEM | libc::EPERM | libc::EINTR))
}

fn note_link(found: &mut Interfaces, link: &LinkMessage) {
    let index = link.header.index;
    let (mut name, mut mtu, mut veth, mut other, mut namespace, mut has_master) =
        (None, None, false, None, None, false);
    let (mut shares_a_link, mut is_above) = (false, false);
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(text) => name = Some(text.clone()),
            LinkAttribute::Mtu(bytes) => mtu = Some(*bytes),
            LinkAttribute::Address(address) => {
                found.hardware.extend(address.as_slice().try_into().ok().map(|address| (index, address)));
            }
            LinkAttribute::LinkInfo(parts) => {
                veth = parts.contains(&LinkInfo::Kind(InfoKind::Veth));
                if parts.contains(&LinkInfo::Kind(InfoKind::Bond)) {
                    found.bonds.insert(index);
                }
                let kinds = [InfoKind::Vlan, InfoKind::MacVlan];
                is_above = kinds.into_iter().any(|kind| parts.contains(&LinkInfo::Kind(kind)));
                // A macvlan is attachable: frames that arrive on the lower link first are told apart by its own
                // hardware address.
                let kinds = [InfoKind::MacVtap, InfoKind::IpVlan, InfoKind::IpVtap];
                shares_a_link = kinds.into_iter().any(|kind| parts.contains(&LinkInfo::Kind(kind)));
            }
            LinkAttribute::Link(index) => other = Some(*index),
            // Present only if the other end is in another network namespace.
            LinkAttribute::LinkNetNsId(id) => namespace = Some(*id),
            LinkAttribute::Controller(_) => has_master = true,
            _ => {}
        }
    }
    found.mtu.extend(mtu.map(|mtu| (index, mtu)));
    if veth {
        found.veths.insert(index);
    }
    if veth && let (Some(other), Some(namespace)) = (other, namespace) {
        found.pairs.insert(index, Pair { index: other, namespace });
    }
    if is_above
        && namespace.is_none()
        && let Some(below) = other
    {
        found.above.insert(index, below);
    }
    // The program expects an Ethernet header, which packets of the loopback device have, too.
    let ethernet = matches!(link.header.link_layer_type, LinkLayerType::Ether | LinkLayerType::Loopback);
    // Packets of a bridge's port or a bond's member arrive again on the bridge or the bond, which decides where they
    // belong.
    let Some(name) = name else { return };
    if !ethernet {
        found.left_alone.insert(name, LeftAlone::NoEthernet);
    } else if has_master {
        found.left_alone.insert(name, LeftAlone::Master);
    } else if shares_a_link {
        found.left_alone.insert(name, LeftAlone::SharesALink);
    } else {
        found.attachable.insert(name, index);
    }
}

/// The lower link of a macvlan in passthru mode, which has the link's hardware address: all frames of the link arrive
/// again on the macvlan.
fn link_taken(link: &LinkMessage) -> Option<u32> {
    let mut below = None;
    let mut is_passthru = false;
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::LinkInfo(parts) => is_passthru = parts.iter().any(is_passthrough),
            LinkAttribute::Link(index) => below = Some(*index),
            // The link is in another network namespace.
            LinkAttribute::LinkNetNsId(_) => return None,
            _ => {}
        }
    }
    below.filter(|_| is_passthru)
}

fn is_passthrough(part: &LinkInfo) -> bool {
    matches!(part, LinkInfo::Data(InfoData::MacVlan(data)) if data.contains(&InfoMacVlan::Mode(MacVlanMode::Passthrough)))
}

/// The interface's own address: on point-to-point links `IFA_ADDRESS` is the peer's.
fn own_address(message: &AddressMessage) -> Option<IpAddr> {
    let local = message.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Local(address) => Some(*address),
        _ => None,
    });
    local.or_else(|| {
        message.attributes.iter().find_map(|attribute| match attribute {
            AddressAttribute::Address(address) => Some(*address),
            _ => None,
        })
    })
}

fn usable_hop(route: &RouteMessage) -> Option<RouteLookup> {
    if !matches!(route.header.kind, RouteType::Unicast | RouteType::Local) {
        return None;
    }
    let (mut source, mut interface, mut mtu, mut encapsulated, mut gateway) = (None, None, None, false, None);
    let mut asked_from = None;
    let address = |address: &RouteAddress| match address {
        RouteAddress::Inet(address) => Some(IpAddr::V4(*address)),
        RouteAddress::Inet6(address) => Some(IpAddr::V6(*address)),
        _ => None,
    };
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::PrefSource(ours) => source = address(ours),
            // A request with a source address has no preferred source in its answer.
            RouteAttribute::Source(ours) => asked_from = address(ours),
            RouteAttribute::Gateway(neighbour) => gateway = address(neighbour),
            RouteAttribute::Via(RouteVia::Inet(neighbour)) => gateway = Some(IpAddr::V4(*neighbour)),
            RouteAttribute::Via(RouteVia::Inet6(neighbour)) => gateway = Some(IpAddr::V6(*neighbour)),
            RouteAttribute::Oif(index) => interface = Some(*index),
            RouteAttribute::EncapType(_) => encapsulated = true,
            RouteAttribute::Metrics(metrics) => {
                mtu = metrics.iter().find_map(|metric| match metric {
                    RouteMetric::Mtu(bytes) if *bytes > 0 => Some(*bytes),
                    _ => None,
                });
            }
            _ => {}
        }
    }
    Some(RouteLookup { source: source.or(asked_from)?, interface: interface?, mtu, encapsulated, gateway })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_found_and_led_to() {
        let mut netlink = Netlink::open().unwrap();
        let found = netlink.interfaces().unwrap();
        let index = found.attachable["lo"];
        assert!(found.addresses.contains(&IpAddr::from([127, 0, 0, 1])), "{found:?}");
        assert!(found.mtu[&index] >= 1280, "{found:?}");
        let hop = netlink.hop_to([127, 0, 0, 9].into()).unwrap().unwrap();
        assert_eq!((hop.source.is_loopback(), hop.interface), (true, index));
    }

    #[test]
    fn what_cannot_be_reached_has_no_hop_and_the_socket_goes_on() {
        let mut netlink = Netlink::open().unwrap();
        // A multicast route is no unicast route, and without an interface in the group there is no route at all.
        assert_eq!(netlink.hop_to([224, 0, 0, 1].into()).unwrap(), None);
        assert!(netlink.hop_to([127, 0, 0, 1].into()).unwrap().is_some());
    }
}
