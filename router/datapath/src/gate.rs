//! The XDP gate's policies: from the routing table to the kernel's maps.
//!
//! A list of networks that changes is written under a new id, beside the old one; then the policies that name it; then the
//! old one is removed. So no packet meets half a list, and a list that does not fit leaves the old one in force.

mod connections;
mod image;
mod lower;
mod maps;
mod pressure;
mod write;

pub use connections::ConnectionSweep;
pub use image::GateImage;
pub use lower::lower;
pub use maps::GateMaps;
pub use pressure::{CookieListener, listeners as cookie_listeners};
pub use write::{AT_ONCE, GateContent, GateWrites, reconcile};

#[cfg(test)]
mod tests;
