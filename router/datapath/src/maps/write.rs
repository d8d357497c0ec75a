//! The trait that all changes of the configuration maps go through.

use std::io;

use crate::plan::Change;

/// Writes to the configuration maps. Every change may be made twice: writing what is there and deleting what is not
/// there succeed.
pub trait Maps {
    /// Makes one change.
    ///
    /// # Errors
    /// The system call's; `E2BIG` for a full map.
    fn make(&mut self, change: &Change) -> io::Result<()>;
    /// Tells which table the maps hold.
    ///
    /// # Errors
    /// The system call's.
    fn set_revision(&mut self, revision: u64) -> io::Result<()>;
}
