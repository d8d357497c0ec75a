//! What client and backend agree on.

use std::time::Duration;

use clap::ValueEnum;

/// Longest wait for any step of a connection; beyond, it has failed.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of one write, and at most of one read, of bulk data.
pub const BLOCK: usize = 256 << 10;
/// Bytes of one message there and back.
pub const MESSAGE: usize = 64;
/// The backend's response to a hello, one byte.
pub const READY: u8 = b'R';
/// The backend's output once it listens.
pub const LISTENING: &str = "load: listening";

/// Load of one connection, or of many in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Load {
    /// The backend sends for a time, then closes.
    Down,
    /// The client sends for a time, half-closes, and receives the number of bytes that arrived.
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
    pub fn code(self) -> u8 {
        match self {
            Load::Down => b'D',
            Load::Up => b'U',
            Load::Echo => b'E',
            Load::Connect => b'C',
            Load::Idle => b'I',
        }
    }

    /// The load of a byte.
    pub fn from_code(code: u8) -> Option<Load> {
        Load::ALL.into_iter().find(|load| load.code() == code)
    }
}
