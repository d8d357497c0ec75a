//! Pinned objects: their owner, whether this build can adopt them, and their removal.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use aya::maps::{MapInfo, MapType};
use aya_obj::{EbpfSectionKind, Object};
use rustix::mount::{MountFlags, mount};

use super::error::KernelError;
use super::links;
use crate::pin_folder::{BPFFS, PinFolder};

/// `BPF_FS_MAGIC` of linux/magic.h.
const BPF_FS_MAGIC: u64 = 0xcafe_4a11;

/// Mounts the BPF file system unless it is mounted.
pub fn mount_bpffs() -> io::Result<()> {
    if rustix::fs::statfs(BPFFS)?.f_type as u64 & 0xffff_ffff == BPF_FS_MAGIC {
        return Ok(());
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount("bpf", BPFFS, "bpf", flags, None)?)
}

/// Attributes that a map must have for a program to use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapAttributes {
    kind: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
}

impl MapAttributes {
    /// The first difference as text, from the pinned map to the wanted one; `None` if they are equal.
    fn difference(&self, wanted: &MapAttributes) -> Option<String> {
        let pairs = [
            ("type", self.kind, wanted.kind),
            ("key size", self.key_size, wanted.key_size),
            ("value size", self.value_size, wanted.value_size),
            ("max entries", self.max_entries, wanted.max_entries),
            ("flags", self.flags, wanted.flags),
        ];
        let (what, is, wanted) = pairs.into_iter().find(|(_, is, wanted)| is != wanted)?;
        Some(format!("its {what} is {is}, this build's is {wanted}"))
    }
}

/// The ring of log lines (aya-log); each agent creates its own.
const LOG_RING: &str = "AYA_LOGS";

/// The maps of an object, except those of its constants and variables, and its log ring.
///
/// # Errors
/// When the object cannot be parsed.
pub fn wanted(object: &[u8]) -> Result<BTreeMap<String, MapAttributes>, KernelError> {
    let object = Object::parse(object).map_err(aya::EbpfError::from)?;
    let maps = object.maps.into_iter().filter(|(name, map)| {
        let data = [EbpfSectionKind::Bss, EbpfSectionKind::Data, EbpfSectionKind::Rodata];
        !data.contains(&map.section_kind()) && name != LOG_RING
    });
    let page = u32::try_from(rustix::param::page_size()).unwrap_or(4096);
    let attributes = maps.map(|(name, map)| {
        let kind = map.map_type();
        let ring = kind == MapType::RingBuf as u32;
        let attributes = MapAttributes {
            kind,
            key_size: map.key_size(),
            // As the loader creates it: rings have no values, and their size is a power of two of pages.
            value_size: if ring { 0 } else { map.value_size() },
            max_entries: if ring { ring_size(map.max_entries(), page) } else { map.max_entries() },
            flags: map.map_flags(),
        };
        (name, attributes)
    });
    Ok(attributes.collect())
}

fn ring_size(bytes: u32, page: u32) -> u32 {
    bytes.div_ceil(page).next_power_of_two() * page
}

/// True if all maps are pinned, with the attributes that an object requires; `false` if there is nothing to adopt. The
/// remains of an interrupted start or end are removed: no program used them.
///
/// # Errors
/// [`KernelError::Mismatch`] if a program of another build uses them.
pub fn adoptable(folder: &PinFolder, wanted: &BTreeMap<String, MapAttributes>) -> Result<bool, KernelError> {
    let fail = |error| KernelError::of_pins(folder.path(), error);
    let mut missing = None;
    for (name, wanted) in wanted {
        let Some(pinned) = pinned(&folder.map(name)).map_err(fail)? else {
            missing = Some(name);
            continue;
        };
        if let Some(what) = pinned.difference(wanted) {
            return Err(mismatch(folder, name, what));
        }
    }
    let Some(missing) = missing else { return Ok(true) };
    if links::any(folder) {
        return Err(mismatch(folder, missing, "it is not there, though programs are attached".to_owned()));
    }
    unpin(folder).map_err(fail)?;
    Ok(false)
}

fn mismatch(folder: &PinFolder, map: &str, what: String) -> KernelError {
    KernelError::Mismatch { folder: folder.path().display().to_string(), map: map.to_owned(), what }
}

fn pinned(path: &Path) -> io::Result<Option<MapAttributes>> {
    let info = match MapInfo::from_pin(path) {
        Ok(info) => info,
        Err(aya::maps::MapError::SyscallError(error)) if error.io_error.kind() == io::ErrorKind::NotFound => {
            return Ok(None);
        }
        Err(aya::maps::MapError::SyscallError(error)) => return Err(error.io_error),
        Err(error) => return Err(io::Error::other(error)),
    };
    let kind = info.map_type().map_err(io::Error::other)?;
    Ok(Some(MapAttributes {
        kind: kind as u32,
        key_size: info.key_size(),
        value_size: info.value_size(),
        max_entries: info.max_entries(),
        flags: info.map_flags(),
    }))
}

/// Removes a folder: first the links that attach the programs.
pub fn unpin(folder: &PinFolder) -> io::Result<()> {
    remove_all(&folder.links())?;
    remove_all(folder.path())?;
    // The instance's folder, unless it contains another version.
    if let Some(instance) = folder.path().parent() {
        let _ = fs::remove_dir(instance);
    }
    Ok(())
}

fn remove_all(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let one = MapAttributes { kind: 1, key_size: 4, value_size: 8, max_entries: 16, flags: 0 };
        assert_eq!(one.difference(&one), None);
        let other = MapAttributes { max_entries: 32, flags: 1, ..one };
        assert_eq!(one.difference(&other).as_deref(), Some("its max entries is 16, this build's is 32"));
    }

    #[test]
    fn rings_are_powers_of_two_of_pages() {
        for (asked, given) in [(1, 4096), (4096, 4096), (4097, 8192), (3 * 4096, 4 * 4096), (1 << 20, 1 << 20)] {
            assert_eq!(ring_size(asked, 4096), given, "{asked}");
        }
    }
}
