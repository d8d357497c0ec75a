//! Status of an IngressController.

use router_api::openshift::ingress_controller::IngressController;
use serde_json::{Map, Value, json};

use crate::status::condition::Condition;

/// Status of an IngressController.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerStatus {
    /// Effective domain; empty if the manifest is rejected.
    pub domain: String,
    /// Ports for HTTP and HTTPS; `None` if the manifest is rejected.
    pub ports: Option<(u16, u16)>,
    /// Effective `routeAdmission`: namespace ownership and wildcard policy.
    pub route_admission: Option<(&'static str, &'static str)>,
    /// Copy of `spec.namespaceSelector`.
    pub namespace_selector: Option<Value>,
    /// Copy of `spec.routeSelector`.
    pub route_selector: Option<Value>,
    /// Admitted, Available, Degraded, and ManifestValid if a newer version is rejected.
    pub conditions: Vec<Condition>,
}

impl ControllerStatus {
    /// The status of a controller with a valid manifest; the caller adds the conditions.
    pub fn new(controller: &IngressController, domain: String, ports: (u16, u16)) -> Self {
        let manifest = controller.manifest.value();
        let spec = |name: &str| manifest.pointer(&format!("/spec/{name}")).cloned();
        ControllerStatus {
            domain,
            ports: Some(ports),
            route_admission: Some((controller.namespace_ownership.as_str(), controller.wildcard_admission.as_str())),
            namespace_selector: spec("namespaceSelector"),
            route_selector: spec("routeSelector"),
            conditions: Vec::new(),
        }
    }

    /// The status of a controller without an accepted version.
    pub fn rejected(condition: Condition) -> Self {
        ControllerStatus {
            domain: String::new(),
            ports: None,
            route_admission: None,
            namespace_selector: None,
            route_selector: None,
            conditions: vec![condition],
        }
    }

    /// `status` as the API writes it.
    pub fn value(&self) -> Value {
        let mut status = Map::new();
        let mut add = |name: &str, value: Value| drop(status.insert(name.to_owned(), value));
        if !self.domain.is_empty() {
            add("domain", json!(self.domain));
        }
        if let Some((http, https)) = self.ports {
            let network = json!({ "httpPort": http, "httpsPort": https });
            add("endpointPublishingStrategy", json!({ "type": "HostNetwork", "hostNetwork": network }));
        }
        if let Some(selector) = &self.namespace_selector {
            add("namespaceSelector", selector.clone());
        }
        if let Some((ownership, wildcards)) = self.route_admission {
            add("routeAdmission", json!({ "namespaceOwnership": ownership, "wildcardPolicy": wildcards }));
        }
        if let Some(selector) = &self.route_selector {
            add("routeSelector", selector.clone());
        }
        add("conditions", self.conditions.iter().map(Condition::value).collect());
        Value::Object(status)
    }
}
