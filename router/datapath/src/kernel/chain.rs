//! Joining and leaving the chain of programs of libxdp's dispatcher, by libxdp's protocol, version 2.
//!
//! Every change makes another dispatcher, of Sluice's own object, attaches the programs to its slots, pins them, and puts it in
//! the place of the old one. Names of pins, and the meaning of the configuration:
//! <https://github.com/xdp-project/xdp-tools/blob/main/lib/libxdp/protocol.org>.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use aya::EbpfLoader;
use aya::maps::{Array, Map, MapData, MapInfo};
use aya::programs::links::FdLink;
use aya::programs::{Extension, ProgramError, ProgramFd, ProgramInfo, Xdp, loaded_programs};
use router_common::dispatcher::DispatcherConfig;
use router_sys::abi::Raw;
use rustix::fs::{FlockOperation, flock};

use super::links::{entries, removed};
use super::object::dispatcher_object;
use super::slots::{Slot, VERSION, config_of, slots_in};
use crate::netlink::queries::Netlink;
use crate::netlink::xdp::AttachedXdp;
use crate::pin_folder::BPFFS;

/// Name of a dispatcher's program.
const NAME: &str = "xdp_dispatcher";
/// The dispatcher's constant with the configuration.
const CONFIG: &str = "CONFIG";
/// How often a change is begun anew because another one came first.
const TRIES: usize = 10;

/// How lines of the verifier begin that are no reason.
const STATISTICS: [&str; 3] = ["processed ", "stack depth ", "verification time "];

/// A program in a chain.
struct Component {
    program: Extension,
    id: u32,
    name: String,
    slot: Slot,
}

/// The gate's program, and how it is known in a chain: by its name, and by a map that only this instance's programs use.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// Id of the map.
    pub map: u32,
}

impl Member {
    fn is(self, program: &ProgramInfo) -> bool {
        let uses_map = || program.map_ids().ok().flatten().is_some_and(|ids| ids.contains(&self.map));
        program.name_as_str() == Some(self.name) && uses_map()
    }
}

/// A dispatcher that is attached to an interface.
pub struct Dispatcher {
    interface: u32,
    attached: AttachedXdp,
    program: ProgramFd,
    /// Held until the value is dropped: nobody else changes pins.
    _lock: File,
    components: Vec<Component>,
}

/// Whether an interface has a dispatcher.
///
/// # Errors
/// The system call's.
pub fn is_dispatcher(interface: u32) -> io::Result<bool> {
    Ok(program_of(interface)?.is_some_and(|(_, program)| program.name_as_str() == Some(NAME)))
}

/// Whether a member is in the chain of an interface's dispatcher.
///
/// # Errors
/// As of [`Dispatcher::of`].
pub fn has(interface: u32, member: Member) -> io::Result<bool> {
    let Some(dispatcher) = Dispatcher::of(interface)? else { return Ok(false) };
    Ok(dispatcher.others(member)?.len() < dispatcher.components.len())
}

/// Puts a program in the chain of an interface's dispatcher, in the place of the same member of an earlier agent. Returns
/// whether the dispatcher is attached in the driver.
///
/// # Errors
/// The kernel's, and what in the dispatcher is unknown.
pub fn join(interface: u32, member: Member, program: &mut Extension) -> io::Result<bool> {
    changed(interface, member, Some(program))?.ok_or_else(|| io::Error::other("the dispatcher is gone"))
}

/// Removes a member from the chain of an interface's dispatcher, if it is there; the last program with the dispatcher.
///
/// # Errors
/// As of [`join`].
pub fn leave(interface: u32, member: Member) -> io::Result<()> {
    changed(interface, member, None).map(drop)
}

