//! `sluice controller`: reads an API server and writes statuses and Events to it, without a data path.

use std::io::Write;
use std::sync::Arc;

use router_api::defaults::Defaults;
use router_translate::engine::Engine;
use router_translate::settings::Settings;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::cluster_statuses;
use crate::published::Published;
use crate::source::{Source, SourceError, SourceOptions};
use crate::translation::Translation;

/// Why a controller cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// The API server.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A folder has no Lease, and its objects no written status.
    #[error("a controller needs an API server")]
    Folder,
    /// The writer of statuses, or what it writes.
    #[error("statuses are no longer written: a thread has ended")]
    Ended,
    /// The operating system.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

/// Options of a controller.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where objects come from: an API server.
    pub source: SourceOptions,
    /// Name of the Lease of which the holder writes.
    pub lease: String,
    /// Settings of translation, with the addresses of Gateways.
    pub settings: Settings,
}

/// Runs until SIGTERM or SIGINT.
///
/// # Errors
/// Only from starting; what fails later is retried and reported.
pub async fn run(options: Options) -> Result<(), ControllerError> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let Options { source, lease, settings } = options;
    let defaults = Defaults { cluster_domain: settings.cluster_domain.clone() };
    let (source, first) = tokio::select! {
        opened = Source::open(&source, defaults) => opened?,
        // An API server may be waited for.
        _ = terminate.recv() => return Ok(()),
        _ = interrupt.recv() => return Ok(()),
    };
    let mut engine = Engine::new(settings.clone());
    let first = Arc::new(Published::new(&mut engine, &first, 1));
    let (statuses, inputs) = watch::channel(Arc::clone(&first.status));
    let (published, published_watch) = watch::channel(first);
    let server = source.server().ok_or(ControllerError::Folder)?;
    let mut writing = tokio::spawn(cluster_statuses::write(server, lease, inputs, published_watch));
    let translation = Translation::start(source, engine, settings, move |new| {
        statuses.send_replace(Arc::clone(&new.status));
        published.send_replace(new);
    });
    // A closed stderr must not end the controller, as `eprintln!` would.
    let _ = writeln!(std::io::stderr(), "sluice: ready");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        // It has nothing else to do, and may be restarted.
        _ = &mut writing => return Err(ControllerError::Ended),
    }
    translation.end(Some(writing)).await;
    Ok(())
}
