//! Attaching the XDP program to interfaces, by pinned links: it outlives the agent, and the next agent replaces it in place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::xdp::{Xdp, XdpLink, XdpMode};
use aya::programs::{ProgramError, XdpError, loaded_programs};

use super::chain;
use super::chained::ChainedGate;
use super::links::{entries, removed};
use crate::interfaces::Interfaces;
use crate::netlink::queries::Netlink;
use crate::pin_folder::PinFolder;

/// The loopback interface of every network namespace.
const LOOPBACK: u32 = 1;

/// `sluice run --xdp`: whether and how the gate is attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum GateMode {
    /// In the driver where it can, by the kernel where it cannot; not on veth pairs to other network namespaces of this host,
    /// where it costs each packet a copy or the other end its segmentation offload.
    #[default]
    Auto,
    /// In the driver; interfaces whose driver cannot have no gate.
    Native,
    /// By the kernel, when it has made a socket buffer.
    Generic,
    /// Not at all.
    Off,
}

/// How the program is attached to an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachedMode {
    /// In the driver.
    Native,
    /// By the kernel.
    Generic,
}

impl AttachedMode {
    const ALL: [AttachedMode; 2] = [AttachedMode::Native, AttachedMode::Generic];

    /// The mode's name.
    pub const fn name(self) -> &'static str {
        match self {
            AttachedMode::Native => "native",
            AttachedMode::Generic => "generic",
        }
    }

    fn of_aya(self) -> XdpMode {
        match self {
            AttachedMode::Native => XdpMode::Driver,
            AttachedMode::Generic => XdpMode::Skb,
        }
    }
}

/// What holds a program on an interface.
#[derive(Debug)]
enum Hold {
    /// A link. Without a pin, dropping it detaches the program.
    Link { _link: FdLink, pin: Option<PathBuf> },
    /// A slot of libxdp's dispatcher, of whose pins libxdp's protocol tells.
    Slot,
}

/// An attached program.
#[derive(Debug)]
struct GateLink {
    name: String,
    mode: AttachedMode,
    hold: Hold,
}

impl GateLink {
    fn pin(&self) -> Option<&Path> {
        match &self.hold {
            Hold::Link { pin, .. } => pin.as_deref(),
            Hold::Slot => None,
        }
    }

    fn is_beside(&self) -> bool {
        matches!(self.hold, Hold::Slot)
    }

    fn how(&self) -> &'static str {
        match (self.is_beside(), self.mode) {
            (false, mode) => mode.name(),
            (true, AttachedMode::Native) => "native, beside libxdp's dispatcher",
            (true, AttachedMode::Generic) => "generic, beside libxdp's dispatcher",
        }
    }
}

/// The attachments of the XDP program.
#[derive(Debug)]
pub struct GateLinks {
    folder: Option<PathBuf>,
    /// The program for slots of dispatchers; without pins they are left alone.
    chained: Option<ChainedGate>,
    mode: GateMode,
    attached: BTreeMap<u32, GateLink>,
    failed: BTreeMap<u32, (String, String)>,
    is_swept: bool,
    /// Why the program could not be loaded.
    unloaded: Option<String>,
}

impl GateLinks {
    /// Links pinned in the folder; without one, links that end with their program.
    pub fn new(folder: Option<&PinFolder>, mode: GateMode, unloaded: Option<String>) -> Self {
        let chained = folder.and_then(ChainedGate::of);
        let folder = folder.map(PinFolder::gate_links);
        GateLinks {
            folder,
            chained,
            mode,
            attached: BTreeMap::new(),
            failed: BTreeMap::new(),
            is_swept: false,
            unloaded,
        }
    }

    /// Sets how the program is attached, before it is.
    pub fn set_mode(&mut self, mode: GateMode) {
        self.mode = mode;
    }

    /// Interfaces that have the program, and how; by name.
    pub fn attached(&self) -> Vec<(String, &'static str)> {
        let mut attached: Vec<_> = self.attached.values().map(|link| (link.name.clone(), link.how())).collect();
        attached.sort_by(|one, other| one.0.cmp(&other.0));
        attached
    }

    /// Those where the program answers SYNs, and their indices: not beside others.
    pub fn links(&self) -> Vec<(u32, String, AttachedMode)> {
        let alone = self.attached.iter().filter(|(_, link)| !link.is_beside());
        alone.map(|(index, link)| (*index, link.name.clone(), link.mode)).collect()
    }

    /// Whether the program is in a slot of libxdp's dispatcher anywhere.
    pub fn is_beside(&self) -> bool {
        self.attached.values().any(GateLink::is_beside)
    }

