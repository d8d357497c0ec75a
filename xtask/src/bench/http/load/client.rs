//! What clients have in common: their arguments, connections and threads.

use std::net::{SocketAddrV4, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

use super::outcome::Outcome;

/// Longest wait for any step; beyond, it has failed.
const PATIENCE: Duration = Duration::from_secs(10);

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

/// Connects with [`PATIENCE`], which holds for every later step as well.
pub fn open(to: SocketAddrV4) -> Result<TcpStream> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Bounds connecting as well (socket(7), SO_SNDTIMEO).
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(PATIENCE))?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(PATIENCE))?;
    connect(&socket, &to).with_context(|| format!("connecting to {to}"))?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Repeats an action on a number of threads for a time. `each` creates the action from the thread's number.
pub fn in_threads<F>(client: Client, each: impl Fn(usize) -> Result<F> + Sync) -> Result<Outcome>
where
    F: FnMut() -> Result<()>,
{
    let time = Duration::from_millis(client.milliseconds);
    let start = std::sync::Barrier::new(client.connections);
    let one = |number: usize| -> Result<(Vec<Duration>, u64, Vec<anyhow::Error>)> {
        let made = each(number);
        // Every thread comes here, or the others would wait for ever.
        start.wait();
        let mut once = made?;
        let (begin, mut times, mut errors) = (Instant::now(), Vec::new(), Vec::new());
        let (mut before, mut in_time) = (Duration::ZERO, 0);
        while before < time {
            let done = once();
            let now = begin.elapsed();
            match done {
                Ok(()) => {
                    times.push(now - before);
                    // One that waits for a lost packet makes its own rate lower, not that of all.
                    in_time += u64::from(now <= time);
                }
                Err(error) => errors.push(error),
            }
            before = now;
        }
        Ok((times, in_time, errors))
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..client.connections).map(|number| scope.spawn(move || one(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| bail!("a thread panicked"))).collect()
    });
    let (mut times, mut units, mut errors) = (Vec::new(), 0, Vec::new());
    for result in results {
        let (of_one, in_time, failed) = result?;
        times.extend(of_one);
        units += in_time;
        errors.extend(failed);
    }
    let failed = errors.len() as u64;
    match errors.into_iter().next() {
        Some(error) if times.is_empty() => return Err(error.context("nothing was answered")),
        Some(error) => eprintln!("load: {failed} failed; the first: {error:#}"),
        None => {}
    }
    Ok(Outcome { units, ..Outcome::of(times, time, failed) })
}
