//! What Sluice reports about objects, without times; `merge` adds those.

pub mod condition;
pub mod controller;
pub mod ingress;
pub mod merge;
pub mod object_status;
pub mod others;
pub mod rejection;
pub mod report;

#[cfg(test)]
mod tests;
