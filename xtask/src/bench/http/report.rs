//! The results as text.

use std::fmt::Write as _;

use anyhow::Result;

use super::figures::{Column, Figure};
use super::names::{self, Hosts};
use super::plot;
use super::results::{Results, rate, tail};
use super::rows::Measure;
use super::ways::{Router, Way};
use crate::bench::bars::{self, Bar};
use crate::bench::document::machine;

/// Least ratio of Sluice's rate with many hosts to that with one.
const MANY_BAR: f64 = 0.95;

impl Results {
    /// A section of docs/benchmarks.md.
    pub fn text(&self) -> Result<String> {
        let mut text = String::new();
        self.introduction(&mut text)?;
        self.rates(&mut text)?;
        writeln!(text, "\nLatency in ms: the median, and the 99th percentile.\n")?;
        self.table(&mut text, |column, place, _| {
            let middle = column.middle(place, |figure| figure.outcome.p50.as_secs_f64() * 1000.0)?;
            Some(format!("{middle:.2}, {:.2}", column.middle(place, tail)?))
        })?;
        writeln!(
            text,
            "\nProcessor time of the router's processes for each request, connection or message, in µs: in user mode and in the
kernel; and the client's part of all the machine's work.\n"
        )?;
        self.table(&mut text, |column, place, _| {
            let part = |mode: usize| column.middle(place, |figure| figure.each()[mode]);
            let load = column.middle(place, Figure::share_of_load)?;
            Some(format!("{:.1} + {:.1}, {:.0} %", part(0)?, part(1)?, load * 100.0))
        })?;
        self.loading(&mut text)?;
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
            "`cargo xtask bench http`, on {}, of {}. Client, router and backend each have a network namespace, with veth links between
them, and share the cores. All ways are open all the time, each through a router namespace of its own; every measure
goes over all ways before the next, in changing order, {} ms each, in {} rounds. Figures are medians of the rounds; in parentheses the median
of the ratios to the best peer in the same round.

Requests on connections that stay and are short are measured twice: for their times as above, and for all else with the clients of
all ways started, which go on in turn, 100 ms each, until each has had 2 s. What this machine has to give changes from
one second to the next by more than the ways differ; so all of them have the same seconds.

The client is wrk for HTTP/1.1, h2load for HTTP/2, and a client of our own for new connections (it verifies nothing, so
that the router's work is most of it) and WebSockets. TLS is 1.3 with X25519, AES-128-GCM and an ECDSA certificate
(P-256), and no session is resumed: a new connection is a full handshake, one request, and closed by the router. Backends
are nginx with a short answer or 64 KiB, and an echo of 64-byte messages. Every router sets the same forwarded fields,
keeps connections to its backends, and writes no access log. Sluice's data path is in user space here, so that every
request goes through its proxy.

With {} hosts, one in {} has a certificate of its own (in Sluice alone); clear-text requests and new connections ask
for thousands of them in turn, connections that stay for one in the middle. With one host clear-text requests are as
many different ones, by their query, so that the client's own work is the same. HAProxy has the hosts in a map, nginx as
server names, Envoy as domains of a virtual host.\n",
            machine()?,
            self.build,
            self.plan.milliseconds,
            self.plan.rounds,
            names::MANY,
            names::WITH_CERTIFICATE,
        )?;
        if !self.versions.is_empty() {
            writeln!(
                text,
                "Peers: {}; a worker or thread for each core, HAProxy with `http-reuse always`, nginx with `reuseport`,
`multi_accept` and `keepalive`, Envoy with `reuse_port`.\n",
                self.versions.join(", ")
            )?;
        }
        for (way, why) in &self.left_out {
            writeln!(text, "Without {}: {why}.\n", way.name())?;
        }
        let failed: Vec<String> = self
            .columns
            .iter()
            .filter(|column| column.errors() > 0)
            .map(|column| format!("{} {}", column.way.name(), column.errors()))
            .collect();
        match failed.is_empty() {
            true => writeln!(text, "No request failed.\n")?,
            false => writeln!(text, "Requests that failed: {}.\n", failed.join(", "))?,
        }
        writeln!(text, "![Ratios to the best peer]({})\n", plot::FILE)?;
        Ok(())
    }

