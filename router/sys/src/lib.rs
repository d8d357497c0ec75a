//! All unsafe code of the agent; every other user-space crate forbids it.

pub mod abi;
pub mod activation;
#[cfg(feature = "allocator")]
pub mod allocator;
pub mod batch;
pub mod heap;
#[cfg(feature = "huge-pages")]
pub mod huge_pages;
pub mod ring;
pub mod signal;
pub mod socket;
