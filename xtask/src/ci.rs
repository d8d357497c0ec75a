//! `cargo xtask ci`: the checks that a change must pass.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::Result;

use crate::process::{self, cargo};
use crate::{ebpf, install, test, tidy};

/// The workspace, and those that it excludes: other targets, other profiles.
const MANIFESTS: [&str; 3] = ["Cargo.toml", "router-ebpf/Cargo.toml", "router-common/fuzz/Cargo.toml"];

/// The quick steps first. Lints and documentation share what cargo checks for them.
pub fn run(root: &Path, with_tests: bool) -> Result<()> {
    step("formatting", || formatting(root))?;
    step("tidy", || tidy::run(root, &tidy::Arguments::default()))?;
    if with_tests {
        test::prepare(root)?
    } else {
        install::for_run(root)?
    }
    step("lints", || lints(root))?;
    step("documentation", || documentation(root))?;
    step("dependency policy", || dependencies(root))?;
    if with_tests { step("tests", || test::run(root, &[])) } else { Ok(()) }
}

/// Names a step, and says how long it took.
fn step(name: &str, run: impl FnOnce() -> Result<()>) -> Result<()> {
    eprintln!("xtask: {name}");
    let begin = Instant::now();
    run()?;
    eprintln!("xtask: {name}: passed in {:.1} s", begin.elapsed().as_secs_f32());
    Ok(())
}

fn formatting(root: &Path) -> Result<()> {
    MANIFESTS.iter().try_for_each(|manifest| {
        process::run(cargo(root).args(["fmt", "--all", "--check", "--manifest-path", manifest]))
    })
}

fn lints(root: &Path) -> Result<()> {
    let target = process::target(root);
    let lint = |arguments: &[&str]| {
        let mut command = cargo(root);
        command.args(["clippy", "--locked", "--all-targets"]).args(arguments).args(["--", "--deny", "warnings"]);
        // Checked and never linked: no C++ compiler builds libFuzzer for it.
        command.env("CUSTOM_LIBFUZZER_PATH", target.join("libfuzzer.a")).env("CARGO_TARGET_DIR", &target);
        process::run(&mut command)
    };
    lint(&[&["--workspace"][..], &process::TESTED_FEATURES].concat())?;
    install::for_lints()?;
    ebpf::lint(root)?;
    lint(&["--manifest-path", "router-common/fuzz/Cargo.toml"])
}

/// With private items, for developers.
fn documentation(root: &Path) -> Result<()> {
    let flags = "--deny warnings --allow rustdoc::private_intra_doc_links";
    let document = ["doc", "--locked", "--workspace", "--no-deps", "--document-private-items"];
    process::run(cargo(root).args(document).args(process::TESTED_FEATURES).env("RUSTDOCFLAGS", flags))
}

/// Bans, licences and sources always; advisories where their database can be had.
fn dependencies(root: &Path) -> Result<()> {
    let program = install::cargo_deny(root)?;
    let deny = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.current_dir(root).args(arguments);
        command
    };
    let has_advisories = process::succeeds(&mut deny(&["fetch", "db"]));
    for manifest in MANIFESTS {
        let of_this = ["--locked", "--manifest-path", manifest];
        process::run(deny(&of_this).args(["check", "--hide-inclusion-graph", "bans", "licenses", "sources"]))?;
        if has_advisories {
            process::run(deny(&of_this).args(["--offline", "check", "advisories"]))?;
        }
    }
    if !has_advisories {
        eprintln!(
            "xtask: NOTICE: the advisory database cannot be fetched (`cargo deny fetch db`); advisories are NOT checked"
        );
    }
    Ok(())
}
