//! Continuous transfers, and new connections at a steady rate.

mod https;

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sha2::{Digest, Sha256};
use tests::hello::{client_hello, short_hello};
use tests::stream::{self, Checksum, Content, read_some};
use tests::wait::{self, PATIENCE};

use super::pace;
use super::stage::{RAW, ROUTER, Stage};
use https::Https;

/// Continuous transfers, half of them to the client.
pub const TRANSFERS: usize = 200;

/// Clients that open new connections: the maximum number of concurrent ones.
const CLIENTS: u64 = 16;
/// Bytes of one write. Odd, so that lost or duplicated bytes show.
const PIECE: u64 = 65_521;
/// Interval at which a transfer moves a piece.
const PAUSE: Duration = Duration::from_millis(250);
/// Bytes of a download; nginx sends two megabytes a second.
const DOWNLOAD: u64 = 10 << 20;

/// Purpose of a connection through the passthrough route: a byte after the hello, and a number.
const UP: u8 = b'u';
const DOWN: u8 = b'd';
const SHORT: u8 = b's';

/// New connections.
#[derive(Clone, Copy)]
pub struct Newcomers {
    /// Per second, through the passthrough route.
    pub passthrough: u64,
    /// Connections per second with TLS terminated by the router.
    pub terminated: u64,
    /// Concurrent downloads with terminated TLS.
    pub downloads: u64,
}

/// The load on a stage.
pub struct Load<'s> {
    stage: &'s Stage,
    newcomers: Newcomers,
    https: Https,
    hellos: [Vec<u8>; 2],
    /// Checksum of the downloaded file.
    sent: Checksum,
    stop: AtomicBool,
    /// All clients have ended.
    done: AtomicBool,
    failure: Mutex<Option<anyhow::Error>>,
    /// Client addresses of the passthrough route.
    clients: Mutex<Vec<SocketAddr>>,
    served: AtomicU64,
    slowest: Mutex<Duration>,
    /// Bytes received, by transfer.
    moved: Vec<AtomicU64>,
    /// Bytes and checksum at each end, by transfer.
    sums: Mutex<HashMap<u64, Vec<(u64, Checksum)>>>,
    /// The number of each client's current download; 0 between two.
    downloading: Vec<AtomicU64>,
}

