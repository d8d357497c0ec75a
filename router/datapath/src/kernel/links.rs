//! Attaching the programs to interfaces, so that they stay attached without an agent, and the next agent replaces them
//! atomically, without missing a packet.
//!
//! TCX links (Linux 6.6) are pinned, and updated in place. If the first attachment finds that the kernel has none, a
//! program is attached as a filter of the interface's clsact qdisc, with a priority specific to the instance; the
//! filter persists by itself, and is replaced in place, too.

use std::path::{Path, PathBuf};
use std::{fs, io};

use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::tc::{self, NlOptions, SchedClassifier, SchedClassifierLink, TcAttachOptions, TcHandle};
use aya::programs::{LinkOrder, ProgramError, TcAttachType};

use crate::pin_folder::PinFolder;

/// Handle of all filters, each unique under its priority.
const HANDLE: TcHandle = TcHandle::new(0, 1);

/// Whether the kernel has TCX links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tcx {
    /// Not probed yet.
    Unknown,
    Has,
    Lacks,
}

/// Direction of an interface's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TcDirection {
    /// Packets that arrive.
    Ingress,
    /// Packets that leave.
    Egress,
}

impl TcDirection {
    /// In the order of attaching.
    pub const ALL: [TcDirection; 2] = [TcDirection::Egress, TcDirection::Ingress];

    fn name(self) -> &'static str {
        match self {
            TcDirection::Ingress => "ingress",
            TcDirection::Egress => "egress",
        }
    }

    fn attach_type(self) -> TcAttachType {
        match self {
            TcDirection::Ingress => TcAttachType::Ingress,
            TcDirection::Egress => TcAttachType::Egress,
        }
    }
}

/// Links of an instance, and the folder of their pins.
#[derive(Debug)]
pub struct Links {
    folder: Option<PinFolder>,
    tcx: Tcx,
}

/// A program attached to an interface. Dropping it leaves a pinned link or a filter in place.
#[derive(Debug)]
pub enum AttachedProgram {
    /// A TCX link. Without a pin, dropping it detaches the program.
    Link { _link: FdLink, pin: Option<PathBuf> },
    /// A filter; `None` once it was detached or released.
    Filter(Option<SchedClassifierLink>),
}

impl AttachedProgram {
    /// Detaches the program.
    pub fn detach(mut self) -> io::Result<()> {
        match &mut self {
            AttachedProgram::Link { pin: Some(pin), .. } => removed(pin),
            AttachedProgram::Link { pin: None, .. } => Ok(()),
            AttachedProgram::Filter(link) => {
                // Its drop detaches the program.
                drop(link.take());
                Ok(())
            }
        }
    }
}

impl Drop for AttachedProgram {
    fn drop(&mut self) {
        if let AttachedProgram::Filter(link) = self
            && let Some(link) = link.take()
        {
            // Its drop would detach the program.
            std::mem::forget(link);
        }
    }
}

impl Links {
    /// Links pinned in `folder`; without a folder, links that end with their program.
    pub fn new(folder: Option<PinFolder>) -> Links {
        Links { folder, tcx: Tcx::Unknown }
    }

    /// Uses filters, even if the kernel has TCX links.
    pub fn use_filters(&mut self) {
        self.tcx = Tcx::Lacks;
    }

