//! The effective host of a route on a router (openshift.md a.4, a.5).

use router_common::hostname::HostError;

use super::{RejectReason, Rejection, reject};
use crate::model::{HostMatch, Hostname};
use crate::parse::{Route, WildcardPolicy, names};

/// `spec.host`, else the subdomain in front of the router's domain; empty when neither gives a name.
pub fn effective_host(route: &Route, domain: &str) -> String {
    if !route.host.is_empty() {
        return route.host.clone();
    }
    if route.subdomain.is_empty() || domain.is_empty() {
        return String::new();
    }
    format!("{}.{domain}", route.subdomain)
}

/// What the route would serve, if its effective host is one. The annotation that lets bad labels be stored does not
/// count here, as it does not in OpenShift's router.
pub fn host_match(route: &Route, host: &str) -> Result<HostMatch, Rejection> {
    if host.is_empty() {
        return Err(reject(RejectReason::NoHostValue, "no host value was defined for the route"));
    }
    let mut faults: Vec<String> = names::subdomain_fault(host).into_iter().collect();
    if faults.is_empty() {
        faults = names::label_faults(host);
    }
    if !faults.is_empty() {
        let message = format!("host name validation errors: {}", faults.join(", "));
        return Err(reject(RejectReason::InvalidHost, message));
    }
    let name = Hostname::parse(host).map_err(|error| match error {
        HostError::BadByte => reject(
            RejectReason::InvalidHost,
            format!("host name validation errors: {host:?} ends in a number, so clients take it for an IP address"),
        ),
        other => reject(RejectReason::InvalidHost, format!("host name validation errors: {}", other.describe())),
    })?;
    match route.wildcard_policy {
        WildcardPolicy::None => Ok(HostMatch::Exact(name)),
        WildcardPolicy::Subdomain => {
            name.parent().and_then(|parent| Hostname::parse(parent).ok()).map(HostMatch::Wildcard).ok_or_else(|| {
                let message = format!("host name validation errors: {host:?} has no parent domain for a wildcard");
                reject(RejectReason::InvalidHost, message)
            })
        }
    }
}
