//! All connections to endpoints, by what makes them interchangeable.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Weak};

use foldhash::fast::RandomState;

use crate::upstream::bucket::{Bucket, PoolKey, lock};
use crate::upstream::held::Held;

/// The pool.
#[derive(Debug, Default)]
pub struct Pool {
    /// By keys that no client chooses: every request asks.
    pub(super) buckets: Mutex<HashMap<PoolKey, Arc<Bucket>, RandomState>>,
    /// What client connections have of their own.
    private: Mutex<Vec<Weak<Held>>>,
}

impl Pool {
    /// The connections of this key. A request may know an older table than the newest, and an endpoint that was retired:
    /// `is_there` tells, and where it does not hold, nothing is kept. A table must be known to it before what the table
    /// lacks is retired; then either it says so, or [`Pool::retire`] finds the bucket.
    pub fn bucket(&self, key: PoolKey, is_there: impl FnOnce() -> bool) -> Arc<Bucket> {
        let mut buckets = lock(&self.buckets);
        if let Some(known) = buckets.get(&key) {
            return Arc::clone(known);
        }
        let bucket = Arc::new(Bucket::new(key.clone()));
        if is_there() {
            buckets.insert(key, Arc::clone(&bucket));
        } else {
            bucket.retire();
        }
        bucket
    }

    /// What a client's connection has of its own is swept and retired with the rest.
    pub fn add(&self, private: &Arc<Held>) {
        lock(&self.private).push(Arc::downgrade(private));
    }

    /// Closes connections that are too old or were closed by their endpoint; called every few seconds.
    pub fn sweep(&self) {
        lock(&self.private).retain(|held| held.upgrade().inspect(|held| held.sweep()).is_some());
        lock(&self.buckets).retain(|_, bucket| {
            let empty = bucket.sweep();
            // Whoever has it may be about to put a connection in.
            !empty || Arc::strong_count(bucket) > 1
        });
    }

    /// Descriptors are needed elsewhere: closes idle connections that are nobody's own.
    pub fn relieve(&self) {
        lock(&self.buckets).values().for_each(|bucket| bucket.relieve());
    }

    /// These endpoints are in no table any more, or no longer what they were: their idle connections are closed, and
    /// those in use when their requests have ended.
    pub fn retire(&self, addresses: &HashSet<SocketAddr>) {
        lock(&self.private).iter().filter_map(Weak::upgrade).for_each(|held| held.retire(addresses));
        lock(&self.buckets).retain(|key, bucket| {
            let stays = !addresses.contains(&key.address);
            if !stays {
                bucket.retire();
            }
            stays
        });
    }
}
