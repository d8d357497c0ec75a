//! `cargo xtask dist`: the build to ship. A build that counts which way its code goes is put under the benchmarks' load,
//! and the one to ship is compiled from these counts (profile-guided optimization, the rustc book's chapter of that
//! name): what every request runs through lies together, and is inlined where it pays. Where LLVM's BOLT can be had, its
//! code is laid out once more when it is linked (`layout.rs`).

mod layout;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use layout::Layout;

use crate::process::{self, cargo};
use crate::{ebpf, install};

/// Training loads: typical work of the proxy and the relay, with few hosts and with many.
const LOADS: [&[&str]; 2] = [
    &["bench", "http", "--quick", "--ways", "sluice,sluice-100k"],
    &["bench", "passthrough", "--quick", "--ways", "kernel,relay"],
];

/// Where the build to ship is, once it has been made.
pub fn binary(root: &Path) -> PathBuf {
    process::target(root).join("dist/sluice")
}

/// Builds it.
///
/// # Errors
/// A step fails; an older build is left in place.
pub fn build(root: &Path) -> Result<PathBuf> {
    ensure!(process::is_root(), "the load is made in network namespaces: run it again with sudo");
    install::for_tests(root)?;
    ebpf::build(root)?;
    let compiler = Compiler::ask(root)?;
    let merge = compiler.profdata()?;
    let folder = process::target(root).join("pgo");
    let (counts, merged) = (folder.join("counts"), folder.join("sluice.profdata"));
    if counts.exists() {
        fs::remove_dir_all(&counts).with_context(|| format!("removing {}", counts.display()))?;
    }
    let counting = compiler.sluice(root, &folder, &format!("-Cprofile-generate={}", counts.display()))?;
    under_load(&counting)?;
    ensure!(counts.is_dir(), "the build that counts has written nothing to {}", counts.display());
    process::run(Command::new(merge).arg("merge").arg("-o").arg(&merged).arg(&counts))?;

    let mut flags = format!("-Cprofile-use={}", merged.display());
    let layout = Layout::find();
    if layout.is_some() {
        flags = format!("{flags} {}", layout::LINK);
    }
    let mut built = compiler.sluice(root, &folder, &flags)?;
    if let Some(layout) = layout {
        built = layout.of(&built, &folder.join("layout"), under_load)?;
    }
    let to = binary(root);
    fs::create_dir_all(to.parent().context("a file has a folder")?)?;
    // Renamed into place: the old one may be running.
    let part = to.with_extension("part");
    fs::copy(&built, &part).with_context(|| format!("copying {}", built.display()))?;
    fs::rename(&part, &to).with_context(|| format!("writing {}", to.display()))?;
    Ok(to)
}

/// Runs the training loads against an instrumented build.
fn under_load(counting: &Path) -> Result<()> {
    for load in LOADS {
        eprintln!("xtask: counting under `{}`", load.join(" "));
        process::run(Command::new(env::current_exe()?).args(load).env("SLUICE_BINARY", counting))?;
    }
    Ok(())
}

/// The compiler that cargo uses.
struct Compiler {
    host: String,
    sysroot: PathBuf,
}

impl Compiler {
    fn ask(root: &Path) -> Result<Compiler> {
        let said = |argument: &[&str]| -> Result<String> {
            let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
            let output = Command::new(rustc).args(argument).current_dir(root).output().context("asking rustc")?;
            Ok(String::from_utf8(output.stdout)?)
        };
        let version = said(&["-vV"])?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
        Ok(Compiler { host: host.to_owned(), sysroot: said(&["--print", "sysroot"])?.trim().into() })
    }

    /// The program that merges counts, of the compiler's own LLVM: another may not read them.
    fn profdata(&self) -> Result<PathBuf> {
        let program = self.sysroot.join("lib/rustlib").join(&self.host).join("bin/llvm-profdata");
        if !program.is_file() {
            eprintln!("xtask: rustup component add llvm-tools");
            process::run(Command::new("rustup").args(["component", "add", "llvm-tools"]))
                .context("without rustup's llvm-tools there is nothing that reads the compiler's counts")?;
        }
        ensure!(program.is_file(), "{} is not there, though rustup has llvm-tools", program.display());
        Ok(program)
    }

    /// `sluice` with more flags. A target that is named keeps the flag from build scripts and macros.
    fn sluice(&self, root: &Path, folder: &Path, more: &str) -> Result<PathBuf> {
        let flags = env::var("RUSTFLAGS").unwrap_or_default();
        let mut command = cargo(root);
        command.args(["build", "--locked", "--release", "--package", "router", "--bin", "sluice"]);
        command.args(["--target", &self.host, "--target-dir"]).arg(folder);
        process::run(command.env("RUSTFLAGS", format!("{flags} {more}")))?;
        Ok(folder.join(&self.host).join("release/sluice"))
    }
}
