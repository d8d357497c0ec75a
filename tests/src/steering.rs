//! The stage of the stories about steered connections: a client, a router and a backend, each on a machine of its own
//! or all on one loopback; and checks that the kernel, not the agent, carries a connection.

mod alike;
mod checks;
mod setup;
mod stage;

use anyhow::Result;

use crate::hello::client_hello;

pub use alike::{Carrier, Seen, alike};
pub use setup::{BACK, BACKEND_PORT, FRONT, Family, HOST, ROUTER_PORT, Setup};
pub use stage::Stage;

/// A hello for the stage's route.
///
/// # Errors
/// Never, in effect.
pub fn hello() -> Result<Vec<u8>> {
    client_hello(HOST)
}
