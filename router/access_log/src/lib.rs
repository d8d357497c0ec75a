//! The access log and the counters of routes: one line for each relayed or steered connection, and for each proxied
//! request.

#![forbid(unsafe_code)]

mod counters;
mod format;
mod httplog;
mod line;
mod log;
pub mod log_writer;
mod syslog;

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use router_model::names::{RouteId, RouterName};

pub use counters::{Counters, RouteCounters, Totals};
pub use line::{Captured, Line, LineRoute, ServedBy};
pub use log::{AccessLog, AccessLogForm, QueueMark};
pub use router_table::flag::Flag;

/// A connection that the kernel carried or rejected.
#[derive(Clone, Debug)]
pub struct KernelConnection<'c> {
    /// Router of the listener.
    pub router: &'c RouterName,
    /// Client address.
    pub client: SocketAddr,
    /// Local address.
    pub listener: SocketAddr,
    /// SNI or Host; the wildcard that covers it if the name is not known any more.
    pub host: &'c str,
    /// The route.
    pub route: &'c RouteId,
    /// The endpoint.
    pub endpoint: Option<SocketAddr>,
    /// Payload bytes from the client.
    pub bytes_in: u64,
    /// Payload bytes to the client.
    pub bytes_out: u64,
    /// Endpoints that failed before that one.
    pub retries: u32,
    /// Why it ended.
    pub flag: Flag,
    /// From the first bytes to the end.
    pub duration: Duration,
}

impl AccessLog {
    /// Updates the route's counters, and writes the line.
    pub fn carried(&self, one: &KernelConnection<'_>) {
        self.counters().totals(one.router, one.route).add(one.bytes_in, one.bytes_out, one.flag);
        if !self.is_wanted() {
            return;
        }
        let now = SystemTime::now();
        self.write(Line {
            began: now.checked_sub(one.duration).unwrap_or(now),
            router: one.router.clone(),
            client: one.client,
            listener: one.listener,
            tls: false,
            host: Some(one.host.to_owned()),
            method: None,
            path: None,
            status: None,
            route: Some(LineRoute::Named(one.route.clone())),
            endpoint: one.endpoint,
            bytes_in: one.bytes_in,
            bytes_out: one.bytes_out,
            answered: None,
            duration: one.duration,
            interim_dropped: 0,
            retries: one.retries,
            flag: one.flag,
            data_path: ServedBy::Kernel,
            captured: None,
        });
    }
}

#[cfg(test)]
mod tests;
