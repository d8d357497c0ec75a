//! Equal values of different routes, stored once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Most values that are compared with a new one.
const MOST: usize = 16;

/// Recently used distinct values, the last one first.
#[derive(Debug)]
pub struct Recent<T>(Mutex<VecDeque<Arc<T>>>);

impl<T: PartialEq> Recent<T> {
    /// No values.
    #[expect(clippy::new_without_default, reason = "statics need a constant")]
    pub const fn new() -> Self {
        Recent(Mutex::new(VecDeque::new()))
    }

    /// A value, shared if an equal one is among the recent ones.
    pub fn share(&self, value: T) -> Arc<T> {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = recent.iter().position(|known| **known == value).and_then(|at| recent.remove(at));
        let value = known.unwrap_or_else(|| Arc::new(value));
        recent.push_front(Arc::clone(&value));
        recent.truncate(MOST);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_shared_while_they_are_recent() {
        let recent = Recent::new();
        let first = recent.share(1);
        assert!((2..=MOST).all(|value| *recent.share(value) != *first));
        assert!(Arc::ptr_eq(&first, &recent.share(1)));
        // One more than the limit: the oldest value is no longer shared.
        (2..MOST + 2).for_each(|value| drop(recent.share(value)));
        let anew = recent.share(1);
        assert!(!Arc::ptr_eq(&first, &anew) && *first == *anew);
        assert_eq!(recent.0.lock().unwrap().len(), MOST);
    }
}
