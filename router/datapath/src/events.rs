//! Reading the programs' ring buffers: decisions, and ends of connections.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use std::{io, mem};

use aya::maps::{MapData, RingBuf};
use router_access_log::QueueMark;
use router_common::maps::{DecisionEvent, EVENT_RING, FlowEnd, names};
use router_sys::abi::{self, Plain};
use router_sys::ring::readable;
use tokio::time::{MissedTickBehavior, interval};

use super::flow_log::Reporter;
use super::pin_folder::PinFolder;
use crate::dump::DumpError;

/// Most ends handled before other tasks run.
const TURN: usize = 1024;
/// Longest wait for the log lines of a turn: if the log's reader stalls, decisions are still counted.
const LOG_WAIT: Duration = Duration::from_millis(100);
/// Interval of reading the rings. The programs do not wake the reader until a quarter of a ring is full.
const LOOK: Duration = Duration::from_millis(100);

/// Reads both rings until it is dropped, or reading fails.
///
/// # Errors
/// When a ring cannot be opened.
pub fn follow(
    pins: &PinFolder,
    reporter: &Rc<RefCell<Reporter>>,
) -> Result<impl Future<Output = ()> + use<>, DumpError> {
    let (decisions, ends) = (open(pins, names::EVENTS)?, open(pins, names::FLOW_ENDS)?);
    let reporter = Rc::clone(reporter);
    Ok(async move {
        if let Err(error) = read_all(decisions, ends, &reporter).await {
            tracing::warn!(%error, "the kernel's events cannot be read");
        }
    })
}

/// Reads both rings until they are empty. There must be no other reader.
///
/// # Errors
/// When a ring cannot be opened.
pub async fn drain(pins: &PinFolder, reporter: &RefCell<Reporter>) -> Result<(), DumpError> {
    let (mut decisions, mut ends) = (open(pins, names::EVENTS)?, open(pins, names::FLOW_ENDS)?);
    let mut pace = RingPace::default();
    while read_turn(&mut decisions, &mut ends, reporter) {
        pace.turn(reporter).await;
    }
    Ok(())
}

/// Reports the ends that the sweep found.
pub async fn report_swept(reporter: &RefCell<Reporter>) {
    let mut pace = RingPace::default();
    loop {
        let turn = reporter.borrow_mut().take_swept(TURN);
        turn.iter().for_each(|end| reporter.borrow_mut().ended(end));
        if turn.is_empty() {
            return;
        }
        pace.turn(reporter).await;
    }
}

/// Reports connections that end because the router does.
pub async fn give_up(ends: &[FlowEnd], reporter: &RefCell<Reporter>) {
    let mut pace = RingPace::default();
    for turn in ends.chunks(TURN) {
        turn.iter().for_each(|end| reporter.borrow_mut().given_up(end));
        pace.turn(reporter).await;
    }
}

/// Keeps reading at most one turn ahead of the log's writer: entries that wait in the ring are not lost, but log lines
/// are if they come faster than they are written. One turn ahead, so that neither waits for the other to wake up.
#[derive(Default)]
struct RingPace {
    /// Mark behind the lines of the previous turn.
    before: Option<QueueMark>,
}

impl RingPace {
    /// Yields to other tasks until the lines of the previous turn are written. Does not wait if the log's queue is full
    /// of other lines.
    async fn turn(&mut self, reporter: &RefCell<Reporter>) {
        let log = reporter.borrow().log().clone();
        let this = if log.is_wanted() { log.mark() } else { None };
        if let Some(before) = mem::replace(&mut self.before, this) {
            before.reached(LOG_WAIT).await;
        }
        // Yields even if there was nothing to wait for.
        tokio::task::yield_now().await;
    }
}

fn open(pins: &PinFolder, name: &str) -> Result<RingBuf<MapData>, DumpError> {
    Ok(RingBuf::try_from(pins.open(name)?)?)
}

async fn read_all(decisions: RingBuf<MapData>, ends: RingBuf<MapData>, reporter: &RefCell<Reporter>) -> io::Result<()> {
    let (mut decisions, mut ends) = (readable(decisions)?, readable(ends)?);
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut pace = RingPace::default();
    loop {
        tokio::select! {
            guard = decisions.readable_mut() => guard?.clear_ready(),
            guard = ends.readable_mut() => guard?.clear_ready(),
            _ = look.tick() => {}
        }
        // Ends are read first and reported last: by then the decision about each of their connections has been read.
        while read_turn(decisions.get_mut(), ends.get_mut(), reporter) {
            pace.turn(reporter).await;
        }
    }
}

/// Handles at most [`TURN`] ends, including those that the sweep found, and the available decisions. True if there may
/// be more.
fn read_turn(decisions: &mut RingBuf<MapData>, ends: &mut RingBuf<MapData>, reporter: &RefCell<Reporter>) -> bool {
    let mut reporter = reporter.borrow_mut();
    let mut ended: Vec<FlowEnd> = take(ends, TURN);
    ended.extend(reporter.take_swept(TURN - ended.len()));
    // At most as many as the ring holds: later decisions concern connections that are not among these ends.
    let decided: Vec<DecisionEvent> = take(decisions, EVENT_RING / size_of::<DecisionEvent>());
    decided.iter().for_each(|event| reporter.decided(event));
    ended.iter().for_each(|end| reporter.ended(end));
    ended.len() == TURN || decided.len() >= TURN
}

fn take<T: Plain>(ring: &mut RingBuf<MapData>, most: usize) -> Vec<T> {
    let mut records = Vec::new();
    while records.len() < most {
        let Some(item) = ring.next() else { break };
        // Only an entry of another build is too short, and adoption rejects its maps.
        records.extend(abi::read::<T>(&item));
    }
    records
}
