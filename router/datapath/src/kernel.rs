//! Loading the kernel programs, pinning their maps or adopting pinned ones, and attaching the programs to interfaces.
mod chain;
mod chained;
mod cleanup;
mod error;
mod features;
mod gate;
mod links;
#[cfg(feature = "kernel-log")]
mod log;
mod object;
mod pins;
mod slots;
mod sockets;
mod stack;

use std::collections::BTreeMap;
use std::{fs, io};

use aya::maps::{Map, MapData, MapError, RingBuf};
use aya::programs::tc::SchedClassifier;
use aya::programs::{Program, ProgramError, SockOps, TestRun, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfError, EbpfLoader, VerifierLogLevel};
use router_common::maps::{GateRelease, names};
use router_sys::abi::bytes;

use super::gate::GateMaps;
use super::interfaces::Interfaces;
use super::maps::KernelMaps;
use super::pin_folder::PinFolder;
use gate::GateLinks;
use links::{AttachedProgram, Links, TcDirection};
use sockets::SocketLink;

pub use cleanup::clean_up;
pub use error::KernelError;
pub use gate::{AttachedMode, GateMode};
pub use object::{BpfObject, LOG_TARGET, LogLevel};
pub use stack::LIMIT as STACK_LIMIT;

/// Name of the ingress program.
pub const INGRESS: &str = "sluice_ingress";
/// Name of the egress program.
pub const EGRESS: &str = "sluice_egress";
/// Name of the XDP program.
pub const GATE: &str = "sluice_gate";
/// Name of the XDP program that the agent runs to release counted connections.
pub const RELEASE: &str = "sluice_release";
/// Name of the sock_ops program.
pub const SOCKETS: &str = "sluice_sockets";

/// The mode that the agent asks the data path for; it changes from top to bottom only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Reconcile the maps with the routing table.
    #[default]
    Active,
    /// The same, but no new connection is steered (`Config::dial` is 0);
    /// [`Programmed`](crate::reconciler::programmed::Programmed) says when the last one has ended.
    Drain,
    /// End; another agent continues with the maps, so nothing in them may change.
    HandOver,
    /// End, and remove what is pinned.
    Shutdown,
}

impl Mode {
    /// True if the data path ends in this mode.
    pub fn ends(self) -> bool {
        self >= Mode::HandOver
    }
}

/// The kernel's information about a loaded program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFacts {
    /// Name.
    pub name: String,
    /// Number of BPF instructions after the kernel's rewriting.
    pub instructions: u32,
    /// Bytes of machine code.
    pub jited_bytes: u32,
    /// Instructions that the verifier processed; its limit is a million.
    pub verified: u32,
    /// Bytes of stack of its deepest call chain, as the strictest kernel counts them; at most [`STACK_LIMIT`].
    pub stack: u32,
}

/// The loaded programs.
pub struct KernelPrograms {
    /// True if the maps are those of an earlier agent, with its entries and possibly live connections.
    pub adopted: bool,
    object: Ebpf,
    bytes: &'static [u8],
    pins: Option<PinFolder>,
    links: Links,
    attached: BTreeMap<(String, u32), Vec<AttachedProgram>>,
    failed: BTreeMap<(String, u32), String>,
    swept: bool,
    gate: GateLinks,
    sockets: SocketLink,
}

/// Constant of the sock_ops program: the cookie of the agent's network namespace.
const NETWORK: &str = "NETWORK";

/// That cookie; 0, which none has, on kernels without.
fn network_cookie() -> u64 {
    router_sys::socket::network_cookie().unwrap_or_default()
}

/// Loads a program. The kernel aborts the verification if a signal arrives during it.
fn load(mut load: impl FnMut() -> Result<(), ProgramError>) -> Result<(), ProgramError> {
    const TRIES: usize = 5;
    for _ in 1..TRIES {
        match load() {
            Err(ProgramError::LoadError { io_error, .. }) if io_error.kind() == io::ErrorKind::WouldBlock => {}
            result => return result,
        }
    }
    load()
}

impl KernelPrograms {
    /// Loads the object into the kernel, unpinned and unattached.
    ///
    /// # Errors
    /// See [`KernelError`].
    pub fn load(object: BpfObject) -> Result<Self, KernelError> {
        let network = network_cookie();
        KernelPrograms::load_with(EbpfLoader::new().override_global(NETWORK, &network, true), object, None, false)
    }

