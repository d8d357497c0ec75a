//! Removing what a killed agent has left.

use std::path::Path;
use std::{fs, io};

use super::chained::ChainedGate;
use super::error::KernelError;
use super::{links, pins};
use crate::pin_folder::PinFolder;

/// Removes the remains of a killed agent of an instance: attached programs, carried connections, maps. Returns the
/// removed folders, of all versions.
///
/// # Errors
/// [`KernelError::Taken`] while an agent uses them, [`KernelError::PinFolder`] if they cannot be removed.
pub fn clean_up(instance: &str) -> Result<Vec<String>, KernelError> {
    let root = PinFolder::of(instance).path().parent().map(Path::to_path_buf).unwrap_or_default();
    let fail = |error| KernelError::of_pins(&root, error);
    let folders: Vec<PinFolder> = match fs::read_dir(&root) {
        Ok(entries) => {
            entries.map(|entry| Ok(PinFolder::at(entry?.path()))).collect::<io::Result<_>>().map_err(fail)?
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(fail(error)),
    };
    for folder in &folders {
        if let Some(pid) = folder.other_agent() {
            return Err(KernelError::Taken { folder: folder.path().display().to_string(), pid });
        }
    }
    links::detach_classic(instance);
    let mut removed = Vec::new();
    for folder in folders {
        ChainedGate::of(&folder).map_or(Ok(()), |gate| gate.leave_all()).map_err(fail)?;
        pins::unpin(&folder).map_err(fail)?;
        removed.push(folder.path().display().to_string());
    }
    Ok(removed)
}
