//! `cargo xtask`: builds, verifies, runs, tests and measures Sluice. Without arguments it prints its help.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

mod bench;
mod btf;
mod ci;
mod cluster;
mod dist;
mod ebpf;
mod image;
mod install;
mod kernels;
mod kube;
mod process;
mod run;
mod tally;
mod test;
mod tidy;

/// Builds, verifies, runs, tests and measures Sluice.
#[derive(Parser)]
#[command(bin_name = "cargo xtask", arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build everything and serve a folder of examples with its demo backends, until Ctrl-C.
    Run {
        /// Which one.
        #[arg(default_value_t, value_enum)]
        example: run::Example,
    },
    /// Run every test. Arguments after `--` go to `cargo test`.
    Test {
        /// Handed to `cargo test`.
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// Build the kernel program to target/bpf/sluice.bpf.o.
    BuildEbpf {
        /// Build the one with log lines too, to target/bpf/sluice-log.bpf.o: what the agent's feature `kernel-log` embeds.
        #[arg(long)]
        log: bool,
    },
    /// Build Kubernetes for the tests to target/kube: every component in one program, and the definitions of APIs.
    BuildKube,
    /// Start and stop a Kubernetes cluster in network namespaces, and look into it.
    Cluster {
        /// What to do.
        #[command(subcommand)]
        what: cluster::Cluster,
    },
    /// Build the kernel program and load it into this kernel, with the verifier's statistics.
    Verify {
        /// Boot Debian's kernels in qemu instead, and run stories on each.
        #[arg(long)]
        kernels: bool,
    },
    /// Check the source tree against rules that no compiler checks: imports and dependencies, unsafe code, documentation.
    Tidy(tidy::Arguments),
    /// The checks that a change must pass: formatting, tidy, lints, documentation, the dependency policy, and every
    /// test.
    Ci {
        /// All but the tests, which take most of the time and root.
        #[arg(long)]
        no_tests: bool,
    },
    /// Build the binary to ship, target/dist/sluice, optimised by profiles of the benchmarks' load.
    Dist,
    /// Measure, with release builds, and write docs/benchmarks.md.
    Bench {
        /// What to measure.
        #[command(subcommand)]
        what: bench::Bench,
    },
    /// A part of `bench passthrough`, which runs it in a network namespace.
    #[command(hide = true)]
    Load(bench::passthrough::load::Arguments),
    /// A part of `bench http`, which runs it in a network namespace.
    #[command(hide = true)]
    HttpLoad(bench::http::load::Arguments),
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    let root = root()?;
    match task {
        Task::Run { example } => run::run(&root, example),
        Task::Test { arguments } => test::run(&root, &arguments),
        Task::BuildEbpf { log } => {
            let built = if log { ebpf::build_all(&root)? } else { vec![ebpf::build(&root)?] };
            built.iter().for_each(|object| println!("{}", object.display()));
            Ok(())
        }
        Task::BuildKube => {
            println!("{}", kube::build(&root)?.display());
            Ok(())
        }
        Task::Cluster { what } => cluster::run(&root, what),
        Task::Verify { kernels: false } => test::verify(&root),
        Task::Verify { kernels: true } => test::verify_kernels(&root),
        Task::Tidy(arguments) => tidy::run(&root, &arguments),
        Task::Ci { no_tests } => ci::run(&root, !no_tests),
        Task::Dist => {
            println!("{}", dist::build(&root)?.display());
            Ok(())
        }
        Task::Bench { what } => bench::run(&root, what),
        Task::Load(arguments) => bench::passthrough::load::run(arguments),
        Task::HttpLoad(arguments) => bench::http::load::run(&arguments),
    }
}

/// The workspace.
fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(here.parent().context("xtask has a parent folder")?.to_owned())
}
