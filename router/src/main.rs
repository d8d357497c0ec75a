//! `sluice`: see `sluice --help`.

use std::process::ExitCode;

use clap::Parser;
use router::cli::{self, Cli};

fn main() -> ExitCode {
    match cli::run(Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("sluice: {error:#}");
            ExitCode::FAILURE
        }
    }
}
