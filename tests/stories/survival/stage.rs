//! A kept router between clients and backends, each on a machine of its own.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::ops::RangeInclusive;

use anyhow::{Context, Result, ensure};
use router_common::maps::names;
use router_common::verdict::DialCounter;
use tempfile::TempDir;
use tests::folder;
use tests::netns::Netns;
use tests::nginx::{self, Nginx};
use tests::pinned;
use tests::sluice::{self, DataPath, Options, Sluice};
use tests::wait::{self, PATIENCE};

/// Host of the passthrough route.
pub const RAW: &str = "raw.apps.localhost";
/// Host of the route with TLS terminated by the router.
pub const EDGE: &str = "edge.apps.localhost";
/// Address to which clients connect.
pub const ROUTER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 82, 1, 1)), 8443);
/// Address of the passthrough route's backend.
pub const BACKEND: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 82, 2, 2)), 9000);

/// A kept router with the kernel's data path; the routes of the quickstart, and a passthrough route to [`BACKEND`].
pub struct Stage {
    /// The keeper and its agents.
    pub sluice: Sluice,
    /// Backends of the quickstart.
    pub nginx: Nginx,
    /// Listener of [`BACKEND`].
    pub listener: TcpListener,
    /// The clients' machine.
    pub client: Netns,
    /// The backends' machine.
    pub backend: Netns,
    _router: Netns,
    stack_ports: RangeInclusive<u16>,
    _manifests: TempDir,
}

impl Stage {
    /// Starts everything. The machines also reach each other directly.
    ///
    /// # Errors
    /// When something does not start.
    pub fn new() -> Result<Stage> {
        let (client, router, backend) = (Netns::new("client")?, Netns::new("router")?, Netns::new("backend")?);
        client.link(("eth0", &["10.82.1.2/24"]), &router, ("front", &["10.82.1.1/24"]))?;
        router.link(("back", &["10.82.2.1/24"]), &backend, ("eth0", &["10.82.2.2/24"]))?;
        router.set("ipv4/ip_forward", "1")?;
        client.ip(&["route", "add", "10.82.2.0/24", "via", "10.82.1.1"])?;
        backend.ip(&["route", "add", "10.82.1.0/24", "via", "10.82.2.1"])?;
        let listener = backend.run(|| Ok(TcpListener::bind(BACKEND)?))?;
        let nginx = Nginx::start(&backend, &nginx::quickstart(BACKEND.ip()))?;
        let manifests = folder::quickstart(BACKEND.ip())?;
        let raw = folder::service("raw", BACKEND) + &folder::route("raw", RAW, "raw", folder::PASSTHROUGH);
        std::fs::write(manifests.path().join("raw.yaml"), raw)?;
        let options = Options { kept: true, ..Options::network(DataPath::Kernel) };
        let sluice = Sluice::start(&router, manifests.path(), &options)?;
        let range = router.setting("ipv4/ip_local_port_range")?;
        let (first, last) = range.split_once(char::is_whitespace).with_context(|| format!("{range:?} is no range"))?;
        let stack_ports = first.parse()?..=last.trim().parse()?;
        Ok(Stage { sluice, nginx, listener, client, _router: router, backend, stack_ports, _manifests: manifests })
    }

    /// The only agent.
    ///
    /// # Errors
    /// When there are others, or none.
    pub fn agent(&self) -> Result<u32> {
        let agents = self.sluice.agents()?;
        let [agent] = agents.as_slice() else { anyhow::bail!("one agent is expected to run: {agents:?}") };
        Ok(*agent)
    }

    /// Number of agents that have become ready.
    pub fn readies(&self) -> usize {
        self.sluice.output().iter().filter(|line| *line == "sluice: ready").count()
    }

