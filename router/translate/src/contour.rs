//! Contour: translates IngressRoutes, HTTPProxies and TLSCertificateDelegations into host rules and statuses
//! (docs/delegation.md#subdomains). All objects are served on the router `default`; if no router has this name, on the
//! first one.
//!
//! What depends on what:
//! - `claims` decides which object owns which host, from names alone: of each proxy the key, creation, uid, `fqdn` and
//!   `subdomains`; of the settings the root namespaces, the denied and allowed domains, and undelegated subdomains.
//!   Objects conflict if they have one `fqdn`, if one is inside the domain of another, or if two domains delegate names
//!   to one object that has a virtual host without `fqdn`.
//! - `domain_tls` finds the TLS of a domain, from its root, the root's Secret and TLSCertificateDelegations in that
//!   Secret's namespace, and the TLS of the domain that delegates it.
//! - `host` builds a virtual host, from its claims, the TLS of its domain, the objects that a walk down the delegations
//!   visits, or does not find, their Services (ports and annotated protocols; no endpoints), the Secrets of their
//!   certificates and CAs with delegations, the traffic defaults of the router, and the object of another API that owns
//!   the host. Two more inputs depend on other hosts: `numbers` of an object's routes below several hosts, and the
//!   limit on visits below all roots of a namespace.
//! - `status` writes the status of a proxy from the outcomes of all hosts that it is visited for, and that of a
//!   domain's root from the outcomes of the names that it delegates.
//!
//! [`incremental::Contour`] applies changes. Its result equals a translation of all objects (`tests/batch.rs`).

mod backends;
mod claims;
mod domain_tls;
mod host;
pub mod incremental;
pub(crate) mod matching;
mod numbers;
mod outcome;
mod outcomes;
pub mod references;
mod serve;
pub mod status;
mod tls;
mod walk;

use std::collections::BTreeSet;

use router_api::contour::types::TlsCertificateDelegation;
use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::names::{Hostname, RouterName};
use router_model::object::ObjectRef;

use self::backends::Backends;
use self::domain_tls::DomainStates;
use crate::endpoints::services::Services;
use crate::status::object_status::ObjectStatus;
use crate::translator::{Inputs, RouterPorts};

/// The router that serves Contour's objects, if a router of this name exists.
pub const ROUTER: &str = "default";

/// The router that serves Contour's objects.
fn router<'r>(inputs: &Inputs<'r>) -> Option<&'r RouterPorts> {
    inputs.routers.iter().find(|router| *router.name.0 == *ROUTER).or(inputs.routers.first())
}

fn backends<'r>(inputs: &Inputs<'r>) -> Backends<'r> {
    let Inputs { resources, endpoints, .. } = *inputs;
    Backends { resources, services: Services::new(resources, endpoints) }
}

/// The status of a TLSCertificateDelegation, if its version has one.
fn delegation_status(object: &TlsCertificateDelegation, resources: &Resources) -> Option<(ObjectRef, ObjectStatus)> {
    let reference = ObjectRef { kind: Kind::TlsCertificateDelegation, key: object.meta.key.clone() };
    object.has_status.then(|| (reference, status::serialize::certificate_delegation(object, resources)))
}

/// The valid domains.
fn valid_domains(router: &RouterName, states: &DomainStates) -> BTreeSet<(RouterName, Hostname)> {
    let valid = states.iter().filter(|(_, state)| state.is_ok());
    valid.map(|(domain, _)| (router.clone(), domain.clone())).collect()
}

#[cfg(test)]
mod tests;
