//! The kernel data path as the agent runs it: loaded or not, at work, resting while another agent is about to take over.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use router_datapath::kernel::{Kernel, KernelError, Mode};
use router_datapath::reconciler::inputs::Inputs;
use router_datapath::reconciler::programmed::Programmed;
use router_datapath::{DataPath, PinFolder, ports, reconciler};
use tokio::sync::watch;
use tokio::task::LocalSet;

use crate::agent::error::{AgentError, with_causes};
use crate::agent::options::Options;

/// The programs, with the maps of an earlier agent if there are any; `Ok(Err(reason))` when they cannot be had and the
/// operator did not insist.
pub(super) fn load_kernel(options: &Options, successor: bool) -> Result<Result<Kernel, String>, AgentError> {
    if options.data_path == DataPath::Userspace {
        return Ok(Err("asked for with --data-path userspace".to_owned()));
    }
    // Before anything is loaded: a range that cannot be used is the operator's to change.
    let pins = PinFolder::of(&options.instance);
    let opened = ports::choose(options.snat_ports, &pins)
        .map_err(KernelError::from)
        .and_then(|_| Kernel::open(pins, options.object, successor));
    match opened {
        Ok(kernel) => Ok(Ok(kernel)),
        Err(error) if options.data_path == DataPath::Kernel => Err(error.into()),
        Err(error) => Ok(Err(with_causes(&error))),
    }
}

/// The kernel data path on a thread of its own: its system calls block.
pub(super) struct KernelDataPath {
    inputs: Inputs,
    /// What the kernel has taken.
    pub programmed: watch::Sender<Arc<Programmed>>,
    /// None while another agent is about to take over.
    work: Option<Work>,
}

struct Work {
    mode: watch::Sender<Mode>,
    thread: thread::JoinHandle<()>,
}

impl KernelDataPath {
    /// Begins, if there is a kernel data path.
    pub fn start(kernel: Result<Kernel, String>, inputs: Inputs) -> std::io::Result<Result<Self, String>> {
        let kernel = match kernel {
            Ok(kernel) => kernel,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut path = KernelDataPath { inputs, programmed: watch::Sender::new(Arc::default()), work: None };
        path.resume(kernel)?;
        Ok(Ok(path))
    }

    /// Takes the work up, at first or again.
    pub fn resume(&mut self, kernel: Kernel) -> std::io::Result<()> {
        let (mode, modes) = watch::channel(Mode::Active);
        let (inputs, programmed) = (self.inputs.clone(), self.programmed.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = thread::Builder::new().name("datapath".to_owned()).spawn(move || {
            let work = LocalSet::new();
            if let Err(error) = work.block_on(&runtime, reconciler::run(kernel, inputs, programmed.clone(), modes)) {
                let error = with_causes(&error);
                tracing::error!(error, "the kernel data path ended; everything is relayed");
                // Nobody needs to wait for connections that nobody watches.
                programmed.send_modify(|programmed| Arc::make_mut(programmed).drained = true);
            }
        })?;
        self.work = Some(Work { mode, thread });
        Ok(())
    }

    /// No new connection is steered from here on.
    pub fn drain(&self) {
        if let Some(work) = &self.work {
            work.mode.send_replace(Mode::Drain);
        }
    }

    /// Waits until the kernel carries no connection any more, but no longer than this.
    pub async fn drained(&self, most: Duration) {
        let mut programmed = self.programmed.subscribe();
        if self.work.is_some() && tokio::time::timeout(most, programmed.wait_for(|now| now.drained)).await.is_err() {
            let connections = self.programmed.borrow().connections;
            tracing::warn!(connections, "connections in the kernel were ended at the deadline");
        }
    }

    /// Ends the work, and waits until it has.
    pub async fn end(&mut self, mode: Mode) {
        if let Some(work) = self.work.take() {
            work.mode.send_replace(mode);
            // The thread ends by itself; whether it panicked was printed by then.
            let _ = tokio::task::spawn_blocking(move || work.thread.join()).await;
        }
    }
}
