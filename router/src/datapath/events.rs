//! The rings by which the kernel tells: decisions, and ends of connections.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use aya::maps::{MapData, RingBuf};
use router_common::maps::{EVENT_RING, Event, FlowEnd, names};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{MissedTickBehavior, interval};

use super::PinFolder;
use super::abi::{self, Plain};
use super::dump::{self, DumpError};
use super::ends::Reporter;

/// Ends taken before other work has its turn.
const TURN: usize = 256;
/// Longest wait for the lines of a turn: when nobody takes the log, decisions are still counted.
const LOG_WAIT: Duration = Duration::from_millis(100);
/// How often a ring is looked into. The programs wake nobody until a quarter of it is full.
const LOOK: Duration = Duration::from_millis(100);

/// Reads both rings until it is dropped, or one breaks.
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

/// Reads what is in both rings now. Nobody else may be reading them.
///
/// # Errors
/// When a ring cannot be opened.
pub async fn drain(pins: &PinFolder, reporter: &RefCell<Reporter>) -> Result<(), DumpError> {
    let (mut decisions, mut ends) = (open(pins, names::EVENTS)?, open(pins, names::FLOW_ENDS)?);
    while read_turn(&mut decisions, &mut ends, reporter) {
        written(reporter).await;
    }
    Ok(())
}

/// Tells of connections that have ended because the router does.
pub async fn give_up(ends: &[FlowEnd], reporter: &RefCell<Reporter>) {
    for turn in ends.chunks(TURN) {
        turn.iter().for_each(|end| reporter.borrow_mut().given_up(end));
        written(reporter).await;
    }
}

/// Lets other work have its turn until the lines of this one are written: what waits in the ring is not lost, whereas
/// lines that come faster than they are written are. When the log's queue is full of other lines nobody waits.
async fn written(reporter: &RefCell<Reporter>) {
    let log = reporter.borrow().log().clone();
    if log.is_wanted() {
        log.flush(LOG_WAIT).await;
    }
    // Also when the queue was too full to wait.
    tokio::task::yield_now().await;
}

fn open(pins: &PinFolder, name: &str) -> Result<RingBuf<MapData>, DumpError> {
    Ok(RingBuf::try_from(dump::open(pins, name)?)?)
}

async fn read_all(decisions: RingBuf<MapData>, ends: RingBuf<MapData>, reporter: &RefCell<Reporter>) -> io::Result<()> {
    // SAFETY: each ring owns its descriptor, returns the same one always and closes it only when dropped, which
    // `AsyncFd` does after deregistering it.
    let (mut decisions, mut ends) = unsafe {
        (
            AsyncFd::register_with_interest(decisions, Interest::READABLE)?,
            AsyncFd::register_with_interest(ends, Interest::READABLE)?,
        )
    };
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            guard = decisions.readable_mut() => guard?.clear_ready(),
            guard = ends.readable_mut() => guard?.clear_ready(),
            _ = look.tick() => {}
        }
        // Ends are taken first and told last: by then the decision about each of the connections has been read.
        while read_turn(decisions.get_mut(), ends.get_mut(), reporter) {
            written(reporter).await;
        }
    }
}

/// Takes at most [`TURN`] ends, and the decisions that are there. Whether there may be more.
fn read_turn(decisions: &mut RingBuf<MapData>, ends: &mut RingBuf<MapData>, reporter: &RefCell<Reporter>) -> bool {
    let mut reporter = reporter.borrow_mut();
    let ended: Vec<FlowEnd> = take(ends, TURN);
    // All that the ring can hold: what comes meanwhile is about connections that cannot be among the ends.
    let decided: Vec<Event> = take(decisions, EVENT_RING / size_of::<Event>());
    decided.iter().for_each(|event| reporter.decided(event));
    ended.iter().for_each(|end| reporter.ended(end));
    ended.len() == TURN || decided.len() >= TURN
}

fn take<T: Plain>(ring: &mut RingBuf<MapData>, most: usize) -> Vec<T> {
    let mut records = Vec::new();
    while records.len() < most {
        let Some(item) = ring.next() else { break };
        // Too short for a record: of another build, and adoption refuses its maps.
        records.extend(abi::read::<T>(&item));
    }
    records
}
