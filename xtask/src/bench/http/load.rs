//! Load that no tool makes: full TLS handshakes with names that change, and WebSocket messages. This program again, in a
//! release build, as client or backend in a namespace of its own. Blocking sockets and a thread for each connection, the
//! same for every way.

use std::net::{SocketAddrV4, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

pub mod handshakes;
pub mod websocket;

/// Longest wait for any step; beyond, it has failed.
const PATIENCE: Duration = Duration::from_secs(10);
/// What the backend prints when it listens.
pub const LISTENING: &str = "load: listening";

/// Arguments of the hidden subcommand.
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Send back what comes over WebSockets, until terminated.
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
    /// Messages there and back over WebSockets.
    Messages {
        #[command(flatten)]
        client: Client,
        /// Host that is asked for.
        #[arg(long)]
        name: String,
    },
}

/// What clients have in common.
#[derive(Args, Clone, Copy)]
pub struct Client {
    /// Where the router listens.
    #[arg(long)]
    pub to: SocketAddrV4,
    /// At a time.
    #[arg(long)]
    pub connections: usize,
    /// For how long.
    #[arg(long)]
    pub milliseconds: u64,
}

/// Plays a role; a client prints its [`Outcome`].
pub fn run(arguments: &Arguments) -> Result<()> {
    let outcome = match &arguments.role {
        Role::Echo { listen } => return websocket::serve(*listen),
        Role::Handshakes { client, names } => {
            let text = std::fs::read_to_string(names).with_context(|| format!("reading {}", names.display()))?;
            handshakes::run(*client, &text.lines().collect::<Vec<_>>())?
        }
        Role::Messages { client, name } => websocket::run(*client, name)?,
    };
    println!("{}", outcome.line());
    Ok(())
}

/// What a client did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Requests, connections or messages that were answered.
    pub units: u64,
    /// In how long.
    pub elapsed: Duration,
    /// Those that failed.
    pub errors: u64,
    /// The middle of their times.
    pub p50: Duration,
    /// What one in a hundred exceeds.
    pub p99: Duration,
}

impl Outcome {
    /// Of the times of all that were answered.
    pub fn of(mut times: Vec<Duration>, elapsed: Duration, errors: u64) -> Outcome {
        times.sort_unstable();
        let at = |part: usize| times.get((times.len() * part / 100).min(times.len().saturating_sub(1))).copied();
        let [p50, p99] = [50, 99].map(|part| at(part).unwrap_or_default());
        Outcome { units: times.len() as u64, elapsed, errors, p50, p99 }
    }

    /// Units in a second.
    pub fn rate(&self) -> f64 {
        self.units as f64 / self.elapsed.as_secs_f64()
    }

    /// One line of numbers, times in nanoseconds.
    pub fn line(&self) -> String {
        let [elapsed, p50, p99] = [self.elapsed, self.p50, self.p99].map(|time| time.as_nanos());
        format!("{} {elapsed} {} {p50} {p99}", self.units, self.errors)
    }

    /// [`Outcome::line`] back.
    pub fn read(line: &str) -> Result<Outcome> {
        let numbers: Vec<u64> =
            line.split_whitespace().map(str::parse).collect::<Result<_, _>>().context("numbers of a client")?;
        let [units, elapsed, errors, p50, p99] = numbers[..] else { bail!("a client printed `{line}`") };
        let [elapsed, p50, p99] = [elapsed, p50, p99].map(Duration::from_nanos);
        Ok(Outcome { units, elapsed, errors, p50, p99 })
    }
}

/// Connects with [`PATIENCE`], which holds for every later step as well.
fn open(to: SocketAddrV4) -> Result<TcpStream> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Bounds connecting as well (socket(7), SO_SNDTIMEO).
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(PATIENCE))?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(PATIENCE))?;
    connect(&socket, &to).with_context(|| format!("connecting to {to}"))?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Does one thing after another on each of some threads for a time. `each` makes, from a thread's number, what does one.
fn in_threads<F>(client: Client, each: impl Fn(usize) -> Result<F> + Sync) -> Result<Outcome>
where
    F: FnMut() -> Result<()>,
{
    let time = Duration::from_millis(client.milliseconds);
    let start = std::sync::Barrier::new(client.connections);
    let one = |number: usize| -> Result<(Vec<Duration>, Duration, Vec<anyhow::Error>)> {
        let made = each(number);
        // Every thread comes here, or the others would wait for ever.
        start.wait();
        let mut once = made?;
        let (begin, mut times, mut errors) = (Instant::now(), Vec::new(), Vec::new());
        let mut before = Duration::ZERO;
        while before < time {
            match once() {
                Ok(()) => times.push(begin.elapsed() - before),
                Err(error) => errors.push(error),
            }
            before = begin.elapsed();
        }
        Ok((times, before, errors))
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..client.connections).map(|number| scope.spawn(move || one(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| bail!("a thread panicked"))).collect()
    });
    let (mut times, mut elapsed, mut errors) = (Vec::new(), Duration::ZERO, Vec::new());
    for result in results {
        let (of_one, took, failed) = result?;
        times.extend(of_one);
        elapsed = elapsed.max(took);
        errors.extend(failed);
    }
    let failed = errors.len() as u64;
    match errors.into_iter().next() {
        Some(error) if times.is_empty() => return Err(error.context("nothing was answered")),
        Some(error) => eprintln!("load: {failed} failed; the first: {error:#}"),
        None => {}
    }
    Ok(Outcome::of(times, elapsed, failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_all_times_in_order() {
        let times = (1..=200).rev().map(Duration::from_millis).collect();
        let outcome = Outcome::of(times, Duration::from_secs(2), 3);
        assert_eq!([outcome.p50, outcome.p99], [101, 199].map(Duration::from_millis));
        assert_eq!((outcome.units, outcome.errors, outcome.rate()), (200, 3, 100.0));
        assert_eq!(Outcome::read(&outcome.line()).unwrap(), outcome);
    }

    #[test]
    fn nothing_has_no_percentiles() {
        assert_eq!(Outcome::of(Vec::new(), Duration::from_secs(1), 1).p99, Duration::ZERO);
        assert!(Outcome::read("1 2 3").is_err());
    }
}
