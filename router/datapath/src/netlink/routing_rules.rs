//! Routing rules (ip-rule(8), linux/fib_rules.h) that match more than addresses.

use std::io;
use std::net::{IpAddr, SocketAddr};

use netlink_packet_core::{NLM_F_DUMP, NlasIterator};
use router_common::maps::mapped;

use crate::netlink::channel::RawMessage;
use crate::netlink::queries::Netlink;

// linux/rtnetlink.h
const RTM_NEWRULE: u16 = 32;
const RTM_GETRULE: u16 = 34;
/// Bytes of a `struct fib_rule_hdr`.
const HEADER: usize = 12;
/// `FIB_RULE_INVERT`
const INVERT: u32 = 2;
// `FRA_*`
const DESTINATION: u16 = 1;
const SOURCE: u16 = 2;
const MARK: u16 = 10;
const OUTPUT: u16 = 17;
const USERS: u16 = 20;
const PROTOCOL: u16 = 22;
const SOURCE_PORTS: u16 = 23;
const DESTINATION_PORTS: u16 = 24;
const PROTOCOL_TCP: u8 = 6;

/// The matches of a rule that are used here: addresses, ports, and whether it matches marks.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RoutingRule {
    v6: bool,
    source: (u128, u8),
    destination: (u128, u8),
    inverted: bool,
    tcp: bool,
    source_ports: Option<(u16, u16)>,
    destination_ports: Option<(u16, u16)>,
    marks: bool,
}

impl RoutingRule {
    fn may_be_from(&self, source: SocketAddr) -> bool {
        let in_ports = self.source_ports.is_none_or(|(low, high)| {
            // An unknown port may be any port.
            source.port() == 0 || (low..=high).contains(&source.port())
        });
        self.v6 == source.is_ipv6() && (self.inverted || self.tcp && in_ports && covers(self.source, source.ip()))
    }
}

/// The rules of this host that match ports, protocols, marks, users, or the interface that a socket is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutingRules(Vec<RoutingRule>);

impl RoutingRules {
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if a rule may route packets from an address to another by their source port, which is not known in advance.
    pub fn distinguish_source_ports(&self, from: IpAddr, to: IpAddr) -> bool {
        let mut of_ports = self.0.iter().filter(|rule| rule.source_ports.is_some());
        let from = SocketAddr::new(from, 0);
        of_ports.any(|rule| rule.may_be_from(from) && (rule.inverted || covers(rule.destination, to)))
    }

    /// True if a rule may route a listener's answers by properties that the kernel programs' look-up does not have:
    /// ports, and the packet's mark, which differs.
    pub fn distinguish_answers(&self, listener: SocketAddr) -> bool {
        let of_more =
            |rule: &&RoutingRule| rule.source_ports.is_some() || rule.destination_ports.is_some() || rule.marks;
        self.0.iter().filter(of_more).any(|rule| rule.may_be_from(listener))
    }
}

fn covers((network, bits): (u128, u8), address: IpAddr) -> bool {
    let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
    let address = match address {
        IpAddr::V4(v4) => u128::from_be_bytes(mapped(v4.octets())),
        IpAddr::V6(v6) => u128::from(v6),
    };
    network & mask == address & mask
}

impl Netlink {
    /// The routing rules that match more than addresses and the input interface.
    ///
    /// # Errors
    /// The system call's, or the kernel's.
    pub fn routing_rules(&mut self) -> io::Result<RoutingRules> {
        let mut found = RoutingRules::default();
        self.channel.ask(RawMessage { kind: RTM_GETRULE, payload: vec![0; HEADER] }, NLM_F_DUMP, |answer| {
            if answer.kind == RTM_NEWRULE {
                found.0.extend(rule(&answer.payload));
            }
        })?;
        Ok(found)
    }
}

/// A rule of IPv4 or IPv6 that matches more.
fn rule(payload: &[u8]) -> Option<RoutingRule> {
    let header = payload.get(..HEADER)?;
    let v6 = match i32::from(header[0]) {
        libc::AF_INET => false,
        libc::AF_INET6 => true,
        _ => return None,
    };
    let mut rule = RoutingRule {
        v6,
        source: (0, 0),
        destination: (0, 0),
        inverted: u32::from_ne_bytes(*header[8..].first_chunk()?) & INVERT != 0,
        tcp: true,
        source_ports: None,
        destination_ports: None,
        marks: false,
    };
    let mut looks_at_more = false;
    for attribute in NlasIterator::new(payload.get(HEADER..)?).map_while(Result::ok) {
        let value = attribute.value();
        match attribute.kind() {
            DESTINATION => rule.destination = network(value, header[1])?,
            SOURCE => rule.source = network(value, header[2])?,
            MARK => rule.marks = true,
            PROTOCOL => rule.tcp = value.first() == Some(&PROTOCOL_TCP),
            SOURCE_PORTS => rule.source_ports = Some(ports(value)?),
            DESTINATION_PORTS => rule.destination_ports = Some(ports(value)?),
            OUTPUT | USERS => {}
            _ => continue,
        }
        looks_at_more |= !matches!(attribute.kind(), DESTINATION | SOURCE);
    }
    looks_at_more.then_some(rule)
}