    /// Loads the object, with its maps pinned in a folder. Maps that are pinned there already are adopted, whether
    /// their agent was killed or hands them over (`successor`). Nothing is attached yet: carried connections are not
    /// affected.
    ///
    /// # Errors
    /// See [`KernelError`]; [`KernelError::Taken`] while another agent uses the folder, unless it hands it over.
    pub fn open(folder: PinFolder, object: BpfObject, successor: bool) -> Result<Self, KernelError> {
        let bytes = object.bytes()?;
        let fail = |error| KernelError::of_pins(folder.path(), error);
        pins::mount_bpffs().map_err(fail)?;
        if !successor && let Some(pid) = folder.other_agent() {
            return Err(KernelError::Taken { folder: folder.path().display().to_string(), pid });
        }
        let wanted = pins::wanted(bytes)?;
        let adopted = pins::adoptable(&folder, &wanted)?;
        fs::create_dir_all(folder.path()).map_err(fail)?;
        let network = network_cookie();
        let mut loader = EbpfLoader::new();
        loader.override_global(NETWORK, &network, true);
        for name in wanted.keys() {
            loader.map_pin_path(name, folder.map(name));
        }
        let kernel = KernelPrograms::load_with(&mut loader, object, Some(folder.clone()), adopted);
        if kernel.is_err() && !adopted {
            // The first error is returned.
            let _ = pins::unpin(&folder);
        }
        kernel
    }

    fn load_with(
        loader: &mut EbpfLoader<'_>,
        object: BpfObject,
        pins: Option<PinFolder>,
        adopted: bool,
    ) -> Result<Self, KernelError> {
        let bytes = object.bytes()?;
        object.configure(loader);
        let (mut without_gate, mut without_sockets) = (None, None);
        let mut object = loader.verifier_log_level(VerifierLogLevel::STATS).load(bytes).map_err(permission)?;
        for (_, program) in object.programs_mut() {
            match program {
                // Without these, everything else works.
                Program::Xdp(gate) => {
                    without_gate = load(|| gate.load()).err().map(|error| error.to_string()).or(without_gate);
                }
                Program::SockOps(sockets) => {
                    without_sockets = load(|| sockets.load()).err().map(|error| error.to_string());
                }
                // Loaded for a slot of a dispatcher: `chained`.
                Program::Extension(_) => {}
                program => {
                    let program: &mut SchedClassifier = program.try_into()?;
                    load(|| program.load()).map_err(|error| lacking().unwrap_or(KernelError::Program(error)))?;
                }
            }
        }
        let (links, attached, failed) = (Links::new(pins.clone()), BTreeMap::new(), BTreeMap::new());
        let gate = GateLinks::new(pins.as_ref(), GateMode::default(), without_gate);
        let sockets = SocketLink::new(pins.as_ref(), without_sockets);
        Ok(KernelPrograms { adopted, object, bytes, pins, links, attached, failed, swept: false, gate, sockets })
    }

    /// The maps that the agent writes.
    ///
    /// # Errors
    /// [`KernelError::Map`]; also on a second call.
    pub fn take_maps(&mut self) -> Result<KernelMaps, KernelError> {
        Ok(KernelMaps::take(&mut self.object)?)
    }

    /// The ring of events.
    ///
    /// # Errors
    /// [`KernelError::Map`]; also on a second call.
    pub fn take_events(&mut self) -> Result<RingBuf<MapData>, KernelError> {
        Ok(RingBuf::try_from(self.take(names::EVENTS)?)?)
    }

    /// Prints the programs' log lines until it is dropped; `None` for the object without them. The ring is not pinned:
    /// the next agent's programs have their own ring, and until then lines that do not fit in this one are lost.
    #[cfg(feature = "kernel-log")]
    pub fn take_log(&mut self) -> Option<impl Future<Output = ()> + use<>> {
        log::printing(&mut self.object)
    }

    /// Any other map, by name.
    ///
    /// # Errors
    /// [`KernelError::Map`]; also on a second call.
    pub fn take(&mut self, name: &str) -> Result<Map, KernelError> {
        let map = self.object.take_map(name);
        Ok(map.ok_or_else(|| MapError::InvalidName { name: name.to_owned() })?)
    }

    /// Detaches the programs and removes all pins: for an agent that has no successor. Otherwise everything stays in
    /// place.
    pub fn remove_pins(&mut self) {
        let attached = std::mem::take(&mut self.attached).into_values().flatten();
        let detached = detach(attached).and(self.gate.detach_all());
        let removed = self.pins.take().map_or(Ok(()), |folder| pins::unpin(&folder));
        if let Err(error) = detached.and(removed) {
            tracing::warn!(%error, "cannot remove the pins");
        }
    }

