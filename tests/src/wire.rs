//! A wire that loses, duplicates, delays and reorders frames by a plan: a link through a namespace in which every frame
//! passes through user space. (`netem` is not in every kernel, and cannot select single packets.)

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use router_common::maps::FlowKey;
use router_common::packet::{Segment, segment};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::dress;
use crate::frames::{Frames, LONGEST};
use crate::netns::Netns;

/// Interval at which the wire checks whether to end.
const PERIOD: Duration = Duration::from_millis(20);

/// Frames of one direction that are forwarded at a time.
const BURST: usize = 32;

/// What happens to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameAction {
    /// It arrives.
    Pass,
    /// It is lost.
    Lost,
    /// It arrives now, and once more after this time.
    Twice(Duration),
    /// It arrives after this time; later frames overtake it.
    Late(Duration),
    /// It arrives in fragments of at most this size, in bytes.
    Parts {
        /// A multiple of 8.
        size: u32,
        /// True if the last fragment comes first.
        backwards: bool,
    },
}

/// A TCP segment on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Number of the connection: 0 for the first one observed.
    pub connection: u32,
    /// True if it has the direction of the connection's first frame.
    pub forward: bool,
    /// Number of the frame in this direction of the connection: 0 for the first.
    pub index: u32,
    /// Its headers.
    pub segment: Segment,
}

/// Decides the fate of each TCP segment in order. All other frames pass.
pub type Plan = Box<dyn FnMut(&Frame) -> FrameAction + Send>;

/// A plan under which everything passes.
pub fn clean() -> Plan {
    Box::new(|_| FrameAction::Pass)
}

/// Random loss, duplication and reordering of `percent` of all frames each; deterministic for a seed.
pub fn noise(mut seed: u64, percent: u64) -> Plan {
    Box::new(move |_| {
        // splitmix64.
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let time = Duration::from_micros(200 + (mixed >> 32) % 5000);
        match mixed % 100 / percent {
            0 => FrameAction::Lost,
            1 => FrameAction::Twice(time),
            2 => FrameAction::Late(time),
            _ => FrameAction::Pass,
        }
    })
}

/// Frames with more than `size` bytes (a multiple of 8) after their IP header arrive in fragments.
pub fn fragmenting(size: u32, backwards: bool) -> Plan {
    Box::new(move |frame| {
        let Segment { tcp, payload, payload_len, .. } = frame.segment;
        if payload - tcp + payload_len > size { FrameAction::Parts { size, backwards } } else { FrameAction::Pass }
    })
}

/// A running wire.
pub struct Wire {
    // Exists until it is dropped.
    _netns: Netns,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<()>>>,
}

#[derive(Default)]
struct Shared {
    end: AtomicBool,
    frames: AtomicU64,
    faults: AtomicU64,
}

impl Wire {
    /// Connects two namespaces, as [`Netns::link`] does; both ends have no offloads.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn lay(here: (&Netns, &str, &[&str]), there: (&Netns, &str, &[&str]), plan: Plan) -> Result<Wire> {
        let netns = Netns::new("wire")?;
        // The wire itself must not send packets.
        netns.set("ipv6/conf/default/disable_ipv6", "1")?;
        for ((end, interface, addresses), port) in [(here, "left"), (there, "right")] {
            end.link((interface, addresses), &netns, (port, &[]))?;
            end.without_offloads(interface)?;
            netns.without_offloads(port)?;
        }
        let ports = [Frames::open(&netns, "left")?, Frames::open(&netns, "right")?];
        let shared = Arc::new(Shared::default());
        let forwarder = Forwarder {
            ports,
            plan,
            shared: Arc::clone(&shared),
            connections: HashMap::new(),
            late: BinaryHeap::new(),
            kept: 0,
        };
        let thread = thread::Builder::new().name("wire".to_owned()).spawn(move || forwarder.run())?;
        Ok(Wire { _netns: netns, shared, thread: Some(thread) })
    }

    /// Number of TCP segments that the plan has decided on.
    pub fn frames(&self) -> u64 {
        self.shared.frames.load(Ordering::Relaxed)
    }

    /// Number of those that did not simply pass.
    pub fn faults(&self) -> u64 {
        self.shared.faults.load(Ordering::Relaxed)
    }

    /// Ends it.
    ///
    /// # Errors
    /// What made it end early.
    pub fn cut(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.shared.end.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().map_err(|_| anyhow!("the wire panicked"))?.context("the wire")
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("{error:#}");
        }
    }
}

