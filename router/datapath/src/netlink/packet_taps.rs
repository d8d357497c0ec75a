//! Egress hooks of an interface: queueing disciplines, their filters, chains of netfilter.
//!
//! Answers are parsed from bytes here: a hook that a library cannot parse would seem to be absent.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use netlink_packet_core::{NLM_F_DUMP, NlasIterator};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage, LinkXdp, XdpAttached};
use netlink_sys::protocols::NETLINK_NETFILTER;

use crate::interfaces::Pair;
use crate::netlink::channel::{Channel, RawMessage};
use crate::netlink::queries::Netlink;

// linux/rtnetlink.h
const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const RTM_NEWTFILTER: u16 = 44;
const RTM_GETTFILTER: u16 = 46;
const TCA_KIND: u16 = 1;
/// Length of `struct tcmsg`: family, padding, interface, handle, parent, info.
const TCMSG: usize = 20;
/// Parent of egress filters (linux/pkt_sched.h: `TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)`).
const EGRESS: u32 = 0xffff_fff3;

/// `NFT_MSG_GETCHAIN` of `NFNL_SUBSYS_NFTABLES` (linux/netfilter/nfnetlink.h, nf_tables.h).
const GET_CHAIN: u16 = 10 << 8 | 4;
/// linux/netfilter.h
const NFPROTO_NETDEV: u8 = 5;

/// Names of queueing disciplines, by interface index.
pub type Disciplines = BTreeMap<u32, Vec<String>>;

impl Netlink {
    /// The queueing disciplines of all interfaces.
    ///
    /// # Errors
    /// The system call's, or the kernel's.
    pub fn disciplines(&mut self) -> io::Result<Disciplines> {
        let mut found = Disciplines::new();
        let question = RawMessage { kind: RTM_GETQDISC, payload: vec![0; TCMSG] };
        self.channel.ask(question, NLM_F_DUMP, |answer| {
            if answer.kind == RTM_NEWQDISC
                && let Some((interface, name)) = discipline(&answer.payload)
            {
                found.entry(interface).or_default().push(name);
            }
        })?;
        Ok(found)
    }

    /// Priorities of the egress filters of an interface with a clsact discipline.
    ///
    /// # Errors
    /// As of [`Netlink::disciplines`].
    pub fn egress_filters(&mut self, interface: u32) -> io::Result<Vec<u16>> {
        let mut found = Vec::new();
        let mut payload = vec![0; TCMSG];
        payload[4..8].copy_from_slice(&interface.to_ne_bytes());
        payload[12..16].copy_from_slice(&EGRESS.to_ne_bytes());
        self.channel.ask(RawMessage { kind: RTM_GETTFILTER, payload }, NLM_F_DUMP, |answer| {
            if answer.kind == RTM_NEWTFILTER {
                found.push(filter_priority(&answer.payload));
            }
        })?;
        Ok(found)
    }

    /// True if the other end of a veth pair has an XDP program, which would see packets that pass the pair.
    ///
    /// # Errors
    /// As of [`Netlink::disciplines`]; also if the other end is not visible.
    pub fn other_end_has_xdp(&mut self, pair: Pair) -> io::Result<bool> {
        let mut question = LinkMessage::default();
        question.header.index = pair.index;
        question.attributes.push(LinkAttribute::IfNetnsId(pair.namespace));
        let mut has = None;
        self.ask(RouteNetlinkMessage::GetLink(question), 0, |answer| {
            if let RouteNetlinkMessage::NewLink(link) = answer {
                has = Some(link.attributes.iter().any(is_xdp));
            }
        })?;
        has.ok_or_else(|| io::Error::other("the other end cannot be read"))
    }

    /// Ids of the XDP programs of an interface of this network namespace, by links or without.
    ///
    /// # Errors
    /// As of [`Netlink::disciplines`].
    pub fn xdp_programs(&mut self, interface: u32) -> io::Result<BTreeSet<u32>> {
        let mut question = LinkMessage::default();
        question.header.index = interface;
        let mut found = BTreeSet::new();
        self.ask(RouteNetlinkMessage::GetLink(question), 0, |answer| {
            if let RouteNetlinkMessage::NewLink(link) = answer {
                found.extend(link.attributes.iter().flat_map(xdp_ids));
            }
        })?;
        Ok(found)
    }
}

