//! What the kernel tells: decisions from the ring; and what it cannot do itself: forget first flights that never end.

use std::io;
use std::time::Duration;

use aya::maps::{HashMap, MapData, RingBuf};
use router_common::hostname::field_text;
use router_common::maps::{Event, FirstFlight, FlowKey};
use router_common::verdict::Reason;
use rustix::time::{ClockId, clock_gettime};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::abi::Raw;
use super::dump::{address, ring_event, verdict};

/// A first flight that has not become complete by then never will; the proxy gives up after 5 s.
const FLIGHT_LIFE: Duration = Duration::from_secs(10);

/// Logs decisions (target `kernel`, level debug) until the ring breaks.
pub async fn follow(ring: RingBuf<MapData>) {
    if let Err(error) = log_all(ring).await {
        tracing::warn!(%error, "the kernel's events cannot be read");
    }
}

async fn log_all(ring: RingBuf<MapData>) -> io::Result<()> {
    // SAFETY: the ring owns its descriptor, returns the same one always and closes it only when dropped, which
    // `AsyncFd` does after deregistering it.
    let mut ready = unsafe { AsyncFd::register_with_interest(ring, Interest::READABLE) }?;
    loop {
        let mut guard = ready.readable_mut().await?;
        while let Some(item) = guard.get_inner_mut().next() {
            if let Some(event) = ring_event(&item) {
                log(&event);
            }
        }
        guard.clear_ready();
    }
}

fn log(event: &Event) {
    let reason = Reason::from_code(event.verdict.reason);
    tracing::debug!(
        target: "kernel",
        client = %format_args!("{}:{}", address(&event.flow.client), event.flow.client_port),
        listener = %format_args!("{}:{}", address(&event.flow.listener), event.flow.listener_port),
        host = field_text(&event.host),
        verdict = verdict(event.verdict.verdict),
        reason = reason.map_or("unknown", Reason::text),
        route = event.verdict.route,
        bytes = event.verdict.bytes,
        segments = event.segments,
    );
}

/// Forgets first flights whose clients went silent.
pub struct Sweeper {
    hellos: HashMap<MapData, Raw<FlowKey>, Raw<FirstFlight>>,
}

impl Sweeper {
    /// A sweeper of the map `hellos`.
    pub fn new(hellos: HashMap<MapData, Raw<FlowKey>, Raw<FirstFlight>>) -> Self {
        Sweeper { hellos }
    }

    /// Deletes entries older than [`FLIGHT_LIFE`].
    pub fn sweep(&mut self) {
        let now = clock_gettime(ClockId::Boottime);
        let now = Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default());
        let old: Vec<_> = self
            .hellos
            .iter()
            .filter_map(Result::ok)
            .filter(|(_, flight)| now.saturating_sub(Duration::from_nanos(flight.0.started_ns)) > FLIGHT_LIFE)
            .map(|(key, _)| key)
            .collect();
        for key in old {
            // Deleted by the program in the meantime: as wanted.
            let _ = self.hellos.remove(&key);
        }
    }
}
