//! The gate's program for a slot of libxdp's dispatcher: loaded when there is a dispatcher, and known again in its chain.

use std::io;

use aya::maps::MapInfo;
use aya::programs::Extension;
use aya::{Ebpf, EbpfLoader};
use router_common::maps::names;

use super::chain::{self, Member};
use super::object::BpfObject;
use super::pins;
use crate::pin_folder::PinFolder;

/// Name of the program.
const CHAINED: &str = "sluice_chained";

/// The program of an instance.
#[derive(Debug)]
pub struct ChainedGate {
    folder: PinFolder,
    member: Member,
    /// An object of its own, with the pinned maps.
    object: Option<Ebpf>,
}

impl ChainedGate {
    /// That of the instance whose maps are pinned in a folder; `None` if they are not.
    pub fn of(folder: &PinFolder) -> Option<Self> {
        let map = MapInfo::from_pin(folder.map(names::GATE_POLICIES)).ok()?.id();
        Some(ChainedGate { folder: folder.clone(), member: Member { name: CHAINED, map }, object: None })
    }

    /// Puts the program in the chain of an interface's dispatcher, in the place of an earlier agent's. Returns whether the
    /// dispatcher is attached in the driver.
    ///
    /// # Errors
    /// The kernel's, and what in the dispatcher is unknown.
    pub fn join(&mut self, interface: u32) -> io::Result<bool> {
        let member = self.member;
        chain::join(interface, member, self.program()?)
    }

    /// Whether an interface's dispatcher has the program, or an earlier agent's.
    ///
    /// # Errors
    /// The system call's, and what in the dispatcher is unknown.
    pub fn is_in(&self, interface: u32) -> io::Result<bool> {
        chain::has(interface, self.member)
    }

    /// Removes it from the chain of an interface's dispatcher.
    ///
    /// # Errors
    /// As of [`ChainedGate::join`].
    pub fn leave(&self, interface: u32) -> io::Result<()> {
        chain::leave(interface, self.member)
    }

    /// Removes it from the dispatchers of all interfaces of this network namespace.
    ///
    /// # Errors
    /// As of [`ChainedGate::join`].
    pub fn leave_all(&self) -> io::Result<()> {
        chain::interfaces()?.into_iter().try_for_each(|interface| self.leave(interface))
    }

    fn program(&mut self) -> io::Result<&mut Extension> {
        if self.object.is_none() {
            let bytes = BpfObject::Plain.bytes().map_err(io::Error::other)?;
            let maps = pins::wanted(bytes).map_err(io::Error::other)?;
            let mut loader = EbpfLoader::new();
            for name in maps.keys() {
                loader.map_pin_path(name, self.folder.map(name));
            }
            self.object = Some(loader.load(bytes).map_err(io::Error::other)?);
        }
        let program = self.object.as_mut().and_then(|object| object.program_mut(CHAINED));
        let program = program.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        program.try_into().map_err(io::Error::other)
    }
}