    /// The ingress program, for inspection and test runs.
    ///
    /// # Errors
    /// [`KernelError::Program`] if the object has none.
    pub fn ingress(&mut self) -> Result<&mut SchedClassifier, KernelError> {
        let program = self.object.program_mut(INGRESS).ok_or(KernelError::NoObject)?;
        Ok(program.try_into()?)
    }

    /// The XDP program, for inspection and test runs.
    ///
    /// # Errors
    /// [`KernelError::Program`] if the object has none.
    pub fn gate(&mut self) -> Result<&mut Xdp, KernelError> {
        let program = self.object.program_mut(GATE).ok_or(KernelError::NoObject)?;
        Ok(program.try_into()?)
    }

    /// The kernel's information about the loaded programs.
    ///
    /// # Errors
    /// [`KernelError::Program`].
    pub fn programs(&mut self) -> Result<Vec<ProgramFacts>, KernelError> {
        let mut facts = Vec::new();
        let stacks = stack::deepest(self.bytes)?;
        let is_loaded = |program: &Program| program.fd().is_ok();
        for (name, program) in self.object.programs().filter(|(_, program)| is_loaded(program)) {
            let info = program.info()?;
            facts.push(ProgramFacts {
                name: name.to_owned(),
                instructions: info.size_translated().unwrap_or_default() / 8,
                jited_bytes: info.size_jitted(),
                verified: info.verified_instruction_count().unwrap_or_default(),
                stack: stacks.get(name).copied().unwrap_or_default(),
            });
        }
        facts.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(facts)
    }

    /// Attaches to new interfaces, and drops the state of removed ones (from which the kernel has detached the
    /// programs). Returns the changes as texts; an interface that cannot be attached to is reported once.
    pub fn follow(&mut self, interfaces: &Interfaces) -> Vec<String> {
        let mut news = Vec::new();
        let there = |key: &(String, u32)| interfaces.attachable.get(&key.0) == Some(&key.1);
        self.failed.retain(|key, _| there(key));
        let gone: Vec<_> = self.attached.keys().filter(|key| !there(key)).cloned().collect();
        for key in gone {
            let attached = self.attached.remove(&key).into_iter().flatten();
            // The pinned links stay attached, and are found under the new name below: no packet bypasses the programs.
            if let Some((name, _)) = interfaces.attachable.iter().find(|(_, index)| **index == key.1)
                && self.links.rename(&key.0, name).is_ok()
            {
                news.push(format!("interface {} is {name} now", key.0));
                continue;
            }
            let detached = detach(attached);
            news.push(match detached {
                Ok(()) => format!("interface {} is gone", key.0),
                Err(error) => format!("interface {} is gone, and its pins cannot be removed: {error}", key.0),
            });
        }
        for (name, index) in &interfaces.attachable {
            let key = (name.clone(), *index);
            if self.attached.contains_key(&key) || self.failed.contains_key(&key) {
                continue;
            }
            match self.attach(name) {
                Ok(links) => {
                    news.push(format!("attached to {name}"));
                    self.attached.insert(key, links);
                }
                Err(error) => {
                    let why = format!("cannot attach to {name}, its connections are relayed: {error}");
                    news.push(why.clone());
                    self.failed.insert(key, why);
                }
            }
        }
        if !std::mem::replace(&mut self.swept, true)
            && let Err(error) = self.links.sweep(self.attached.values().flatten())
        {
            news.push(format!("cannot remove pins of interfaces that are gone: {error}"));
        }
        news
    }

    /// Attaches the XDP program to the interfaces if packets are to be decided, else detaches it. Returns the changes as texts.
    pub fn follow_gate(&mut self, interfaces: &Interfaces, is_wanted: bool, is_retried: bool) -> Vec<String> {
        let Some(Ok(program)) = self.object.program_mut(GATE).map(<&mut Xdp>::try_from) else { return Vec::new() };
        self.gate.follow(program, interfaces, is_wanted, is_retried)
    }

    /// Attaches the sock_ops program if connections are counted, else detaches it. Returns the change as text.
    pub fn follow_sockets(&mut self, is_wanted: bool) -> Option<String> {
        let program = self.object.program_mut(SOCKETS).and_then(|program| <&mut SockOps>::try_from(program).ok())?;
        self.sockets.follow(program, is_wanted)
    }

    /// Why that program could not be attached.
    pub fn sockets_failed(&self) -> Option<&str> {
        self.sockets.failed()
    }

