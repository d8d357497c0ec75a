//! `cargo xtask test` and `verify`: everything against the real kernel.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::process::{self, cargo};
use crate::{ebpf, install};

/// Runs every test. Being root is part of it: tests that need the kernel are never skipped.
pub fn run(root: &Path, arguments: &[String]) -> Result<()> {
    ensure!(
        process::is_root(),
        "the tests make network namespaces and load kernel programs: run `sudo --preserve-env=PATH,HOME cargo xtask test`"
    );
    install::for_tests(root)?;
    ebpf::build(root)?;
    // Built once for all, so that tests that run side by side do not wait for one another to find it built.
    process::build_sluice(root, false)?;
    let path = std::env::join_paths(process::search_path())?;
    let tests = ["test", "--locked", "--workspace", "--no-fail-fast"];
    process::run(cargo(root).args(tests).args(arguments).env("PATH", path))
}

/// Loads every program into this kernel.
pub fn verify(root: &Path) -> Result<()> {
    ensure!(process::is_root(), "loading kernel programs needs root: run it again with sudo");
    install::for_run(root)?;
    ebpf::build(root)?;
    let sluice = process::build_sluice(root, false)?;
    process::run(Command::new(sluice).args(["bpf", "verify"]))
}
