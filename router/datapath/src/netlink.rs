//! rtnetlink(7): queries of interfaces, addresses and routes, and notifications of their changes.

pub mod channel;
mod ethtool;
mod generic;
mod netdev;
mod packet_taps;
mod policies;
pub mod queries;
mod routing_rules;
pub mod sockets;
pub mod xdp;

use std::io;

use bytes::BytesMut;
use netlink_sys::protocols::{NETLINK_NETFILTER, NETLINK_ROUTE, NETLINK_XFRM};
use netlink_sys::{AsyncSocket, AsyncSocketExt, TokioSocket};

use channel::DATAGRAM;
use policies::GROUP_POLICY;

pub use ethtool::Ethtool;
pub use generic::attribute;
pub use netdev::{Netdev, XdpFeatures};
pub use packet_taps::{Disciplines, interface_chains};
pub use policies::{Policies, XfrmDirection};
pub use routing_rules::RoutingRules;

/// `NFNLGRP_NFTABLES` (linux/netfilter/nfnetlink.h): multicast group for changes of rules.
const GROUP_NFTABLES: u32 = 7;

/// The kernel's notifications that interfaces, addresses, routes, rules, queueing disciplines, filters, IPsec policies
/// or rules of nftables have changed.
pub struct News {
    routes: Subscription,
    /// `None`: the kernel has no IPsec.
    policies: Option<Subscription>,
    /// `None`: the kernel has no netfilter.
    firewall: Option<Subscription>,
}

impl News {
    /// Subscribes, in this thread's network namespace. Requires a tokio runtime.
    ///
    /// # Errors
    /// The system call's.
    pub fn open() -> io::Result<Self> {
        let routes = [
            libc::RTNLGRP_LINK,
            libc::RTNLGRP_IPV4_IFADDR,
            libc::RTNLGRP_IPV6_IFADDR,
            libc::RTNLGRP_IPV4_ROUTE,
            libc::RTNLGRP_IPV6_ROUTE,
            libc::RTNLGRP_IPV4_RULE,
            libc::RTNLGRP_IPV6_RULE,
            libc::RTNLGRP_TC,
        ];
        let may_lack = |protocol, group| match Subscription::open(protocol, &[group]) {
            Err(error) if error.raw_os_error() == Some(libc::EPROTONOSUPPORT) => Ok(None),
            opened => opened.map(Some),
        };
        Ok(News {
            routes: Subscription::open(NETLINK_ROUTE, &routes)?,
            policies: may_lack(NETLINK_XFRM, GROUP_POLICY)?,
            firewall: may_lack(NETLINK_NETFILTER, GROUP_NFTABLES)?,
        })
    }

    /// Waits for a notification. It does not say what changed, which must be queried: after a burst that overflowed the
    /// socket nothing more is known.
    ///
    /// # Errors
    /// The system call's.
    pub async fn come(&mut self) -> io::Result<()> {
        tokio::select! {
            come = self.routes.come() => come,
            come = come_to(&mut self.policies) => come,
            come = come_to(&mut self.firewall) => come,
        }
    }
}

async fn come_to(subscription: &mut Option<Subscription>) -> io::Result<()> {
    match subscription {
        Some(subscription) => subscription.come().await,
        None => std::future::pending().await,
    }
}

/// A socket that is a member of groups of one netlink family.
struct Subscription {
    socket: TokioSocket,
    buffer: BytesMut,
}

impl Subscription {
    fn open(protocol: isize, groups: &[u32]) -> io::Result<Self> {
        let mut socket = TokioSocket::new(protocol)?;
        socket.socket_mut().bind_auto()?;
        groups.iter().try_for_each(|group| socket.socket_ref().add_membership(*group))?;
        Ok(Subscription { socket, buffer: BytesMut::with_capacity(DATAGRAM) })
    }

    async fn come(&mut self) -> io::Result<()> {
        self.buffer.clear();
        self.buffer.reserve(DATAGRAM);
        match self.socket.recv(&mut self.buffer).await {
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(()),
            other => other,
        }
    }
}
