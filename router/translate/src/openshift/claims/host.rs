//! The effective host of a route on a router (docs/openshift.md#host).

use std::sync::Arc;

use router_api::openshift::route::{Route, WildcardPolicy};
use router_common::hostname::HostError;
use router_model::dns_names;
use router_model::names::{HostMatch, Hostname};

use crate::status::rejection::{RejectReason, Rejection, reject};

/// `spec.host`, else `spec.subdomain` joined to the router's domain; empty if both are missing.
pub fn effective_host(route: &Route, domain: &str) -> Arc<str> {
    if !route.host.is_empty() || route.subdomain().is_empty() || domain.is_empty() {
        return route.host.clone();
    }
    format!("{}.{domain}", route.subdomain()).into()
}

/// The host match of a Route, if its effective host is valid. As in OpenShift's router, the annotation that allows
/// invalid labels to be stored does not count.
pub fn host_match(route: &Route, host: &Arc<str>) -> Result<HostMatch, Rejection> {
    if host.is_empty() {
        return Err(reject(RejectReason::NoHostValue, "no host value was defined for the route"));
    }
    let mut faults: Vec<String> = dns_names::subdomain_fault(host).into_iter().collect();
    if faults.is_empty() {
        faults = dns_names::label_faults(host);
    }
    if !faults.is_empty() {
        let message = format!("host name validation errors: {}", faults.join(", "));
        return Err(reject(RejectReason::InvalidHost, message));
    }
    let name = Hostname::share(host).map_err(|error| match error {
        HostError::BadByte => reject(
            RejectReason::InvalidHost,
            format!("host name validation errors: {host:?} ends in a number, so clients take it for an IP address"),
        ),
        other => reject(RejectReason::InvalidHost, format!("host name validation errors: {}", other.describe())),
    })?;
    match route.wildcard_policy {
        WildcardPolicy::None => Ok(HostMatch::Exact(name)),
        WildcardPolicy::Subdomain => match name.parent().map(Hostname::parse) {
            Some(Ok(parent)) => Ok(HostMatch::Wildcard(parent)),
            // A host of a single label has no parent domain to cover: as in OpenShift, the Route serves its host alone,
            // and contests all hosts of one label (docs/openshift.md#wildcard-claims).
            None => Ok(HostMatch::Exact(name)),
            Some(Err(error)) => {
                let message =
                    format!("host name validation errors: the parent domain of {host:?}: {}", error.describe());
                Err(reject(RejectReason::InvalidHost, message))
            }
        },
    }
}

#[cfg(test)]
mod tests;
