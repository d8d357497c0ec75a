//! `cargo xtask ci`: what a change must pass.

use std::path::Path;

use anyhow::Result;

use crate::process::{self, cargo};
use crate::{install, test};

/// Formatting, lints, every test, and the dependency policy if `cargo-deny` is installed.
pub fn run(root: &Path) -> Result<()> {
    process::run(cargo(root).args(["fmt", "--all", "--check"]))?;
    if process::is_root() {
        install::for_tests(root)?;
    }
    let lint = ["clippy", "--locked", "--workspace", "--all-targets", "--", "--deny", "warnings"];
    process::run(cargo(root).args(lint))?;
    test::run(root, &[])?;
    if process::succeeds(cargo(root).args(["deny", "--version"])) {
        process::run(cargo(root).args(["deny", "--offline", "check", "bans", "licenses", "sources"]))
    } else {
        eprintln!("xtask: cargo-deny is not installed; the dependency policy was not checked");
        Ok(())
    }
}