/// Interfaces that have pins of a dispatcher, or had: by index.
///
/// # Errors
/// The system call's.
pub fn interfaces() -> io::Result<Vec<u32>> {
    let names = entries(&root())?;
    let index = |path: &PathBuf| path.file_name()?.to_str()?.strip_prefix("dispatch-")?.split('-').next()?.parse().ok();
    let mut found: Vec<u32> = names.iter().filter_map(index).collect();
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn changed(interface: u32, member: Member, mut program: Option<&mut Extension>) -> io::Result<Option<bool>> {
    let mut last = io::Error::from(io::ErrorKind::ResourceBusy);
    for _ in 0..TRIES {
        let Some(dispatcher) = Dispatcher::of(interface)? else { return Ok(None) };
        let is_native = dispatcher.attached.is_native;
        match dispatcher.changed(member, program.as_deref_mut()) {
            // Another program was attached in the meantime.
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => last = error,
            changed => return changed.map(|()| Some(is_native)),
        }
    }
    Err(last)
}

impl Dispatcher {
    /// Reads an interface's dispatcher; `None` if it has none.
    ///
    /// # Errors
    /// The system call's; what in it is unknown.
    fn of(interface: u32) -> io::Result<Option<Dispatcher>> {
        if !is_dispatcher(interface)? {
            return Ok(None);
        }
        let lock = File::open(root())?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| io::Error::new(error.kind(), "another process changes a dispatcher"))?;
        let Some((attached, program)) = program_of(interface)? else { return Ok(None) };
        let slots = slots_of(&program)?;
        let folder = folder(interface, program.id());
        let components = slots.into_iter().enumerate().map(|(number, slot)| {
            let program = Extension::from_pin(prog_pin(&folder, number)).map_err(io::Error::other)?;
            let info = program.info().map_err(io::Error::other)?;
            let name = info.name_as_str().unwrap_or_default().to_owned();
            Ok(Component { program, id: info.id(), name, slot })
        });
        let components = components.collect::<io::Result<_>>()?;
        let program = program.fd().map_err(io::Error::other)?;
        Ok(Some(Dispatcher { interface, attached, program, _lock: lock, components }))
    }

    /// Ids of the programs in the chain, but the member's.
    fn others(&self, member: Member) -> io::Result<Vec<u32>> {
        let infos = self.components.iter().map(|component| component.program.info().map_err(io::Error::other));
        let infos: Vec<ProgramInfo> = infos.collect::<io::Result<_>>()?;
        Ok(infos.iter().filter(|info| !member.is(info)).map(ProgramInfo::id).collect())
    }

    /// Puts a dispatcher in the place of this one that has a program as the member, or none.
    fn changed(mut self, member: Member, program: Option<&mut Extension>) -> io::Result<()> {
        let others = self.others(member)?;
        if program.is_none() && others.len() == self.components.len() {
            return Ok(());
        }
        self.components.retain(|component| others.contains(&component.id));
        if program.is_none() && self.components.is_empty() {
            self.put(None)?;
            return unpin(&folder(self.interface, self.attached.id));
        }
        let mut slots: Vec<Slot> = self.components.iter().map(|component| component.slot).collect();
        let is_before = |component: &&Component| component.slot.is_before_gate(&component.name, member.name);
        let at = self.components.iter().take_while(is_before).count();
        if program.is_some() {
            slots.insert(at, Slot::GATE);
        }
        let config = config_of(&slots);
        let config = config.ok_or_else(|| io::Error::other("all slots of the dispatcher are taken"))?;
        let mut loaded = NewDispatcher::load(config)?;
        let programs = self.components.iter_mut().map(|component| &mut component.program);
        let mut programs: Vec<&mut Extension> = programs.collect();
        if let Some(program) = program {
            programs.insert(at, program);
        }
        let folder = loaded.pin(self.interface, programs)?;
        let (old, interface) = (self.attached.id, self.interface);
        match self.put(Some(&loaded.program)) {
            Ok(()) => unpin(&self::folder(interface, old)),
            Err(error) => {
                // The first error is returned.
                let _ = unpin(&folder);
                Err(error)
            }
        }
    }

    /// Replaces this dispatcher on its interface by another one, or by nothing.
    fn put(&self, with: Option<&ProgramFd>) -> io::Result<()> {
        Netlink::open()?.replace_xdp(
            self.interface,
            self.attached.is_native,
            with.map(AsFd::as_fd),
            self.program.as_fd(),
        )
    }
}

/// A dispatcher that is loaded, but not attached.
struct NewDispatcher {
    program: ProgramFd,
    id: u32,
}