    /// The kind of attachment.
    pub fn kind(&self) -> &'static str {
        match self.tcx {
            Tcx::Unknown => "nothing yet",
            Tcx::Has => "TCX links",
            Tcx::Lacks => "clsact filters",
        }
    }

    /// Renames the pins of a renamed interface, so that the next attachment finds its links. Filters have none.
    ///
    /// # Errors
    /// The system call's.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let pin = |interface, direction| folder.links().join(pin_name(interface, direction));
        TcDirection::ALL.into_iter().try_for_each(|direction| {
            match fs::rename(pin(from, direction), pin(to, direction)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                other => other,
            }
        })
    }

    /// Attaches a program; replaces an earlier one of this instance, if any.
    ///
    /// # Errors
    /// If the kernel rejects it.
    pub fn attach(
        &mut self,
        program: &mut SchedClassifier,
        interface: &str,
        direction: TcDirection,
    ) -> Result<AttachedProgram, ProgramError> {
        if self.tcx != Tcx::Lacks {
            match self.attach_link(program, interface, direction) {
                Err(error) if self.tcx == Tcx::Unknown && is_unknown(&error) => self.tcx = Tcx::Lacks,
                Err(error) => return Err(error),
                Ok(link) => {
                    self.tcx = Tcx::Has;
                    return Ok(link);
                }
            }
        }
        self.filter(program, interface, direction)
    }

    fn attach_link(
        &self,
        program: &mut SchedClassifier,
        interface: &str,
        direction: TcDirection,
    ) -> Result<AttachedProgram, ProgramError> {
        let kind = direction.attach_type();
        let pin = self.folder.as_ref().map(|folder| folder.links().join(pin_name(interface, direction)));
        if let Some(pin) = &pin {
            if let Some(link) = replace(program, pin, interface, kind) {
                return Ok(AttachedProgram::Link { _link: link, pin: Some(pin.clone()) });
            }
            // The pin is of a removed interface, or of another network namespace.
            removed(pin)?;
        }
        let id = program.attach_with_options(interface, kind, TcAttachOptions::TcxOrder(LinkOrder::default()))?;
        let link = FdLink::try_from(program.take_link(id)?).map_err(io::Error::other)?;
        let Some(pin) = pin else { return Ok(AttachedProgram::Link { _link: link, pin: None }) };
        if let Some(folder) = pin.parent() {
            fs::create_dir_all(folder)?;
        }
        let link = link.pin(&pin).map_err(|error| io::Error::other(format!("{}: {error}", pin.display())))?;
        Ok(AttachedProgram::Link { _link: link.into(), pin: Some(pin) })
    }

    fn filter(
        &self,
        program: &mut SchedClassifier,
        interface: &str,
        direction: TcDirection,
    ) -> Result<AttachedProgram, ProgramError> {
        // An existing qdisc is no error; any other failure shows when attaching.
        let _ = tc::qdisc_add_clsact(interface);
        let kind = direction.attach_type();
        let priority = self.folder.as_ref().map_or(0, priority);
        let handle = if priority == 0 { TcHandle::AUTO_ASSIGN } else { HANDLE };
        let options = TcAttachOptions::Netlink(NlOptions { priority, handle, classid: None });
        let id = match program.attach_with_options(interface, kind, options) {
            Ok(id) => id,
            // A filter of an earlier agent exists: the new program replaces it.
            Err(_) if priority != 0 => {
                program.attach_to_link(SchedClassifierLink::attached(interface, kind, priority, handle, None)?)?
            }
            Err(error) => return Err(error),
        };
        Ok(AttachedProgram::Filter(Some(program.take_link(id)?)))
    }

    /// True if a filter with this priority is of these links.
    pub fn is_own_filter(&self, priority: u16) -> bool {
        self.tcx == Tcx::Lacks && self.folder.as_ref().is_some_and(|folder| self::priority(folder) == priority)
    }

    /// True if a program is the only TCX program in its place; filters do not count.
    ///
    /// # Errors
    /// If the kernel does not list the programs.
    pub fn is_alone(&self, program: &SchedClassifier, interface: &str, direction: TcDirection) -> io::Result<bool> {
        let own = program.info().map_err(io::Error::other)?.id();
        let queried = match SchedClassifier::query_tcx(interface, direction.attach_type()) {
            Err(error) if is_unknown(&error) => return Ok(true),
            queried => queried.map_err(io::Error::other)?,
        };
        Ok(queried.1.iter().all(|attached| attached.id() == own))
    }

    /// Removes pins of links that are not among those attached: their interfaces were removed.
    pub fn sweep<'a>(&self, attached: impl Iterator<Item = &'a AttachedProgram>) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let live: Vec<&Path> = attached
            .filter_map(|attached| match attached {
                AttachedProgram::Link { pin, .. } => pin.as_deref(),
                AttachedProgram::Filter(_) => None,
            })
            .collect();
        for entry in entries(&folder.links())? {
            if !live.contains(&entry.as_path()) {
                removed(&entry)?;
            }
        }
        Ok(())
    }
}