    /// Interfaces that cannot have it, and why.
    pub fn failed(&self) -> Vec<(String, String)> {
        self.failed.values().cloned().collect()
    }

    /// Attaches to new interfaces if packets are to be decided, else detaches from all; if `is_retried`, also to those where
    /// that failed. Returns the changes as texts.
    pub fn follow(
        &mut self,
        program: &mut Xdp,
        interfaces: &Interfaces,
        is_wanted: bool,
        is_retried: bool,
    ) -> Vec<String> {
        let mut news = Vec::new();
        let is_wanted = is_wanted && self.mode != GateMode::Off;
        let wanted: BTreeMap<u32, &String> = if is_wanted {
            // Packets of this host to itself are nobody else's.
            let is_spared = |index: &u32| self.mode == GateMode::Auto && interfaces.pairs.contains_key(index);
            // One below may have no program itself: it is a port of a bridge.
            let is_attachable = |below: &u32| interfaces.attachable.values().any(|index| index == below);
            let is_above = |index: &u32| interfaces.above.get(index).is_some_and(is_attachable);
            let is_first = |index: &u32| *index != LOOPBACK && !is_above(index) && !is_spared(index);
            let arrive = interfaces.attachable.iter().filter(|(_, index)| is_first(index));
            arrive.map(|(name, index)| (*index, name)).collect()
        } else {
            BTreeMap::new()
        };
        self.failed.retain(|index, _| wanted.contains_key(index));
        let chained = self.chained.as_ref();
        for (index, link) in self.attached.extract_if(.., |index, _| !wanted.contains_key(index)) {
            news.push(format!("the gate is detached from {}", link.name));
            if let Err(error) = detach(index, &link, chained) {
                news.push(format!("the gate on {} cannot be removed: {error}", link.name));
            }
        }
        if is_retried && let Some(chained) = chained {
            // Others may have removed it, or all programs of the dispatcher.
            self.attached.retain(|index, link| !link.is_beside() || chained.is_in(*index).unwrap_or(true));
        }
        for (index, name) in wanted {
            if let Some(link) = self.attached.get_mut(&index) {
                link.name.clone_from(name);
            } else if is_retried || !self.failed.contains_key(&index) {
                match self.attach(program, index, name) {
                    Ok(link) => {
                        news.push(format!("the gate is attached to {name} ({})", link.how()));
                        self.failed.remove(&index);
                        self.attached.insert(index, link);
                    }
                    Err(why) => {
                        let failure = (name.clone(), why);
                        if self.failed.get(&index) != Some(&failure) {
                            news.push(format!("the gate cannot be attached to {name}: {}", failure.1));
                        }
                        self.failed.insert(index, failure);
                    }
                }
            }
        }
        if !std::mem::replace(&mut self.is_swept, true)
            && let Err(error) = self.sweep()
        {
            news.push(format!("pins of the gate on interfaces that are gone cannot be removed: {error}"));
        }
        news
    }

    /// Detaches the program everywhere.
    ///
    /// # Errors
    /// The system call's.
    pub fn detach_all(&mut self) -> io::Result<()> {
        let links = std::mem::take(&mut self.attached).into_iter();
        links.map(|(index, link)| detach(index, &link, self.chained.as_ref())).fold(Ok(()), Result::and)
    }

    fn attach(&mut self, program: &mut Xdp, index: u32, name: &str) -> Result<GateLink, String> {
        if let Some(why) = &self.unloaded {
            return Err(format!(
                "this kernel rejects the program (Linux 6.0 with CONFIG_SYN_COOKIES has what it needs): {why}"
            ));
        }
        let modes: &[AttachedMode] = match self.mode {
            GateMode::Auto => &AttachedMode::ALL,
            GateMode::Native => &[AttachedMode::Native],
            GateMode::Generic | GateMode::Off => &[AttachedMode::Generic],
        };
        if let Some(link) = self.adopt(program, index, name, modes) {
            return Ok(link);
        }
        if let Some(chained) = &mut self.chained
            && chain::is_dispatcher(index).unwrap_or(false)
        {
            let fail = |error| format!("it cannot be put beside libxdp's dispatcher: {error}");
            let is_native = chained.join(index).map_err(fail)?;
            let mode = if is_native { AttachedMode::Native } else { AttachedMode::Generic };
            return Ok(GateLink { name: name.to_owned(), mode, hold: Hold::Slot });
        }
        let mut why = String::new();
        for mode in modes {
            match self.attach_as(program, index, *mode) {
                Ok((link, pin)) => {
                    let hold = Hold::Link { _link: link, pin };
                    return Ok(GateLink { name: name.to_owned(), mode: *mode, hold });
                }
                Err(error) => {
                    let separator = if why.is_empty() { "" } else { "; " };
                    why = format!("{why}{separator}{}: {}", mode.name(), reason(&error, index));
                }
            }
        }
        Err(why)
    }

