//! Which endpoint a connection goes to, and the connection to it.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use router_core::table::{Cluster, Endpoint};
use tokio::net::TcpStream;

/// Most endpoints that are tried for one connection or request.
pub const MAX_ATTEMPTS: usize = 4;

/// An endpoint with the service that it belongs to, which names it for TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Service name.
    pub service: Arc<str>,
    /// Where to connect.
    pub endpoint: Endpoint,
}

/// Why no connection came about.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The cluster has no usable endpoint.
    #[error("no usable endpoint")]
    NoEndpoints,
    /// The last endpoint tried refused, or cannot be reached.
    #[error("cannot connect: {0}")]
    Refused(io::Error),
    /// The last endpoint tried did not answer in time.
    #[error("no answer in time")]
    Timeout,
}

/// The endpoints to try, in order: drawn by weight without replacement, [`MAX_ATTEMPTS`] at most. `random` gives a
/// number below its argument, which is never 0.
pub fn order(cluster: &Cluster, mut random: impl FnMut(u32) -> u32) -> Vec<Target> {
    let mut rest = cluster.weighted_endpoints();
    let mut total: u32 = rest.iter().map(|(_, weight)| u32::from(*weight)).sum();
    let mut order = Vec::with_capacity(rest.len().min(MAX_ATTEMPTS));
    while order.len() < MAX_ATTEMPTS && total > 0 {
        let mut ticket = random(total);
        let drawn = rest.iter().position(|(_, weight)| {
            let weight = u32::from(*weight);
            let hit = ticket < weight;
            ticket = ticket.saturating_sub(weight);
            hit
        });
        let Some(index) = drawn else { break };
        let (endpoint, weight) = rest.swap_remove(index);
        total -= u32::from(weight);
        order.push(Target { service: service_of(cluster, endpoint), endpoint: endpoint.clone() });
    }
    order
}

/// Connects to the first endpoint of the order that accepts.
///
/// # Errors
/// Why the last one did not.
pub async fn connect_any(order: Vec<Target>, timeout: Duration) -> Result<(TcpStream, Endpoint), DialError> {
    let mut error = DialError::NoEndpoints;
    for target in order {
        match connect(&target.endpoint, timeout).await {
            Ok(stream) => return Ok((stream, target.endpoint)),
            Err(failure) => error = failure,
        }
    }
    Err(error)
}

/// Connects to one endpoint.
///
/// # Errors
/// [`DialError::Refused`] and [`DialError::Timeout`].
pub async fn connect(endpoint: &Endpoint, timeout: Duration) -> Result<TcpStream, DialError> {
    match tokio::time::timeout(timeout, TcpStream::connect(endpoint.address)).await {
        Ok(Ok(stream)) => {
            // Latency only; a socket that refuses the option still carries the bytes.
            let _ = stream.set_nodelay(true);
            Ok(stream)
        }
        Ok(Err(error)) => Err(DialError::Refused(error)),
        Err(_) => Err(DialError::Timeout),
    }
}

/// A number below `bound`; fast, not for secrets.
pub fn random_below(bound: u32) -> u32 {
    thread_local! {
        static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one("endpoint choice"));
    }
    // SplitMix64 (Steele, Lea, Flood 2014), then a multiply-shift into the range (Lemire 2019).
    let state = STATE.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    STATE.set(state);
    let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    (((mixed >> 32) * u64::from(bound)) >> 32) as u32
}

fn service_of(cluster: &Cluster, endpoint: &Endpoint) -> Arc<str> {
    let owner = cluster.services.iter().find(|s| s.endpoints.iter().any(|e| std::ptr::eq(e, endpoint)));
    owner.map_or_else(|| "".into(), |service| Arc::clone(&service.service))
}

#[cfg(test)]
mod tests;