fn network(value: &[u8], bits: u8) -> Option<(u128, u8)> {
    Some(match value.len() {
        4 => (u128::from_be_bytes(mapped(*value.first_chunk()?)), 96 + bits.min(32)),
        _ => (u128::from_be_bytes(*value.first_chunk()?), bits.min(128)),
    })
}

/// `struct fib_rule_port_range`, in host byte order.
fn ports(value: &[u8]) -> Option<(u16, u16)> {
    Some((u16::from_ne_bytes(*value.first_chunk()?), u16::from_ne_bytes(*value.get(2..)?.first_chunk()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = [((4 + value.len()) as u16).to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn of(family: i32, prefixes: [u8; 2], flags: u32, attributes: &[Vec<u8>]) -> RoutingRules {
        let [to, from] = prefixes;
        let header = [&[family as u8, to, from, 0, 0, 0, 0, 1][..], &flags.to_ne_bytes()].concat();
        RoutingRules(rule(&[header, attributes.concat()].concat()).into_iter().collect())
    }

    fn range(kind: u16, low: u16, high: u16) -> Vec<u8> {
        attribute(kind, &[low.to_ne_bytes(), high.to_ne_bytes()].concat())
    }

    #[test]
    fn rules_by_addresses_alone_are_left_to_the_routes() {
        assert!(of(libc::AF_INET, [0, 0], 0, &[]).is_empty());
        assert!(of(libc::AF_INET, [24, 0], 0, &[attribute(DESTINATION, &[10, 0, 0, 0])]).is_empty());
        assert!(!of(libc::AF_INET, [0, 0], 0, &[attribute(MARK, &[1, 0, 0, 0])]).is_empty());
        assert!(of(libc::AF_BRIDGE, [0, 0], 0, &[attribute(MARK, &[1, 0, 0, 0])]).is_empty());
    }

    #[test]
    fn a_rule_by_source_ports_is_for_its_addresses() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let rules = of(
            libc::AF_INET,
            [24, 16],
            0,
            &[
                attribute(DESTINATION, &[10, 0, 2, 0]),
                attribute(SOURCE, &[10, 1, 0, 0]),
                range(SOURCE_PORTS, 8443, 8444),
            ],
        );
        assert!(rules.distinguish_source_ports(address("10.1.2.3"), address("10.0.2.9")));
        assert!(!rules.distinguish_source_ports(address("10.1.2.3"), address("10.0.3.9")));
        assert!(!rules.distinguish_source_ports(address("10.2.2.3"), address("10.0.2.9")));
        assert!(!rules.distinguish_source_ports(address("fd00::1"), address("fd00::2")));
        assert!(rules.distinguish_answers(SocketAddr::new(address("10.1.2.3"), 8443)));
        assert!(!rules.distinguish_answers(SocketAddr::new(address("10.1.2.3"), 8445)));
        let others = of(libc::AF_INET, [0, 0], INVERT, &[range(SOURCE_PORTS, 1, 2)]);
        assert!(others.distinguish_answers(SocketAddr::new(address("10.1.2.3"), 8445)));
        let of_udp = of(libc::AF_INET6, [0, 0], 0, &[attribute(PROTOCOL, &[17]), range(SOURCE_PORTS, 1, 9999)]);
        assert!(!of_udp.distinguish_answers(SocketAddr::new(address("fd00::1"), 8443)));
    }

    #[test]
    fn a_rule_that_is_cut_short_is_none_or_another() {
        let all = [attribute(SOURCE, &[10, 1, 0, 0]), range(SOURCE_PORTS, 1, 2)].concat();
        let bytes = [&[2, 0, 16, 0, 0, 0, 0, 1, 0, 0, 0, 0][..], &all].concat();
        assert!(rule(&bytes).is_some());
        assert!((0..bytes.len()).all(|length| rule(&bytes[..length]).is_none()));
    }
}
