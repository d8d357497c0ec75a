//! Go's command.
//!
//! The `go` on the path is taken if it is as new as a module says. An older one, such as Debian's, downloads the release
//! that `tests/cluster/toolchain` requires: Go's releases are also modules (go.dev/doc/toolchain), so they come from the
//! user's module proxy into the user's module cache, and `go.sum` has their hashes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::{image, install, process};

/// A Go that is new enough.
pub struct Go {
    program: PathBuf,
}

/// A module, as far as `go mod download -json` prints it.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Module {
    /// Its path.
    pub path: String,
    /// Its unpacked files.
    pub dir: PathBuf,
}

impl Go {
    /// The one for a module: on the path, or downloaded. Debian's is installed if there is none.
    ///
    /// # Errors
    /// When there is no `go`, it cannot be installed, or the release is neither cached nor to be had.
    pub fn find(root: &Path, module: &Path) -> Result<Go> {
        install::go()?;
        let on_path = Go { program: "go".into() };
        let (has, needs) = (on_path.version()?, needed(&file(module)?)?);
        if numbers(&has) >= numbers(&needs) {
            return Ok(on_path);
        }
        let module = root.join("tests/cluster/toolchain");
        let release = release(&file(&module)?)?;
        eprintln!("xtask: {has} is older than {needs}: using {release}");
        let [toolchain] = &on_path.download(&module, &[release])?[..] else {
            anyhow::bail!("`go mod download` of one module says nothing of it, or of several");
        };
        allow_execution(&toolchain.dir)?;
        Ok(Go { program: toolchain.dir.join("bin/go") })
    }

    /// `go` in a module whose `go.mod` and `go.sum` are final, without C. It is this release that runs.
    pub fn command(&self, module: &Path) -> Command {
        let mut go = Command::new(&self.program);
        go.current_dir(module).stdin(Stdio::null());
        go.env("GO111MODULE", "on")
            .env("GOFLAGS", "-mod=readonly")
            .env("GOTOOLCHAIN", "local")
            .env("GOWORK", "off")
            .env("CGO_ENABLED", "0")
            .env_remove("GOROOT");
        go
    }

    /// Downloads modules, each `PATH@VERSION`, whose hashes the `go.sum` of `module` has.
    ///
    /// # Errors
    /// When one is neither cached nor to be had, or has another hash.
    pub fn download(&self, module: &Path, modules: &[String]) -> Result<Vec<Module>> {
        let mut download = self.command(module);
        download.args(["mod", "download", "-json"]).args(modules);
        let output = download.output().context("`go` could not be started")?;
        let said = [String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout)].concat();
        ensure!(output.status.success(), "`{}` failed: {}", process::text(&download), said.trim());
        let found = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Module>();
        found.collect::<Result<_, _>>().context("reading what `go mod download` says")
    }

    /// Its version: `go1.26.8`.
    fn version(&self) -> Result<String> {
        let mut go = self.command(Path::new("/"));
        let output = go.args(["env", "GOVERSION"]).output().context("`go` could not be started")?;
        ensure!(output.status.success(), "`go env GOVERSION` failed ({})", output.status);
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }
}

fn file(module: &Path) -> Result<String> {
    let file = module.join("go.mod");
    fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))
}

/// The version that a `go.mod` needs: `go1.26.0`.
fn needed(modules: &str) -> Result<String> {
    let version = modules.lines().find_map(|line| line.strip_prefix("go "));
    Ok(format!("go{}", version.context("go.mod says no version of Go")?))
}

/// The release for this machine that a `go.mod` requires, as `PATH@VERSION`.
fn release(modules: &str) -> Result<String> {
    let version = modules.lines().find_map(|line| line.strip_prefix("require golang.org/toolchain "));
    let version = version.and_then(|version| version.strip_suffix("amd64"));
    let version = version.context("go.mod requires no golang.org/toolchain for amd64")?;
    Ok(format!("golang.org/toolchain@{version}{}", image::architecture()))
}

/// Major and minor version and patch level of a Go; a missing one is 0, and so is that of a release candidate.
fn numbers(version: &str) -> [u32; 3] {
    let mut numbers = version.trim_start_matches(|c: char| !c.is_ascii_digit()).split('.').map(|part| {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        part[..end].parse().unwrap_or(0)
    });
    [(); 3].map(|()| numbers.next().unwrap_or(0))
}

/// Makes a toolchain's programs executable, as Go's own command does: the files of modules have no modes.
fn allow_execution(toolchain: &Path) -> Result<()> {
    let mut folders = vec![toolchain.join("bin"), toolchain.join("pkg/tool")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let mode = fs::metadata(&path)?.permissions().mode();
            if mode & 0o111 == 0 {
                fs::set_permissions(&path, fs::Permissions::from_mode(mode | 0o111))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn versions_are_ordered_by_their_numbers() {
        let ordered = ["go1.19", "go1.19.8", "go1.21rc2", "go1.21.10", "go1.26.0", "go1.26.8", "devel go1.27-1c2d3e"];
        assert!(ordered.is_sorted_by(|one, next| numbers(one) < numbers(next)));
        assert_eq!(numbers(&needed("module m\n\ngo 1.26.0\n").unwrap()), [1, 26, 0]);
        assert!(needed("module m\n").is_err());
    }

    #[test]
    fn the_required_release_is_that_of_this_machine() {
        let required = |name: &str| format!("go 1.19\n\nrequire golang.org/toolchain v0.0.1-go1.26.8.linux-{name}\n");
        let expected = format!("golang.org/toolchain@v0.0.1-go1.26.8.linux-{}", image::architecture());
        assert_eq!(release(&required("amd64")).unwrap(), expected);
        assert!(release(&required("other")).is_err());
    }

    #[test]
    fn programs_of_a_toolchain_become_executable() {
        let folder = TempDir::new().unwrap();
        let tools = folder.path().join("pkg/tool/linux");
        fs::create_dir_all(&tools).unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        let files = [folder.path().join("bin/go"), tools.join("compile"), folder.path().join("VERSION")];
        for file in &files {
            fs::write(file, "").unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(0o444)).unwrap();
        }
        allow_execution(folder.path()).unwrap();
        let modes = files.map(|file| fs::metadata(file).unwrap().permissions().mode() & 0o777);
        assert_eq!(modes, [0o555, 0o555, 0o444]);
    }
}
