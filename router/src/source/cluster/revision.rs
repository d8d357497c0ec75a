//! Notices that the API server's versions went back: etcd was restored from a backup.
//!
//! An API server accepts a watch from a version that it has not reached, and reports nothing before it has. So what
//! happened since the backup, and what happens then, would be missed without an error. Only versions of Namespaces are
//! compared: other kinds may be in another etcd, or of an aggregated server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kube::Client;
use kube::api::{Api, ListParams};
use router_model::kind::Kind;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use crate::causes::with_causes;
use crate::kubernetes::api_object::{ApiObject, resource_of};
use crate::kubernetes::{in_time, version_of};
use crate::random;

/// Maximum interval of the comparisons.
const INTERVAL: Duration = Duration::from_secs(60);
/// Range of the delay before a failed one is repeated, in milliseconds.
const RETRY: std::ops::Range<u32> = 5_000..15_000;

/// The newest version that was seen.
#[derive(Default)]
pub struct Revision {
    newest: AtomicU64,
    /// Notified when a watch fails: the API server may be another one afterwards.
    doubted: Notify,
    restored: watch::Sender<()>,
}

impl Revision {
    /// Changes when the versions went back.
    pub fn restored(&self) -> watch::Receiver<()> {
        self.restored.subscribe()
    }

    /// A watch failed.
    pub fn doubt(&self) {
        self.doubted.notify_one();
    }

    /// A watch reported an object of this version.
    pub fn saw(&self, kind: Kind, version: u64) {
        if kind == Kind::Namespace {
            self.newest.fetch_max(version, Ordering::Relaxed);
        }
    }

    /// Compares until the task is dropped.
    pub async fn follow(self: Arc<Revision>, client: Client) {
        let api: Api<ApiObject> = Api::all_with(client, &resource_of(Kind::Namespace, Kind::Namespace.api_version()));
        loop {
            // What is read now is not older, though a watch may report something newer before the answer arrives.
            let before = self.newest.load(Ordering::Relaxed);
            match in_time(api.list_metadata(&ListParams::default().limit(1))).await {
                Ok(list) => self.compare(before, version_of(list.metadata.resource_version.as_deref())),
                // Without the right to list Namespaces there is nothing to compare.
                Err(kube::Error::Api(status)) if status.code == 403 => {}
                Err(error) => {
                    tracing::debug!(error = with_causes(&error), "the version of the API server cannot be read");
                    sleep(Duration::from_millis(random::within(RETRY).into())).await;
                    continue;
                }
            }
            // The end of the time is as good.
            let _ = timeout(INTERVAL, self.doubted.notified()).await;
        }
    }

    /// `before` was known when `version` was asked for; 0 is no version.
    fn compare(&self, before: u64, version: u64) {
        if version == 0 || version >= before {
            self.newest.fetch_max(version, Ordering::Relaxed);
            return;
        }
        tracing::warn!(
            version,
            before,
            "the API server has older versions than before, as after a backup was restored: every kind is listed again"
        );
        self.newest.store(version, Ordering::Relaxed);
        self.restored.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_go_back_are_noticed_once() {
        let revision = Revision::default();
        let mut restored = revision.restored();
        let mut is_noticed = || {
            let changed = restored.has_changed().unwrap_or_default();
            restored.mark_unchanged();
            changed
        };
        let newest = || revision.newest.load(Ordering::Relaxed);
        revision.compare(newest(), 5);
        revision.saw(Kind::Namespace, 9);
        revision.saw(Kind::Service, 90);
        revision.compare(newest(), 9);
        // A watch was faster than the answer.
        revision.saw(Kind::Namespace, 12);
        revision.compare(9, 11);
        assert!(!is_noticed());
        revision.compare(newest(), 8);
        assert!(is_noticed());
        revision.compare(newest(), 8);
        assert!(!is_noticed());
        // No version is no older one.
        revision.compare(newest(), 0);
        assert!(!is_noticed());
    }
}
