//! Clients and servers in Go, of Debian's libraries: the programs are in `tests/programs`, and are built when the first
//! test needs them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::netns::Netns;
use crate::process::Process;
use crate::wait::PATIENCE;
use crate::{sluice, workspace};

/// Where Debian has libraries in Go, as a `GOPATH`.
const LIBRARIES: &str = "/usr/share/gocode";

/// A program that is built.
pub struct Program(PathBuf);

impl Program {
    /// gRPC streams by grpc-go.
    ///
    /// # Errors
    /// When it cannot be built, with what the compiler says.
    pub fn grpc_streams() -> Result<Program> {
        static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        match BUILT.get_or_init(|| build("grpc_streams").map_err(|error| format!("{error:#}"))) {
            Ok(file) => Ok(Program(file.clone())),
            Err(error) => anyhow::bail!("{error}"),
        }
    }

    /// Starts it as a server and waits until it says that it is ready.
    ///
    /// # Errors
    /// When it does not become ready, with what it printed.
    pub fn server(&self, netns: &Netns, arguments: &[&str]) -> Result<Process> {
        let mut command = netns.command(&self.0)?;
        let mut process = Process::start(&self.name(), command.arg("server").args(arguments))?;
        process.wait_for_line("ready", PATIENCE)?;
        Ok(process)
    }

    /// Runs it as a client to its end; the JSON that it prints.
    ///
    /// # Errors
    /// When it fails, with what it printed.
    pub fn client(&self, netns: &Netns, arguments: &[&str]) -> Result<Value> {
        let output = sluice::output(netns.command(&self.0)?.arg("client").args(arguments))?;
        let text = String::from_utf8(output.stdout)?;
        serde_json::from_str(&text).with_context(|| format!("{} printed no JSON: {text}", self.name()))
    }

    fn name(&self) -> String {
        self.0.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Builds a program beside what cargo builds, and keeps what its libraries are compiled to there.
fn build(name: &str) -> Result<PathBuf> {
    let folder = std::env::current_exe()?;
    // …/target/<profile>/deps/<test>-<hash>
    let folder = folder.ancestors().nth(3).context("a test is not where cargo puts tests")?.join("go");
    let (source, file) = (workspace().join("tests/programs").join(name).with_extension("go"), folder.join(name));
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(&file).arg(source).current_dir(Path::new("/"));
    go.env("GO111MODULE", "off").env("GOPATH", LIBRARIES).env("GOCACHE", folder.join("cache")).env("GOFLAGS", "");
    sluice::output(&mut go)?;
    Ok(file)
}
