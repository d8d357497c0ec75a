//! `sluice`: see `sluice --help`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;
use router::cli::{self, Cli};

/// With the system's allocator a request takes twice as long once the heap has held a table of 100,000 objects.
#[cfg(feature = "allocator")]
#[global_allocator]
static ALLOCATOR: router_sys::allocator::ThreadCache<MiMalloc> = router_sys::allocator::ThreadCache(MiMalloc);
#[cfg(not(feature = "allocator"))]
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    match cli::run(Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("sluice: {error:#}");
            ExitCode::FAILURE
        }
    }
}
