//! Claims across a host and its parent domain, where wildcard routes are allowed (openshift.md b.4). Routes are offered
//! oldest first, so whoever holds a claim is older.

use std::collections::{BTreeSet, HashMap};

use crate::parse::{NamespaceOwnership, Route, WildcardPolicy};

/// Who holds which hosts and wildcards on a router.
#[derive(Default)]
pub struct WildcardClaims<'r> {
    exact: HashMap<String, ExactClaims<'r>>,
    domains: HashMap<String, DomainClaims<'r>>,
}

/// Exact routes of one host.
#[derive(Default)]
struct ExactClaims<'r> {
    namespaces: BTreeSet<&'r str>,
    by_path: HashMap<&'r str, &'r Route>,
}

/// Routes under one parent domain.
#[derive(Default)]
struct DomainClaims<'r> {
    exact_namespaces: BTreeSet<&'r str>,
    wildcard_namespaces: BTreeSet<&'r str>,
    wildcards_by_path: HashMap<&'r str, &'r Route>,
}

impl<'r> WildcardClaims<'r> {
    /// Whether the route may have its host, or its wildcard, beside those who hold something under the same domain.
    ///
    /// # Errors
    /// The message of its `HostAlreadyClaimed`.
    pub fn check(&self, route: &Route, host: &str, ownership: NamespaceOwnership) -> Result<(), String> {
        let is_wildcard = route.wildcard_policy == WildcardPolicy::Subdomain;
        let (namespace, path) = (&*route.meta.key.namespace, route.traffic.path());
        let strict = ownership == NamespaceOwnership::Strict;
        let foreign = |namespaces: &BTreeSet<&str>| strict && namespaces.iter().any(|other| *other != namespace);
        let elsewhere = || format!("a route in another namespace holds host {host}");

        if let Some(claims) = self.exact.get(host).filter(|_| !is_wildcard) {
            if foreign(&claims.namespaces) {
                return Err(elsewhere());
            }
            if let Some(holder) = claims.by_path.get(path) {
                let key = &holder.meta.key;
                return Err(if *key.namespace == *namespace {
                    format!("route {key} has host {host}")
                } else {
                    elsewhere()
                });
            }
        }
        let domain = parent(host);
        let Some(claims) = self.domains.get(domain) else { return Ok(()) };
        if foreign(&claims.wildcard_namespaces) || (is_wildcard && foreign(&claims.exact_namespaces)) {
            return Err(elsewhere());
        }
        match claims.wildcards_by_path.get(path).filter(|_| is_wildcard) {
            Some(holder) if *holder.meta.key.namespace == *namespace => {
                Err(format!("wildcard route {} has host *.{domain}, blocking {host}", holder.meta.key))
            }
            Some(_) => Err(elsewhere()),
            None => Ok(()),
        }
    }

    /// Notes a route that has passed every check.
    pub fn hold(&mut self, route: &'r Route, host: &str) {
        let (namespace, path) = (&*route.meta.key.namespace, route.traffic.path());
        let domain = self.domains.entry(parent(host).to_owned()).or_default();
        if route.wildcard_policy == WildcardPolicy::Subdomain {
            domain.wildcard_namespaces.insert(namespace);
            domain.wildcards_by_path.insert(path, route);
        } else {
            domain.exact_namespaces.insert(namespace);
            let exact = self.exact.entry(host.to_owned()).or_default();
            exact.namespaces.insert(namespace);
            exact.by_path.insert(path, route);
        }
    }
}

/// The domain that a wildcard of this host stands for; empty for a single label.
fn parent(host: &str) -> &str {
    host.split_once('.').map_or("", |(_, parent)| parent)
}
