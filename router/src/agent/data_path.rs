//! The kernel data path as the agent runs it: not loaded, active, or suspended while another agent takes over.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use router_datapath::kernel::{KernelError, KernelPrograms, Mode};
use router_datapath::reconciler::inputs::DataPathInputs;
use router_datapath::reconciler::programmed::Programmed;
use router_datapath::{DataPathMode, PinFolder, ports, reconciler};
use tokio::sync::watch;
use tokio::task::LocalSet;

use crate::agent::error::AgentError;
use crate::agent::options::Options;
use crate::causes::with_causes;

/// Loads the programs, with the maps of an earlier agent if there are any. `Ok(Err(reason))` if that fails and the
/// operator did not require the kernel data path.
pub(super) fn load_kernel(options: &Options, successor: bool) -> Result<Result<KernelPrograms, String>, AgentError> {
    if options.data_path == DataPathMode::Userspace {
        return Ok(Err("asked for with --data-path userspace".to_owned()));
    }
    // Checked before anything is loaded: only the operator can change an unusable range.
    let pins = PinFolder::of(&options.instance);
    let opened = ports::choose(options.snat_ports, &pins)
        .map_err(KernelError::from)
        .and_then(|_| KernelPrograms::open(pins, options.object, successor));
    match opened {
        Ok(kernel) => Ok(Ok(kernel)),
        Err(error) if options.data_path == DataPathMode::Kernel => Err(error.into()),
        Err(error) => Ok(Err(with_causes(&error))),
    }
}

/// The kernel data path on a thread of its own, since its system calls block.
pub(super) struct KernelDataPath {
    inputs: DataPathInputs,
    /// State of the kernel maps.
    pub programmed: watch::Sender<Arc<Programmed>>,
    /// `None` while another agent takes over.
    work: Option<DataPathThread>,
}

struct DataPathThread {
    mode: watch::Sender<Mode>,
    thread: thread::JoinHandle<()>,
}

impl KernelDataPath {
    /// Starts the kernel data path, if there is one.
    pub fn start(
        kernel: Result<KernelPrograms, String>,
        inputs: DataPathInputs,
    ) -> std::io::Result<Result<Self, String>> {
        let kernel = match kernel {
            Ok(kernel) => kernel,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut path = KernelDataPath { inputs, programmed: watch::Sender::new(Arc::default()), work: None };
        path.resume(kernel)?;
        Ok(Ok(path))
    }

    /// Starts or resumes the work.
    pub fn resume(&mut self, kernel: KernelPrograms) -> std::io::Result<()> {
        let (mode, modes) = watch::channel(Mode::Active);
        let (inputs, programmed) = (self.inputs.clone(), self.programmed.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = thread::Builder::new().name("datapath".to_owned()).spawn(move || {
            let work = LocalSet::new();
            if let Err(error) = work.block_on(&runtime, reconciler::run(kernel, inputs, programmed.clone(), modes)) {
                let error = with_causes(&error);
                tracing::error!(error, "the kernel data path ended; everything is relayed");
                // Connections that nothing monitors must not delay the end.
                programmed.send_modify(|programmed| Arc::make_mut(programmed).drained = true);
            }
        })?;
        self.work = Some(DataPathThread { mode, thread });
        Ok(())
    }

    /// Stops steering new connections.
    pub fn drain(&self) {
        if let Some(work) = &self.work {
            work.mode.send_replace(Mode::Drain);
        }
    }

    /// Waits until the kernel carries no connections, at most for this long.
    pub async fn drained(&self, most: Duration) {
        let mut programmed = self.programmed.subscribe();
        if self.work.is_some() && tokio::time::timeout(most, programmed.wait_for(|now| now.drained)).await.is_err() {
            let connections = self.programmed.borrow().connections;
            tracing::warn!(connections, "connections in the kernel were ended at the deadline");
        }
    }

    /// Ends the thread, and waits for it.
    pub async fn end(&mut self, mode: Mode) {
        if let Some(work) = self.work.take() {
            work.mode.send_replace(mode);
            // The thread ends by itself; if it panicked, the panic was printed.
            let _ = tokio::task::spawn_blocking(move || work.thread.join()).await;
        }
    }
}
