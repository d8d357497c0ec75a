//! Measures a router on API servers, a real one and the mock. `cargo xtask bench cluster` runs it, with the release build of
//! `sluice` (`SLUICE_BINARY`) and of the example `readers` of its crate (`SLUICE_READERS`).
//!
//! Argument: the length of the API server's outage in seconds. Prints a line of JSON for each row of the table.

mod agents;
mod change;
mod churn;
mod fleet;
mod large;
mod leaders;
mod load;
mod objects;
mod outage;
mod row;

use std::time::Duration;

use anyhow::{Context, Result};
use objects::{Objects, SERVICES};
use tests::cluster::site::Site;

fn main() -> Result<()> {
    let seconds = std::env::args().nth(1).context("usage: measure-cluster SECONDS")?;
    let outage = Duration::from_secs(seconds.parse().context("a number of seconds")?);
    large::on_the_mock()?;
    churn::measure()?;
    fleet::measure()?;
    let mut site = Site::real()?;
    let objects = Objects { routes: large::REAL, services: SERVICES };
    objects.create(&site)?;
    large::on_a_real_server(&site)?;
    change::measure(&site)?;
    leaders::measure(&site)?;
    outage::measure(&mut site, outage)
}
