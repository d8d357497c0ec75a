//! The results as text.

use std::fmt::Write as _;

use anyhow::{Context, Result};

use super::groups::{GROUPS, Group};
use super::idle::{IdleMemory, MANY};
use super::measure::{Column, Plan};
use super::plot;
use super::ways::Way;
use crate::bench::bars::{self, Bar};
use crate::bench::document::machine;
use crate::bench::network::{DESCRIPTORS, HOSTS};

/// Bytes of memory in the router for an idle connection that the kernel carries.
const MEMORY_BAR: f64 = 1024.0;
/// Processor seconds per GB below which a figure prints as 0.000.
const NOTHING: f64 = 0.0005;

/// Everything that was measured.
pub struct Results {
    /// Which build of Sluice was measured.
    pub build: String,
    /// How often and how long.
    pub plan: Plan,
    /// By way; the first is the direct one.
    pub columns: Vec<Column>,
    /// By way, where it could be measured.
    pub idle: Vec<IdleMemory>,
    /// Connections that the kernel dialed, of those of the kernel path.
    pub steered: Option<u64>,
    /// Of the peers.
    pub versions: Vec<String>,
    /// Ways that could not be measured, and why.
    pub left_out: Vec<(Way, String)>,
}

impl Results {
    /// A section of docs/benchmarks.md.
    pub fn text(&self) -> Result<String> {
        let mut text = String::new();
        self.introduction(&mut text)?;
        self.rates(&mut text)?;
        self.memory(&mut text)?;
        self.processor(&mut text)?;
        bars::write(&mut text, &self.bars())?;
        Ok(text)
    }

    /// Targets that were missed, or not measured.
    pub fn missed(&self) -> Vec<String> {
        let bars = self.bars();
        let missed = bars.iter().filter(|bar| !bar.figure.as_ref().is_some_and(|(_, met)| *met));
        missed.map(|bar| bar.what.clone()).collect()
    }

    fn introduction(&self, text: &mut String) -> Result<()> {
        writeln!(
            text,
            "`cargo xtask bench passthrough`, on {}, of {}. Client, router and backend each have a network namespace, with
veth links between them, and share the cores. The direct way is the router's namespace forwarding, without a router.
Both ends are on this host, behind veth links, as pods are: there Sluice's kernel path hands packets straight to their
ends of the links. “Sluice kernel, by interface” does not (`--peer-redirect never`), and represents clients and endpoints
on other hosts; no requirement refers to it. All ways are set up at once, each through its own router namespace; every
measurement covers all ways, in changing order, before the next one begins, {} times {} ms each, in {} rounds: the machine's speed varies, and so each way gets the same
share of slow and fast periods. Each round begins with a pause, in which Sluice's agent removes the flows of the previous
round, which the kernel keeps for 10 s; measurements of bulk data exclude this work. Figures are medians of the rounds; in
parentheses the median of the ratios to the direct way in the same round. Clients send a real ClientHello of 517 bytes
in one segment, or of 1,800 bytes (X25519MLKEM768) in two; then both ends exchange plain bytes, so no TLS
implementation is measured. A new connection is connect, hello, one byte from the backend, FIN from the backend, close; the backend closes
first because the end that closes first keeps the ports for a minute (TIME_WAIT).
The limit on file descriptors is {},{:03} for each process. No router writes an access log.\n",
            machine()?,
            self.build,
            self.plan.parts,
            self.plan.milliseconds,
            self.plan.rounds,
            DESCRIPTORS / 1000,
            DESCRIPTORS % 1000,
        )?;
        if !self.versions.is_empty() {
            writeln!(
                text,
                "Peers: {}; a worker or thread for each core, HAProxy with `splice-auto`, nginx with `reuseport`,
`multi_accept` and 64 KiB buffers, Envoy with `reuse_port`.\n",
                self.versions.join(", ")
            )?;
        }
        for (way, why) in &self.left_out {
            writeln!(text, "Without {}: {why}.\n", way.name())?;
        }
        if let Some(kernel) = self.column(Way::Kernel) {
            let held: usize =
                self.idle.iter().filter(|idle| idle.way == Way::Kernel).map(|idle| idle.connections).sum();
            let all = kernel.connections + held as u64;
            match self.steered {
                Some(steered) if steered > 0 => {
                    writeln!(text, "Of {all} connections of the row Sluice kernel, the kernel dialed {steered}.\n")?;
                }
                _ => writeln!(text, "**Sluice kernel: not steered.** The kernel dialed none of {all} connections.\n")?,
            }
        }
        writeln!(text, "![Ratios to the direct way]({})\n", plot::FILE)?;
        Ok(())
    }

