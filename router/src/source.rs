//! Where objects come from. A source owns its `Resources` and publishes a new version after every effective change.

mod accepted;
pub mod diagnostic;
pub mod directory;
mod document;
mod entry;
mod manifests;
mod unrendered;
mod walk;
mod watch;

pub use diagnostic::{Diagnostic, Severity};
pub use directory::{Directory, FolderError, FolderSnapshot, folder_of};
