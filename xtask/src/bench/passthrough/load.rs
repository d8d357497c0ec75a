//! The load tools: this program again, in a release build, as backend or client in a namespace of its own. Blocking
//! sockets and a thread for each connection, the same for every way, so that what differs is the router.

use std::net::SocketAddrV4;

use anyhow::Result;
use clap::{Args, Subcommand};

pub mod backend;
pub mod client;
mod connection;
pub mod flood;
pub mod hello;
pub mod idle;
pub mod protocol;

/// Arguments of the hidden subcommand.
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Answer connections until terminated.
    Backend {
        #[arg(long)]
        listen: SocketAddrV4,
    },
    /// Make load for a time, and print the amount carried.
    Client(client::Arguments),
    /// Send SYNs from many sources.
    Flood(flood::Arguments),
    /// Hold connections, and report on stdout for each line on stdin.
    Idle(idle::Arguments),
}

/// Plays a role.
pub fn run(arguments: Arguments) -> Result<()> {
    match arguments.role {
        Role::Backend { listen } => backend::run(listen),
        Role::Client(arguments) => client::run(&arguments),
        Role::Flood(arguments) => flood::run(&arguments),
        Role::Idle(arguments) => idle::run(&arguments),
    }
}
