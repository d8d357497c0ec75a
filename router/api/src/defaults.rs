//! Cluster-wide inputs of parsing.

/// Cluster-wide inputs of parsing.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// Suffix of generated hosts: `ingresses.config` `spec.appsDomain` or `spec.domain`
    /// (docs/openshift.md#generated-host).
    pub cluster_domain: String,
}

impl Default for Defaults {
    fn default() -> Self {
        Defaults { cluster_domain: "apps.localhost".to_owned() }
    }
}