    /// Releases a counted connection; `false` if it has changed.
    ///
    /// # Errors
    /// The system call's.
    pub fn release(&mut self, connection: &GateRelease) -> io::Result<bool> {
        const XDP_DROP: u32 = 1;
        let program = self.object.program_mut(RELEASE).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let program: &mut Xdp = program.try_into().map_err(io::Error::other)?;
        let options = TestRunOptions { data_in: Some(bytes(connection)), ..TestRunOptions::new() };
        let run = program.test_run(options).map_err(io::Error::other)?;
        Ok(run.return_value == XDP_DROP)
    }

    /// Sets how the XDP program is attached, before it is.
    pub fn set_gate_mode(&mut self, mode: GateMode) {
        self.gate.set_mode(mode);
    }

    /// Interfaces that have the XDP program, and how.
    pub fn gate_attached(&self) -> Vec<(String, &'static str)> {
        self.gate.attached()
    }

    /// Those where it answers SYNs, and their indices.
    pub fn gate_links(&self) -> Vec<(u32, String, AttachedMode)> {
        self.gate.links()
    }

    /// Whether it is beside others on any: they may remove it.
    pub fn is_gate_beside(&self) -> bool {
        self.gate.is_beside()
    }

    /// Interfaces that cannot have it, and why.
    pub fn gate_failed(&self) -> Vec<(String, String)> {
        self.gate.failed()
    }

    /// The gate's maps.
    ///
    /// # Errors
    /// [`KernelError::Map`]; also on a second call.
    pub fn take_gate_maps(&mut self) -> Result<GateMaps, KernelError> {
        Ok(GateMaps::take(&mut self.object)?)
    }

    /// Attaches by filters of clsact qdiscs, as on kernels before 6.6, even if this kernel has TCX links.
    pub fn use_filters(&mut self) {
        self.links.use_filters();
    }

    /// Names of the interfaces that the programs are attached to.
    pub fn attached(&self) -> Vec<String> {
        self.attached_to().map(|(name, _)| name.to_owned()).collect()
    }

    /// How the programs are attached.
    pub fn attached_by(&self) -> &'static str {
        self.links.kind()
    }

    /// Names of the interfaces that cannot be attached to, and why.
    pub fn failed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.failed.iter().map(|((name, _), why)| (name.as_str(), why.as_str()))
    }

    /// Names and indices of the interfaces that the programs are attached to.
    pub fn attached_to(&self) -> impl Iterator<Item = (&str, u32)> {
        self.attached.keys().map(|(name, index)| (name.as_str(), *index))
    }

    /// True if filters with this priority belong to this instance.
    pub fn is_own_filter(&self, priority: u16) -> bool {
        self.links.is_own_filter(priority)
    }

    /// True if no other program is attached by a TCX link to an interface's egress.
    ///
    /// # Errors
    /// If the kernel does not list the programs (requires `CAP_SYS_ADMIN`).
    pub fn is_alone_at_egress(&self, interface: &str) -> io::Result<bool> {
        let program = self.object.program(EGRESS).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let program: &SchedClassifier = program.try_into().map_err(io::Error::other)?;
        self.links.is_alone(program, interface, TcDirection::Egress)
    }

    /// Attaches both programs or none: either would be misled by the part of a connection that it alone sees.
    fn attach(&mut self, interface: &str) -> Result<Vec<AttachedProgram>, KernelError> {
        let mut attached = Vec::new();
        for direction in TcDirection::ALL {
            let name = match direction {
                TcDirection::Ingress => INGRESS,
                TcDirection::Egress => EGRESS,
            };
            let program = self.object.program_mut(name).ok_or(KernelError::NoObject)?;
            match self.links.attach(program.try_into()?, interface, direction) {
                Ok(link) => attached.push(link),
                Err(error) => {
                    // The first error is returned.
                    let _ = detach(attached.into_iter());
                    return Err(error.into());
                }
            }
        }
        Ok(attached)
    }
}

/// Detaches all, even if one of them fails; returns the first failure.
fn detach(attached: impl Iterator<Item = AttachedProgram>) -> io::Result<()> {
    attached.map(AttachedProgram::detach).fold(Ok(()), Result::and)
}

fn permission(error: EbpfError) -> KernelError {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(cause) = source {
        if let Some(io) = cause.downcast_ref::<io::Error>()
            && io.kind() == io::ErrorKind::PermissionDenied
        {
            return KernelError::NotPermitted(io::Error::from(io.kind()));
        }
        source = cause.source();
    }
    lacking().unwrap_or(KernelError::Load(error))
}

/// An error that names the features that the kernel lacks, if any.
fn lacking() -> Option<KernelError> {
    let missing = features::missing();
    (!missing.is_empty()).then(|| KernelError::Lacking(missing.join(", ")))
}
