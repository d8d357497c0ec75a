//! A Gateway of one of our classes, and what became of its listeners.

use std::sync::Arc;

use router_api::gateway_api::types::Gateway;
use router_model::kind::Kind;

use crate::gateway::listeners::placed::Placed;
use crate::status::condition::Condition;

/// A Gateway of ours with its listeners.
#[derive(Debug)]
pub struct GatewayState<'r> {
    /// The Gateway.
    pub gateway: &'r Arc<Gateway>,
    /// Why nothing of it is served: condition `Accepted`.
    pub refusal: Option<Condition>,
    /// In its own order.
    pub listeners: Vec<Placed<'r>>,
}

impl GatewayState<'_> {
    /// What a listener is called: `Gateway shop/public#web`.
    pub fn parent(&self, listener: &str) -> String {
        format!("{} {}#{listener}", Kind::Gateway, self.gateway.meta.key)
    }
}
