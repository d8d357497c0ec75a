//! The trait that all changes of the configuration maps go through.

use std::io;

use crate::plan::MapWrite;

/// Writes to the configuration maps. Every change is idempotent: writing an existing entry and deleting a missing one
/// succeed.
pub trait Maps {
    /// Makes one change.
    ///
    /// # Errors
    /// The system call's; `E2BIG` for a full map.
    fn make(&mut self, change: &MapWrite) -> io::Result<()>;
    /// Stores the revision of the table that the maps contain.
    ///
    /// # Errors
    /// The system call's.
    fn set_revision(&mut self, revision: u64) -> io::Result<()>;
}
