//! The kinds that the server serves.

use std::fmt;

use anyhow::{Context, Result};
use serde_json::Value;

/// A kind. Its versions have the same objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// API group; empty for the core.
    pub group: String,
    /// Served versions, the preferred one first.
    pub versions: Vec<String>,
    /// Its name: `Route`.
    pub name: String,
    /// Name of its collection: `routes`.
    pub plural: String,
    /// Whether its objects are in namespaces.
    pub is_namespaced: bool,
    /// Whether the status is a subresource.
    pub has_status: bool,
    /// Whether a definition makes it.
    pub is_defined: bool,
}

/// Kinds without a definition: group, version, name, plural, whether namespaced, whether with a status.
const BUILT_IN: [(&str, &str, &str, &str, bool, bool); 14] = [
    ("", "v1", "ConfigMap", "configmaps", true, false),
    ("", "v1", "Event", "events", true, false),
    ("", "v1", "Namespace", "namespaces", false, true),
    ("", "v1", "Node", "nodes", false, true),
    ("", "v1", "Pod", "pods", true, true),
    ("", "v1", "Secret", "secrets", true, false),
    ("", "v1", "Service", "services", true, true),
    ("", "v1", "ServiceAccount", "serviceaccounts", true, false),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false, true),
    ("apps", "v1", "DaemonSet", "daemonsets", true, true),
    ("apps", "v1", "Deployment", "deployments", true, true),
    ("coordination.k8s.io", "v1", "Lease", "leases", true, false),
    ("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", true, false),
    ("events.k8s.io", "v1", "Event", "events", true, false),
];

impl Kind {
    /// The kinds that are there without definitions.
    pub fn built_in() -> impl Iterator<Item = Kind> {
        BUILT_IN.into_iter().map(|(group, version, name, plural, is_namespaced, has_status)| Kind {
            group: group.to_owned(),
            versions: vec![version.to_owned()],
            name: name.to_owned(),
            plural: plural.to_owned(),
            is_namespaced,
            has_status,
            is_defined: false,
        })
    }

    /// The kind of a CustomResourceDefinition (apiextensions.k8s.io/v1).
    ///
    /// # Errors
    /// When a needed field is missing.
    pub fn defined(definition: &Value) -> Result<Kind> {
        let spec = &definition["spec"];
        let text = |value: &Value, name: &str| {
            value.as_str().map(str::to_owned).with_context(|| format!("a definition without {name}"))
        };
        let versions = spec["versions"].as_array().context("a definition without spec.versions")?;
        let mut served: Vec<_> = versions.iter().filter(|version| version["served"] == true).collect();
        // The stored one is preferred here; an API server orders them by maturity.
        served.sort_by_key(|version| version["storage"] != true);
        Ok(Kind {
            group: text(&spec["group"], "spec.group")?,
            versions: served.iter().map(|it| text(&it["name"], "a version's name")).collect::<Result<_>>()?,
            name: text(&spec["names"]["kind"], "spec.names.kind")?,
            plural: text(&spec["names"]["plural"], "spec.names.plural")?,
            is_namespaced: spec["scope"] == "Namespaced",
            has_status: served.iter().any(|version| version["subresources"]["status"].is_object()),
            is_defined: true,
        })
    }

    /// `apiVersion` of its objects in a version.
    pub fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }

    /// The preferred version.
    pub fn version(&self) -> &str {
        self.versions.first().map_or("", String::as_str)
    }
}

/// `routes.route.openshift.io`, as messages name it.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = if self.group.is_empty() { "" } else { "." };
        write!(f, "{}{dot}{}", self.plural, self.group)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_definition_makes_a_kind_of_its_served_versions() -> Result<()> {
        let version =
            |name: &str, served: bool, storage: bool| json!({"name": name, "served": served, "storage": storage});
        let mut versions =
            [version("v1alpha1", false, false), version("v1beta1", true, false), version("v1", true, true)];
        versions[2]["subresources"] = json!({"status": {}});
        let definition = json!({"spec": {
            "group": "example.test", "scope": "Namespaced", "versions": versions,
            "names": {"kind": "Thing", "plural": "things"},
        }});
        let kind = Kind::defined(&definition)?;
        assert_eq!(kind.versions, ["v1", "v1beta1"]);
        assert!(kind.is_namespaced && kind.has_status && kind.is_defined);
        assert_eq!(kind.to_string(), "things.example.test");
        assert_eq!(kind.api_version("v1"), "example.test/v1");
        assert!(Kind::defined(&json!({"spec": {"group": "example.test"}})).is_err());
        Ok(())
    }
}
