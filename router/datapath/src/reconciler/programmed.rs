//! State of the kernel data path, as the agent's views show it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::flow_log::RelayedCounts;
use crate::image::MapImage;
use crate::reconciler::gate::GateReport;

/// State of the kernel data path: what was written, and what failed.
#[derive(Clone, Debug, Default)]
pub struct Programmed {
    /// Revision of the table that was last written.
    pub revision: u64,
    /// Intended entries of the maps.
    pub entries: usize,
    /// Listening addresses among them.
    pub listeners: usize,
    /// Endpoints that the kernel can dial.
    pub endpoints: usize,
    /// Host entries that do not fit; the agent serves these hosts.
    pub left_out: usize,
    /// Failed writes, which are retried.
    pub failed: usize,
    /// The first of those failures.
    pub error: Option<String>,
    /// Interfaces with the programs.
    pub interfaces: Vec<String>,
    /// How the programs are attached.
    pub attached_by: &'static str,
    /// Interfaces without the programs, and why.
    pub left_alone: Vec<(String, String)>,
    /// Attached interfaces that permit `bpf_redirect_peer`.
    pub peers: Vec<String>,
    /// The XDP gate.
    pub gate: GateReport,
    /// Connections that the kernel carries, as of the last sweep.
    pub connections: usize,
    /// With [`Mode::Drain`](crate::kernel::Mode::Drain): the kernel carries no connection any more.
    pub drained: bool,
    /// Another agent writes the maps now.
    pub superseded: bool,
    /// Relayed connections, by route and reason.
    pub relayed: RelayedCounts,
    pub(super) wanted: Arc<Mutex<MapImage>>,
}

impl Programmed {
    /// Reads the intended content of the maps under its lock.
    pub fn look<T>(&self, look: impl FnOnce(&MapImage) -> T) -> T {
        look(&self.wanted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The intended content of the maps.
    pub fn intended(&self) -> MapImage {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
