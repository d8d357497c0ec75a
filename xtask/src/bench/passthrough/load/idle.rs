//! A client that holds connections.

use std::io::{self, BufRead, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4};

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::connection::open;
use super::hello::{Hello, Order};
use super::protocol::Load;

/// What to hold.
#[derive(Args)]
pub struct Arguments {
    /// Destinations; connections use them in turn.
    #[arg(long, value_delimiter = ',', required = true)]
    to: Vec<SocketAddrV4>,
    /// The client's address.
    #[arg(long)]
    from: Ipv4Addr,
    #[arg(long)]
    connections: usize,
}

/// Opens them and prints `open`; after a line on stdin sends a byte on each, waits for it to come back, and prints
/// `alive`; after another line ends.
pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { to, from, connections } = arguments;
    let bytes = Hello::One.bytes(Order { load: Load::Idle, milliseconds: 0 });
    let mut streams = Vec::with_capacity(*connections);
    for number in 0..*connections {
        let to = to[number % to.len()];
        let stream = open(to, Some(SocketAddrV4::new(*from, 0)), Hello::One, &bytes)
            .with_context(|| format!("connection {number} from {from} to {to}"))?;
        streams.push(stream);
    }
    let mut lines = io::stdin().lock().lines();
    println!("open");
    lines.next().transpose()?;
    for (number, stream) in streams.iter_mut().enumerate() {
        let mut message = [b'a'];
        stream.write_all(&message)?;
        stream.read_exact(&mut message).with_context(|| format!("connection {number} from {from} is not alive"))?;
        ensure!(message == [b'a'], "connection {number} from {from} answers with another byte");
    }
    println!("alive");
    lines.next().transpose()?;
    Ok(())
}
