//! The load tools: this program again, in a release build, as backend or client in a namespace of its own. Blocking
//! sockets and a thread for each connection, the same for every way, so that what differs is the router.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpStream};
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};

pub mod backend;
pub mod client;
pub mod hello;
pub mod idle;

/// Longest wait for any step of a connection; beyond, it has failed.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of one write, and at most of one read, of bulk data.
pub const BLOCK: usize = 256 << 10;
/// Bytes of one message there and back.
pub const MESSAGE: usize = 64;
/// What a backend answers to a hello, one byte.
pub const READY: u8 = b'R';
/// What the backend prints when it listens.
pub const LISTENING: &str = "load: listening";

/// What one connection, or many in a row, carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Load {
    /// The backend sends for a time, then closes.
    Down,
    /// The client sends for a time, half-closes, and is told how much arrived.
    Up,
    /// [`MESSAGE`] bytes there and back, again and again.
    Echo,
    /// Hello, [`READY`], closed by the backend; then the next connection.
    Connect,
    /// Kept open, and answered when asked.
    Idle,
}

impl Load {
    const ALL: [Load; 5] = [Load::Down, Load::Up, Load::Echo, Load::Connect, Load::Idle];

    /// Its byte in the hello's random.
    fn code(self) -> u8 {
        match self {
            Load::Down => b'D',
            Load::Up => b'U',
            Load::Echo => b'E',
            Load::Connect => b'C',
            Load::Idle => b'I',
        }
    }

    fn from_code(code: u8) -> Option<Load> {
        Load::ALL.into_iter().find(|load| load.code() == code)
    }
}

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
    /// Make load for a time, and print what was carried.
    Client(client::Arguments),
    /// Hold connections, and report on stdout when told so by a line on stdin.
    Idle(idle::Arguments),
}

/// Plays a role.
pub fn run(arguments: Arguments) -> Result<()> {
    match arguments.role {
        Role::Backend { listen } => backend::run(listen),
        Role::Client(arguments) => client::run(&arguments),
        Role::Idle(arguments) => idle::run(&arguments),
    }
}

/// Connects, sends the hello and waits until the backend has answered it.
fn open(to: SocketAddrV4, from: Option<SocketAddrV4>, hello: hello::Hello, bytes: &[u8]) -> io::Result<TcpStream> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt};

    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Bounds connecting as well (socket(7), SO_SNDTIMEO).
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(PATIENCE))?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(PATIENCE))?;
    if let Some(from) = from {
        bind(&socket, &SocketAddr::V4(from))?;
    }
    connect(&socket, &SocketAddr::V4(to))?;
    let mut stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    for segment in hello.segments(bytes) {
        stream.write_all(segment)?;
    }
    let mut ready = [0];
    stream.read_exact(&mut ready)?;
    if ready != [READY] {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the backend's answer to the hello is another"));
    }
    Ok(stream)
}
