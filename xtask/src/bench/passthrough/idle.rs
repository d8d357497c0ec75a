//! Memory of connections on which nothing moves.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::instance::Instance;
use super::ways::{Lane, Way};
use crate::bench::network::Network;
use crate::bench::tools::Tools;
use crate::bench::usage::{self, Memory};

/// Connections on the direct way and through the kernel path, which has no descriptors for them.
pub const MANY: usize = 30_000;

/// Memory of a number of connections on one way.
#[derive(Clone, Copy)]
pub struct IdleMemory {
    /// Which way.
    pub way: Way,
    /// How many; each was answered on at the end.
    pub connections: usize,
    /// The sum of additional memory. The kernel's part is that of the whole machine, client and backend included.
    pub added: Memory,
    /// Sockets that they added in the router's namespace.
    pub sockets: i64,
}

/// Bytes of one connection in the router.
pub struct EachConnection {
    /// In user space (PSS).
    pub user: f64,
    /// In user space (RSS).
    pub resident: f64,
    /// Kernel memory beyond that of the direct way.
    pub kernel: f64,
    /// In maps, as the kernel accounts them; part of `kernel`.
    pub maps: f64,
}

impl IdleMemory {
    /// Bytes of one connection, with those of the direct way taken off the kernel's.
    pub fn each(&self, direct: &IdleMemory) -> EachConnection {
        let each = |bytes: i64, of: &IdleMemory| bytes as f64 / of.connections as f64;
        EachConnection {
            user: each(self.added.pss, self),
            resident: each(self.added.rss, self),
            kernel: each(self.added.slab, self) - each(direct.added.slab, direct),
            maps: each(self.added.maps, self),
        }
    }
}

/// Opens connections, from each of the client's addresses by a process of its own, measures, sends a byte there and back
/// on each, and closes.
pub fn hold(tools: &Tools, network: &Network, lane: &Lane, connections: usize) -> Result<IdleMemory> {
    let processes = lane.processes()?;
    let pins = lane.instance().map(Instance::pins);
    let measure = || Memory::of(&processes, pins.as_deref());
    let sockets = || lane.middle.netns.run(usage::sockets);
    let clients = lane.middle.clients();
    let (before, sockets_before) = (measure()?, sockets()?);

    let mut holders: Vec<Holder> = clients
        .iter()
        .map(|from| {
            let mut command = network.client.command(&tools.load)?;
            let to: Vec<String> = lane.targets().iter().map(ToString::to_string).collect();
            command.args(["load", "idle", "--to", &to.join(","), "--from", &from.to_string()]);
            command.args(["--connections", &(connections / clients.len()).to_string()]);
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
            let stdin = child.stdin.take().context("stdin is piped")?;
            let lines = BufReader::new(child.stdout.take().context("stdout is piped")?).lines();
            Ok(Holder { child, stdin: Some(stdin), lines })
        })
        .collect::<Result<_>>()?;
    for holder in &mut holders {
        holder.wait_for("open")?;
    }
    let (after, sockets_after) = (measure()?, sockets()?);
    for holder in &mut holders {
        holder.go_on()?;
        holder.wait_for("alive")?;
    }
    drop(holders);

    // The next measurement must start without these connections.
    let begin = Instant::now();
    while sockets()? > sockets_before && begin.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(IdleMemory {
        way: lane.way,
        connections: connections / clients.len() * clients.len(),
        added: after - before,
        sockets: i64::try_from(sockets_after)? - i64::try_from(sockets_before)?,
    })
}

/// A running client.
struct Holder {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Holder {
    fn wait_for(&mut self, line: &str) -> Result<()> {
        let said = self.lines.next().transpose()?;
        ensure!(said.as_deref() == Some(line), "a client that holds connections ended before `{line}`");
        Ok(())
    }

    fn go_on(&mut self) -> Result<()> {
        let stdin = self.stdin.as_mut().context("stdin is open")?;
        writeln!(stdin).context("a client that holds connections has ended")
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // The end of its input lets it go on, and end.
        self.stdin = None;
        let _ = self.child.wait();
    }
}
