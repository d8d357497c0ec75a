//! Routes to which clients make new connections.

use std::fs;
use std::net::SocketAddrV4;

use anyhow::Result;

use crate::bench::http::load::outcome::Outcome;
use crate::bench::network::{CLEAR_PORT, Network};
use crate::bench::passthrough::groups::Measure;
use crate::bench::passthrough::instance::{CLEAR, EDGE};
use crate::bench::passthrough::load::hello::Hello;
use crate::bench::passthrough::load::protocol::Load;
use crate::bench::passthrough::ways::{Lane, Way};
use crate::bench::tools::Tools;
use crate::process;

/// Milliseconds of one measurement.
const TIME: u32 = 400;

/// What a client asks for on a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// A hello to a backend, which the kernel carries.
    Passthrough,
    /// A full handshake with the proxy, and one request.
    Edge,
    /// One request to the proxy.
    ClearText,
}

impl Route {
    /// Those that are measured on a way.
    pub fn of(way: Way) -> &'static [Route] {
        match way {
            Way::CookiesGeneric | Way::CookiesNative => &[Route::Passthrough, Route::Edge, Route::ClearText],
            _ => &[Route::Passthrough],
        }
    }

    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Route::Passthrough => "passthrough",
            Route::Edge => "edge",
            Route::ClearText => "clear text",
        }
    }

    /// Where its clients connect to.
    pub fn listener(self, lane: &Lane) -> SocketAddrV4 {
        let mut listener = lane.middle.listener();
        if self == Route::ClearText {
            listener.set_port(CLEAR_PORT);
        }
        listener
    }

    /// Makes connections for [`TIME`], so many at a time; returns how many a second, and how many failed.
    pub fn connect(self, tools: &Tools, network: &Network, lane: &Lane, connections: usize) -> Result<(f64, u64)> {
        if self == Route::Passthrough {
            let clients = Measure { load: Load::Connect, connections, hello: Hello::One };
            let amount = lane.carry(tools, network, clients, TIME)?;
            return Ok((amount.rate(), amount.errors));
        }
        let mut command = network.client.command(&tools.load)?;
        command.arg("http-load");
        if self == Route::Edge {
            let names = tools.work.join("names");
            fs::write(&names, EDGE)?;
            command.arg("handshakes").arg("--names").arg(names);
        } else {
            command.args(["clear-text", "--name", CLEAR]);
        }
        command.args(["--to", &self.listener(lane).to_string()]);
        command.args(["--connections", &connections.to_string(), "--milliseconds", &TIME.to_string()]);
        let outcome = Outcome::read(&process::output(&mut command)?)?;
        Ok((outcome.rate(), outcome.errors))
    }
}
