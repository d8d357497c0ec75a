//! XDP programs that are attached without links: which one an interface has, and replacing it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::NLM_F_ACK;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage, LinkXdp};

use crate::netlink::queries::Netlink;

// linux/if_link.h
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
const XDP_FLAGS_REPLACE: u32 = 1 << 4;

/// An attached XDP program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachedXdp {
    /// The program's id.
    pub id: u32,
    /// Whether it is attached in the driver.
    pub is_native: bool,
}

impl Netlink {
    /// The XDP program of an interface of this network namespace; the driver's, if the kernel has one there as well.
    ///
    /// # Errors
    /// The system call's, or the kernel's.
    pub fn attached_xdp(&mut self, interface: u32) -> io::Result<Option<AttachedXdp>> {
        let mut question = LinkMessage::default();
        question.header.index = interface;
        let mut found = None;
        self.ask(RouteNetlinkMessage::GetLink(question), 0, |answer| {
            if let RouteNetlinkMessage::NewLink(link) = answer {
                found = link.attributes.iter().find_map(attached);
            }
        })?;
        Ok(found)
    }

    /// Replaces an interface's XDP program, which was attached without a link, by another one or by nothing.
    ///
    /// # Errors
    /// The system call's, or the kernel's: `EEXIST` if the interface has another one than expected.
    pub fn replace_xdp(
        &mut self,
        interface: u32,
        is_native: bool,
        with: Option<BorrowedFd<'_>>,
        expected: BorrowedFd<'_>,
    ) -> io::Result<()> {
        let mode = if is_native { XDP_FLAGS_DRV_MODE } else { XDP_FLAGS_SKB_MODE };
        let mut change = LinkMessage::default();
        change.header.index = interface;
        change.attributes.push(LinkAttribute::Xdp(vec![
            LinkXdp::Fd(with.map_or(-1, |program| program.as_raw_fd())),
            LinkXdp::Flags(mode | XDP_FLAGS_REPLACE),
            LinkXdp::ExpectedFd(expected.as_raw_fd().cast_unsigned()),
        ]));
        self.ask(RouteNetlinkMessage::SetLink(change), NLM_F_ACK, |_| {})
    }
}

fn attached(attribute: &LinkAttribute) -> Option<AttachedXdp> {
    let LinkAttribute::Xdp(parts) = attribute else { return None };
    parts.iter().find_map(|part| match part {
        LinkXdp::DrvProgId(id) => Some(AttachedXdp { id: *id, is_native: true }),
        LinkXdp::SkbProgId(id) => Some(AttachedXdp { id: *id, is_native: false }),
        _ => None,
    })
}
