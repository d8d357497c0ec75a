//! Listening sockets that outlive an agent: `sluice keep` holds them, and so does systemd.
//!
//! ```text
//! sluice keep ──(socket pair as stdin)──► sluice run
//!   listening sockets, START, YIELD, RESUME, LEAVE ─►
//!   ◄─ FDSTORE, FDSTOREREMOVE, READY, YIELDED, STATUS, STOPPING
//! ```
//! What an agent says is systemd's notification protocol (sd_notify(3)): under systemd it goes to `NOTIFY_SOCKET`
//! instead, and sockets come by `LISTEN_FDS` (sd_listen_fds(3)). Either side ignores what it does not know, because
//! after an upgrade the keeper is older than the agent.
//!
//! While no agent runs, connections wait in the backlogs, and what the kernel carries goes on.
mod backoff;
mod child;
pub mod control;
pub mod keeper;
mod manager;
mod say;
pub mod wire;

pub use manager::{Inherited, Manager, Order, Orders, inherit};
