//! Locks of the server's state.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock, also after a panic of another thread.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
