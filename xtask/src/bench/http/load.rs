//! Load that no tool makes: full TLS handshakes with names that change, new connections in clear text, and WebSocket
//! messages. This program again, in a release build, as client or backend in a namespace of its own. Blocking sockets and a
//! thread for each connection, the same for every way.

use std::net::SocketAddrV4;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};

use self::client::Client;

pub mod client;
pub mod handshakes;
pub mod outcome;
pub mod websocket;

/// Arguments of the hidden subcommand.
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Echo WebSocket messages until terminated.
    Echo {
        #[arg(long)]
        listen: SocketAddrV4,
    },
    /// Connect, full TLS 1.3 handshake, one request, and again.
    Handshakes {
        #[command(flatten)]
        client: Client,
        /// A file with a name a line, which connections ask for in turn.
        #[arg(long)]
        names: PathBuf,
    },
    /// Connect, one request in clear text, and again.
    ClearText {
        #[command(flatten)]
        client: Client,
        /// Host that is asked for.
        #[arg(long)]
        name: String,
    },
    /// Messages there and back over WebSockets.
    Messages {
        #[command(flatten)]
        client: Client,
        /// Host that is asked for.
        #[arg(long)]
        name: String,
    },
}

/// Plays a role; a client prints its [`outcome::Outcome`].
pub fn run(arguments: &Arguments) -> Result<()> {
    let outcome = match &arguments.role {
        Role::Echo { listen } => return websocket::serve(*listen),
        Role::Handshakes { client, names } => {
            let text = std::fs::read_to_string(names).with_context(|| format!("reading {}", names.display()))?;
            handshakes::run(*client, &text.lines().collect::<Vec<_>>())?
        }
        Role::ClearText { client, name } => handshakes::run_in_clear_text(*client, name)?,
        Role::Messages { client, name } => websocket::run(*client, name)?,
    };
    println!("{}", outcome.line());
    Ok(())
}
