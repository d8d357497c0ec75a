//! The host's tracked TCP connections, which it forwards or translates (nfnetlink, `NFNL_SUBSYS_CTNETLINK`;
//! linux/netfilter/nfnetlink_conntrack.h).

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv6Addr};

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL};
use netlink_sys::protocols::NETLINK_NETFILTER;
use router_common::maps::{FlowKey, mapped};

use crate::netlink::attribute;
use crate::netlink::channel::{Channel, NetlinkAttributes, RawMessage};

// `IPCTNL_MSG_CT_*`.
const CONNTRACK: u16 = 1 << 8;
const NEW: u16 = CONNTRACK;
const GET: u16 = CONNTRACK | 1;
const DELETE: u16 = CONNTRACK | 2;
// `enum ctattr_type`, as far as used here.
const TUPLE_ORIG: u16 = 1;
const TUPLE_REPLY: u16 = 2;
const STATUS: u16 = 3;
const PROTOCOL_INFO: u16 = 4;
const TIMEOUT: u16 = 7;
const FILTER: u16 = 25;
// `enum ctattr_tuple`, `enum ctattr_ip`, `enum ctattr_l4proto`.
const TUPLE_IP: u16 = 1;
const TUPLE_PROTO: u16 = 2;
const V4_SOURCE: u16 = 1;
const V4_DESTINATION: u16 = 2;
const V6_SOURCE: u16 = 3;
const V6_DESTINATION: u16 = 4;
const NUMBER: u16 = 1;
const SOURCE_PORT: u16 = 2;
const DESTINATION_PORT: u16 = 3;
/// `CTA_FILTER_REPLY_FLAGS`, and its flags: `CTA_IP_*_DST`, `CTA_PROTO_NUM` (net/netfilter/nf_internals.h).
const REPLY_FLAGS: u16 = 2;
const BY_DESTINATION: u32 = 1 << 1;
const BY_PROTOCOL: u32 = 1 << 3;
/// `IPS_SEEN_REPLY`, `IPS_ASSURED`, `IPS_CONFIRMED` (linux/netfilter/nf_conntrack_common.h).
const ESTABLISHED_STATUS: u32 = 2 | 4 | 8;
/// `TCP_CONNTRACK_ESTABLISHED` (linux/netfilter/nf_conntrack_tcp.h).
const ESTABLISHED: u8 = 3;
const PROTOCOL_TCP: u8 = 6;
const NESTED: u16 = 0x8000;
/// Bytes of a `struct nfgenmsg`: family, version, resource.
const GENERAL: usize = 4;
/// Seconds for which a port is withheld from masqueraded connections, unless it is requested again.
const HELD: u32 = 600;

/// Number of tracked connections in the reader's network namespace; missing without connection tracking.
const COUNT: &str = "/proc/sys/net/netfilter/nf_conntrack_count";

/// The original direction of a translated connection ([`Conntrack::original`]), read through a new socket.
///
/// # Errors
/// The system call's, or the kernel's: for example, the connection is not tracked.
pub fn original(answer: &FlowKey) -> io::Result<Option<FlowKey>> {
    Conntrack::open()?.original(answer)
}

/// A ctnetlink socket.
#[derive(Debug)]
pub struct Conntrack {
    channel: Channel,
}

impl Conntrack {
    /// Opens a socket in this thread's network namespace.
    ///
    /// # Errors
    /// The system call's.
    pub fn open() -> io::Result<Conntrack> {
        Ok(Conntrack { channel: Channel::open(NETLINK_NETFILTER)? })
    }

    /// Number of connections that the host tracks, of any protocol; 0 without connection tracking.
    pub fn count() -> usize {
        fs::read_to_string(COUNT).ok().and_then(|text| text.trim().parse().ok()).unwrap_or_default()
    }

    /// Calls `take` for each tracked connection with replies to an address of this host: with the addresses and ports
    /// of its peer's packets. The kernel visits every tracked connection.
    ///
    /// # Errors
    /// The system call's, or the kernel's.
    pub fn answered_to(&mut self, address: IpAddr, mut take: impl FnMut(FlowKey)) -> io::Result<()> {
        let proto = nested(TUPLE_PROTO, &attribute(NUMBER, &[PROTOCOL_TCP]));
        let (family, own, tuple, flags) = match address {
            IpAddr::V4(address) => {
                let ip = nested(TUPLE_IP, &attribute(V4_DESTINATION, &address.octets()));
                (libc::AF_INET, mapped(address.octets()), [ip, proto].concat(), BY_PROTOCOL | BY_DESTINATION)
            }
            // Linux' filter is inverted for IPv6 addresses: it selects those that differ
            // (`ctnetlink_filter_match_tuple`).
            IpAddr::V6(address) => (libc::AF_INET6, address.octets(), proto, BY_PROTOCOL),
        };
        let filter = attribute(REPLY_FLAGS, &flags.to_ne_bytes());
        let payload = [general(family), nested(TUPLE_REPLY, &tuple), nested(FILTER, &filter)].concat();
        self.channel.ask(RawMessage { kind: GET, payload }, NLM_F_DUMP, |answer| {
            let reply = answer.payload.get(GENERAL..).and_then(|body| NetlinkAttributes::of(body).within(TUPLE_REPLY));
            if let Some(key) = reply.as_ref().and_then(key)
                && key.destination == own
            {
                take(key);
            }
        })
    }

