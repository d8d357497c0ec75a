//! Listening sockets that outlive an agent: `sluice keep` holds them, and so does systemd.
//!
//! ```text
//! sluice keep ──(socket pair as stdin)──► sluice run
//!   listening sockets, START, YIELD, RESUME, LEAVE ─►
//!   ◄─ FDSTORE, FDSTOREREMOVE, READY, YIELDED, STATUS, STOPPING
//! ```
//! The agent's messages use systemd's notification protocol (sd_notify(3)). Under systemd they go to `NOTIFY_SOCKET`
//! instead, and sockets come through `LISTEN_FDS` (sd_listen_fds(3)). Each side ignores unknown messages, because after
//! an upgrade the keeper is older than the agent.
//!
//! While no agent runs, connections wait in the backlogs, and the kernel keeps carrying established ones.
mod backoff;
mod child;
pub mod control;
pub mod keeper;
mod manager;
mod messages;
pub mod wire;

pub use manager::{Inherited, KeeperOrder, Manager, Orders, inherit};
