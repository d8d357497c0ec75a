//! All unsafe code of the agent; every other crate of user space forbids it.

pub mod abi;
pub mod activation;
pub mod allocator;
pub mod batch;
pub mod huge_pages;
pub mod ring;
pub mod signal;
pub mod socket;
