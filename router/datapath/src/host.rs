//! What this host does to packets besides carrying them, and the kernel programs do not: rules of netfilter, IPsec policies,
//! and rules of routing. Read, and judged by, in a thread of its own ([`Watch`]).

mod carried;
pub mod state;
mod watch;

pub use carried::Lost;
pub use watch::{Answer, Order, Question, Told, Watch};
