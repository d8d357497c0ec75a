//! `sluice upgrade`.

use std::process::ExitCode;

use anyhow::anyhow;

use crate::cli::arguments::StateArgs;
use crate::keep::control;

/// Requests an upgrade from the keeper of a state folder; exit 0 once the new agent serves.
pub fn run(state: &StateArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(control::upgrade(&state.folder()))? {
        Ok(done) => println!("upgraded: {done}"),
        Err(why) => return Err(anyhow!("not upgraded, the running agent stays: {why}")),
    }
    Ok(ExitCode::SUCCESS)
}
