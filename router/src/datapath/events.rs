//! The rings by which the kernel tells: decisions, and ends of connections.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use aya::maps::{MapData, RingBuf};
use router_common::maps::{Event, FlowEnd, names};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::PinFolder;
use super::abi::{self, Plain};
use super::dump::{self, DumpError};
use super::ends::Reporter;

/// Records taken before other work has its turn.
const TURN: usize = 256;

/// Reads both rings until it is dropped, or one breaks.
///
/// # Errors
/// When a ring cannot be opened.
pub fn follow(
    pins: &PinFolder,
    reporter: &Rc<RefCell<Reporter>>,
) -> Result<impl Future<Output = ()> + use<>, DumpError> {
    let (decisions, ends) = (open(pins, names::EVENTS)?, open(pins, names::FLOW_ENDS)?);
    let (of_decisions, of_ends) = (Rc::clone(reporter), Rc::clone(reporter));
    Ok(async move {
        let decided = read_all(decisions, |event: &Event| of_decisions.borrow_mut().decided(event));
        let ended = read_all(ends, |end: &FlowEnd| of_ends.borrow_mut().ended(end));
        let (decided, ended) = futures_util::future::join(decided, ended).await;
        for error in [decided.err(), ended.err()].into_iter().flatten() {
            tracing::warn!(%error, "the kernel's events cannot be read");
        }
    })
}

/// Reads what is in both rings now. Nobody else may be reading them.
///
/// # Errors
/// When a ring cannot be opened.
pub fn drain(pins: &PinFolder, reporter: &RefCell<Reporter>) -> Result<(), DumpError> {
    let (mut decisions, mut ends) = (open(pins, names::EVENTS)?, open(pins, names::FLOW_ENDS)?);
    while let Some(item) = decisions.next() {
        abi::read(&item).into_iter().for_each(|event| reporter.borrow_mut().decided(&event));
    }
    while let Some(item) = ends.next() {
        abi::read(&item).into_iter().for_each(|end| reporter.borrow_mut().ended(&end));
    }
    Ok(())
}

fn open(pins: &PinFolder, name: &str) -> Result<RingBuf<MapData>, DumpError> {
    Ok(RingBuf::try_from(dump::open(pins, name)?)?)
}

async fn read_all<T: Plain>(ring: RingBuf<MapData>, mut take: impl FnMut(&T)) -> io::Result<()> {
    // SAFETY: the ring owns its descriptor, returns the same one always and closes it only when dropped, which
    // `AsyncFd` does after deregistering it.
    let mut ready = unsafe { AsyncFd::register_with_interest(ring, Interest::READABLE) }?;
    loop {
        let mut guard = ready.readable_mut().await?;
        let mut taken = 0;
        while taken < TURN {
            let Some(item) = guard.get_inner_mut().next() else { break };
            taken += 1;
            if let Some(record) = abi::read(&item) {
                take(&record);
            }
        }
        if taken < TURN {
            guard.clear_ready();
        } else {
            tokio::task::yield_now().await;
        }
    }
}
