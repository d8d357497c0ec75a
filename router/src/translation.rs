//! Reads a source, translates each of its snapshots and publishes the results.

use std::sync::Arc;
use std::time::{Duration, Instant};

use router_translate::engine::Engine;
use router_translate::settings::Settings;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::published::Published;
use crate::source::{Source, SourceSnapshot};

/// Maximum time for the writer of statuses, or of the snapshot, to end.
const END: Duration = Duration::from_secs(2);

/// A running translation.
pub struct Translation {
    reading: JoinHandle<()>,
    following: JoinHandle<()>,
    held: watch::Receiver<SourceSnapshot>,
}

impl Translation {
    /// Translates every new snapshot of a source, of which the engine has the first one.
    pub fn start(
        source: Source,
        engine: Engine,
        settings: Settings,
        publish: impl Fn(Arc<Published>) + Send + 'static,
    ) -> Self {
        let (snapshots, reading) = source.watch();
        let held = snapshots.clone();
        let reading = tokio::spawn(reading);
        Translation { reading, following: tokio::spawn(follow(snapshots, engine, settings, publish)), held }
    }

    /// Publishes nothing from now on.
    pub fn stop(&self) {
        self.following.abort();
    }

    /// Waits until the writer of statuses has ended, and then the source.
    pub async fn end(self, status: Option<JoinHandle<()>>) {
        self.stop();
        if let Some(status) = status {
            end(status).await;
        }
        // The requests of the status writer use the connection of the source, which ends with the last receiver.
        drop(self.held);
        end(self.reading).await;
    }
}

/// Waits until a writer has ended, as it does when there are no more translations.
async fn end(mut writer: JoinHandle<()>) {
    if tokio::time::timeout(END, &mut writer).await.is_err() {
        writer.abort();
    }
}

async fn follow(
    mut snapshots: watch::Receiver<SourceSnapshot>,
    mut engine: Engine,
    settings: Settings,
    publish: impl Fn(Arc<Published>),
) {
    let mut revision = 1;
    while snapshots.changed().await.is_ok() {
        let snapshot = snapshots.borrow_and_update().clone();
        revision += 1;
        let begin = Instant::now();
        let work = tokio::task::spawn_blocking(move || {
            let new = Published::new(&mut engine, &snapshot, revision);
            (engine, new)
        });
        match work.await {
            Ok((back, new)) => {
                engine = back;
                tracing::debug!(target: "timing", revision, took = ?begin.elapsed(), "translated");
                publish(Arc::new(new));
            }
            // A bug. The current table keeps serving, and the next change is translated from scratch.
            Err(error) => {
                tracing::error!(%error, "translation failed; the last table goes on serving");
                engine = Engine::new(settings.clone());
            }
        }
    }
}
