//! `sluice upgrade`.

use std::process::ExitCode;

use anyhow::anyhow;

use crate::cli::arguments::StateArgs;
use crate::keep::control;

/// Has the keeper of a state folder put a new agent in the place of the running one; exit 0 once it serves.
pub fn run(state: &StateArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(control::upgrade(&state.folder()))? {
        Ok(done) => println!("upgraded: {done}"),
        Err(why) => return Err(anyhow!("not upgraded, the running agent stays: {why}")),
    }
    Ok(ExitCode::SUCCESS)
}
