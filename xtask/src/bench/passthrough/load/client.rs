//! The client: some connections side by side for a time.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddrV4, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use super::connection::open;
use super::hello::{Hello, Order};
use super::protocol::{BLOCK, Load, MESSAGE};

/// What to do.
#[derive(Args)]
pub struct Arguments {
    /// Destinations; connections use them in turn.
    #[arg(long, value_delimiter = ',', required = true)]
    to: Vec<SocketAddrV4>,
    #[arg(long, value_enum)]
    load: Load,
    #[arg(long)]
    connections: usize,
    #[arg(long)]
    milliseconds: u32,
    #[arg(long, value_enum, default_value_t = Hello::One)]
    hello: Hello,
}

/// The amount carried: bytes, round trips or connections.
#[derive(Clone, Copy, Debug, Default)]
pub struct Amount {
    /// How many.
    pub units: u64,
    /// In how long.
    pub elapsed: Duration,
    /// Connections made.
    pub connections: u64,
    /// Connections that failed (only with [`Load::Connect`]; others fail the whole run).
    pub errors: u64,
    /// Longest from `connect` to the backend's FIN, or there and back.
    pub worst: Duration,
}

impl Amount {
    /// As [`run`] prints it.
    pub fn read(text: &str) -> Result<Amount> {
        let numbers: Vec<u64> =
            text.split_whitespace().map(str::parse).collect::<Result<_, _>>().context("numbers of a client")?;
        let [units, elapsed, connections, errors, worst] = numbers[..] else { bail!("a client printed `{text}`") };
        let [elapsed, worst] = [elapsed, worst].map(Duration::from_nanos);
        Ok(Amount { units, elapsed, connections, errors, worst })
    }

    /// Units in a second.
    pub fn rate(&self) -> f64 {
        self.units as f64 / self.elapsed.as_secs_f64()
    }

    /// Adds the amount of a following run.
    pub fn then(self, next: Amount) -> Amount {
        Amount { elapsed: self.elapsed + next.elapsed, ..self.and(next) }
    }

    fn and(self, other: Amount) -> Amount {
        Amount {
            units: self.units + other.units,
            elapsed: self.elapsed.max(other.elapsed),
            connections: self.connections + other.connections,
            errors: self.errors + other.errors,
            worst: self.worst.max(other.worst),
        }
    }
}

/// Makes the load, prints one line of numbers.
pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { to, load, connections, milliseconds, hello } = arguments;
    let bytes = hello.bytes(Order { load: *load, milliseconds: *milliseconds });
    let time = Duration::from_millis(u64::from(*milliseconds));
    let start = Barrier::new(*connections);
    let outcomes: Vec<Result<Amount>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..*connections)
            .map(|number| {
                let to = to[number % to.len()];
                let (bytes, start) = (&bytes, &start);
                scope.spawn(move || match load {
                    Load::Connect => connect_again_and_again(to, *hello, bytes, time, start),
                    _ => carry(*load, to, *hello, bytes, time, start),
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| bail!("a thread of the client panicked")))
            .collect()
    });
    let total = outcomes.into_iter().try_fold(Amount::default(), |sum, one| one.map(|one| sum.and(one)))?;
    let [elapsed, worst] = [total.elapsed, total.worst].map(|time| time.as_nanos());
    println!("{} {elapsed} {} {} {worst}", total.units, total.connections, total.errors);
    Ok(())
}

fn connect_again_and_again(
    to: SocketAddrV4,
    hello: Hello,
    bytes: &[u8],
    time: Duration,
    start: &Barrier,
) -> Result<Amount> {
    start.wait();
    let begin = Instant::now();
    let mut outcome = Amount::default();
    while begin.elapsed() < time {
        let connecting = Instant::now();
        match connect_once(to, hello, bytes) {
            Ok(()) => {
                outcome.connections += 1;
                // One that waits for a lost packet makes its own rate lower, not that of all.
                outcome.units += u64::from(begin.elapsed() <= time);
            }
            Err(error) => {
                if outcome.errors == 0 {
                    eprintln!("load: a connection to {to} failed: {error}");
                }
                outcome.errors += 1;
            }
        }
        outcome.worst = outcome.worst.max(connecting.elapsed());
    }
    outcome.elapsed = time;
    Ok(outcome)
}

