//! Kubernetes clusters: guarantees of the tests' own, which the other stories rely on, and routers whose source is an API
//! server.

mod background;
mod control_plane;
mod controller;
mod definitions;
mod events;
mod faults;
mod gateways;
mod golden;
mod mock;
mod nodes;
mod outage;
mod references;
mod restored;
mod rights;
mod rows;
mod scale;
mod source;
mod status;
mod writers;

use tests::cluster::site;
