//! `sluice keep`.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;

use super::run::RunArgs;
use crate::admin::{self, AdminError};
use crate::keep::control;
use crate::keep::keeper::{self, KeeperSettings};

/// Arguments of `sluice keep`.
#[derive(Debug, Args)]
pub struct KeepArgs {
    /// Seconds in which a new agent must be ready in an upgrade.
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    ready_within: u64,
    /// The agent: `run` and its arguments.
    #[arg(last = true, required = true, value_name = "run …")]
    pub(super) agent: Vec<OsString>,
}

/// Keeps an agent running; `agent` holds its parsed arguments.
pub fn run(args: KeepArgs, agent: &RunArgs) -> anyhow::Result<ExitCode> {
    let settings = KeeperSettings {
        program: program()?,
        arguments: args.agent,
        drain: agent.drain(),
        ready_within: Duration::from_secs(args.ready_within),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(async {
        let socket = match admin::bind_at(control::socket(&agent.state())) {
            Err(AdminError::Taken(path)) => bail!("another `sluice keep` answers on {}", path.display()),
            other => other?,
        };
        let code = keeper::run(settings, socket).await?;
        // Whether it existed or not: no keeper listens on it any more.
        let _ = std::fs::remove_file(control::socket(&agent.state()));
        Ok(code)
    })?;
    Ok(ExitCode::from(code))
}

/// Path of the binary as it was started, so that an upgrade finds the binary installed since; a symbolic link to a
/// versioned file is not resolved.
fn program() -> anyhow::Result<PathBuf> {
    let own = env::current_exe().context("this binary's path cannot be read")?;
    let name = env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let candidates: Vec<PathBuf> = if name.components().count() > 1 {
        vec![name]
    } else {
        env::var_os("PATH").iter().flat_map(env::split_paths).map(|folder| folder.join(&name)).collect()
    };
    let same = |path: &PathBuf| is_same(path, &own);
    Ok(match candidates.into_iter().find(same) {
        Some(path) => std::path::absolute(path)?,
        None => own,
    })
}

fn is_same(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}
