//! Building the kernel program with whichever of two toolchains is there.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{btf, process};

/// Target triple of the kernel program.
const TARGET: &str = "bpfel-unknown-none";
/// Version of bpf-linker that bundles LLVM; later ones need an installed LLVM.
pub const BPF_LINKER: &str = "0.10.3";

/// File of the dispatcher of libxdp's protocol in `target/bpf`.
const DISPATCHER: &str = "dispatcher.bpf.o";

/// What can compile for [`TARGET`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toolchain {
    /// Debian's `rustc-web` with the prebuilt core of `libstd-rust-web-dev-bpf`.
    Debian,
    /// A rustup nightly with `rust-src`: core is built from source.
    Nightly,
}

impl Toolchain {
    /// The first one that is there. `SLUICE_BPF_TOOLCHAIN=debian|nightly` chooses.
    ///
    /// # Errors
    /// One line that says what to install.
    pub fn find() -> Result<Toolchain> {
        let found = match env::var("SLUICE_BPF_TOOLCHAIN").ok().as_deref() {
            Some("debian") => debian_is_there().then_some(Toolchain::Debian),
            Some("nightly") => nightly_is_there().then_some(Toolchain::Nightly),
            Some(other) => bail!("SLUICE_BPF_TOOLCHAIN is `{other}`; use `debian` or `nightly`"),
            None if debian_is_there() => Some(Toolchain::Debian),
            None => nightly_is_there().then_some(Toolchain::Nightly),
        };
        found.context(
            "no toolchain for the kernel program: run `cargo xtask run` as root on Debian to install one, or \
             `apt-get install rustc-web libstd-rust-web-dev-bpf` (1.87 or newer, in the security archive), or \
             `rustup toolchain install nightly --component rust-src`",
        )
    }
}

impl Toolchain {
    /// `cargo build` or `clippy` of the kernel program for its target.
    fn cargo(self, root: &Path, command: &str) -> Command {
        let mut cargo = match (self, command) {
            // cargo-clippy takes the driver that lies beside it.
            (Toolchain::Debian, "clippy") => Command::new("/usr/bin/cargo-clippy"),
            _ => Command::new("cargo"),
        };
        // The cargo that runs this program has set its own toolchain and flags; this build has others.
        for name in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"]
        {
            cargo.env_remove(name);
        }
        match self {
            Toolchain::Debian => cargo.env("RUSTC", debian_rustc()).env("RUSTC_BOOTSTRAP", "1").arg(command),
            Toolchain::Nightly => cargo.args(["+nightly", command, "-Zbuild-std=core"]),
        };
        cargo.args(["--release", "--locked", "--target", TARGET]);
        let flags = "--cfg=bpf_target_arch=\"x86_64\" -Cdebuginfo=2 -Clink-arg=--btf -Clinker=bpf-linker";
        cargo.env("CARGO_TARGET_BPFEL_UNKNOWN_NONE_RUSTFLAGS", flags);
        cargo.env("CARGO_TARGET_DIR", root.join("target/ebpf")).current_dir(root.join("router-ebpf"));
        cargo
    }
}

/// What the kernel program is built as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BpfObject {
    /// The one to run.
    Plain,
    /// The one with log lines (feature `log`), for `sluice run --kernel-log`.
    Logging,
}

impl BpfObject {
    const ALL: [BpfObject; 2] = [BpfObject::Plain, BpfObject::Logging];

    /// Its file in `target/bpf`.
    fn file(self) -> &'static str {
        match self {
            BpfObject::Plain => "sluice.bpf.o",
            BpfObject::Logging => "sluice-log.bpf.o",
        }
    }

    fn features(self) -> &'static [&'static str] {
        match self {
            BpfObject::Plain => &[],
            BpfObject::Logging => &["--features", "log"],
        }
    }
}

/// Lints the kernel program for its target.
///
/// # Errors
/// When there is a warning, or no toolchain with clippy.
pub fn lint(root: &Path) -> Result<()> {
    BpfObject::ALL.into_iter().try_for_each(|object| {
        let mut clippy = Toolchain::find()?.cargo(root, "clippy");
        process::run(clippy.args(object.features()).args(["--", "--deny", "warnings"]))
    })
}

/// Whether bpf-linker can be run.
pub fn linker_is_there() -> bool {
    process::succeeds(Command::new("bpf-linker").arg("--version"))
}

/// Builds the kernel program to `target/bpf/sluice.bpf.o`.
///
/// # Errors
/// When a tool is missing (with what to install), or the build fails.
pub fn build(root: &Path) -> Result<PathBuf> {
    build_as(root, BpfObject::Plain)
}

/// Builds it as all that it can be built as, to a file each.
///
/// # Errors
/// As [`build`].
pub fn build_all(root: &Path) -> Result<Vec<PathBuf>> {
    BpfObject::ALL.into_iter().map(|object| build_as(root, object)).collect()
}

fn build_as(root: &Path, object: BpfObject) -> Result<PathBuf> {
    let toolchain = Toolchain::find()?;
    ensure!(linker_is_there(), "bpf-linker is missing: run `cargo install bpf-linker --version {BPF_LINKER} --locked`");
    let status =
        toolchain.cargo(root, "build").args(object.features()).status().context("cargo could not be started")?;
    ensure!(status.success(), "building the kernel program failed (toolchain: {toolchain:?})");

    let built = |name: &str| {
        let built = root.join("target/ebpf").join(TARGET).join("release").join(name);
        fs::read(&built).with_context(|| format!("cannot read {}", built.display()))
    };
    let folder = root.join("target/bpf");
    fs::create_dir_all(&folder)?;
    put(&folder.join(DISPATCHER), &built("dispatcher")?)?;
    let to = folder.join(object.file());
    put(&to, &btf::mark_text(&built("sluice")?).context("marking text fields in the BTF failed")?)?;
    Ok(to)
}

/// Writes an object, unless it is there already.
fn put(to: &Path, object: &[u8]) -> Result<()> {
    // An unchanged object keeps its time stamp, so that nothing that embeds it is built again.
    if fs::read(to).is_ok_and(|old| old == object) {
        return Ok(());
    }
    fs::write(to, object).with_context(|| format!("cannot write {}", to.display()))
}

fn debian_rustc() -> &'static str {
    "/usr/bin/rustc"
}

/// Asked of the compiler itself: it must be new enough and have a core for the target.
fn debian_is_there() -> bool {
    let Ok(output) = Command::new(debian_rustc()).args(["--print", "sysroot"]).output() else { return false };
    let sysroot = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Path::new(&sysroot).join("lib/rustlib").join(TARGET).join("lib").is_dir()
}

fn nightly_is_there() -> bool {
    let Ok(output) = Command::new("rustc").args(["+nightly", "--print", "sysroot"]).output() else { return false };
    let sysroot = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success() && Path::new(&sysroot).join("lib/rustlib/src/rust/library/core/Cargo.toml").is_file()
}