/// The backend closes first: the closing end keeps the port pair for a minute (TIME_WAIT). A listening port can be
/// connected to again at once, while a client, or a proxy towards its backend, would run out of ports.
fn connect_once(to: SocketAddrV4, hello: Hello, bytes: &[u8]) -> io::Result<()> {
    let mut stream = open(to, None, hello, bytes)?;
    match stream.read(&mut [0])? {
        0 => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "more than one byte answered")),
    }
}

fn carry(load: Load, to: SocketAddrV4, hello: Hello, bytes: &[u8], time: Duration, start: &Barrier) -> Result<Amount> {
    let opened = open(to, None, hello, bytes);
    // Every thread comes here, or the others would wait for ever.
    start.wait();
    let stream = opened.with_context(|| format!("connecting to {to}"))?;
    if hello == Hello::Two {
        let sent = segments_sent(&stream)?;
        ensure!(sent >= 2, "the hello went out in {sent} segment, not in two");
    }
    let begin = Instant::now();
    let (units, worst) = match load {
        Load::Down => (receive(stream)?, Duration::ZERO),
        Load::Up => (send(stream, time)?, Duration::ZERO),
        Load::Echo => ask(stream, time)?,
        Load::Connect | Load::Idle => bail!("{load:?} is not carried by one connection for a time"),
    };
    Ok(Amount { units, elapsed: begin.elapsed(), connections: 1, errors: 0, worst })
}

fn receive(mut stream: TcpStream) -> Result<u64> {
    stream.write_all(b"g")?;
    let mut block = vec![0; BLOCK];
    let mut received = 0_u64;
    // The last eight bytes so far: at the end the number of those before them.
    let mut tail = [0_u8; 8];
    loop {
        let more = stream.read(&mut block).context("receiving")?;
        if more == 0 {
            break;
        }
        received += more as u64;
        let kept = more.min(tail.len());
        tail.rotate_left(kept);
        let from = tail.len() - kept;
        tail[from..].copy_from_slice(&block[more - kept..more]);
    }
    let sent = u64::from_be_bytes(tail);
    ensure!(received == sent + 8, "{received} bytes were received, and not 8 more than {sent}");
    Ok(sent)
}

fn send(mut stream: TcpStream, time: Duration) -> Result<u64> {
    let begin = Instant::now();
    let block = vec![b'u'; BLOCK];
    let mut sent = 0_u64;
    while begin.elapsed() < time {
        stream.write_all(&block).context("sending")?;
        sent += BLOCK as u64;
    }
    stream.shutdown(Shutdown::Write)?;
    let mut count = [0; 8];
    stream.read_exact(&mut count).context("waiting to be told how much arrived")?;
    let received = u64::from_be_bytes(count);
    ensure!(received == sent, "{received} of {sent} bytes arrived");
    Ok(sent)
}

fn ask(mut stream: TcpStream, time: Duration) -> Result<(u64, Duration)> {
    let begin = Instant::now();
    let mut message = [b'e'; MESSAGE];
    let (mut round_trips, mut worst) = (0, Duration::ZERO);
    let mut before = Duration::ZERO;
    while before < time {
        stream.write_all(&message)?;
        stream.read_exact(&mut message).context("waiting for a message to come back")?;
        let now = begin.elapsed();
        worst = worst.max(now - before);
        before = now;
        round_trips += 1;
    }
    Ok((round_trips, worst))
}

/// `tcpi_data_segs_out` of TCP_INFO (tcp(7), linux/tcp.h), which libc's struct lacks.
fn segments_sent(stream: &TcpStream) -> io::Result<u32> {
    const OFFSET: usize = 156;
    let mut info = [0_u8; OFFSET + 4];
    let mut length = info.len() as libc::socklen_t;
    // SAFETY: the descriptor is open while `stream` is borrowed, and the kernel writes at most `length` bytes to
    // `info`, which is that large.
    let failed = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u32::from_ne_bytes([info[OFFSET], info[OFFSET + 1], info[OFFSET + 2], info[OFFSET + 3]]))
}
