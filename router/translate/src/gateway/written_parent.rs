//! References to parents as the statuses of Gateway API write them.

use router_api::gateway_api::types::{GROUP, ParentRef};
use router_model::kind::Kind;
use router_model::object::ObjectKey;
use serde::Serialize;

/// A reference to a parent (Gateway API, ParentReference).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenParent<'p> {
    group: &'p str,
    kind: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'p str>,
    name: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    section_name: Option<&'p str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
}

impl<'p> WrittenParent<'p> {
    /// A route's own reference.
    pub fn named(ParentRef { object, section, port }: &'p ParentRef) -> Self {
        WrittenParent {
            group: &object.group,
            kind: &object.kind,
            namespace: object.namespace.as_deref(),
            name: &object.name,
            section_name: section.as_deref(),
            port: *port,
        }
    }

    /// A reference to a listener, for the status of an object in this namespace.
    pub fn listener(namespace: &str, gateway: &'p ObjectKey, section: &'p str) -> Self {
        WrittenParent {
            group: GROUP,
            kind: Kind::Gateway.name(),
            namespace: (*gateway.namespace != *namespace).then_some(&*gateway.namespace),
            name: &gateway.name,
            section_name: Some(section),
            port: None,
        }
    }
}
