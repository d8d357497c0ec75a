//! What the kernel has taken of what was intended.

use std::sync::{Arc, Mutex, PoisonError};

use crate::flow_log::Relayed;
use crate::image::MapImage;

/// What the kernel has taken of what was intended.
#[derive(Clone, Debug, Default)]
pub struct Programmed {
    /// Revision of the table that was last written.
    pub revision: u64,
    /// Entries that the maps should hold.
    pub entries: usize,
    /// Listening addresses among them.
    pub listeners: usize,
    /// Endpoints that the kernel can dial.
    pub endpoints: usize,
    /// Host entries that have no room; the agent serves them.
    pub left_out: usize,
    /// Writes that failed and are tried again.
    pub failed: usize,
    /// The first of those failures.
    pub error: Option<String>,
    /// Interfaces that the program is attached to.
    pub interfaces: Vec<String>,
    /// How it is attached to them.
    pub attached_by: &'static str,
    /// Interfaces that it is not attached to, and why.
    pub left_alone: Vec<(String, String)>,
    /// Those of the attached whose other ends packets are handed to at once.
    pub peers: Vec<String>,
    /// Connections that the kernel carries, by the last sweep.
    pub connections: usize,
    /// With [`Mode::Drain`](crate::kernel::Mode::Drain): the kernel carries none any more.
    pub drained: bool,
    /// Another agent writes the maps now.
    pub superseded: bool,
    /// Connections that the agent took over, by route and reason.
    pub relayed: Relayed,
    pub(super) wanted: Arc<Mutex<MapImage>>,
}

impl Programmed {
    /// Looks at what the maps should hold, while nobody writes to them.
    pub fn look<T>(&self, look: impl FnOnce(&MapImage) -> T) -> T {
        look(&self.wanted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the maps should hold now.
    pub fn intended(&self) -> MapImage {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