    fn rates(&self, text: &mut String) -> Result<()> {
        write!(text, "| connections at a time |")?;
        self.columns.iter().try_for_each(|column| write!(text, " {} |", column.way.name()))?;
        writeln!(text, "\n|---|{}", "---|".repeat(self.columns.len()))?;
        let direct = self.direct()?;
        for (at, group) in self.groups() {
            for (place, connections) in group.connections.iter().enumerate() {
                write!(text, "| {}, {connections} ({}) |", group.title, group.unit)?;
                for column in &self.columns {
                    let Some(rate) = column.rate(at, place) else {
                        write!(text, " failed |")?;
                        continue;
                    };
                    write!(text, " {:.1}", rate / group.scale)?;
                    match column.ratios(direct, at, place).median() {
                        Some(ratio) if column.way != Way::Direct => write!(text, " ({ratio:.2}) |")?,
                        _ => write!(text, " |")?,
                    }
                }
                writeln!(text)?;
            }
        }
        Ok(())
    }

    fn memory(&self, text: &mut String) -> Result<()> {
        let Some(direct) = self.idle_on(Way::Direct) else { return Ok(()) };
        writeln!(
            text,
            "\nMemory of an idle connection in the router, in bytes. All connections were open at the same time, from {} client
processes to as many backend processes, and all of them answered afterwards. That in the kernel is live slab objects
(sockets, their files, map entries) beyond those of the direct way, whose client and backend have theirs too; maps are
part of it.\n
| way | connections | user space (PSS) | (RSS) | kernel | of it in maps | sockets | descriptors |
|---|---|---|---|---|---|---|---|",
            HOSTS.len(),
        )?;
        for idle in self.idle.iter().filter(|idle| idle.way != Way::Direct) {
            let each = idle.each(direct);
            let maps = if idle.way == Way::Kernel { format!("{:.0}", each.maps) } else { "–".to_owned() };
            writeln!(
                text,
                "| {} | {} | {:.0} | {:.0} | {:.0} | {maps} | {} | {} |",
                idle.way.name(),
                idle.connections,
                each.user,
                each.resident,
                each.kernel,
                idle.sockets,
                idle.added.descriptors,
            )?;
        }
        Ok(())
    }