/// True if a kernel without TCX returns this error.
fn is_unknown(error: &ProgramError) -> bool {
    let ProgramError::SyscallError(error) = error else { return false };
    matches!(error.io_error.raw_os_error(), Some(libc::EINVAL | libc::E2BIG))
}

/// Updates a pinned link with a program; `None` if the link is not, or no longer, of this interface.
fn replace(program: &mut SchedClassifier, pin: &Path, interface: &str, kind: TcAttachType) -> Option<FdLink> {
    let old = PinnedLink::from_pin(pin).ok()?;
    let old = SchedClassifierLink::try_from(FdLink::from(old)).ok()?;
    let id = program.attach_to_link(old).ok()?;
    let link = FdLink::try_from(program.take_link(id).ok()?).ok()?;
    let (_, attached) = SchedClassifier::query_tcx(interface, kind).ok()?;
    let own = program.info().ok()?.id();
    attached.iter().any(|info| info.id() == own).then_some(link)
}

/// Name of a pin. Dots are escaped: names on this file system must have none, but interfaces may.
fn pin_name(interface: &str, direction: TcDirection) -> String {
    let interface = interface.replace('%', "%25").replace('.', "%2e");
    format!("{interface}-{}", direction.name())
}

/// Priority of an instance's filters: a hash of its name, unique as far as 16 bits allow, behind the operator's usual
/// priorities.
fn priority(folder: &PinFolder) -> u16 {
    let instance = folder.path().parent().and_then(Path::file_name).unwrap_or_default();
    instance_priority(&instance.to_string_lossy())
}

fn instance_priority(instance: &str) -> u16 {
    // FNV-1a.
    let hash = instance.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    0x4000 | (hash ^ (hash >> 16)) as u16 & 0x3fff
}

/// Removes an instance's filters from every interface. There are none where links are pinned.
pub fn detach_classic(instance: &str) {
    let priority = instance_priority(instance);
    let Ok(interfaces) = nix::ifaddrs::getifaddrs() else { return };
    let names: std::collections::BTreeSet<String> = interfaces.map(|interface| interface.interface_name).collect();
    for name in names {
        for direction in TcDirection::ALL {
            // Dropping it detaches the filter; a missing filter is the usual case.
            let _ = SchedClassifierLink::attached(&name, direction.attach_type(), priority, HANDLE, None);
        }
    }
}

/// True if a folder contains links.
pub fn any(folder: &PinFolder) -> bool {
    entries(&folder.links()).is_ok_and(|entries| !entries.is_empty())
}

pub(super) fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

pub(super) fn removed(pin: &Path) -> io::Result<()> {
    match fs::remove_file(pin) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pin_names_have_no_dots_and_do_not_collide() {
        assert_eq!(pin_name("eth0", TcDirection::Ingress), "eth0-ingress");
        assert_eq!(pin_name("eth0.100", TcDirection::Egress), "eth0%2e100-egress");
        assert_ne!(pin_name("a%2eb", TcDirection::Egress), pin_name("a.b", TcDirection::Egress));
    }

    #[test]
    fn each_instance_has_its_priority() {
        let priorities: std::collections::BTreeSet<_> =
            ["default", "test-1", "test-2", "edge"].map(instance_priority).into();
        assert_eq!(priorities.len(), 4);
        assert!(priorities.iter().all(|priority| (0x4000..0x8000).contains(priority)));
    }
}
