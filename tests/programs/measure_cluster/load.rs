//! A steady load of requests, from clients in the router's namespace: half of them on connections of their own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tests::cluster::site::Site;
use tests::netns::Netns;

use crate::objects::host;

/// Number of clients, and the interval of each one's requests: 100 a second in all.
const CLIENTS: usize = 4;
const INTERVAL: Duration = Duration::from_millis(40);
/// Maximum time for a response.
const PATIENCE: Duration = Duration::from_secs(10);

/// Results of a load.
#[derive(Default)]
pub struct Served {
    pub requests: usize,
    pub failed: usize,
    pub slowest: Duration,
    /// Why the first one failed.
    pub failure: Option<String>,
}

/// Running clients.
pub struct Load {
    ends: Arc<AtomicBool>,
    /// Held by each client during a request; the number of pauses so far.
    gate: Arc<RwLock<usize>>,
    clients: Vec<JoinHandle<Result<Served>>>,
}

impl Load {
    /// Starts requests for the hosts of these Routes.
    pub fn start(site: &Site, routes: Range<usize>) -> Load {
        let (ends, gate) = (Arc::<AtomicBool>::default(), Arc::<RwLock<usize>>::default());
        let router = SocketAddr::new(site.address(), 8080);
        let start = |client: usize| {
            let (netns, ends, gate) = (site.netns.clone(), Arc::clone(&ends), Arc::clone(&gate));
            let routes = routes.clone();
            thread::spawn(move || netns.run(|| Ok(run(client, router, routes, &ends, &gate))))
        };
        let clients = (0..CLIENTS).map(start).collect();
        Load { ends, gate, clients }
    }

    /// Calls a function while no request is open. Connections that stay are opened anew after it.
    pub fn paused<T>(&self, function: impl FnOnce() -> T) -> T {
        let mut pauses = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        *pauses += 1;
        function()
    }

    /// Ends it.
    pub fn end(self) -> Result<Served> {
        self.ends.store(true, Ordering::Relaxed);
        let mut all = Served::default();
        for client in self.clients {
            let served = client.join().unwrap_or_else(|payload| panic::resume_unwind(payload))?;
            all.requests += served.requests;
            all.failed += served.failed;
            all.slowest = all.slowest.max(served.slowest);
            all.failure = all.failure.or(served.failure);
        }
        Ok(all)
    }
}

fn run(client: usize, router: SocketAddr, routes: Range<usize>, ends: &AtomicBool, gate: &RwLock<usize>) -> Served {
    let mut served = Served::default();
    let mut kept: Option<(usize, TcpStream)> = None;
    let mut next = Instant::now();
    let mut numbers = routes.skip(client).step_by(CLIENTS).cycle();
    while !ends.load(Ordering::Relaxed) {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        next += INTERVAL;
        let host = host(numbers.next().unwrap_or_default());
        let pauses = gate.read().unwrap_or_else(PoisonError::into_inner);
        let connection = kept.take().filter(|(opened, _)| opened == &*pauses).map(|(_, connection)| connection);
        let begin = Instant::now();
        let result = request(connection, router, &host);
        served.requests += 1;
        served.slowest = served.slowest.max(begin.elapsed());
        match result {
            Ok((200, connection)) => kept = (client.is_multiple_of(2)).then_some((*pauses, connection)),
            Ok((status, _)) => fail(&mut served, format!("{host} is answered by {status}")),
            Err(error) => fail(&mut served, format!("{host}: {error:#}")),
        }
    }
    served
}

fn fail(served: &mut Served, failure: String) {
    served.failed += 1;
    served.failure.get_or_insert(failure);
}

/// Sends a request, on a new connection if there is none; returns the status, and the connection after the response.
fn request(connection: Option<TcpStream>, router: SocketAddr, host: &str) -> Result<(u16, TcpStream)> {
    let mut connection = match connection {
        Some(connection) => connection,
        None => {
            let connection = TcpStream::connect_timeout(&router, PATIENCE)?;
            connection.set_read_timeout(Some(PATIENCE))?;
            connection.set_nodelay(true)?;
            connection
        }
    };
    connection.write_all(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())?;
    let head = read_head(&mut connection)?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).context("no status code")?;
    Ok((status, connection))
}

/// Reads a response; returns its head.
fn read_head(connection: &mut TcpStream) -> Result<String> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        let read = connection.read(&mut part)?;
        ensure!(read > 0, "the connection ends after {:?}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&part[..read]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let length = head.lines().find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("content-length:").map(str::trim).map(str::to_owned)
        });
        let length: usize = length.context("a response has a length")?.parse()?;
        if bytes.len() >= end + 4 + length {
            return Ok(head);
        }
    }
}

/// Whether the router responds to a request for a host by 200.
pub fn serves(netns: &Netns, router: SocketAddr, host: &str) -> Result<bool> {
    netns.run(|| Ok(request(None, router, host)?.0 == 200))
}