/// True if nftables has chains on interfaces, some of which may be for egress.
///
/// # Errors
/// The system call's, or the kernel's. A kernel without nftables is no error: there are no chains then.
pub fn interface_chains() -> io::Result<bool> {
    let mut channel = match Channel::open(NETLINK_NETFILTER) {
        Err(error) if error.raw_os_error() == Some(libc::EPROTONOSUPPORT) => return Ok(false),
        channel => channel?,
    };
    let mut any = false;
    // `struct nfgenmsg`: family, version, resource.
    let question = RawMessage { kind: GET_CHAIN, payload: vec![NFPROTO_NETDEV, 0, 0, 0] };
    match channel.ask(question, NLM_F_DUMP, |_| any = true) {
        // nfnetlink(7) lacks the subsystem.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP | libc::ENOENT)) => Ok(false),
        asked => asked.map(|()| any),
    }
}

/// Interface and name in a `RTM_NEWQDISC`. A name that cannot be parsed is empty, which is no known name.
fn discipline(payload: &[u8]) -> Option<(u32, String)> {
    let interface = u32::from_ne_bytes(payload.get(4..8)?.try_into().ok()?);
    let mut attributes = NlasIterator::new(payload.get(TCMSG..)?).flatten();
    let name = attributes.find(|attribute| attribute.kind() == TCA_KIND);
    let name = name.map(|name| String::from_utf8_lossy(name.value()).trim_end_matches('\0').to_owned());
    Some((interface, name.unwrap_or_default()))
}

/// The priority in a `RTM_NEWTFILTER`: the upper half of `tcm_info`. 0, which no filter has, if it cannot be parsed.
fn filter_priority(payload: &[u8]) -> u16 {
    let info = payload.get(16..20).and_then(|info| info.try_into().ok()).map_or(0, u32::from_ne_bytes);
    (info >> 16) as u16
}

fn xdp_ids(attribute: &LinkAttribute) -> Vec<u32> {
    let LinkAttribute::Xdp(parts) = attribute else { return Vec::new() };
    let id = |part: &LinkXdp| match part {
        LinkXdp::ProgId(id) | LinkXdp::DrvProgId(id) | LinkXdp::SkbProgId(id) | LinkXdp::HwProgId(id) => Some(*id),
        _ => None,
    };
    parts.iter().filter_map(id).collect()
}

fn is_xdp(attribute: &LinkAttribute) -> bool {
    let LinkAttribute::Xdp(parts) = attribute else { return false };
    parts.iter().any(|part| matches!(part, LinkXdp::Attached(how) if *how != XdpAttached::None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_discipline_is_read_from_the_kernels_bytes() {
        // noqueue on interface 7: tcmsg, then TCA_KIND of 12 bytes.
        let mut message = vec![0; TCMSG];
        message[4] = 7;
        message.extend([12, 0, 1, 0]);
        message.extend(b"noqueue\0");
        assert_eq!(discipline(&message), Some((7, "noqueue".to_owned())));
        for length in TCMSG..message.len() {
            assert_eq!(discipline(&message[..length]), Some((7, String::new())), "{length}");
        }
        assert_eq!(discipline(&message[..7]), None);
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_nobodys() {
        let mut message = vec![0; TCMSG];
        message[18..20].copy_from_slice(&0x4001_u16.to_ne_bytes());
        assert_eq!(filter_priority(&message), 0x4001);
        assert_eq!(filter_priority(&message[..19]), 0);
    }

    #[test]
    fn the_loopback_has_no_queue() {
        let mut netlink = Netlink::open().unwrap();
        let lo = netlink.interfaces().unwrap().attachable["lo"];
        let found = netlink.disciplines().unwrap();
        assert!(found.get(&lo).is_none_or(|names| names.iter().all(|name| name == "noqueue")), "{found:?}");
    }
}