    /// Addresses and ports of a connection's first packet, before translation, given those of its replies; `None` if
    /// the kernel's answer has none.
    ///
    /// # Errors
    /// The system call's, or the kernel's: for example, the connection is not tracked.
    pub fn original(&mut self, answer: &FlowKey) -> io::Result<Option<FlowKey>> {
        let payload = [general(family(answer)), nested(TUPLE_REPLY, &tuple(answer))].concat();
        let mut original = None;
        self.channel.ask(RawMessage { kind: GET, payload }, 0, |answer| {
            let body = answer.payload.get(GENERAL..).map(NetlinkAttributes::of);
            original = body.and_then(|body| key(&body.within(TUPLE_ORIG)?));
        })?;
        Ok(original)
    }

    /// Withholds the addresses and ports of a connection that the host does not track from masqueraded connections;
    /// `back` is as in packets of its peer. An existing conntrack entry is deleted, so that retransmitted packets of
    /// its connection get another port.
    ///
    /// # Errors
    /// The system call's, or the kernel's.
    pub fn keep_from_others(&mut self, back: &FlowKey) -> io::Result<()> {
        let reply = nested(TUPLE_REPLY, &tuple(back));
        let general = general(family(back));
        let payload = [&general[..], &reply].concat();
        match self.channel.ask(RawMessage { kind: DELETE, payload }, NLM_F_ACK, |_| ()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // CTA_PROTOINFO_TCP, CTA_PROTOINFO_TCP_STATE
        let state = nested(PROTOCOL_INFO, &nested(1, &attribute(1, &[ESTABLISHED])));
        let payload = [
            &general[..],
            &nested(TUPLE_ORIG, &tuple(&back.reversed())),
            &reply,
            &attribute(STATUS, &ESTABLISHED_STATUS.to_be_bytes()),
            &state,
            &attribute(TIMEOUT, &HELD.to_be_bytes()),
        ];
        self.channel.ask(
            RawMessage { kind: NEW, payload: payload.concat() },
            NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
            |_| (),
        )
    }
}

fn general(family: i32) -> Vec<u8> {
    vec![family as u8, 0, 0, 0]
}

fn family(key: &FlowKey) -> i32 {
    let v4 = Ipv6Addr::from(key.destination).to_ipv4_mapped().is_some();
    if v4 { libc::AF_INET } else { libc::AF_INET6 }
}

fn nested(kind: u16, attributes: &[u8]) -> Vec<u8> {
    attribute(NESTED | kind, attributes)
}

/// `CTA_TUPLE_IP` and `CTA_TUPLE_PROTO`.
fn tuple(key: &FlowKey) -> Vec<u8> {
    let address = |bytes: &[u8; 16], v4, v6| match Ipv6Addr::from(*bytes).to_canonical() {
        IpAddr::V4(address) => attribute(v4, &address.octets()),
        IpAddr::V6(address) => attribute(v6, &address.octets()),
    };
    let addresses =
        [address(&key.source, V4_SOURCE, V6_SOURCE), address(&key.destination, V4_DESTINATION, V6_DESTINATION)];
    let ports = [
        attribute(NUMBER, &[PROTOCOL_TCP]),
        attribute(SOURCE_PORT, &key.source_port.to_be_bytes()),
        attribute(DESTINATION_PORT, &key.destination_port.to_be_bytes()),
    ];
    [nested(TUPLE_IP, &addresses.concat()), nested(TUPLE_PROTO, &ports.concat())].concat()
}

/// The flow key of a tuple; `None` if the tuple is incomplete.
fn key(tuple: &NetlinkAttributes<'_>) -> Option<FlowKey> {
    let (ip, proto) = (tuple.within(TUPLE_IP)?, tuple.within(TUPLE_PROTO)?);
    let address = |v4, v6| match ip.bytes(v4) {
        Some(bytes) => Some(mapped(bytes.try_into().ok()?)),
        None => ip.bytes(v6)?.try_into().ok(),
    };
    let port = |kind| Some(u16::from_be_bytes(proto.bytes(kind)?.try_into().ok()?));
    Some(FlowKey {
        source: address(V4_SOURCE, V6_SOURCE)?,
        destination: address(V4_DESTINATION, V6_DESTINATION)?,
        source_port: port(SOURCE_PORT)?,
        destination_port: port(DESTINATION_PORT)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tuple_is_read_as_it_is_written() {
        let v6 = |last| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last).octets();
        for (source, destination) in [(mapped([10, 0, 0, 1]), mapped([192, 0, 2, 7])), (v6(1), v6(2))] {
            let written = FlowKey { source, destination, source_port: 9000, destination_port: 20_000 };
            let bytes = tuple(&written);
            assert_eq!(key(&NetlinkAttributes::of(&bytes)), Some(written));
            for length in 0..bytes.len() - 2 {
                assert_eq!(key(&NetlinkAttributes::of(&bytes[..length])), None, "{length}");
            }
        }
    }
}
