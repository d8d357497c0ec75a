//! Connections to endpoints that belong to one client connection.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::upstream::bucket::Bucket;

/// The connections, by endpoint.
#[derive(Debug, Default)]
pub struct PrivateBuckets {
    /// Least recently used first.
    buckets: Mutex<Vec<Arc<Bucket>>>,
}

impl PrivateBuckets {
    pub(super) fn find(&self, is_it: impl Fn(&Bucket) -> bool) -> Option<Arc<Bucket>> {
        let mut buckets = self.lock();
        let at = buckets.iter().position(|bucket| is_it(bucket))?;
        let bucket = buckets.remove(at);
        buckets.push(Arc::clone(&bucket));
        Some(bucket)
    }

    /// As [`ConnectionPool::sweep`](super::pool::ConnectionPool::sweep).
    pub fn sweep(&self) {
        self.lock().retain(|bucket| !bucket.sweep() || bucket.is_tied() || Arc::strong_count(bucket) > 1);
    }

    /// As [`ConnectionPool::retire`](super::pool::ConnectionPool::retire).
    pub fn retire(&self, addresses: &HashSet<SocketAddr>) {
        self.lock().retain(|bucket| {
            let stays = !addresses.contains(&bucket.key.address);
            if !stays {
                bucket.retire();
            }
            stays
        });
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<Arc<Bucket>>> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
