//! What this host does to packets that the kernel programs do not: rules of netfilter, IPsec policies, and routing
//! rules. They are read and evaluated in a separate thread ([`HostWatch`]).

mod blocked_flows;
pub mod state;
mod watch;

pub use blocked_flows::Lost;
pub use watch::{HostReport, HostWatch, Question, WatchReply, WatchRequest};
