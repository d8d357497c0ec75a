//! What parsing needs to know beside an object.

/// What parsing needs to know beside the object.
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
