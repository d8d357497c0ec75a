//! GatewayClasses of Sluice's controller, and their statuses.

use std::collections::BTreeMap;
use std::sync::Arc;

use router_api::gateway_api::types::{CONTROLLER_NAME, GROUP};
use router_api::object::BundleVersion;
use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::object::ObjectRef;
use serde_json::json;

use super::conditions::conditions;
use crate::status::condition::Condition;
use crate::status::object_status::{ObjectStatus, ParentStatus};

/// Supported features of the API, named as in its conformance suite, sorted.
pub const FEATURES: [&str; 39] = [
    "BackendTLSPolicy",
    "BackendTLSPolicySANValidation",
    "GRPCRoute",
    "GRPCRouteNamedRouteRule",
    "Gateway",
    "GatewayAddressEmpty",
    "GatewayHTTPListenerIsolation",
    "GatewayHTTPSListenerDetectMisdirectedRequests",
    "GatewayPort8080",
    "HTTPRoute",
    "HTTPRoute303RedirectStatusCode",
    "HTTPRoute307RedirectStatusCode",
    "HTTPRoute308RedirectStatusCode",
    "HTTPRouteBackendProtocolH2C",
    "HTTPRouteBackendProtocolWebSocket",
    "HTTPRouteBackendRequestHeaderModification",
    "HTTPRouteBackendTimeout",
    "HTTPRouteCORS",
    "HTTPRouteHostRewrite",
    "HTTPRouteMethodMatching",
    "HTTPRouteNamedRouteRule",
    "HTTPRouteParentRefPort",
    "HTTPRoutePathRedirect",
    "HTTPRoutePathRewrite",
    "HTTPRoutePortRedirect",
    "HTTPRouteQueryParamMatching",
    "HTTPRouteRequestMirror",
    "HTTPRouteRequestMultipleMirrors",
    "HTTPRouteRequestPercentageMirror",
    "HTTPRouteRequestTimeout",
    "HTTPRouteResponseHeaderModification",
    "HTTPRouteRetry",
    "HTTPRouteRetryBackendTimeout",
    "HTTPRouteRetryConnectionError",
    "HTTPRouteSchemeRedirect",
    "ReferenceGrant",
    "TLSRoute",
    "TLSRouteModeMixed",
    "TLSRouteModeTerminate",
];

/// Supported minor versions of the API's CRDs; the major version is 1.
const MINOR_VERSIONS: std::ops::RangeInclusive<u32> = 0..=6;

/// The GatewayClasses of Sluice.
#[derive(Debug, Default)]
pub struct Classes {
    /// By class name: true if Gateways of the class are served.
    accepted: BTreeMap<Arc<str>, bool>,
    /// Status of each class.
    pub statuses: BTreeMap<ObjectRef, ObjectStatus>,
}

impl Classes {
    /// Evaluates every class of Sluice's controller.
    pub fn new(resources: &Resources) -> Self {
        let mut classes = Classes::default();
        let version = version(resources);
        for class in resources.gateway_classes.iter().filter(|class| *class.controller == *CONTROLLER_NAME) {
            let accepted = match class.has_parameters {
                false => Condition::new("Accepted", true, "Accepted", ""),
                true => {
                    let message = "spec.parametersRef: no kind of parameters is known; remove the field";
                    Condition::new("Accepted", false, "InvalidParameters", message)
                }
            };
            let row = ParentStatus {
                parent: CONTROLLER_NAME.to_owned(),
                admitted: accepted.holds,
                reason: accepted.reason.clone(),
                message: accepted.message.clone(),
                ..ParentStatus::default()
            };
            let features: Vec<_> = FEATURES.iter().map(|name| json!({ "name": name })).collect();
            let status = json!({
                "conditions": conditions([&accepted, &version], class.meta.generation),
                "supportedFeatures": features,
            });
            classes.accepted.insert(class.meta.key.name.clone(), accepted.holds);
            let object = ObjectRef { kind: Kind::GatewayClass, key: class.meta.key.clone() };
            classes.statuses.insert(object, ObjectStatus::new(&status, vec![row]));
        }
        classes
    }

    /// True if Gateways of this class are served; `None` if the class is not Sluice's.
    pub fn accepts(&self, name: &str) -> Option<bool> {
        self.accepted.get(name).copied()
    }
}

/// Condition `SupportedVersion`, from the bundle version of the installed CRDs.
fn version(resources: &Resources) -> Condition {
    let definitions = resources.definitions.iter().filter(|definition| definition.meta.key.name.ends_with(GROUP));
    let versions = definitions.filter_map(|definition| definition.bundle_version.as_ref());
    let mut unknown = versions.filter(|version| !is_supported_version(version));
    match unknown.next() {
        None => Condition::new("SupportedVersion", true, "SupportedVersion", ""),
        Some(version) => {
            let newest = MINOR_VERSIONS.end();
            let message = format!(
                "the installed definitions are of version {:?}; v1.{} to v1.{newest} are understood",
                version.text,
                MINOR_VERSIONS.start()
            );
            Condition::new("SupportedVersion", false, "UnsupportedVersion", message)
        }
    }
}

fn is_supported_version(version: &BundleVersion) -> bool {
    version.minor.is_some_and(|minor| MINOR_VERSIONS.contains(&minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_sorted() {
        assert!(FEATURES.is_sorted());
    }

    #[test]
    fn supported_versions_are_recognized() {
        for (version, supported) in [
            ("v1.6.1", true),
            ("v1.0.0", true),
            ("v1.5.0-rc.1", true),
            ("v1.7.0", false),
            ("v0.8.1", false),
            ("", false),
        ] {
            assert_eq!(is_supported_version(&BundleVersion::new(version)), supported, "{version}");
        }
    }
}
