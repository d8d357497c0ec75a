//! Statuses of objects, without times; `merge` adds the times and the entries of other controllers.

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