impl<'s> Load<'s> {
    /// A load that has not started.
    ///
    /// # Errors
    /// When its files cannot be made.
    pub fn new(stage: &'s Stage, newcomers: Newcomers) -> Result<Load<'s>> {
        let mut file = std::fs::File::create(stage.nginx.files().join("long"))?;
        let sent = Content::new(7).send(&mut file, DOWNLOAD, |_| ())?;
        Ok(Load {
            stage,
            newcomers,
            https: Https::new()?,
            hellos: [short_hello(RAW)?, client_hello(RAW)?],
            sent,
            stop: AtomicBool::new(false),
            done: AtomicBool::new(false),
            failure: Mutex::default(),
            clients: Mutex::default(),
            served: AtomicU64::new(0),
            slowest: Mutex::default(),
            moved: (0..TRANSFERS).map(|_| AtomicU64::new(0)).collect(),
            sums: Mutex::default(),
            downloading: (0..newcomers.downloads).map(|_| AtomicU64::new(0)).collect(),
        })
    }

    /// Runs a story under load, then lets all connections end, and checks the received bytes.
    ///
    /// # Errors
    /// Those of the story, and the first of the load.
    pub fn run(&self, story: impl FnOnce() -> Result<()>) -> Result<()> {
        thread::scope(|scope| {
            scope.spawn(|| self.note(self.serve(scope).context("the backend")));
            let mut clients = Vec::new();
            for id in 0..TRANSFERS as u64 {
                clients
                    .push(scope.spawn(move || self.note(self.transfer(id).with_context(|| format!("transfer {id}")))));
            }
            let begun = wait::wait_until("every transfer has begun", PATIENCE * 2, || {
                self.failed() || self.moved().iter().all(|moved| *moved > 0)
            });
            let begin = Instant::now();
            for number in 0..CLIENTS {
                clients.push(scope.spawn(move || self.note(self.newcomers(begin, number))));
            }
            for number in &self.downloading {
                clients.push(scope.spawn(move || self.note(self.downloads(number))));
            }
            let told = begun.and_then(|_| self.check()).and_then(|()| story());
            self.stop.store(true, Ordering::Relaxed);
            for client in clients {
                client.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload));
            }
            self.done.store(true, Ordering::Relaxed);
            // The error of the load is more useful than the story's time-out.
            self.check().and(told)
        })?;
        self.check()?;
        let sums = locked(&self.sums);
        ensure!(sums.len() == TRANSFERS, "{} transfers have an end", sums.len());
        for (id, ends) in sums.iter() {
            ensure!(ends.len() == 2 && ends[0] == ends[1], "transfer {id}: what arrived is not what was sent");
        }
        eprintln!("{} connections, the slowest took {:?}", locked(&self.clients).len(), locked(&self.slowest));
        Ok(())
    }

    /// Waits for this many new connections of all kinds.
    ///
    /// # Errors
    /// When the load has failed.
    pub fn goes_on(&self, count: u64) -> Result<()> {
        let until = self.served() + count;
        wait::wait_until("new connections are served", PATIENCE * 2, || self.failed() || self.served() >= until)?;
        self.check()
    }

    /// The first error of the load.
    ///
    /// # Errors
    /// That one.
    pub fn check(&self) -> Result<()> {
        locked(&self.failure).take().map_or(Ok(()), Err)
    }

    /// Number of new connections that have been served.
    pub fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    /// Bytes received, by transfer.
    pub fn moved(&self) -> Vec<u64> {
        self.moved.iter().map(|moved| moved.load(Ordering::Relaxed)).collect()
    }

    /// The current downloads, by client.
    pub fn downloading(&self) -> Vec<Option<u64>> {
        let number = |number: &AtomicU64| Some(number.load(Ordering::Relaxed)).filter(|number| *number > 0);
        self.downloading.iter().map(number).collect()
    }

    /// The client addresses of all connections through the passthrough route.
    pub fn clients(&self) -> Vec<SocketAddr> {
        locked(&self.clients).clone()
    }

    fn note(&self, result: Result<()>) {
        if let Err(error) = result {
            self.stop.store(true, Ordering::Relaxed);
            locked(&self.failure).get_or_insert(error);
        }
    }

    fn failed(&self) -> bool {
        locked(&self.failure).is_some()
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Connects, and sends the hello in one or two segments and the purpose. Runs in the clients' namespace.
    fn connect(&self, number: u64, purpose: u8) -> Result<TcpStream> {
        let mut stream = TcpStream::connect_timeout(&ROUTER, PATIENCE).context("connecting")?;
        locked(&self.clients).push(stream.local_addr()?);
        patient(&stream)?;
        // One short segment; a long hello in one write, which offload may keep in one packet; one in two packets.
        let (hello, cut) = match number % 3 {
            0 => (&self.hellos[0], 0),
            1 => (&self.hellos[1], 0),
            _ => (&self.hellos[1], self.hellos[1].len() / 2),
        };
        stream.write_all(&hello[..cut])?;
        stream.write_all(&hello[cut..])?;
        let mut order = [purpose; 9];
        order[1..].copy_from_slice(&number.to_be_bytes());
        stream.write_all(&order)?;
        Ok(stream)
    }

    fn transfer(&self, id: u64) -> Result<()> {
        self.stage.client.run(|| {
            let purpose = if id.is_multiple_of(2) { UP } else { DOWN };
            let stream = self.connect(id, purpose)?;
            if purpose == UP { self.send(&stream, id) } else { self.receive(&stream, id) }
        })
    }

    /// Sends pieces until the load is stopped, then half-closes.
    fn send(&self, mut to: &TcpStream, id: u64) -> Result<()> {
        let mut piece = Vec::new();
        Content::of(id, PIECE).send(&mut piece, PIECE, |_| ())?;
        let (mut hash, mut count) = (Sha256::new(), 0_u64);
        let begin = Instant::now();
        for number in 1_u32.. {
            // Each piece is different.
            piece[..4].copy_from_slice(&number.to_be_bytes());
            to.write_all(&piece).with_context(|| format!("after {count} bytes"))?;
            hash.update(&piece);
            count += PIECE;
            if self.stopped() {
                break;
            }
            pace(begin + PAUSE * number);
        }
        to.shutdown(Shutdown::Write)?;
        self.ended(id, (count, hash.finalize().into()));
        ensure!(read_some(&mut to, &mut [0])? == 0, "bytes against the direction");
        Ok(())
    }

    fn receive(&self, from: &TcpStream, id: u64) -> Result<()> {
        let moved = &self.moved[usize::try_from(id)?];
        let sum = stream::receive(&mut Counted(from, moved))
            .with_context(|| format!("after {} bytes", moved.load(Ordering::Relaxed)))?;
        self.ended(id, sum);
        Ok(())
    }

    fn ended(&self, id: u64, sum: (u64, Checksum)) {
        locked(&self.sums).entry(id).or_default().push(sum);
    }

    /// New connections, each at its time: this one of `CLIENTS` clients opens those whose number has this remainder.
    fn newcomers(&self, begin: Instant, client: u64) -> Result<()> {
        let Newcomers { passthrough, terminated, .. } = self.newcomers;
        let rate = passthrough + terminated;
        let every = Duration::from_secs(1) / u32::try_from(rate)?;
        self.stage.client.run(|| {
            for turn in 0_u32.. {
                let number = u64::from(turn) * CLIENTS + client;
                pace(begin + every * u32::try_from(number)?);
                if self.stopped() {
                    break;
                }
                let start = Instant::now();
                // Spread evenly over each second.
                let result = if number * terminated % rate < terminated {
                    self.https.get("/", &mut Vec::new(), || ()).context("terminated")
                } else {
                    self.short(number).context("passthrough")
                };
                let took = start.elapsed();
                result.with_context(|| {
                    format!("connection {number}, {:?} after the first, after {took:?}", begin.elapsed())
                })?;
                self.served.fetch_add(1, Ordering::Relaxed);
                let mut slowest = locked(&self.slowest);
                *slowest = slowest.max(took);
            }
            Ok(())
        })
    }

    /// A request and its response; the backend closes those with odd numbers.
    fn short(&self, number: u64) -> Result<()> {
        let mut stream = self.connect(number, SHORT)?;
        let mut answer = [0; 8];
        stream.read_exact(&mut answer).context("the answer")?;
        ensure!(answer == number.to_be_bytes(), "{answer:?} was answered");
        if number.is_multiple_of(2) {
            stream.shutdown(Shutdown::Write)?;
        }
        ensure!(read_some(&mut stream, &mut answer).context("the end")? == 0, "bytes after the answer");
        Ok(())
    }

    fn downloads(&self, current: &AtomicU64) -> Result<()> {
        self.stage.client.run(|| {
            for number in 1.. {
                let mut body = Vec::new();
                self.https
                    .get("/file/long", &mut body, || current.store(number, Ordering::Relaxed))
                    .with_context(|| format!("download {number}, after {} bytes", body.len()))?;
                current.store(0, Ordering::Relaxed);
                let (length, sum) = stream::receive(&mut body.as_slice())?;
                ensure!((length, sum) == (DOWNLOAD, self.sent), "download {number} has {length} bytes, or others");
                if self.stopped() {
                    break;
                }
            }
            Ok(())
        })
    }

    /// The backend, which runs until all clients have ended.
    fn serve<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> Result<()> {
        let listener = &self.stage.listener;
        while !self.done.load(Ordering::Relaxed) {
            if ready(listener, Duration::from_millis(50))? {
                let (stream, _) = listener.accept()?;
                scope.spawn(move || self.note(self.answer(stream).context("at the backend")));
            }
        }
        Ok(())
    }

    fn answer(&self, mut stream: TcpStream) -> Result<()> {
        patient(&stream)?;
        let port = stream.peer_addr()?.port();
        ensure!(self.stage.dialed(port), "port {port}: the agent has dialed, not the kernel");
        let mut hello = vec![0; 5];
        stream.read_exact(&mut hello).context("the hello's head")?;
        let length = u16::from_be_bytes([hello[3], hello[4]]);
        hello.resize(5 + usize::from(length), 0);
        stream.read_exact(&mut hello[5..]).context("the hello")?;
        ensure!(self.hellos.contains(&hello), "the backend got another hello than the client sent");
        let mut order = [0; 9];
        stream.read_exact(&mut order).context("the order")?;
        let [purpose, number @ ..] = order;
        let id = u64::from_be_bytes(number);
        match purpose {
            UP => self.receive(&stream, id),
            DOWN => self.send(&stream, id),
            SHORT => {
                stream.write_all(&number)?;
                if !id.is_multiple_of(2) {
                    stream.shutdown(Shutdown::Write)?;
                }
                ensure!(read_some(&mut stream, &mut order)? == 0, "bytes after the question");
                Ok(())
            }
            other => Err(anyhow!("{other} is no order")),
        }
    }
}

/// Counts bytes read.
struct Counted<'r>(&'r TcpStream, &'r AtomicU64);

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.read(buffer)?;
        self.1.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Sets time-outs, and disables Nagle's algorithm.
pub(super) fn patient(stream: &TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(())
}

/// True if a connection waits at a listener, now or within this time.
pub(super) fn ready(listener: &TcpListener, within: Duration) -> Result<bool> {
    let mut fds = [PollFd::new(listener, PollFlags::IN)];
    Ok(poll(&mut fds, Some(&Timespec::try_from(within)?))? > 0)
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
