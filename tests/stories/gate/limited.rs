//! A router whose clients may have so many open connections, and clients of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tests::folder;
use tests::hello::client_hello;
use tests::pki::Ca;
use tests::sluice::DataPath;
use tests::steering::{BACK, BACKEND_PORT, HOST, Setup, Stage};
use tests::wait::{PATIENCE, wait_until};

use super::common::{UNANSWERED, guard, is_attached};

const EDGE: &str = "edge.apps.test";
const CLEAR: &str = "clear.apps.test";
const CARRIED: &str = "carried.apps.test";
const CLEAR_PORT: u16 = 8080;
/// What the backend answers to whatever it gets.
pub const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nk";

/// Routes, by what carries their connections.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// TLS passthrough: the kernel.
    Passthrough,
    /// TLS that the router terminates.
    Edge,
    /// Clear text, proxied.
    Clear,
    /// Clear text that the kernel carries.
    CarriedClear,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Passthrough, Kind::Edge, Kind::Clear, Kind::CarriedClear];

    pub fn address(self, stage: &Stage) -> SocketAddr {
        match self {
            Kind::Passthrough | Kind::Edge => stage.address,
            Kind::Clear | Kind::CarriedClear => SocketAddr::new(stage.address.ip(), CLEAR_PORT),
        }
    }

    /// What a client sends first; whatever comes back, it is let in.
    pub fn question(self) -> Result<Vec<u8>> {
        let request = |host: &str| format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes();
        Ok(match self {
            Kind::Passthrough => client_hello(HOST)?,
            Kind::Edge => client_hello(EDGE)?,
            Kind::Clear => request(CLEAR),
            Kind::CarriedClear => request(CARRIED),
        })
    }
}

/// A router with routes of each kind to a backend that answers.
pub struct Limited {
    pub stage: Stage,
    is_over: Arc<AtomicBool>,
    backend: Option<thread::JoinHandle<()>>,
}

impl Limited {
    pub fn new(setup: Setup, mode: &'static str) -> Result<Limited> {
        let arguments = ["--xdp", mode].map(str::to_owned).to_vec();
        let stage = Stage::new(DataPath::Kernel, Setup { arguments, ..setup })?;
        let certificate = Ca::new()?.leaf(EDGE)?;
        let forwarded = [("haproxy.router.openshift.io/set-forwarded-headers", "never")];
        let routes = [
            folder::route("edge", EDGE, "raw", &folder::terminated("edge", &certificate, "")),
            folder::route("clear", CLEAR, "raw", ""),
            folder::annotated(&folder::route("carried", CARRIED, "raw", ""), &forwarded),
        ];
        stage.place("routes.yaml", &routes.concat())?;
        let is_over = Arc::new(AtomicBool::new(false));
        let backend = thread::spawn({
            let (listener, is_over) = (stage.listener.try_clone()?, Arc::clone(&is_over));
            move || answer(&listener, &is_over)
        });
        Ok(Limited { stage, is_over, backend: Some(backend) })
    }

    pub fn limit(&self, most: u32, more: &str, mode: &'static str) -> Result<()> {
        let policy = format!("gate.sluice.dev/connections-per-source: \"{most}\"{more}");
        let in_force = |gate: &Value| {
            // `auto` leaves veth pairs alone.
            let is_where_it_should_be =
                if mode == "auto" { gate["attached"] == json!([]) } else { is_attached(mode)(gate) };
            is_where_it_should_be && gate["sweepsOnly"].is_null()
        };
        guard(&self.stage, &policy, in_force)?;
        let is_there = || {
            let policies = self.stage.sluice.dump("gate_policies");
            policies.is_ok_and(|rows| {
                rows.as_array().is_some_and(|rows| rows.iter().any(|row| row["sourceConnections"] == json!(most)))
            })
        };
        wait_until("the limit is in the maps", PATIENCE, is_there)?;
        // The routes serve.
        let routes =
            || self.stage.sluice.get("routes").is_ok_and(|rows| rows.to_string().matches("apps.test").count() >= 4);
        wait_until("the routes are there", PATIENCE, routes).map(drop)
    }

    /// Numbers of counted connections: of their entries, and of all sources.
    pub fn counted(&self) -> Result<(usize, u64)> {
        let rows = |map: &str| {
            let rows = self.stage.sluice.dump(map)?;
            rows.as_array().cloned().with_context(|| format!("{rows}"))
        };
        let sum = rows("gate_counts")?.iter().filter_map(|row| row["connections"].as_u64()).sum();
        Ok((rows("gate_conns")?.len(), sum))
    }

    pub fn has(&self, count: usize) -> Result<()> {
        let is_so = || self.counted().is_ok_and(|counted| counted == (count, count as u64));
        wait_until(&format!("{count} connections are counted"), PATIENCE, is_so)
            .map(drop)
            .with_context(|| format!("{:?} {:?}", self.counted(), self.stage.sluice.dump("gate_conns")))
    }

    /// A client that is let in; `None`: it got no answer.
    pub fn enters(&self, kind: Kind) -> Result<Option<TcpStream>> {
        let (address, question) = (kind.address(&self.stage), kind.question()?);
        let Ok(mut client) = self.stage.client.run(|| Ok(TcpStream::connect_timeout(&address, UNANSWERED)))? else {
            return Ok(None);
        };
        // The host is busy with other stories: who is let in may be answered late.
        client.set_read_timeout(Some(5 * UNANSWERED))?;
        client.write_all(&question)?;
        if client.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {
            return Ok(Some(client));
        }
        // Else its kernel sends the question again and again, and gets in once there is a place.
        reset_when_dropped(&client)?;
        Ok(None)
    }

    /// Kills the agents, and returns which they were.
    pub fn kill_agents(&self) -> Result<Vec<u32>> {
        let agents = self.stage.sluice.agents()?;
        for agent in &agents {
            kill_process(Pid::from_raw(i32::try_from(*agent)?).context("a process id")?, Signal::KILL)?;
        }
        Ok(agents)
    }

    /// A client that is let in at last.
    pub fn enters_at_last(&self, kind: Kind) -> Result<TcpStream> {
        let mut client = None;
        wait_until("a client is let in", PATIENCE, || {
            client = self.enters(kind).ok().flatten();
            client.is_some()
        })?;
        client.context("a client")
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // It wakes the backend.
        let address = SocketAddr::new(self.stage.family.address(BACK, 2), BACKEND_PORT);
        let _ = self.stage.backend.run(|| Ok(TcpStream::connect_timeout(&address, PATIENCE)?));
        let _ = self.backend.take().map(thread::JoinHandle::join);
    }
}

/// Answers every connection, and closes it when its client has. One that closes first (the client sends `x`) is closed.
fn answer(listener: &TcpListener, is_over: &AtomicBool) {
    while let Ok((mut stream, _)) = listener.accept() {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while stream.read(&mut buffer).is_ok_and(|read| read > 0 && buffer[0] != b'x') {
                if stream.write_all(ANSWER).is_err() {
                    break;
                }
            }
        });
    }
}

pub fn reset_when_dropped(stream: &TcpStream) -> Result<()> {
    Ok(socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO))?)
}
