//! Clients and servers in Python with Debian's libraries: the programs are in `tests/programs`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::netns::Netns;
use crate::process::Process;
use crate::wait::PATIENCE;
use crate::{command, workspace};

/// Debian's interpreter, which has Debian's libraries; another one may come first in `PATH`.
const PYTHON: &str = "/usr/bin/python3";

/// Starts a server and waits until it reports readiness.
///
/// # Errors
/// When it does not become ready; the error has its output.
pub fn server(netns: &Netns, program: &str, arguments: &[&str]) -> Result<Process> {
    let mut process = Process::start(program, command(netns, program)?.args(arguments))?;
    process.wait_for_line("ready", PATIENCE)?;
    Ok(process)
}

/// Starts a client.
///
/// # Errors
/// When it cannot be started.
pub fn start(netns: &Netns, program: &str, arguments: &[&str]) -> Result<Process> {
    Process::start(program, command(netns, program)?.args(arguments))
}

/// Runs a client to its end; returns its JSON output.
///
/// # Errors
/// When it fails; the error has its output.
pub fn client(netns: &Netns, program: &str, arguments: &[&str]) -> Result<Value> {
    let output = command::output(command(netns, program)?.args(arguments))?;
    let text = String::from_utf8(output.stdout)?;
    serde_json::from_str(&text).with_context(|| format!("{program} printed no JSON: {text}"))
}

fn command(netns: &Netns, program: &str) -> Result<Command> {
    let mut file: PathBuf = workspace().join("tests/programs").join(program);
    file.set_extension("py");
    let mut command = netns.command(PYTHON)?;
    // No bytecode files are written, and lines are printed unbuffered.
    command.args(["-B", "-u"]).arg(file);
    Ok(command)
}
