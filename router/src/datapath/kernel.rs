//! Loading the kernel program, pinning its maps, attaching it to interfaces.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use aya::maps::{HashMap, Map, MapData, MapError, RingBuf};
use aya::programs::ProgramError;
use aya::programs::tc::{self, SchedClassifier, SchedClassifierLinkId, TcAttachType};
use aya::{Ebpf, EbpfError, EbpfLoader, VerifierLogLevel};
use router_common::maps::{ConnVerdict, FirstFlight, FlowKey, names};
use rustix::mount::{MountFlags, mount};

use super::abi::Raw;
use super::interfaces::Interfaces;
use super::maps::KernelMaps;
use super::{BPFFS, PinFolder, dump};

/// The program, compiled by `cargo xtask build-ebpf`; empty in a build without it.
pub static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/sluice.bpf.o"));

/// Name of the ingress program.
pub const INGRESS: &str = "sluice_ingress";

/// Why there is no kernel data path.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The binary was built without the program.
    #[error("this build has no kernel program; build it with `cargo xtask build-ebpf`, then build the agent again")]
    NoObject,
    /// The kernel does not let this process load programs.
    #[error("loading kernel programs needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON: run as root or grant them ({0})")]
    NotPermitted(io::Error),
    /// The BPF file system cannot be used.
    #[error("cannot use the BPF file system at {path}: {error}")]
    PinFolder {
        /// What was tried.
        path: String,
        /// What failed.
        error: io::Error,
    },
    /// Another agent uses the folder.
    #[error("process {pid} is using {folder}; give this agent its own --instance")]
    Taken {
        /// The folder.
        folder: String,
        /// The other agent.
        pid: u32,
    },
    /// The kernel refuses a map or the object's BTF.
    #[error("the kernel refuses the maps (Linux 5.17 or newer is needed)")]
    Load(#[from] EbpfError),
    /// The kernel refuses the program.
    #[error("the kernel refuses the program (Linux 5.17 or newer is needed)")]
    Program(#[from] ProgramError),
    /// A map of the object is not as this build expects it.
    #[error("the kernel program is of another build")]
    Map(#[from] MapError),
}

/// What the kernel says of a loaded program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFacts {
    /// Name.
    pub name: String,
    /// BPF instructions after the kernel's rewriting.
    pub instructions: u32,
    /// Bytes of machine code.
    pub jited_bytes: u32,
    /// Instructions that the verifier walked through; its limit is a million.
    pub verified: u32,
}

/// The loaded program.
pub struct Kernel {
    object: Ebpf,
    pins: Option<PinFolder>,
    attached: BTreeMap<(String, u32), SchedClassifierLinkId>,
    failed: BTreeMap<(String, u32), String>,
}

impl Kernel {
    /// Loads the object into the kernel, unpinned and unattached.
    ///
    /// # Errors
    /// See [`KernelError`].
    pub fn load(log: VerifierLogLevel) -> Result<Self, KernelError> {
        if OBJECT.is_empty() {
            return Err(KernelError::NoObject);
        }
        let mut object = EbpfLoader::new().verifier_log_level(log).load(OBJECT).map_err(permission)?;
        for (_, program) in object.programs_mut() {
            let program: &mut SchedClassifier = program.try_into()?;
            program.load()?;
        }
        Ok(Kernel { object, pins: None, attached: BTreeMap::new(), failed: BTreeMap::new() })
    }

    /// Pins every map. What an earlier agent of this instance left is replaced: its maps hold nothing that this one
    /// needs, and a program that still used them would be reading tables that nobody writes.
    ///
    /// # Errors
    /// [`KernelError::PinFolder`].
    pub fn pin(&mut self, folder: PinFolder) -> Result<(), KernelError> {
        let fail = |error: io::Error| KernelError::PinFolder { path: folder.path().display().to_string(), error };
        mount_bpffs().map_err(fail)?;
        if let Some(pid) = other_agent(&folder) {
            return Err(KernelError::Taken { folder: folder.path().display().to_string(), pid });
        }
        unpin(&folder).map_err(fail)?;
        fs::create_dir_all(folder.path()).map_err(fail)?;
        for (name, map) in self.object.maps() {
            map.pin(folder.map(name)).map_err(|error| fail(io::Error::other(error)))?;
        }
        self.pins = Some(folder);
        Ok(())
    }

    /// The maps that the agent fills.
    ///
    /// # Errors
    /// [`KernelError::Map`]; also when taken twice.
    pub fn take_maps(&mut self) -> Result<KernelMaps, KernelError> {
        Ok(KernelMaps::take(&mut self.object)?)
    }

    /// The ring of events.
    ///
    /// # Errors
    /// [`KernelError::Map`]; also when taken twice.
    pub fn take_events(&mut self) -> Result<RingBuf<MapData>, KernelError> {
        Ok(RingBuf::try_from(self.take(names::EVENTS)?)?)
    }

    /// The map of unfinished first flights, for the sweep.
    ///
    /// # Errors
    /// [`KernelError::Map`]; also when taken twice.
    pub fn take_hellos(&mut self) -> Result<HashMap<MapData, Raw<FlowKey>, Raw<FirstFlight>>, KernelError> {
        Ok(HashMap::try_from(self.take(names::HELLOS)?)?)
    }

    /// The record of verdicts.
    ///
    /// # Errors
    /// [`KernelError::Map`]; also when taken twice.
    pub fn take_verdicts(&mut self) -> Result<HashMap<MapData, Raw<FlowKey>, Raw<ConnVerdict>>, KernelError> {
        Ok(HashMap::try_from(self.take(names::VERDICTS)?)?)
    }

    fn take(&mut self, name: &str) -> Result<Map, KernelError> {
        let map = self.object.take_map(name);
        Ok(map.ok_or_else(|| MapError::InvalidName { name: name.to_owned() })?)
    }

    /// The ingress program, for inspection and test runs.
    ///
    /// # Errors
    /// [`KernelError::Program`] if the object has none.
    pub fn ingress(&mut self) -> Result<&mut SchedClassifier, KernelError> {
        let program = self.object.program_mut(INGRESS).ok_or(KernelError::NoObject)?;
        Ok(program.try_into()?)
    }

    /// What the kernel says of the loaded programs.
    ///
    /// # Errors
    /// [`KernelError::Program`].
    pub fn programs(&mut self) -> Result<Vec<ProgramFacts>, KernelError> {
        let mut facts = Vec::new();
        for (name, program) in self.object.programs() {
            let info = program.info()?;
            facts.push(ProgramFacts {
                name: name.to_owned(),
                instructions: info.size_translated().unwrap_or_default() / 8,
                jited_bytes: info.size_jitted(),
                verified: info.verified_instruction_count().unwrap_or_default(),
            });
        }
        Ok(facts)
    }

    /// Attaches to interfaces that have come, and forgets those that have gone (the kernel has detached from them).
    /// Returns what changed, in words; an interface that cannot be attached to is named once.
    pub fn follow(&mut self, interfaces: &Interfaces) -> Vec<String> {
        let mut news = Vec::new();
        let there = |key: &(String, u32)| interfaces.attachable.get(&key.0) == Some(&key.1);
        self.failed.retain(|key, _| there(key));
        let gone: Vec<_> = self.attached.keys().filter(|key| !there(key)).cloned().collect();
        for key in gone {
            self.attached.remove(&key);
            news.push(format!("interface {} is gone", key.0));
        }
        for (name, index) in &interfaces.attachable {
            let key = (name.clone(), *index);
            if self.attached.contains_key(&key) || self.failed.contains_key(&key) {
                continue;
            }
            match self.attach(name) {
                Ok(link) => {
                    news.push(format!("attached to {name}"));
                    self.attached.insert(key, link);
                }
                Err(error) => {
                    let why = format!("cannot attach to {name}, its connections are relayed: {error}");
                    news.push(why.clone());
                    self.failed.insert(key, why);
                }
            }
        }
        news
    }

    /// Names of the interfaces that the program is attached to.
    pub fn attached(&self) -> Vec<String> {
        self.attached.keys().map(|(name, _)| name.clone()).collect()
    }

    fn attach(&mut self, interface: &str) -> Result<SchedClassifierLinkId, KernelError> {
        // Kernels before 6.6 have no TCX links and want a qdisc to attach to; that it exists already is fine, and
        // any other failure shows when attaching.
        let _ = tc::qdisc_add_clsact(interface);
        Ok(self.ingress()?.attach(interface, TcAttachType::Ingress)?)
    }
}

impl Drop for Kernel {
    /// A clean end leaves nothing behind; links go with the program.
    fn drop(&mut self) {
        if let Some(folder) = &self.pins
            && let Err(error) = unpin(folder)
        {
            tracing::warn!(%error, "cannot remove the pins");
        }
    }
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
    KernelError::Load(error)
}

/// `BPF_FS_MAGIC` of linux/magic.h.
const BPF_FS_MAGIC: u64 = 0xcafe_4a11;

fn mount_bpffs() -> io::Result<()> {
    if rustix::fs::statfs(BPFFS)?.f_type as u64 & 0xffff_ffff == BPF_FS_MAGIC {
        return Ok(());
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount("bpf", BPFFS, "bpf", flags, None)?)
}

/// The live agent that wrote the maps of a folder, if it is not this one.
fn other_agent(folder: &PinFolder) -> Option<u32> {
    let meta = dump::dump(folder, names::META).ok()?;
    let pid = u32::try_from(meta.first()?.get("pid")?.as_u64()?).ok()?;
    let name = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    // In a container every agent may be process 1: the same number is then an earlier life of this one.
    (pid != std::process::id() && name(pid).is_some() && name(pid) == name(std::process::id())).then_some(pid)
}

fn unpin(folder: &PinFolder) -> io::Result<()> {
    remove_all(folder.path())?;
    // The instance's folder, if no other version is in it.
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
