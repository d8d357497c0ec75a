//! The result of deciding on hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_api::contour::types::{ContourProxy, Violation};
use router_model::kind::Kind;
use router_model::names::HostMatch;
use router_model::object::{ObjectKey, ObjectRef};

use crate::contour::claims::delegated_domain::{DelegatedDomain, DomainIndex};
use crate::settings::Settings;
use crate::status::host_conflict::HostConflict;

/// IngressRoutes and HTTPProxies of our ingress class, by reference.
pub type Proxies<'r> = BTreeMap<ObjectRef, &'r Arc<ContourProxy>>;

/// The result of deciding on hosts.
#[derive(Debug, Default)]
pub struct ContourClaims<'r> {
    /// Hosts that an object may serve, in order.
    pub granted: Vec<Claim<'r>>,
    /// Every claimed host, granted or not, with the oldest object that claims it: a second claim must not change which
    /// API wins the host.
    pub claimed: BTreeMap<HostMatch, &'r Arc<ContourProxy>>,
    /// The domains.
    pub delegated_domains: Vec<DelegatedDomain<'r>>,
    /// Index of each domain.
    pub domains: DomainIndex,
    /// Roots that do not get their host, and why.
    pub refused: BTreeMap<ObjectRef, Violation>,
    /// Claims lost to Contour's other kind; that one may in turn have lost the host to another API.
    pub lost_to_other_kind: Vec<(Claim<'r>, HostConflict)>,
    /// The objects that won a name, for each loser. For operators only.
    pub winners: Winners,
}

/// By the losing object and the name.
pub type Winners = BTreeMap<(ObjectRef, Arc<str>), BTreeSet<ObjectRef>>;

/// A host granted to an object.
#[derive(Clone, Debug)]
pub struct Claim<'r> {
    /// The host.
    pub host: HostMatch,
    /// The host as written.
    pub name: Arc<str>,
    /// The root; for a subdomain, that of the domain.
    pub root: &'r Arc<ContourProxy>,
    /// For a subdomain: indices of the domain and of the entry in `subdomains`.
    pub entry: Option<(usize, usize)>,
    /// The object whose routes serve the host: the root, or the delegate of a subdomain; `None` if the delegate does
    /// not exist.
    pub start: Option<&'r Arc<ContourProxy>>,
}

/// The violation if several roots have one name: none gets it.
pub(crate) fn duplicate(kind: Kind, name: &str, roots: &BTreeSet<&ObjectKey>) -> Violation {
    let plural = if kind == Kind::IngressRoute { "IngressRoutes" } else { "HTTPProxies" };
    let roots: Vec<String> = roots.iter().map(ToString::to_string).collect();
    let message = format!("fqdn {name:?} is used in multiple {plural}: {}", roots.join(", "));
    Violation::new("VirtualHostError", "DuplicateVhost", message)
}

/// True if the object is written as the root of a domain.
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
