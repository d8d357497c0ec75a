//! Kubernetes clusters: the real components, each a process in a network namespace of the test. They are built by
//! `cargo xtask build-kube`.
//!
//! A [`ControlPlane`] is etcd, the API server, the controllers and the scheduler. Its network is a bridge that other
//! namespaces join, among them [`Node`]s. Everything ends with the value, and the processes also when the test's own
//! process is killed. A [`mock::MockApiServer`] stands in for an API server that must fail, or have very many objects.

pub mod aggregated;
mod api;
mod audit;
mod built;
mod control_plane;
mod credentials;
mod definitions;
mod demonstration;
pub mod kubectl;
pub mod leftovers;
pub mod mock;
mod network;
mod node;
pub mod site;

use anyhow::Result;

use crate::netns::Netns;

pub use api::Api;
pub use audit::Write;
pub use built::built;
pub use control_plane::ControlPlane;
pub use credentials::Credentials;
pub use definitions::Definitions;
pub use demonstration::Demonstration;
pub use network::Network;
pub use node::{Node, Pods};

/// A control plane with nodes.
pub struct Cluster {
    // Dropped in this order.
    /// Its nodes, ready.
    pub nodes: Vec<Node>,
    /// Its control plane, with a scheduler.
    pub plane: ControlPlane,
}

impl Cluster {
    /// Starts one with this many nodes, `n1` and so on.
    ///
    /// # Errors
    /// When a component does not start; the error has its output.
    pub fn start(nodes: u8, pods: Pods) -> Result<Cluster> {
        let mut plane = ControlPlane::start()?;
        plane.start_scheduler()?;
        let nodes =
            (1..=nodes).map(|number| Node::start(&plane, &format!("n{number}"), pods)).collect::<Result<_>>()?;
        Ok(Cluster { nodes, plane })
    }

    /// The namespace of its first node; of the API server, if there are no nodes.
    pub fn site(&self) -> &Netns {
        self.nodes.first().map_or(self.plane.netns(), Node::netns)
    }
}
