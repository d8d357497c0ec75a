//! TLS of domains, inherited by the names that they delegate.

use std::collections::BTreeMap;
use std::sync::Arc;

use router_api::contour::types::{ContourProxy, Violation};
use router_api::resources::Resources;
use router_model::names::Hostname;

use crate::contour::claims::delegated_domain::DelegatedDomain;
use crate::contour::claims::types::proxy;
use crate::contour::status::wording::root_invalid;
use crate::contour::tls::{self, HostTls};

/// The TLS of each domain, or why the domain is invalid.
pub type DomainStates = BTreeMap<Hostname, Result<HostTls, Violation>>;

/// The states of these domains. If a domain is included, the domains that delegate it must be included too.
pub fn states<'c>(domains: impl IntoIterator<Item = &'c DelegatedDomain>, resources: &Resources) -> DomainStates {
    let mut outermost: Vec<&DelegatedDomain> = domains.into_iter().collect();
    outermost.sort_by_key(|delegated_domain| delegated_domain.domain.as_str().len());
    let mut states = DomainStates::new();
    for delegated_domain in outermost {
        let root = delegated_domain.root.as_ref().and_then(|root| proxy(resources, root));
        let parent = delegated_domain.parent.as_ref().and_then(|parent| states.get(parent));
        let state = match root {
            None => Err(Violation::new("VirtualHostError", "DuplicateVhost", "several roots have this domain")),
            Some(root) => state(root, parent, resources),
        };
        states.insert(delegated_domain.domain.clone(), state);
    }
    states
}

fn state(
    root: &Arc<ContourProxy>,
    parent: Option<&Result<HostTls, Violation>>,
    resources: &Resources,
) -> Result<HostTls, Violation> {
    let inherited = match parent {
        Some(Ok(tls)) => tls.clone(),
        Some(Err(_)) => return Err(root_invalid()),
        None => HostTls::None,
    };
    if let Some(fault) = root.faults.first() {
        return Err(fault.clone());
    }
    if !root.routes.is_empty() || root.tcp.is_some() {
        return Err(Violation::new("VirtualHostError", "DomainRootWithRoutes", "domain root cannot define routes"));
    }
    if root.subdomains.is_empty() {
        let message = "Spec.Subdomains must be specified for a Fqdn that begins with a dot";
        return Err(Violation::new("VirtualHostError", "NoSubdomains", message));
    }
    match root.virtual_host.as_ref().and_then(|host| host.tls.as_ref()) {
        Some(spec) => tls::own(root, spec, resources).map(|own| own.at_least(&inherited)),
        None => Ok(inherited),
    }
}
