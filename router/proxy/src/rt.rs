//! Waiting and waking, beside what tokio has.

pub mod task_waker;
pub mod timer;
