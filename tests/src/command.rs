//! Commands that run to completion.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};

/// Runs a command to completion.
///
/// # Errors
/// When it cannot be started or fails; the error has its output.
pub fn output(command: &mut Command) -> Result<Output> {
    let output = command.output().with_context(|| format!("{:?} cannot be run", command.get_program()))?;
    succeeded(command, output)
}

/// Runs a command to completion with a text as its input, such as `nft -f -`.
///
/// # Errors
/// When it cannot be started or fails; the error has its output.
pub fn fed(command: &mut Command, text: &str) -> Result<Output> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("{:?} cannot be run", command.get_program()))?;
    child.stdin.take().context("no standard input")?.write_all(text.as_bytes())?;
    let output = child.wait_with_output()?;
    succeeded(command, output)
}

fn succeeded(command: &Command, output: Output) -> Result<Output> {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{command:?} failed ({}):\n{err}{out}", output.status);
    Ok(output)
}
