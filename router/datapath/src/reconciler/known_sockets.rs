//! The sockets that there may be, while XDP answers SYNs: what the agent finds, and what the TC programs see meanwhile.
//!
//! The programs record in two entries. One is emptied, and is read once the agent has found the sockets that there are by then; the
//! other one is emptied next. So what is read has every socket, and of those that are gone only the latest.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

use aya::maps::{Array, MapData};
use router_common::maps::{GATE_SOCKETS_FOUND, GATE_SOCKETS_RECORDED, GATE_SOCKETS_SEEN, GateSockets, names};
use router_sys::abi::Raw;

use crate::kernel::{KernelError, KernelPrograms};
use crate::maps::written;
use crate::netlink::sockets;

/// Time after which no program runs that has not seen the last change, and every segment that one has passed up is with the stack.
const SETTLED: Duration = Duration::from_millis(200);
/// Time for which an entry is read: of some thousand connections a second that end meanwhile, a few in a hundred bits remain.
const READ: Duration = Duration::from_secs(5);

/// The maps, and how far they are.
pub struct KnownSockets {
    entries: Array<MapData, Raw<GateSockets>>,
    used: Array<MapData, u32>,
    stage: Stage,
    since: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// As an earlier agent has left it.
    Unknown,
    /// Nothing is recorded.
    Off,
    /// This entry was emptied, and is not read yet.
    Emptied(u32),
    /// This entry is read.
    Read(u32),
}

impl KnownSockets {
    /// Takes the maps.
    ///
    /// # Errors
    /// [`KernelError::Map`].
    pub fn new(kernel: &mut KernelPrograms) -> Result<Self, KernelError> {
        Ok(KnownSockets {
            entries: Array::try_from(kernel.take(names::GATE_SOCKETS)?)?,
            used: Array::try_from(kernel.take(names::GATE_SOCKETS_USE)?)?,
            stage: Stage::Unknown,
            since: Instant::now(),
        })
    }

    /// The next step, if it is due. `ports`: those of listeners that XDP answers for; of none, nothing is recorded.
    ///
    /// # Errors
    /// The system call's. The step is tried again, and XDP looks for sockets until then.
    pub fn follow(&mut self, ports: &BTreeSet<u16>) -> io::Result<()> {
        let [one, other] = GATE_SOCKETS_SEEN;
        let waited = self.since.elapsed();
        let next = match self.stage {
            Stage::Off if ports.is_empty() => return Ok(()),
            _ if ports.is_empty() => {
                self.uses(0)?;
                Stage::Off
            }
            Stage::Unknown | Stage::Off => {
                self.uses(GATE_SOCKETS_RECORDED)?;
                self.write(one, GateSockets::EMPTY)?;
                Stage::Emptied(one)
            }
            Stage::Emptied(entry) if waited >= SETTLED => {
                match found(ports).and_then(|found| self.write(GATE_SOCKETS_FOUND, found)) {
                    Ok(()) => self.uses(entry)?,
                    Err(error) => {
                        self.uses(GATE_SOCKETS_RECORDED)?;
                        return Err(error);
                    }
                }
                Stage::Read(entry)
            }
            Stage::Read(entry) if waited >= READ => {
                let next = if entry == one { other } else { one };
                self.write(next, GateSockets::EMPTY)?;
                Stage::Emptied(next)
            }
            Stage::Emptied(_) | Stage::Read(_) => return Ok(()),
        };
        (self.stage, self.since) = (next, Instant::now());
        Ok(())
    }

    fn uses(&mut self, what: u32) -> io::Result<()> {
        written(self.used.set(0, what, 0))
    }

    fn write(&mut self, entry: u32, sockets: GateSockets) -> io::Result<()> {
        written(self.entries.set(entry, Raw(sockets), 0))
    }
}

/// The clients of the connections that have a socket at one of these ports.
fn found(ports: &BTreeSet<u16>) -> io::Result<GateSockets> {
    let mut known = GateSockets::EMPTY;
    sockets::each(sockets::ALL, |client| {
        if ports.contains(&client.destination_port) {
            known.insert(&client);
        }
    })?;
    Ok(known)
}
