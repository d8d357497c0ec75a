//! The route maps, as the decision reads them.

use router_common::decide::{HostKeyKind, HostRef, Tables};
use router_common::maps::{HostKey, HostRoute};

use crate::maps::{self, edge_reencrypt, http_be, sni_passthrough, tcp_be};

/// The maps, for one client and one name.
pub struct KernelTables<'a> {
    /// Key of the name itself.
    pub exact: &'a HostKey,
    /// Key of the wildcard that covers it.
    pub wildcard: &'a HostKey,
    /// Client address.
    pub client: &'a [u8; 16],
}

impl KernelTables<'_> {
    /// The key, if there is one: a name of one label has no wildcard.
    #[inline(always)]
    fn key(&self, candidate: HostKeyKind) -> Option<&HostKey> {
        match candidate {
            HostKeyKind::Exact => Some(self.exact),
            HostKeyKind::Wildcard if self.wildcard.host[0] == 0 => None,
            HostKeyKind::Wildcard => Some(self.wildcard),
        }
    }
}

#[inline(always)]
fn reference(value: Option<&HostRoute>) -> Option<HostRef> {
    value.map(HostRef::from)
}

impl Tables for KernelTables<'_> {
    #[inline(always)]
    fn is_passthrough(&self, candidate: HostKeyKind) -> bool {
        self.key(candidate).is_some_and(|key| {
            // SAFETY: only the agent writes this map and those of the look-ups below, and replaces whole values; the
            // few bytes that are needed are copied at once.
            unsafe { sni_passthrough.get(key) }.is_some()
        })
    }

    #[inline(always)]
    fn tcp_be(&self, candidate: HostKeyKind) -> Option<HostRef> {
        // SAFETY: see `is_passthrough`.
        reference(unsafe { tcp_be.get(self.key(candidate)?) })
    }

    #[inline(always)]
    fn edge_reencrypt(&self, candidate: HostKeyKind) -> Option<HostRef> {
        // SAFETY: see `is_passthrough`.
        reference(unsafe { edge_reencrypt.get(self.key(candidate)?) })
    }

    #[inline(always)]
    fn http_be(&self, candidate: HostKeyKind) -> Option<HostRef> {
        // SAFETY: see `is_passthrough`.
        reference(unsafe { http_be.get(self.key(candidate)?) })
    }

    #[inline(always)]
    fn source_allowed(&self, route: u32) -> bool {
        maps::source_allowed(route, self.client)
    }
}
