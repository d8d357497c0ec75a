//! What Sluice reports about objects, without times; `merge` adds those and what others have written.

pub mod condition;
pub mod controller;
pub mod host_conflict;
pub mod ingress;
pub mod merge;
pub mod object_status;
pub mod rejection;
pub mod report;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
