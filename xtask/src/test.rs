//! `cargo xtask test` and `verify`: everything against the real kernel.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::process::{self, cargo};
use crate::tally::Tally;
use crate::{ebpf, install, kernels, kube};

/// Runs every test. Being root is part of it: tests that need the kernel are never skipped.
pub fn run(root: &Path, arguments: &[String]) -> Result<()> {
    prepare(root)?;
    ebpf::build_all(root)?;
    kube::build(root)?;
    // Built once for all, so that tests that run side by side do not wait for one another to find it built.
    process::build_tested_sluice(root)?;
    let path = std::env::join_paths(process::search_path())?;
    let tests = ["test", "--locked", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests"];
    let mut command = cargo(root);
    command.args(tests).args(process::TESTED_FEATURES).args(arguments).env("PATH", path).stdout(Stdio::piped());
    let mut child = command.spawn().context("cargo could not be started")?;
    let mut total = Tally::default();
    for line in BufReader::new(child.stdout.take().context("cargo's output is not to be had")?).lines() {
        let line = line?;
        println!("{line}");
        total.add(&line);
    }
    let status = child.wait()?;
    // A choice of tests is one of those of this machine.
    let others = if arguments.is_empty() { kernels::run(root) } else { Ok(Tally::default()) };
    if let Ok(others) = &others {
        total.join(others);
    }
    // One line for all test programs; each has its own above.
    println!("total: {}", total.line());
    ensure!(status.success(), "tests failed ({status})");
    others?;
    ensure!(total.passed > 0, "no test ran");
    Ok(())
}

/// Installs the programs that the tests need.
///
/// # Errors
/// The process is not root.
pub fn prepare(root: &Path) -> Result<()> {
    ensure!(
        process::is_root(),
        "the tests make network namespaces and load kernel programs: run it again by `sudo --preserve-env=PATH,HOME`"
    );
    install::for_tests(root)
}

/// Loads every program into this kernel.
pub fn verify(root: &Path) -> Result<()> {
    ensure!(process::is_root(), "loading kernel programs needs root: run it again with sudo");
    install::for_run(root)?;
    ebpf::build_all(root)?;
    let sluice = process::build_tested_sluice(root)?;
    process::run(Command::new(sluice).args(["bpf", "verify"]))
}

/// Boots Debian's kernels, loads every program there, and runs stories.
pub fn verify_kernels(root: &Path) -> Result<()> {
    ensure!(process::is_root(), "loading kernel programs needs root: run it again with sudo");
    install::for_tests(root)?;
    println!("total: {}", kernels::run(root)?.line());
    Ok(())
}