impl NewDispatcher {
    fn load(config: DispatcherConfig) -> io::Result<NewDispatcher> {
        let object = dispatcher_object(config.is_frags != 0)?;
        let config = Raw(config);
        let mut object =
            EbpfLoader::new().override_global(CONFIG, &config, true).load(&object).map_err(io::Error::other)?;
        let program = object.program_mut(NAME).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let program: &mut Xdp = program.try_into().map_err(io::Error::other)?;
        program.load().map_err(into_io)?;
        let id = program.info().map_err(io::Error::other)?.id();
        Ok(NewDispatcher { program: program.fd().and_then(|fd| Ok(fd.try_clone()?)).map_err(io::Error::other)?, id })
    }

    /// Attaches programs to the slots, and pins them; returns the folder of the pins.
    fn pin(&mut self, interface: u32, programs: Vec<&mut Extension>) -> io::Result<PathBuf> {
        let folder = folder(interface, self.id);
        fs::create_dir(&folder)?;
        let pinned = programs.into_iter().enumerate().try_for_each(|(slot, program)| {
            let stub = format!("prog{slot}");
            if program.fd().is_err() {
                program.load(self.program.try_clone()?, &stub).map_err(into_io)?;
            }
            let id = program.attach_to_program(&self.program, &stub).map_err(into_io)?;
            let link = FdLink::from(program.take_link(id).map_err(into_io)?);
            link.pin(folder.join(format!("{stub}-link"))).map_err(io::Error::other)?;
            program.pin(prog_pin(&folder, slot)).map_err(io::Error::other)
        });
        if pinned.is_err() {
            // The first error is returned.
            let _ = unpin(&folder);
        }
        pinned.map(|()| folder)
    }
}

/// How an interface's XDP program is attached, and the program.
fn program_of(interface: u32) -> io::Result<Option<(AttachedXdp, ProgramInfo)>> {
    let Some(attached) = Netlink::open()?.attached_xdp(interface)? else { return Ok(None) };
    let program = loaded_programs().filter_map(Result::ok).find(|program| program.id() == attached.id);
    Ok(program.map(|program| (attached, program)))
}

fn slots_of(program: &ProgramInfo) -> io::Result<Vec<Slot>> {
    let unknown = || io::Error::other(format!("it is not of version {VERSION} of libxdp's protocol"));
    let maps = program.map_ids().map_err(io::Error::other)?.unwrap_or_default();
    let [map] = maps[..] else { return Err(unknown()) };
    let info = MapInfo::from_id(map).map_err(io::Error::other)?;
    if info.value_size() as usize != size_of::<DispatcherConfig>() {
        return Err(unknown());
    }
    let map = MapData::from_id(map).and_then(Map::from_map_data).map_err(io::Error::other)?;
    let map: Array<_, Raw<DispatcherConfig>> = Array::try_from(map).map_err(io::Error::other)?;
    let Raw(config) = map.get(&0, 0).map_err(io::Error::other)?;
    slots_in(&config).ok_or_else(unknown)
}

/// The folder of all dispatchers' pins.
fn root() -> PathBuf {
    Path::new(BPFFS).join("xdp")
}

fn folder(interface: u32, dispatcher: u32) -> PathBuf {
    root().join(format!("dispatch-{interface}-{dispatcher}"))
}

fn prog_pin(folder: &Path, slot: usize) -> PathBuf {
    folder.join(format!("prog{slot}-prog"))
}

fn unpin(folder: &Path) -> io::Result<()> {
    for entry in entries(folder)? {
        removed(&entry)?;
    }
    fs::remove_dir(folder)
}

/// The kernel's error with its number, if it has one.
fn into_io(error: ProgramError) -> io::Error {
    match error {
        ProgramError::SyscallError(error) => error.io_error,
        ProgramError::LoadError { io_error, verifier_log } => {
            let said = verifier_log.to_string();
            // Statistics come after the reason.
            let is_reason = |line: &&str| !STATISTICS.iter().any(|word| line.starts_with(word)) && !line.is_empty();
            let said = said.lines().rev().find(is_reason).unwrap_or_default();
            io::Error::new(io_error.kind(), format!("the kernel rejects the program: {io_error}: {said}"))
        }
        error => io::Error::other(error),
    }
}
