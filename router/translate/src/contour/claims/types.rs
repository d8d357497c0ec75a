//! Result of the decision on hosts. It refers to objects by key, so that it never holds an old version of an object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_api::contour::types::{ContourProxy, Violation};
use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::names::{HostMatch, Hostname};
use router_model::object::{ObjectKey, ObjectRef};

use crate::contour::claims::delegated_domain::DelegatedDomain;
use crate::settings::Settings;
use crate::status::host_conflict::HostConflict;
use crate::translator::HostClaim;

/// IngressRoutes and HTTPProxies of our ingress class, by reference.
pub type Proxies<'r> = BTreeMap<ObjectRef, &'r Arc<ContourProxy>>;

/// The accepted version of an IngressRoute or HTTPProxy; `None` if it is of another ingress class.
pub fn proxy<'r>(resources: &'r Resources, object: &ObjectRef) -> Option<&'r Arc<ContourProxy>> {
    let found = match object.kind {
        Kind::IngressRoute => resources.ingress_routes.get(&object.key),
        Kind::HttpProxy => resources.http_proxies.get(&object.key),
        _ => None,
    };
    found.filter(|proxy| !proxy.is_foreign())
}

/// Result of the decision on hosts.
#[derive(Debug, Default)]
pub struct ContourClaims {
    /// The claims on each host, and the winner within Contour.
    pub contests: BTreeMap<HostMatch, Contest>,
    /// The domains.
    pub domains: BTreeMap<Hostname, DelegatedDomain>,
    /// Roots whose claim is invalid, and why.
    pub rejected: BTreeMap<ObjectRef, Violation>,
}

/// All claims on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contest {
    /// That of the oldest object that claims the host, granted or not: a second one must not change which API wins the host.
    pub claim: Arc<HostClaim>,
    /// The claims of its kind. A single claim is granted; if there are several, none is.
    pub own: Vec<Claim>,
    /// The claims of Contour's other kind, which lost to it; it may in turn have lost the host to another API.
    pub others: Vec<(Claim, HostConflict)>,
}

impl Contest {
    /// The claim that is granted.
    pub fn granted(&self) -> Option<&Claim> {
        match &*self.own {
            [only] => Some(only),
            _ => None,
        }
    }

    /// All claims.
    pub fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.own.iter().chain(self.others.iter().map(|(claim, _)| claim))
    }
}

/// An object's claim on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The host.
    pub host: HostMatch,
    /// The host as written.
    pub name: Arc<str>,
    /// The root; for a subdomain, that of the domain.
    pub root: ObjectRef,
    /// For a subdomain: the domain that delegates it.
    pub domain: Option<Hostname>,
    /// The object whose routes serve the host: the root, or the delegate of a subdomain, which may not exist.
    pub start: ObjectRef,
}

/// The violation if several roots have one name: none gets it.
pub(crate) fn duplicate(kind: Kind, name: &str, roots: &BTreeSet<&ObjectKey>) -> Violation {
    let plural = if kind == Kind::IngressRoute { "IngressRoutes" } else { "HTTPProxies" };
    let roots: Vec<String> = roots.iter().map(ToString::to_string).collect();
    let message = format!("fqdn {name:?} is used in multiple {plural}: {}", roots.join(", "));
    Violation::new("VirtualHostError", "DuplicateVhost", message)
}

/// True if the object is a domain root: an IngressRoute whose `fqdn` begins with a dot.
pub(crate) fn is_domain(proxy: &ContourProxy) -> bool {
    let begins_with_dot = proxy.virtual_host.as_ref().is_some_and(|host| host.fqdn.starts_with('.'));
    proxy.kind == Kind::IngressRoute && begins_with_dot
}

/// Checks that roots may be in this object's namespace.
pub(crate) fn root_allowed(proxy: &ContourProxy, settings: &Settings) -> Result<(), Violation> {
    let namespaces = &settings.root_namespaces;
    if namespaces.is_empty() || namespaces.iter().any(|namespace| **namespace == *proxy.meta.key.namespace) {
        return Ok(());
    }
    let message = format!("root {} cannot be defined in this namespace", proxy.kind);
    Err(Violation::new("RootNamespaceError", "RootProxyNotAllowedInNamespace", message))
}
