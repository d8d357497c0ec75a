//! OpenShift: admission of Routes by routers, and the virtual hosts that serve them.

pub mod claims;
pub mod compile;
pub mod controllers;
pub mod serve;
