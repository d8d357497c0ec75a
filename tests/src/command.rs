//! Commands that run to completion.

use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};

/// Runs a command to completion.
///
/// # Errors
/// When it cannot be started or fails; the error has its output.
pub fn output(command: &mut Command) -> Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("{name} cannot be run"))?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{command:?} failed ({}):\n{err}{out}", output.status);
    Ok(output)
}
