//! IPsec policies for packets that leave (linux/xfrm.h, ip-xfrm(8)): the stack transforms or blocks what they select, and
//! packets that a program sends past the stack would leave as they are.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::NLM_F_DUMP;
use netlink_sys::protocols::NETLINK_XFRM;
use router_common::maps::mapped;

use super::channel::{Channel, Message};

/// linux/xfrm.h
const GET_POLICY: u16 = 0x15;
const NEW_POLICY: u16 = 0x13;
/// `XFRMNLGRP_POLICY`: who is in this group hears of changed policies.
pub const GROUP_POLICY: u32 = 4;
/// `XFRM_POLICY_OUT`: of packets that leave. Policies of single sockets have other directions.
const OUT: u8 = 1;
/// Bytes of a `struct xfrm_selector`, and of a `struct xfrm_userpolicy_info`, which begins with one.
const SELECTOR: usize = 56;
const POLICY: usize = 168;
/// Where a policy's direction is.
const DIRECTION: usize = SELECTOR + 2 * 32 + 32 + 8;
const PROTOCOL_TCP: u8 = 6;

/// Addresses that a policy selects: a network each, in the form that the kernel's maps have, with bits of that form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Selector {
    /// `AF_INET`, `AF_INET6`, or anything else for both.
    family: i32,
    source: (u128, u8),
    destination: (u128, u8),
}

impl Selector {
    fn is_of(&self, address: IpAddr) -> bool {
        match self.family {
            libc::AF_INET => address.is_ipv4(),
            libc::AF_INET6 => address.is_ipv6(),
            _ => true,
        }
    }
}

/// All policies for packets that leave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies(Vec<Selector>);

impl Policies {
    /// Asks the kernel, in this thread's network namespace.
    ///
    /// # Errors
    /// The system call's, or what the kernel answers. Not that it has no IPsec: then there are no policies.
    pub fn read() -> io::Result<Policies> {
        let mut channel = match Channel::open(NETLINK_XFRM) {
            Err(error) if error.raw_os_error() == Some(libc::EPROTONOSUPPORT) => return Ok(Policies::default()),
            channel => channel?,
        };
        let mut found = Policies::default();
        channel.ask(Message { kind: GET_POLICY, payload: vec![0; 64] }, NLM_F_DUMP, |answer| {
            if answer.kind == NEW_POLICY {
                found.0.extend(selector(&answer.payload));
            }
        })?;
        Ok(found)
    }

    /// Whether one may select packets of TCP from one address to another.
    pub fn concern(&self, from: IpAddr, to: IpAddr) -> bool {
        let of = |selector: &&Selector| selector.is_of(to) && covers(selector.source, from);
        self.0.iter().filter(of).any(|selector| covers(selector.destination, to))
    }

    /// Whether one may select packets of TCP that leave from an address, wherever to.
    pub fn concern_source(&self, from: IpAddr) -> bool {
        self.0.iter().any(|selector| selector.is_of(from) && covers(selector.source, from))
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

/// What a `struct xfrm_userpolicy_info` selects of TCP that leaves. Ports and interfaces are not looked at: a policy of some
/// of them counts as one of all.
fn selector(payload: &[u8]) -> Option<Selector> {
    let policy = payload.get(..POLICY)?;
    let family = i32::from(u16::from_ne_bytes([policy[40], policy[41]]));
    let (destination_bits, source_bits, protocol) = (policy[42], policy[43], policy[44]);
    if policy[DIRECTION] != OUT || !matches!(protocol, 0 | PROTOCOL_TCP) {
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
            // It selects everything.
            _ => Some((0, 0)),
        }
    };
    Some(Selector { family, destination: network(0, destination_bits)?, source: network(16, source_bits)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(family: i32, networks: [([u8; 16], u8); 2], protocol: u8, direction: u8) -> Vec<u8> {
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

    impl Policies {
        /// One that selects everything of IPv4.
        pub(crate) fn of_all() -> Self {
            Policies(selector(&policy(libc::AF_INET, [([0; 16], 0); 2], 0, OUT)).into_iter().collect())
        }
    }

    #[test]
    fn a_policy_concerns_the_addresses_that_it_selects() {
        let networks = [(v4([10, 98, 0, 0]), 16), (v4([10, 99, 0, 0]), 24)];
        let of = |bytes: &[u8]| Policies(selector(bytes).into_iter().collect());
        let policies = of(&policy(libc::AF_INET, networks, 0, OUT));
        let concern = |from: &str, to: &str| policies.concern(from.parse().unwrap(), to.parse().unwrap());
        assert!(concern("10.99.0.7", "10.98.255.1"));
        assert!(!concern("10.99.1.7", "10.98.255.1"));
        assert!(!concern("10.99.0.7", "10.97.0.1"));
        assert!(!concern("fd00::1", "fd00::2"));
        assert!(policies.concern_source("10.99.0.1".parse().unwrap()));
        assert!(!policies.concern_source("10.98.0.1".parse().unwrap()));
        assert_eq!(of(&policy(libc::AF_INET, networks, 17, OUT)), Policies::default(), "of UDP");
        assert_eq!(of(&policy(libc::AF_INET, networks, PROTOCOL_TCP, 0)), Policies::default(), "of what comes in");
        let all = of(&policy(libc::AF_INET6, [([0; 16], 0), ([0; 16], 0)], PROTOCOL_TCP, OUT));
        assert!(all.concern("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap()));
        assert!(!all.concern("10.99.0.7".parse().unwrap(), "10.98.0.1".parse().unwrap()));
    }

    #[test]
    fn every_prefix_of_a_policy_is_none() {
        let bytes = policy(libc::AF_INET, [(v4([10, 0, 0, 0]), 8), (v4([0; 4]), 0)], 0, OUT);
        assert!(selector(&bytes).is_some());
        assert!((0..POLICY).all(|length| selector(&bytes[..length]).is_none()));
    }
}
