//! `bench admission`: who gets a host among many routes of each API, and what a change costs, without a router around it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::document::{self, machine};
use super::summary::{Summary, summary};
use crate::process;

/// What the engine is measured on: a world of the example, what it is, and its bars.
struct World {
    name: &'static str,
    about: &'static str,
    /// Most bytes in memory for each route.
    bytes: Option<u64>,
    /// Longest median of a measurement, by its name, in µs.
    bars: &'static [(&'static str, u64)],
}

const WORLDS: [World; 6] = [
    World {
        name: "routes",
        about: "100,000 Routes in 5,000 namespaces, on one router: clear text, edge and passthrough, with hosts of their own, \
                with subdomains, and sharing hosts by path; one in each namespace loses its host",
        bytes: Some(1536),
        bars: &[("full", 1_000_000), ("change", 5_000), ("slice", 200), ("secret", 1_000), ("label", 50)],
    },
    World {
        name: "http-routes",
        about: "100,000 HTTPRoutes on one Gateway, each with a host, a Service and a slice",
        bytes: Some(5120),
        bars: &[("full", 2_000_000), ("change", 1_000), ("slice", 200), ("secret", 1_000), ("label", 50)],
    },
    World {
        name: "http-proxies",
        about: "10,000 HTTPProxies: 2,000 roots that include four each",
        bytes: None,
        bars: &[("change", 1_000), ("slice", 200), ("secret", 1_000), ("label", 50)],
    },
    World {
        name: "listeners",
        about: "1,024 listeners with hostnames of their own (sixteen Gateways, as 64 are the most of one), each with an HTTPRoute",
        bytes: None,
        bars: &[("slice", 200), ("label", 50)],
    },
    World {
        name: "inclusion",
        about: "a tree of 9,991 HTTPRoutes on one host",
        bytes: None,
        bars: &[("slice", 200), ("label", 50)],
    },
    World {
        name: "mixed",
        about: "40,000 Routes, 40,000 HTTPRoutes and 20,000 HTTPProxies",
        bytes: None,
        // 200 of them a second may take a tenth of a processor.
        bars: &[("slice", 200), ("churn", 500), ("label", 50)],
    },
];

/// What is measured of each world, by the name that the example prints.
const MEASURED: [(&str, &str); 7] = [
    ("full", "everything from nothing"),
    ("change", "one route changed"),
    ("slice", "one EndpointSlice"),
    ("secret", "one Secret, used by one host"),
    ("label", "a label of a Namespace that no selector reads"),
    ("grant", "one ReferenceGrant"),
    ("churn", "processor time of one EndpointSlice among 6,000"),
];

/// Measures, prints, writes its section of docs/benchmarks.md, and fails when a bar is missed.
pub fn run(root: &Path) -> Result<()> {
    let mut text = format!(
        "`cargo xtask bench admission`, on {}. Measured is the engine alone, from parsed objects to the table and the \
         statuses, one process for each world.\n",
        machine()?
    );
    let mut missed = Vec::new();
    for world in &WORLDS {
        let mut command = process::cargo(root);
        command.args(["run", "--locked", "--release", "--package", "router-translate", "--example", "admission"]);
        let output = command.args(["--", world.name]).stderr(std::process::Stdio::inherit()).output();
        let output = output.context("cargo could not be started")?;
        ensure!(output.status.success(), "{}: the measurement failed ({})", world.name, output.status);
        let results = Results::read(&String::from_utf8(output.stdout)?).context(world.name)?;
        results.report(world, &mut text, &mut missed)?;
    }
    println!("{text}");
    document::write_section(root, "Admission", &text)?;
    ensure!(missed.is_empty(), "bars missed: {}", missed.join("; "));
    Ok(())
}

/// What the example prints, read.
struct Results(HashMap<String, Vec<u64>>);

