//! Kubernetes clusters of the tests, without a router: guarantees that the other stories rely on.

mod background;
mod control_plane;
mod definitions;
mod golden;
mod mock;
mod nodes;
mod outage;
mod scale;
mod site;
mod source;
mod status;
