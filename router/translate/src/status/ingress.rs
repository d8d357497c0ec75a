//! `status.ingress[]` of Routes in compact form: one router admits nearly every Route, and its entries differ in the
//! host only.

use std::fmt;
use std::sync::Arc;

use router_api::openshift::route::WildcardPolicy;
use router_model::names::RouterName;
use router_model::persistent::Identity;
use serde_json::{Value, json};

use crate::status::condition::Condition;

/// Members that all entries of a router share.
#[derive(Debug, PartialEq, Eq)]
pub struct RouterIdentity {
    /// `routerName`.
    pub name: RouterName,
    /// `routerCanonicalHostname`.
    pub canonical_hostname: Arc<str>,
    /// The conditions of a route that is served without further remarks.
    pub admitted: Arc<[Condition]>,
}

impl RouterIdentity {
    /// An entry of this router.
    pub fn entry(&self, host: &str, policy: WildcardPolicy, conditions: Arc<[Condition]>) -> IngressEntry {
        IngressEntry {
            host: host.to_owned(),
            router_name: self.name.clone(),
            router_canonical_hostname: self.canonical_hostname.clone(),
            wildcard_policy: policy.as_str(),
            conditions,
        }
    }
}

/// The entries of one Route, in order of router.
#[derive(Clone)]
pub struct Ingress(StoredIngress);

#[derive(Clone)]
enum StoredIngress {
    /// One router serves the host, without further remarks.
    Admitted {
        host: Arc<str>,
        router: Arc<RouterIdentity>,
    },
    Entries(Arc<[IngressEntry]>),
}

impl Ingress {
    /// The only entry of a route without wildcard, by the router that serves it.
    pub fn admitted(host: Arc<str>, router: Arc<RouterIdentity>) -> Self {
        Ingress(StoredIngress::Admitted { host, router })
    }

    /// The given entries.
    pub fn new(entries: Vec<IngressEntry>) -> Self {
        Ingress(StoredIngress::Entries(entries.into()))
    }

    /// The entries.
    pub fn to_vec(&self) -> Vec<IngressEntry> {
        match &self.0 {
            StoredIngress::Admitted { host, router } => {
                vec![router.entry(host, WildcardPolicy::None, router.admitted.clone())]
            }
            StoredIngress::Entries(entries) => entries.to_vec(),
        }
    }

    /// True if there are no entries: no router selects the route.
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, StoredIngress::Entries(entries) if entries.is_empty())
    }
}

impl Identity for Ingress {
    fn same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (StoredIngress::Admitted { host: a, router: one }, StoredIngress::Admitted { host: b, router: other }) => {
                a == b && one.same(other)
            }
            (StoredIngress::Entries(one), StoredIngress::Entries(other)) => one.same(other),
            _ => false,
        }
    }
}

impl PartialEq for Ingress {
    fn eq(&self, other: &Self) -> bool {
        self.same(other) || self.to_vec() == other.to_vec()
    }
}

impl Eq for Ingress {}

impl fmt::Debug for Ingress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_vec().fmt(f)
    }
}

/// One entry of a Route's `status.ingress[]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressEntry {
    /// Effective host on the router; empty when there is none.
    pub host: String,
    /// The router.
    pub router_name: RouterName,
    /// `router-<name>.<domain>`.
    pub router_canonical_hostname: Arc<str>,
    /// `None` or `Subdomain`.
    pub wildcard_policy: &'static str,
    /// Admitted, and ManifestValid if a newer version is rejected.
    pub conditions: Arc<[Condition]>,
}

impl IngressEntry {
    /// The entry as the API writes it.
    pub fn value(&self) -> Value {
        json!({
            "conditions": self.conditions.iter().map(Condition::value).collect::<Value>(),
            "host": self.host,
            "routerCanonicalHostname": &*self.router_canonical_hostname,
            "routerName": &*self.router_name.0,
            "wildcardPolicy": self.wildcard_policy,
        })
    }
}