struct Forwarder {
    ports: [Frames; 2],
    plan: Plan,
    shared: Arc<Shared>,
    /// By direction of a connection: its number, whether it is the forward direction, and the number of frames.
    connections: HashMap<FlowKey, (u32, bool, u32)>,
    late: BinaryHeap<Reverse<Kept>>,
    kept: u64,
}

/// A delayed frame, ordered by time, then by arrival.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Kept {
    at: Instant,
    number: u64,
    port: usize,
    frame: Vec<u8>,
}

impl Forwarder {
    fn run(mut self) -> Result<()> {
        let mut buffer = [0; LONGEST];
        while !self.shared.end.load(Ordering::Relaxed) {
            let now = Instant::now();
            while let Some(Reverse(first)) = self.late.peek()
                && first.at <= now
                && let Some(Reverse(kept)) = self.late.pop()
            {
                self.ports[kept.port].send(&kept.frame)?;
            }
            let next = self.late.peek().map_or(PERIOD, |Reverse(kept)| kept.at - now).min(PERIOD);
            let mut ready = self.ports.each_ref().map(|port| PollFd::new(port.socket(), PollFlags::IN));
            poll(&mut ready, Some(&Timespec::try_from(next)?))?;
            let ready = ready.map(|port| port.revents().contains(PollFlags::IN));
            for from in (0..2).filter(|from| ready[*from]) {
                // A burst, limited so that the other direction does not wait.
                for _ in 0..BURST {
                    let Some(frame) = self.ports[from].take(&mut buffer)? else { break };
                    let frame = frame.to_vec();
                    self.forward(1 - from, frame)?;
                }
            }
        }
        Ok(())
    }

    fn forward(&mut self, port: usize, frame: Vec<u8>) -> Result<()> {
        let fate = match segment(&frame.as_slice()) {
            Ok(segment) => self.decide(segment),
            Err(_) => FrameAction::Pass,
        };
        if matches!(fate, FrameAction::Pass | FrameAction::Twice(_)) {
            self.ports[port].send(&frame)?;
        }
        if let FrameAction::Parts { size, backwards } = fate {
            self.kept += 1;
            let mut parts = dress::fragments(&frame, u32::try_from(self.kept)?, usize::try_from(size)?);
            if backwards {
                parts.reverse();
            }
            parts.iter().try_for_each(|part| self.ports[port].send(part))?;
        }
        if let FrameAction::Twice(after) | FrameAction::Late(after) = fate {
            self.kept += 1;
            self.late.push(Reverse(Kept { at: Instant::now() + after, number: self.kept, port, frame }));
        }
        Ok(())
    }

    fn decide(&mut self, segment: Segment) -> FrameAction {
        let next = u32::try_from(self.connections.len() / 2).unwrap_or(u32::MAX);
        if !self.connections.contains_key(&segment.flow) {
            self.connections.insert(segment.flow, (next, true, 0));
            self.connections.insert(segment.flow.reversed(), (next, false, 0));
        }
        let Some((connection, forward, count)) = self.connections.get_mut(&segment.flow) else {
            return FrameAction::Pass;
        };
        let frame = Frame { connection: *connection, forward: *forward, index: *count, segment };
        *count += 1;
        let fate = (self.plan)(&frame);
        self.shared.frames.fetch_add(1, Ordering::Relaxed);
        self.shared.faults.fetch_add(u64::from(fate != FrameAction::Pass), Ordering::Relaxed);
        fate
    }
}