    /// `sluice upgrade`.
    ///
    /// # Errors
    /// When it fails; the error has its output.
    pub fn upgrade(&self) -> Result<()> {
        let output = sluice::run(&[OsStr::new("upgrade"), OsStr::new("--state"), self.sluice.state().as_os_str()])?;
        ensure!(output.status.success(), "{output:?}");
        Ok(())
    }

    /// Number of connections that the kernel carries, by the agent's count.
    ///
    /// # Errors
    /// When the agent does not say.
    pub fn connections(&self) -> Result<usize> {
        let status = self.sluice.get("status")?;
        let count = status["dataPath"]["connections"].as_u64().with_context(|| format!("no count in {status}"))?;
        Ok(usize::try_from(count)?)
    }

    /// True if the kernel program dialed from this port of the router: the stack uses others.
    pub fn dialed(&self, port: u16) -> bool {
        !self.stack_ports.contains(&port)
    }

    /// Waits until the access log has a line for each of these connections, by the client's address, and checks that
    /// there are no others, that the kernel carried all of them, and that it counted them for their route.
    ///
    /// # Errors
    /// When more than `lost` lines are missing, or there are others.
    pub fn tells_of(&self, clients: &[SocketAddr], lost: usize) -> Result<()> {
        let total = clients.len();
        let mut wanted: HashMap<String, i64> = HashMap::new();
        for client in clients {
            *wanted.entry(client.to_string()).or_default() += 1;
        }
        let (mut missing, mut lines, mut read) = (0, Vec::new(), 0);
        wait::wait_until("the access log has every connection", PATIENCE * 2, || {
            lines.extend(self.lines_from(&mut read));
            missing = total.saturating_sub(lines.len());
            missing <= lost
        })
        .with_context(|| format!("{missing} of {total} lines are missing"))?;
        lines.extend(self.lines_from(&mut read));
        for line in lines {
            *wanted.entry(line).or_default() -= 1;
        }
        let twice: Vec<_> = wanted.iter().filter(|(_, missing)| **missing < 0).take(5).collect();
        ensure!(twice.is_empty(), "lines of connections that were not made, or told twice: {twice:?}");

        let total = u64::try_from(total)?;
        for counter in [DialCounter::Dialed, DialCounter::Confirmed] {
            let count = pinned::dial_counter(&self.sluice, counter)?;
            ensure!(count == total, "{counter:?}: {count} instead of {total}");
        }
        for field in ["steer", "ended"] {
            let count = self.route_stats(field)?;
            ensure!(count == total, "{field}: the routes have {count} connections instead of {total}");
        }
        Ok(())
    }

    /// A counter of routes, summed over all.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn route_stats(&self, field: &str) -> Result<u64> {
        let stats = self.sluice.dump(names::ROUTE_STATS)?;
        Ok(stats.as_array().context("a list")?.iter().filter_map(|row| row[field].as_u64()).sum())
    }

    /// Client addresses of the kernel's new lines in the access log: see [`Sluice::output_from`]. Reading all lines again would take
    /// the time of the agent that writes them.
    pub fn lines_from(&self, since: &mut u64) -> Vec<String> {
        let output = self.sluice.output_from(since);
        let lines = output.iter().filter(|line| line.contains(" access: ") && line.contains("datapath=\"kernel\""));
        lines.filter_map(|line| Some(line.split_once(" client=")?.1.split(' ').next()?.to_owned())).collect()
    }

    /// Counters of the kernel program, for failure messages.
    pub fn counters(&self) -> String {
        let [dials, reasons] = [names::DIAL_STATS, names::REASON_STATS].map(|map| match self.sluice.dump(map) {
            Ok(counts) => counts.to_string(),
            Err(error) => format!("{error:#}"),
        });
        format!("{dials} {reasons}")
    }

    /// Waits until no flow and no first flight is left: when every connection has ended and lingered.
    ///
    /// # Errors
    /// When some stay.
    pub fn nothing_is_left(&self) -> Result<()> {
        pinned::nothing_is_left(&self.sluice)
    }
}