    /// Puts the program in the place of an earlier agent's, if that is attached in one of these modes.
    fn adopt(&self, program: &mut Xdp, index: u32, name: &str, modes: &[AttachedMode]) -> Option<GateLink> {
        for mode in AttachedMode::ALL {
            let pin = self.folder.as_ref()?.join(pin_name(index, mode));
            let Ok(old) = PinnedLink::from_pin(&pin) else { continue };
            if modes.contains(&mode)
                && let Some(link) = replace(program, old)
                && is_on(program, index)
            {
                let hold = Hold::Link { _link: link, pin: Some(pin) };
                return Some(GateLink { name: name.to_owned(), mode, hold });
            }
            // The pin is of another mode, of a removed interface with the same index, or of another network namespace.
            removed(&pin).ok()?;
        }
        None
    }

    fn attach_as(
        &self,
        program: &mut Xdp,
        index: u32,
        mode: AttachedMode,
    ) -> Result<(FdLink, Option<PathBuf>), ProgramError> {
        let id = program.attach_to_if_index(index, mode.of_aya())?;
        let link = FdLink::try_from(program.take_link(id)?).map_err(io::Error::other)?;
        let Some(folder) = &self.folder else { return Ok((link, None)) };
        fs::create_dir_all(folder)?;
        let pin = folder.join(pin_name(index, mode));
        let link = link.pin(&pin).map_err(|error| io::Error::other(format!("{}: {error}", pin.display())))?;
        Ok((link.into(), Some(pin)))
    }

    /// Removes pins that are of no attached interface.
    fn sweep(&self) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let live: Vec<&Path> = self.attached.values().filter_map(GateLink::pin).collect();
        entries(folder)?.iter().filter(|entry| !live.contains(&entry.as_path())).try_for_each(|entry| removed(entry))
    }
}

fn detach(index: u32, link: &GateLink, chained: Option<&ChainedGate>) -> io::Result<()> {
    match (&link.hold, chained) {
        (Hold::Link { pin: Some(pin), .. }, _) => removed(pin),
        (Hold::Slot, Some(chained)) => chained.leave(index),
        _ => Ok(()),
    }
}

fn replace(program: &mut Xdp, old: PinnedLink) -> Option<FdLink> {
    let old = XdpLink::try_from(FdLink::from(old)).ok()?;
    let id = program.attach_to_link(old).ok()?;
    FdLink::try_from(program.take_link(id).ok()?).ok()
}

/// Whether the interface with this index, in this network namespace, has the program: that of a pinned link may have been moved
/// to another one.
fn is_on(program: &Xdp, index: u32) -> bool {
    let Ok(id) = program.info().map(|info| info.id()) else { return false };
    Netlink::open().and_then(|mut netlink| netlink.xdp_programs(index)).is_ok_and(|ids| ids.contains(&id))
}

/// Who has an interface's XDP hook, for a message.
fn holders(index: u32) -> Option<String> {
    let ids = Netlink::open().and_then(|mut netlink| netlink.xdp_programs(index)).ok()?;
    let programs = loaded_programs().filter_map(Result::ok).filter(|program| ids.contains(&program.id()));
    let names =
        programs.map(|program| format!("{} (id {})", program.name_as_str().unwrap_or("a program"), program.id()));
    let names = names.collect::<Vec<_>>().join(" and ");
    if names.is_empty() { None } else { Some(names) }
}

/// By index: an interface may be renamed, and its link stays.
fn pin_name(index: u32, mode: AttachedMode) -> String {
    format!("{index}-{}", mode.name())
}

/// The kernel's reason in words that say what to do, where the number alone does not.
fn reason(error: &ProgramError, index: u32) -> String {
    let number = match error {
        ProgramError::SyscallError(error) => error.io_error.raw_os_error(),
        ProgramError::XdpError(XdpError::NetlinkError(error)) => error.raw_os_error(),
        _ => None,
    };
    match number {
        Some(libc::EBUSY | libc::EEXIST) => {
            let holders = holders(index).unwrap_or_else(|| "another program".to_owned());
            format!("{holders} has the interface's XDP hook; detach it, or move it to another interface")
        }
        Some(libc::EOPNOTSUPP) => "the driver has no native XDP".to_owned(),
        _ => error.to_string(),
    }
}
