//! Who sees the packets that leave by an interface: queueing disciplines, their filters, TCX programs, chains of nftables. What
//! bypasses the interface's egress bypasses them.

use std::io;

use crate::kernel::KernelPrograms;
use crate::netlink::queries::Netlink;
use crate::netlink::{Disciplines, interface_chains};

const CLSACT: &str = "clsact";

/// What one check reads.
pub struct EgressHooks<'a> {
    kernel: &'a KernelPrograms,
    netlink: &'a mut Netlink,
    disciplines: Disciplines,
    has_chains: bool,
}

impl<'a> EgressHooks<'a> {
    /// Reads what is read of all interfaces at once.
    ///
    /// # Errors
    /// The system call's, or the kernel's.
    pub fn begin(kernel: &'a KernelPrograms, netlink: &'a mut Netlink) -> io::Result<Self> {
        let (disciplines, has_chains) = (netlink.disciplines()?, interface_chains()?);
        Ok(EgressHooks { kernel, netlink, disciplines, has_chains })
    }

    /// The first hook of an interface that misses packets that bypass it. `passes_all`: whether a discipline does without them.
    ///
    /// # Errors
    /// As [`EgressHooks::begin`]; also if the kernel does not list the programs (requires `CAP_SYS_ADMIN`).
    pub fn first(&mut self, name: &str, index: u32, passes_all: impl Fn(&str) -> bool) -> io::Result<Option<String>> {
        // Any chain counts: which interface and hook it is for is not read.
        if self.has_chains {
            return Ok(Some("a chain of nftables on an interface".to_owned()));
        }
        let queues = self.disciplines.get(&index).map_or(&[][..], Vec::as_slice);
        if let Some(queue) =
            queues.iter().find(|queue| !matches!(queue.as_str(), "ingress" | CLSACT) && !passes_all(queue))
        {
            return Ok(Some(format!("its queueing discipline {queue}")));
        }
        let has_filters = queues.iter().any(|queue| queue == CLSACT)
            && !self.netlink.egress_filters(index)?.iter().all(|priority| self.kernel.is_own_filter(*priority));
        if has_filters {
            return Ok(Some("a filter of its egress".to_owned()));
        }
        let is_alone = self.kernel.is_alone_at_egress(name)?;
        Ok((!is_alone).then(|| "a TCX program of its egress".to_owned()))
    }

    /// The socket, for further questions.
    pub fn netlink(&mut self) -> &mut Netlink {
        self.netlink
    }
}
