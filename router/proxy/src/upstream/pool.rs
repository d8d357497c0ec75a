//! The pool of connections to endpoints. Each worker has one.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Weak};

use foldhash::fast::RandomState;

use crate::upstream::bucket::{Bucket, PoolKey, lock};
use crate::upstream::private_buckets::PrivateBuckets;

/// Connections by key.
#[derive(Debug, Default)]
pub struct ConnectionPool {
    /// By key. Clients cannot choose keys, so a fast hash function is safe.
    pub(super) buckets: Mutex<HashMap<PoolKey, Arc<Bucket>, RandomState>>,
    /// Connections that belong to single client connections.
    private: Mutex<Vec<Weak<PrivateBuckets>>>,
}

impl ConnectionPool {
    /// The bucket of this key. A request may refer to an endpoint that was retired; if `is_there` returns false, the
    /// bucket keeps no connections. The new table must be visible to `is_there` before endpoints are retired: then
    /// either `is_there` returns false, or [`ConnectionPool::retire`] finds the bucket.
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

    /// Registers a client connection's own connections, so that they are swept and retired, too.
    pub fn add(&self, private: &Arc<PrivateBuckets>) {
        lock(&self.private).push(Arc::downgrade(private));
    }

    /// Closes connections that are too old or were closed by their endpoint; called every few seconds.
    pub fn sweep(&self) {
        lock(&self.private).retain(|held| held.upgrade().inspect(|held| held.sweep()).is_some());
        lock(&self.buckets).retain(|_, bucket| {
            let empty = bucket.sweep();
            // A holder of the bucket may be about to add a connection.
            !empty || Arc::strong_count(bucket) > 1
        });
    }

    /// Closes idle shared connections, to free file descriptors.
    pub fn relieve(&self) {
        lock(&self.buckets).values().for_each(|bucket| bucket.relieve());
    }

    /// Retires endpoints that were removed or changed: closes their idle connections at once, and those in use after
    /// their requests.
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
