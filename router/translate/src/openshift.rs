//! Translation of OpenShift's objects: which Routes a router admits, and what it serves for them.

pub mod claims;
pub mod compile;
pub mod controllers;
pub mod serve;
