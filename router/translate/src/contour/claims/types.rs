//! What is decided about names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_api::contour::types::{ContourProxy, Violation};
use router_model::kind::Kind;
use router_model::names::HostMatch;
use router_model::object::{ObjectKey, ObjectRef};

use crate::contour::claims::delegated_domain::{DelegatedDomain, Domains};
use crate::settings::Settings;
use crate::status::host_conflict::HostConflict;

/// The IngressRoutes and HTTPProxies that are ours, by object.
pub type Vertices<'r> = BTreeMap<ObjectRef, &'r Arc<ContourProxy>>;

/// What is decided about names.
#[derive(Debug, Default)]
pub struct Claims<'r> {
    /// Hosts that somebody may serve, in order.
    pub granted: Vec<Claim<'r>>,
    /// Every host that is wanted, also where nobody gets it, with the oldest object that wants it: a name must not
    /// change hands because somebody else wants it too.
    pub wanted: BTreeMap<HostMatch, &'r Arc<ContourProxy>>,
    /// The domains.
    pub zones: Vec<DelegatedDomain<'r>>,
    /// Their places by name.
    pub domains: Domains,
    /// Objects with a virtual host of their own that do not get it, and why.
    pub refused: BTreeMap<ObjectRef, Violation>,
    /// Claims that lost to one of Contour's other kind, which may have lost the host to another API in its turn.
    pub lost_to_other_kind: Vec<(Claim<'r>, HostConflict)>,
    /// Who stands in the way of an object that wants a name. For operators only.
    pub winners: Winners,
}

/// By the object that wants a name, and the name.
pub type Winners = BTreeMap<(ObjectRef, Arc<str>), BTreeSet<ObjectRef>>;

/// A host that an object may serve.
#[derive(Clone, Debug)]
pub struct Claim<'r> {
    /// The host.
    pub host: HostMatch,
    /// As people write it.
    pub name: Arc<str>,
    /// The root object: that of the domain for a subdomain.
    pub root: &'r Arc<ContourProxy>,
    /// For a subdomain: its domain and its place in the root's list.
    pub entry: Option<(usize, usize)>,
    /// Where routes begin: the root itself, or the delegate of a subdomain; `None`: that is not there.
    pub start: Option<&'r Arc<ContourProxy>>,
}

/// Several roots with one name: none has it.
pub(crate) fn duplicate(kind: Kind, name: &str, roots: &BTreeSet<&ObjectKey>) -> Violation {
    let plural = if kind == Kind::IngressRoute { "IngressRoutes" } else { "HTTPProxies" };
    let roots: Vec<String> = roots.iter().map(ToString::to_string).collect();
    let message = format!("fqdn {name:?} is used in multiple {plural}: {}", roots.join(", "));
    Violation::new("VirtualHostError", "DuplicateVhost", message)
}

/// Whether a vertex is written as the root of a domain.
pub(crate) fn is_domain(vertex: &ContourProxy) -> bool {
    let begins_with_dot = vertex.virtual_host.as_ref().is_some_and(|host| host.fqdn.starts_with('.'));
    vertex.kind == Kind::IngressRoute && begins_with_dot
}

/// Whether roots may be in this object's namespace.
pub(crate) fn root_allowed(vertex: &ContourProxy, settings: &Settings) -> Result<(), Violation> {
    let namespaces = &settings.root_namespaces;
    if namespaces.is_empty() || namespaces.iter().any(|namespace| **namespace == *vertex.meta.key.namespace) {
        return Ok(());
    }
    let message = format!("root {} cannot be defined in this namespace", vertex.kind);
    Err(Violation::new("RootNamespaceError", "RootProxyNotAllowedInNamespace", message))
}
