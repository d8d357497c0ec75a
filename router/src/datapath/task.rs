//! The thread that keeps kernel and intention equal.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use router_core::table::RoutingTable;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::events::{self, Sweeper};
use super::image::{MapImage, RouteIds, forget_gone, lower, lower_changes};
use super::interfaces::Interfaces;
use super::kernel::{Kernel, KernelError};
use super::maps::{KernelMaps, Maps, make_all, reconcile};
use super::plan::{Change, plan};
use crate::proxy::listeners::ListenerState;

const LOOK_FOR_INTERFACES: Duration = Duration::from_secs(1);
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MOST: Duration = Duration::from_secs(5);

/// What the kernel has taken of what was intended.
#[derive(Clone, Debug, Default)]
pub struct Programmed {
    /// Revision of the table that was last written.
    pub revision: u64,
    /// Entries that the maps should hold.
    pub entries: usize,
    /// Listening addresses among them.
    pub listeners: usize,
    /// Host entries that have no room; the agent serves them.
    pub left_out: usize,
    /// Writes that failed and are tried again.
    pub failed: usize,
    /// The first of those failures.
    pub error: Option<String>,
    /// Interfaces that the program is attached to.
    pub interfaces: Vec<String>,
    wanted: Arc<Mutex<MapImage>>,
}

impl Programmed {
    /// What the maps should hold now.
    pub fn intended(&self) -> MapImage {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Inputs of the data path.
pub struct Inputs {
    /// What to route.
    pub tables: watch::Receiver<Arc<RoutingTable>>,
    /// Where it is listened.
    pub listeners: watch::Receiver<Arc<Vec<ListenerState>>>,
}

/// Runs until `stop` changes or its sender goes. The kernel's system calls block, so this wants a thread of its own.
///
/// # Errors
/// Only from taking the maps apart; afterwards, failures are retried and told through `programmed`.
pub async fn run(
    mut kernel: Kernel,
    mut inputs: Inputs,
    programmed: watch::Sender<Arc<Programmed>>,
    mut stop: watch::Receiver<bool>,
) -> Result<(), KernelError> {
    let mut state = State {
        maps: kernel.take_maps()?,
        now: MapImage::default(),
        wanted: Arc::default(),
        lowered: None,
        clean: true,
        ids: RouteIds::default(),
        local: Vec::new(),
        retry: RETRY_FIRST,
    };
    let mut sweeper = Sweeper::new(kernel.take_hellos()?);
    let ring = kernel.take_events()?;
    let events = tokio::task::spawn_local(events::follow(ring));
    let mut look = interval(LOOK_FOR_INTERFACES);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen = Interfaces::default();
    state.follow_interfaces(&mut kernel, &mut seen);
    // The first table is there already; later rounds wait for something new.
    let mut again = Some(Instant::now());
    loop {
        let retry = async {
            match again {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = stop.changed() => break,
            changed = inputs.tables.changed() => if changed.is_err() { break },
            changed = inputs.listeners.changed() => if changed.is_err() { break },
            () = retry => {}
            _ = look.tick() => {
                sweeper.sweep();
                if !state.follow_interfaces(&mut kernel, &mut seen) {
                    continue;
                }
            }
        }
        let table = Arc::clone(&inputs.tables.borrow_and_update());
        let listeners = Arc::clone(&inputs.listeners.borrow_and_update());
        let begin = Instant::now();
        let mut result = state.write(&table, &listeners);
        tracing::debug!(target: "timing", revision = table.revision, took = ?begin.elapsed(), "kernel maps written");
        again = (result.failed > 0).then(|| Instant::now() + state.retry);
        result.interfaces = kernel.attached();
        programmed.send_replace(Arc::new(result));
    }
    events.abort();
    Ok(())
}

/// What an image was lowered from.
struct Lowered {
    table: Arc<RoutingTable>,
    listeners: Arc<Vec<ListenerState>>,
    local: Vec<IpAddr>,
}

struct State {
    maps: KernelMaps,
    /// What the maps hold.
    now: MapImage,
    /// What they should hold.
    wanted: Arc<Mutex<MapImage>>,
    lowered: Option<Lowered>,
    /// The last round left nothing undone, so `now` is what `wanted` was.
    clean: bool,
    ids: RouteIds,
    local: Vec<IpAddr>,
    retry: Duration,
}

impl State {
    /// Attaches to what has come and learns addresses. `false` if nothing changed.
    fn follow_interfaces(&mut self, kernel: &mut Kernel, seen: &mut Interfaces) -> bool {
        let found = match Interfaces::read() {
            Ok(found) if found != *seen => found,
            Ok(_) => return false,
            Err(error) => {
                tracing::warn!(%error, "cannot list the interfaces");
                return false;
            }
        };
        self.local = found.addresses.iter().copied().collect();
        for news in kernel.follow(&found) {
            tracing::info!(target: "datapath", "{news}");
        }
        *seen = found;
        true
    }

    fn write(&mut self, table: &Arc<RoutingTable>, listeners: &Arc<Vec<ListenerState>>) -> Programmed {
        let shared = Arc::clone(&self.wanted);
        let mut wanted = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = self.lower(&mut wanted, table, listeners);
        let mut undone = match changes {
            Some(changes) if self.clean => make_all(&mut self.maps, &mut self.now, changes),
            _ => reconcile(&mut self.maps, &mut self.now, &wanted),
        };
        if undone.failed == 0
            && let Err(error) = self.maps.set_revision(table.revision)
        {
            undone.failed = 1;
            tracing::warn!(%error, "cannot write the revision");
        }
        let error = undone.first.map(|(change, error)| format!("{change:?}: {error}"));
        if let Some(error) = &error {
            tracing::warn!(failed = undone.failed, first = error, "map writes failed and are tried again");
        }
        self.clean = undone.failed == 0;
        self.retry = if self.clean { RETRY_FIRST } else { (self.retry * 2).min(RETRY_MOST) };
        Programmed {
            revision: table.revision,
            entries: wanted.len(),
            listeners: wanted.listeners.len(),
            left_out: wanted.left_out,
            failed: undone.failed,
            error,
            interfaces: Vec::new(),
            wanted: Arc::clone(&self.wanted),
        }
    }

    /// Brings `wanted` up to date; the changes that did it, where only routes changed.
    fn lower(
        &mut self,
        wanted: &mut MapImage,
        table: &Arc<RoutingTable>,
        listeners: &Arc<Vec<ListenerState>>,
    ) -> Option<Vec<Change>> {
        let from = Lowered { table: Arc::clone(table), listeners: Arc::clone(listeners), local: self.local.clone() };
        if let Some(old) = self.lowered.replace(from)
            && *old.listeners == **listeners
            && old.local == self.local
            && wanted.left_out == 0
            && let Some((gone, come)) = lower_changes(&old.table, table, &mut self.ids)
            && wanted.has_room_for(&come)
        {
            let changes = plan(&gone, &come);
            changes.iter().for_each(|change| change.apply_to(wanted));
            forget_gone(&old.table, table, &mut self.ids);
            return Some(changes);
        }
        self.ids.assign(table);
        *wanted = lower(table, listeners, &self.local, &self.ids);
        None
    }
}
