//! IPsec policies (linux/xfrm.h, ip-xfrm(8)): the stack transforms or blocks the packets that they select, but not
//! packets that a program redirects past the stack.

use std::io;
use std::net::{IpAddr, SocketAddr};

use crate::netlink::channel::{Channel, RawMessage};
use netlink_packet_core::{NLM_F_DUMP, NlasIterator};
use netlink_sys::protocols::NETLINK_XFRM;
use router_common::maps::mapped;

/// linux/xfrm.h
const GET_POLICY: u16 = 0x15;
const NEW_POLICY: u16 = 0x13;
const GET_DEFAULT: u16 = 0x28;
/// `XFRMNLGRP_POLICY`: multicast group for changes of policies.
pub const GROUP_POLICY: u32 = 4;
/// `XFRM_USERPOLICY_BLOCK`
const DEFAULT_BLOCK: u8 = 1;
/// `XFRM_POLICY_BLOCK`
const BLOCK: u8 = 1;
/// Bytes of a `struct xfrm_selector`, and of a `struct xfrm_userpolicy_info`, which begins with one.
const SELECTOR: usize = 56;
const POLICY: usize = 168;
/// Offsets of a policy's priority, direction and action.
const PRIORITY: usize = SELECTOR + 2 * 32 + 32;
const DIRECTION: usize = PRIORITY + 8;
const ACTION: usize = DIRECTION + 1;
const PROTOCOL_TCP: u8 = 6;
/// `XFRMA_TMPL`, `XFRMA_MARK`, `XFRMA_IF_ID`
const TEMPLATES: u16 = 5;
const MARK: u16 = 21;
const INTERFACE: u16 = 31;
/// Bytes of a `struct xfrm_user_tmpl`, and the offset of its flag for optional transformations.
const TEMPLATE: usize = 64;
const OPTIONAL: usize = 50;

/// Direction of the packets that a policy selects (`XFRM_POLICY_*`). Policies of single sockets have other directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XfrmDirection {
    /// Packets that arrive.
    In,
    /// Packets that leave.
    Out,
}

/// Addresses and ports that a policy selects: networks, as an address in the 16-byte form of the kernel maps and a
/// prefix length in bits of that form; ports, as a value and a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Selector {
    /// `AF_INET`, `AF_INET6`, or anything else for both.
    family: i32,
    source: (u128, u8),
    destination: (u128, u8),
    ports: [(u16, u16); 2],
}

impl Selector {
    fn is_of(&self, address: IpAddr) -> bool {
        match self.family {
            libc::AF_INET => address.is_ipv4(),
            libc::AF_INET6 => address.is_ipv6(),
            _ => true,
        }
    }