    fn rates(&self, text: &mut String) -> Result<()> {
        writeln!(text, "In a second, in thousands:\n")?;
        self.table(text, |column, place, best| {
            let mut cell = format!("{:.2}", column.middle(place, rate)? / 1000.0);
            if let Some(ratio) = best.and_then(|best| column.ratios(best, place, rate).median()) {
                write!(cell, " ({ratio:.2})").ok()?;
            }
            Some(cell)
        })
    }

    /// A row for each measure that was taken, a column for each way; `cell` knows the best peer.
    fn table(&self, text: &mut String, cell: impl Fn(&Column, usize, Option<&Column>) -> Option<String>) -> Result<()> {
        write!(text, "| connections at a time |")?;
        self.columns.iter().try_for_each(|column| write!(text, " {} |", column.way.name()))?;
        writeln!(text, "\n|---|{}", "---|".repeat(self.columns.len()))?;
        for (place, measure) in self.measured() {
            write!(text, "| {}, {} ({}) |", measure.title, measure.connections, measure.unit)?;
            for column in &self.columns {
                let missing =
                    if column.figures[place].is_empty() || !wanted(column.way, measure) { "–" } else { "failed" };
                let filled = cell(column, place, self.best_peer(place));
                write!(text, " {} |", filled.as_deref().unwrap_or(missing))?;
            }
            writeln!(text)?;
        }
        Ok(())
    }

    fn loading(&self, text: &mut String) -> Result<()> {
        writeln!(
            text,
            "\nFrom a router's start to its first answers, and its resident memory then:\n\n| way | start | memory |\n|---|---|---|"
        )?;
        for (way, start, resident) in &self.loaded {
            let mebibytes = *resident as f64 / 1024.0 / 1024.0;
            writeln!(text, "| {} | {:.1} s | {mebibytes:.0} MiB |", way.name(), start.as_secs_f64())?;
        }
        Ok(())
    }

    fn bars(&self) -> Vec<Bar> {
        let mut bars = Vec::new();
        let own = |hosts| self.column(Way { router: Router::Sluice, hosts });
        for (place, measure) in self.measured() {
            let best = self.best_peer(place);
            let name = best.map_or_else(|| "the best peer".to_owned(), |best| best.way.name());
            let both = own(Hosts::One).zip(best);
            if let Some(least) = measure.bar {
                let ratios = both.map(|(own, best)| own.ratios(best, place, rate));
                bars.push(Bar {
                    what: format!("{}, to {name}", measure.title),
                    promised: format!("≥ {least:.2}"),
                    figure: ratios.and_then(|ratios| ratios.judged(|median| median >= least)),
                });
            }
            if measure.tail {
                let ratios = both.map(|(own, best)| own.ratios(best, place, tail));
                bars.push(Bar {
                    what: format!("{}, 99th percentile, to {name}", measure.title),
                    promised: "≤ 1.00".to_owned(),
                    figure: ratios.and_then(|ratios| ratios.judged(|median| median <= 1.0)),
                });
            }
        }
        for (place, measure) in self.measured().filter(|(_, measure)| measure.many) {
            let ratios = own(Hosts::Many).zip(own(Hosts::One)).map(|(many, one)| many.ratios(one, place, rate));
            bars.push(Bar {
                what: format!("{}, {} hosts to one", measure.title, names::MANY),
                promised: format!("≥ {MANY_BAR:.2}"),
                figure: ratios.and_then(|ratios| ratios.judged(|median| median >= MANY_BAR)),
            });
        }
        bars
    }
}

/// Whether a measure is taken on a way.
fn wanted(way: Way, measure: &Measure) -> bool {
    measure.many || way.hosts == Hosts::One
}