impl Results {
    fn read(printed: &str) -> Result<Self> {
        let line = |line: &str| {
            let (name, list) = line.split_once(' ').with_context(|| format!("no name and figures: {line}"))?;
            let numbers = list.split(',').map(|number| number.parse().with_context(|| format!("{name} {list}")));
            Ok((name.to_owned(), numbers.collect::<Result<_>>()?))
        };
        printed.lines().map(line).collect::<Result<_>>().map(Results)
    }

    fn number(&self, name: &str) -> Result<u64> {
        let Some([number]) = self.0.get(name).map(Vec::as_slice) else { bail!("the measurement prints no {name}") };
        Ok(*number)
    }

    fn summary(&self, name: &str) -> Result<Summary> {
        let list = self.0.get(&format!("{name}_us")).with_context(|| format!("the measurement prints no {name}"))?;
        summary(list.iter().copied().map(Duration::from_micros).collect()).context("no rounds")
    }

    /// Adds the table of a world, and the bars that it misses.
    fn report(&self, world: &World, text: &mut String, missed: &mut Vec<String>) -> Result<()> {
        writeln!(text, "\n### `{}`\n\n{}.\n", world.name, world.about)?;
        writeln!(text, "| what | median | worst | rounds | bar (median) |\n|---|---|---|---|---|")?;
        for (name, what) in MEASURED {
            let Summary { rounds, median, worst } = self.summary(name)?;
            let bar = world.bars.iter().find(|(of, _)| *of == name).map(|(_, bar)| Duration::from_micros(*bar));
            if let Some(bar) = bar.filter(|bar| median > *bar) {
                missed.push(format!("{}: {what} takes {median:?} of {bar:?}", world.name));
            }
            let shown = |took: Duration| format!("{:.2} ms", took.as_secs_f64() * 1000.0);
            let bar = bar.map_or("–".to_owned(), shown);
            writeln!(text, "| {what} | {} | {} | {rounds} | {bar} |", shown(median), shown(worst))?;
        }
        let (bytes, of_objects) = (self.number("route_bytes")?, self.number("object_bytes")?);
        if let Some(bar) = world.bytes.filter(|bar| bytes > *bar) {
            missed.push(format!("{}: {bytes} bytes a route of {bar}", world.name));
        }
        let bar = world.bytes.map(|bar| format!(" The bar is {bar} bytes.")).unwrap_or_default();
        writeln!(
            text,
            "\nResident memory for each route: {bytes} bytes, of which {of_objects} are its object with its share of Services \
             and slices;\nthe rest is table, statuses and what the engine keeps.{bar}"
        )?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "objects 2\nparse_us 9\nfull_us 5,7,6\nchange_us 300,100,200\nslice_us 201\nsecret_us 1\n\
                           label_us 1\ngrant_us 1\nchurn_us 3\nobject_bytes 10\nroute_bytes 6000\n";

    #[test]
    fn medians_stand_beside_their_bars_and_misses_are_named() {
        let (mut text, mut missed) = (String::new(), Vec::new());
        Results::read(PRINTED).unwrap().report(&WORLDS[1], &mut text, &mut missed).unwrap();
        assert!(text.contains("| one route changed | 0.20 ms | 0.30 ms | 3 | 1.00 ms |"), "{text}");
        assert_eq!(
            missed,
            ["http-routes: one EndpointSlice takes 201µs of 200µs", "http-routes: 6000 bytes a route of 5120"]
        );
    }

    #[test]
    fn a_figure_that_is_not_printed_is_named() {
        let without: String =
            PRINTED.lines().filter(|line| !line.starts_with("grant")).map(|line| format!("{line}\n")).collect();
        let (mut text, mut missed) = (String::new(), Vec::new());
        let error = Results::read(&without).unwrap().report(&WORLDS[0], &mut text, &mut missed).unwrap_err();
        assert_eq!(error.to_string(), "the measurement prints no grant");
        assert!(Results::read("full_us x").is_err());
    }
}
