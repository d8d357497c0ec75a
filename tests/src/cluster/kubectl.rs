//! `kubectl`, inside a namespace.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::built::built;
use crate::command;
use crate::netns::Netns;

/// `kubectl` with a kubeconfig; nothing of the caller's home is used.
///
/// # Errors
/// When it has not been built, or the namespace cannot be handed on.
pub fn command(netns: &Netns, kubeconfig: &Path) -> Result<Command> {
    let mut command = netns.command(built("kube")?)?;
    command.arg("kubectl").arg("--kubeconfig").arg(kubeconfig).env("KUBECACHEDIR", kubeconfig.with_extension("cache"));
    Ok(command)
}

/// Runs it; returns what it prints.
///
/// # Errors
/// When it fails; the error has its output.
pub fn run(netns: &Netns, kubeconfig: &Path, arguments: &[&str]) -> Result<String> {
    let output = command::output(command(netns, kubeconfig)?.args(arguments))?;
    Ok(String::from_utf8(output.stdout)?)
}

/// Runs it with a text as its input; returns what it prints.
///
/// # Errors
/// When it fails; the error has its output.
pub fn feed(netns: &Netns, kubeconfig: &Path, arguments: &[&str], text: &str) -> Result<String> {
    let output = command::fed(command(netns, kubeconfig)?.args(arguments), text)?;
    Ok(String::from_utf8(output.stdout)?)
}