    fn processor(&self, text: &mut String) -> Result<()> {
        writeln!(
            text,
            "\nProcessor time: of the router's processes, and of the whole machine (client, backend and the kernel's
forwarding included; softirq is part of it), in seconds for each GB of bulk data and in microseconds for each new
connection; and the slowest of all new connections. What Sluice's agent does once a second whatever the load is in its
figures.\n
| way | user s/GB | system s/GB | machine s/GB | softirq s/GB | user µs | system µs | machine µs | slowest | failed |
|---|---|---|---|---|---|---|---|---|---|"
        )?;
        for column in &self.columns {
            let gigabytes = column.bulk_bytes as f64 / 1e9;
            let made = column.made as f64 / 1e6;
            // Without a measurement there is no figure.
            let each = |seconds: f64, of: f64, digits: usize| {
                if of > 0.0 { format!("{:.digits$}", seconds / of) } else { "–".to_owned() }
            };
            let router = |seconds: f64, of: f64, digits: usize| match column.way {
                Way::Direct => "–".to_owned(),
                _ => each(seconds, of, digits),
            };
            writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {:.0} ms | {} |",
                column.way.name(),
                router(column.bulk.user, gigabytes, 3),
                router(column.bulk.system, gigabytes, 3),
                each(column.bulk.busy, gigabytes, 3),
                each(column.bulk.softirq, gigabytes, 3),
                router(column.making.user, made, 1),
                router(column.making.system, made, 1),
                each(column.making.busy, made, 1),
                column.slowest.as_secs_f64() * 1000.0,
                column.errors,
            )?;
        }
        Ok(())
    }

    fn bars(&self) -> Vec<Bar> {
        let mut bars = Vec::new();
        self.kernel_bars(&mut bars);
        self.relay_bars(&mut bars);
        self.memory_bars(&mut bars);
        bars
    }

    /// Of the kernel path, to the direct one. A path that did not steer has none of these figures.
    fn kernel_bars(&self, bars: &mut Vec<Bar>) {
        let kernel = self.column(Way::Kernel).filter(|_| self.is_steered());
        let direct = self.columns.first();
        for (at, group) in self.groups() {
            for (place, measure) in group.measures().into_iter().enumerate() {
                let Some(least) = group.bar(measure) else { continue };
                let ratios = kernel.zip(direct).map(|(kernel, direct)| kernel.ratios(direct, at, place));
                bars.push(Bar {
                    what: format!("kernel, {}, {}", group.title, measure.connections),
                    promised: format!("≥ {least:.2}"),
                    figure: ratios.and_then(|ratios| ratios.judged(|median| median >= least)),
                });
            }
        }
        let user = kernel.and_then(Column::user_for_bulk);
        bars.push(Bar {
            what: "kernel, processor seconds in user mode per GB, beyond those of an agent at rest".to_owned(),
            promised: "0.000".to_owned(),
            figure: user.map(|(all, at_rest)| {
                let beyond = (all - at_rest).max(0.0);
                (format!("{beyond:.3} ({all:.4} in all, {at_rest:.4} at rest)"), beyond < NOTHING)
            }),
        });
    }

    /// Of the relay, to the best peer on each measure.
    fn relay_bars(&self, bars: &mut Vec<Bar>) {
        for (at, group) in self.groups() {
            for (place, connections) in group.connections.iter().enumerate() {
                let peers = self.columns.iter().filter(|column| column.way.peer().is_some());
                let rates = peers.filter_map(|peer| Some((peer, peer.rate(at, place)?)));
                let Some((best, _)) = rates.max_by(|(_, one), (_, other)| one.total_cmp(other)) else { continue };
                let ratios = self.column(Way::Relay).map(|relay| relay.ratios(best, at, place));
                bars.push(Bar {
                    what: format!("relay to {}, {}, {connections}", best.way.name(), group.title),
                    promised: "≥ 1.00".to_owned(),
                    figure: ratios.and_then(|ratios| ratios.judged(|median| median >= 1.0)),
                });
            }
        }
    }

    fn memory_bars(&self, bars: &mut Vec<Bar>) {
        let kernel = self.idle_on(Way::Kernel).filter(|_| self.is_steered());
        let bytes = kernel.zip(self.idle_on(Way::Direct)).map(|(kernel, direct)| {
            let each = kernel.each(direct);
            each.user + each.kernel.max(each.maps)
        });
        bars.push(Bar {
            what: "kernel, bytes of an idle connection".to_owned(),
            promised: format!("≤ {MEMORY_BAR:.0}"),
            figure: bytes.map(|bytes| (format!("{bytes:.0}"), bytes <= MEMORY_BAR)),
        });
        bars.push(Bar {
            what: format!("kernel, sockets and descriptors of {MANY} live connections"),
            promised: "0 and 0".to_owned(),
            figure: kernel.map(|kernel| {
                let (sockets, descriptors) = (kernel.sockets, kernel.added.descriptors);
                (format!("{sockets} and {descriptors}"), sockets <= 0 && descriptors <= 0)
            }),
        });
    }

    /// The measured groups, with their index among all.
    fn groups(&self) -> impl Iterator<Item = (usize, &'static Group)> {
        GROUPS.iter().enumerate().filter(|(at, _)| self.columns.iter().any(|column| column.has(*at)))
    }

    fn is_steered(&self) -> bool {
        self.steered.is_some_and(|steered| steered > 0)
    }

    fn idle_on(&self, way: Way) -> Option<&IdleMemory> {
        self.idle.iter().find(|idle| idle.way == way)
    }

    fn column(&self, way: Way) -> Option<&Column> {
        self.columns.iter().find(|column| column.way == way)
    }

    fn direct(&self) -> Result<&Column> {
        self.column(Way::Direct).context("the direct way was not measured")
    }
}