    fn is_of_ports(&self, from: u16, to: u16) -> bool {
        [from, to].iter().zip(self.ports).all(|(port, (wanted, mask))| (port ^ wanted) & mask == 0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct XfrmPolicy {
    direction: XfrmDirection,
    selector: Selector,
    /// Policies with lower values are evaluated first.
    priority: u32,
    /// The policy transforms packets, requires them to be transformed, or blocks them.
    changes: bool,
    /// The policy applies to a part of the selected packets only: to those with a mark, or of one interface.
    partial: bool,
}

/// All policies for TCP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    policies: Vec<XfrmPolicy>,
    /// True if packets that no policy selects are blocked: arriving ones, leaving ones.
    blocks: [bool; 2],
}

impl Policies {
    /// Reads the policies in this thread's network namespace.
    ///
    /// # Errors
    /// The system call's, or the kernel's. A kernel without IPsec is no error: there are no policies then.
    pub fn read() -> io::Result<Policies> {
        let mut channel = match Channel::open(NETLINK_XFRM) {
            Err(error) if error.raw_os_error() == Some(libc::EPROTONOSUPPORT) => return Ok(Policies::default()),
            channel => channel?,
        };
        let mut found = Policies::default();
        channel.ask(RawMessage { kind: GET_POLICY, payload: vec![0; 64] }, NLM_F_DUMP, |answer| {
            if answer.kind == NEW_POLICY {
                found.policies.extend(policy(&answer.payload));
            }
        })?;
        // Stable: among policies of one priority, the first in the list is evaluated first.
        found.policies.sort_by_key(|policy| policy.priority);
        // `struct xfrm_userpolicy_default`: in, forwarded, out.
        let defaults = channel.ask(RawMessage { kind: GET_DEFAULT, payload: vec![0; 4] }, 0, |answer| {
            if let [coming, _, going, ..] = answer.payload[..] {
                found.blocks = [coming, going].map(|default| default == DEFAULT_BLOCK);
            }
        });
        match defaults {
            // Not supported before Linux 5.15.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP)) => Ok(found),
            defaults => defaults.map(|()| found),
        }
    }

    /// True if packets that no policy selects are blocked, in at least one direction.
    pub fn block_by_default(&self) -> bool {
        self.blocks.contains(&true)
    }

    /// True if a policy may select TCP packets from one address to another.
    pub fn concern(&self, direction: XfrmDirection, from: IpAddr, to: IpAddr) -> bool {
        let of = |selector: &&Selector| selector.is_of(to) && covers(selector.source, from);
        self.of(direction).map(|policy| &policy.selector).filter(of).any(|selector| covers(selector.destination, to))
    }

    /// True if a policy may select leaving TCP packets with this source address, for any destination.
    pub fn concern_source(&self, from: IpAddr) -> bool {
        let mut selectors = self.of(XfrmDirection::Out).map(|policy| &policy.selector);
        selectors.any(|selector| selector.is_of(from) && covers(selector.source, from))
    }

    /// True if TCP packets from one address to another certainly do not pass unchanged. Port 0 stands for an unknown
    /// port.
    pub fn stop(&self, direction: XfrmDirection, from: SocketAddr, to: SocketAddr) -> bool {
        let of = |policy: &&XfrmPolicy| {
            let XfrmPolicy { selector, partial, .. } = policy;
            selector.is_of(to.ip())
                && covers(selector.source, from.ip())
                && covers(selector.destination, to.ip())
                && (*partial || selector.is_of_ports(from.port(), to.port()))
        };
        match self.of(direction).find(of) {
            Some(policy) => policy.changes && !policy.partial,
            // The loopback device is exempt (net.ipv4.conf.lo.disable_policy, …disable_xfrm).
            None => self.blocks[direction as usize] && !to.ip().is_loopback() && !from.ip().is_loopback(),
        }
    }

    fn of(&self, direction: XfrmDirection) -> impl Iterator<Item = &XfrmPolicy> {
        self.policies.iter().filter(move |policy| policy.direction == direction)
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

/// The policy in a `struct xfrm_userpolicy_info` and the attributes behind it, if it concerns TCP.
fn policy(payload: &[u8]) -> Option<XfrmPolicy> {
    let policy = payload.get(..POLICY)?;
    let family = i32::from(u16::from_ne_bytes([policy[40], policy[41]]));
    let (destination_bits, source_bits, protocol) = (policy[42], policy[43], policy[44]);
    let direction = match policy[DIRECTION] {
        0 => XfrmDirection::In,
        1 => XfrmDirection::Out,
        _ => return None,
    };
    if !matches!(protocol, 0 | PROTOCOL_TCP) {
        return None;
    }
    let network = |at: usize, bits: u8| -> Option<(u128, u8)> {
        let bytes: [u8; 16] = policy.get(at..at + 16)?.try_into().ok()?;
        match family {
            libc::AF_INET => {
                let [a, b, c, d, ..] = bytes;
                Some((u128::from_be_bytes(mapped([a, b, c, d])), 96 + bits.min(32)))
            }
            libc::AF_INET6 => Some((u128::from_be_bytes(bytes), bits.min(128))),
            // Selects everything.
            _ => Some((0, 0)),
        }
    };
    let port = |at: usize| {
        let number = |at: usize| u16::from_be_bytes([policy[at], policy[at + 1]]);
        (number(at), number(at + 2))
    };
    let selector = Selector {
        family,
        destination: network(0, destination_bits)?,
        source: network(16, source_bits)?,
        ports: [port(36), port(32)],
    };
    let attributes = || NlasIterator::new(payload.get(POLICY..).unwrap_or_default()).map_while(Result::ok);
    let templates = attributes().find(|attribute| attribute.kind() == TEMPLATES);
    let mut templates = templates.as_ref().map(|found| found.value().chunks_exact(TEMPLATE)).into_iter().flatten();
    let transforms = match direction {
        XfrmDirection::Out => templates.next().is_some(),
        XfrmDirection::In => templates.any(|template| template[OPTIONAL] == 0),
    };
    Some(XfrmPolicy {
        direction,
        selector,
        priority: u32::from_ne_bytes(*policy.get(PRIORITY..)?.first_chunk()?),
        changes: policy[ACTION] == BLOCK || transforms,
        partial: policy[48..52] != [0; 4] || attributes().any(|attribute| matches!(attribute.kind(), MARK | INTERFACE)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(family: i32, networks: [([u8; 16], u8); 2], protocol: u8, direction: u8) -> Vec<u8> {
        let mut bytes = vec![0; POLICY];
        let [(destination, destination_bits), (source, source_bits)] = networks;
        bytes[..16].copy_from_slice(&destination);
        bytes[16..32].copy_from_slice(&source);
        bytes[40..42].copy_from_slice(&(family as u16).to_ne_bytes());
        (bytes[42], bytes[43], bytes[44]) = (destination_bits, source_bits, protocol);
        bytes[DIRECTION] = direction;
        bytes
    }

    fn v4(address: [u8; 4]) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&address);
        bytes
    }

    fn of(all: &[Vec<u8>]) -> Policies {
        Policies { policies: all.iter().filter_map(|bytes| policy(bytes)).collect(), blocks: [false; 2] }
    }

    #[test]
    fn a_policy_concerns_the_addresses_that_it_selects() {
        let networks = [(v4([10, 98, 0, 0]), 16), (v4([10, 99, 0, 0]), 24)];
        let policies = of(&[bytes_of(libc::AF_INET, networks, 0, 1)]);
        let concern =
            |from: &str, to: &str| policies.concern(XfrmDirection::Out, from.parse().unwrap(), to.parse().unwrap());
        assert!(concern("10.99.0.7", "10.98.255.1"));
        assert!(!concern("10.99.1.7", "10.98.255.1"));
        assert!(!concern("10.99.0.7", "10.97.0.1"));
        assert!(!concern("fd00::1", "fd00::2"));
        assert!(policies.concern_source("10.99.0.1".parse().unwrap()));
        assert!(!policies.concern_source("10.98.0.1".parse().unwrap()));
        assert_eq!(of(&[bytes_of(libc::AF_INET, networks, 17, 1)]), Policies::default(), "of UDP");
        assert_eq!(
            of(&[bytes_of(libc::AF_INET, networks, PROTOCOL_TCP, 2)]),
            Policies::default(),
            "of what is forwarded"
        );
        let all = of(&[bytes_of(libc::AF_INET6, [([0; 16], 0), ([0; 16], 0)], PROTOCOL_TCP, 0)]);
        let concern =
            |direction, from: &str, to: &str| all.concern(direction, from.parse().unwrap(), to.parse().unwrap());
        assert!(concern(XfrmDirection::In, "fd00::1", "fd00::2"));
        assert!(!concern(XfrmDirection::Out, "fd00::1", "fd00::2"));
        assert!(!concern(XfrmDirection::In, "10.99.0.7", "10.98.0.1"));
    }

    #[test]
    fn a_connection_stops_when_it_is_certain_that_its_packets_do_not_pass() {
        let networks = [(v4([10, 98, 0, 0]), 16), (v4([10, 99, 0, 0]), 24)];
        let stops = |policies: &Policies, port| {
            let [from, to] = [([10, 99, 0, 7], 40_000), ([10, 98, 0, 1], port)].map(SocketAddr::from);
            policies.stop(XfrmDirection::Out, from, to)
        };
        let allows = bytes_of(libc::AF_INET, networks, 0, 1);
        assert!(!stops(&of(std::slice::from_ref(&allows)), 80), "it passes as it is");
        let mut blocks = allows.clone();
        blocks[ACTION] = BLOCK;
        assert!(stops(&of(&[blocks.clone()]), 80));
        assert!(!stops(&of(&[allows.clone(), blocks.clone()]), 80), "the first one holds");
        let mut of_port = blocks.clone();
        (of_port[33], of_port[34], of_port[35]) = (80, 0xff, 0xff);
        assert!(stops(&of(&[of_port.clone()]), 80));
        assert!(!stops(&of(&[of_port.clone()]), 81));
        assert!(!stops(&of(&[of_port]), 0), "it is not known");
        let template = |optional| {
            let mut value = [0; TEMPLATE];
            value[OPTIONAL] = optional;
            [&(4 + TEMPLATE as u16).to_ne_bytes()[..], &TEMPLATES.to_ne_bytes(), &value].concat()
        };
        assert!(stops(&of(&[[allows.clone(), template(1)].concat()]), 80), "it leaves protected, where there is a key");
        let marked = [&8_u16.to_ne_bytes()[..], &INTERFACE.to_ne_bytes(), &[1, 0, 0, 0]].concat();
        assert!(!stops(&of(&[[blocks, marked].concat()]), 80), "of one interface");
        let coming = |optional| {
            let bytes = bytes_of(libc::AF_INET, networks, 0, 0);
            let [from, to] = [([10, 99, 0, 7], 9000), ([10, 98, 0, 1], 40_000)].map(SocketAddr::from);
            of(&[[bytes, template(optional)].concat()]).stop(XfrmDirection::In, from, to)
        };
        assert_eq!([coming(0), coming(1)], [true, false]);
        let default = Policies { blocks: [false, true], ..Policies::default() };
        assert!(stops(&default, 80) && default.block_by_default());
        assert!(!stops(&Policies { blocks: [false, true], ..of(&[allows]) }, 80));
    }

    #[test]
    fn every_prefix_of_a_policy_is_none() {
        let bytes = bytes_of(libc::AF_INET, [(v4([10, 0, 0, 0]), 8), (v4([0; 4]), 0)], 0, 1);
        assert!(policy(&bytes).is_some());
        assert!((0..POLICY).all(|length| policy(&bytes[..length]).is_none()));
    }
}
