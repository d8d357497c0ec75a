//! A Gateway of an accepted class, and the state of its listeners.

use std::sync::Arc;

use router_api::gateway_api::types::Gateway;
use router_model::kind::Kind;

use crate::gateway::listeners::evaluated::Placed;
use crate::status::condition::Condition;

/// A Gateway of ours with its listeners.
#[derive(Debug)]
pub struct GatewayState {
    /// The Gateway.
    pub gateway: Arc<Gateway>,
    /// Condition `Accepted` if the Gateway is rejected as a whole.
    pub refusal: Option<Condition>,
    /// In the order of `spec.listeners`.
    pub listeners: Vec<Placed>,
}

impl GatewayState {
    /// Name of a listener in messages: `Gateway shop/public#web`.
    pub fn parent(&self, listener: &str) -> String {
        format!("{} {}#{listener}", Kind::Gateway, self.gateway.meta.key)
    }
}
