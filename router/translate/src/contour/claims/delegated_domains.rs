//! Domains: IngressRoutes whose `fqdn` begins with a dot, and the names that they delegate.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_api::contour::types::{ContourProxy, Violation};
use router_model::kind::Kind;
use router_model::names::Hostname;
use router_model::object::{ObjectKey, ObjectRef};

use crate::contour::claims::delegated_domain::{DelegatedDomain, Delegation, DomainIndex};
use crate::contour::claims::types::{ContourClaims, Proxies, duplicate, is_domain, root_allowed};
use crate::settings::Settings;

/// The innermost domain around a name or wildcard.
pub fn nearest(domains: &DomainIndex, name: &str) -> Option<usize> {
    let mut rest = name;
    while let Some((_, domain)) = rest.split_once('.') {
        if let Some(at) = domains.get(domain) {
            return Some(*at);
        }
        rest = domain;
    }
    None
}

fn entry_fault(reason: &'static str, message: String) -> Violation {
    Violation::new("IncludeError", reason, message)
}

/// Finds all domains, outermost first. A domain inside another one must be in its owner's namespace or be delegated by
/// it; otherwise it is rejected.
pub fn find<'r>(proxies: &Proxies<'r>, settings: &Settings, claims: &mut ContourClaims<'r>) {
    let mut by_domain: BTreeMap<(usize, Hostname), Vec<&'r Arc<ContourProxy>>> = BTreeMap::new();
    for (object, proxy) in proxies.iter().filter(|(_, proxy)| is_domain(proxy)) {
        match domain_of(proxy) {
            Ok(domain) => by_domain.entry((domain.as_str().len(), domain)).or_default().push(proxy),
            Err(fault) => drop(claims.refused.insert(object.clone(), fault)),
        }
    }
    for ((_, domain), wanting) in by_domain {
        let inputs = nearest(&claims.domains, domain.as_str());
        let (mut owners, mut parent) = (Vec::new(), None);
        for proxy in wanting {
            match right_to(&domain, proxy, inputs.and_then(|at| claims.delegated_domains.get(at)), settings) {
                Ok(is_delegated) => {
                    owners.push(proxy);
                    parent = parent.or(inputs.filter(|_| is_delegated));
                }
                Err(fault) => drop(claims.refused.insert(proxy.object(), fault)),
            }
        }
        let root = if let [only] = &*owners { Some(*only) } else { None };
        if root.is_none() {
            let keys: BTreeSet<&ObjectKey> = owners.iter().map(|owner| &owner.meta.key).collect();
            for owner in &owners {
                let fault = duplicate(Kind::IngressRoute, &format!(".{domain}"), &keys);
                claims.refused.insert(owner.object(), fault);
            }
        }
        if !owners.is_empty() {
            let entries = root.map(|root| entries_of(root, &domain)).unwrap_or_default();
            let parent = parent.filter(|_| root.is_some());
            let named = entries.iter().enumerate().filter_map(|(at, entry)| Some((entry.host.clone()?, at)));
            let names = named.collect();
            claims.domains.insert(domain.clone(), claims.delegated_domains.len());
            claims.delegated_domains.push(DelegatedDomain { domain, owners, root, parent, entries, names });
        }
    }
}

fn domain_of(proxy: &ContourProxy) -> Result<Hostname, Violation> {
    let fqdn = proxy.virtual_host.as_ref().map(|host| Arc::clone(&host.fqdn)).unwrap_or_default();
    let fault = |reason, message| Err(Violation::new("VirtualHostError", reason, message));
    if fqdn.contains('*') {
        return fault("WildCardNotAllowed", format!("Spec.VirtualHost.Fqdn {fqdn:?} cannot use wildcards"));
    }
    match Hostname::parse(fqdn.trim_start_matches('.')) {
        Ok(domain) if !fqdn.starts_with("..") => Ok(domain),
        _ => fault(
            "FQDNNotValid",
            format!("Spec.VirtualHost.Fqdn {fqdn:?} is not a valid domain; write one such as .example.com"),
        ),
    }
}

/// Whether an object may own a domain. `Ok(true)` if the domain around it delegates it.
fn right_to(
    domain: &Hostname,
    proxy: &ContourProxy,
    inputs: Option<&DelegatedDomain<'_>>,
    settings: &Settings,
) -> Result<bool, Violation> {
    if let Some(delegated_domain) = inputs {
        let of_domain =
            delegated_domain.root.into_iter().flat_map(|root| delegated_domain.entries.iter().zip(&root.subdomains));
        let mut delegated =
            of_domain.filter(|(entry, _)| entry.fault.is_none() && entry.domain.as_ref() == Some(domain));
        if delegated.any(|(_, written)| written.delegate == proxy.meta.key) {
            return Ok(true);
        }
    }
    root_allowed(proxy, settings)?;
    match inputs {
        Some(delegated_domain)
            if delegated_domain.owners.iter().any(|owner| owner.meta.key.namespace != proxy.meta.key.namespace) =>
        {
            Err(delegated_domain.not_delegated(&format!(".{domain}")))
        }
        _ => Ok(false),
    }
}

/// The entries of a root's `subdomains`: each must be within the domain, and unique.
fn entries_of(root: &ContourProxy, domain: &Hostname) -> Vec<Delegation> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for subdomain in &root.subdomains {
        *counts.entry(&subdomain.name).or_default() += 1;
    }
    let entry = |name: &Arc<str>| {
        let bare = name.strip_prefix('.');
        let parsed = Hostname::parse(bare.unwrap_or(name)).ok();
        let inside = format!(".{domain}");
        let fault = if name.contains('*') {
            Some(format!("subdomain {name} cannot use wildcards"))
        } else if name.to_ascii_lowercase() != **name {
            Some(format!("subdomain {name} must be in lower case"))
        } else if !name.ends_with(&inside) || bare.unwrap_or(name).len() <= inside.len() || parsed.is_none() {
            Some(format!("subdomain {name} is not within .{domain}"))
        } else if counts.get(&**name).is_some_and(|count| *count > 1) {
            Some(format!("subdomain {name} is listed more than once"))
        } else {
            None
        };
        let (domain, host) = if bare.is_some() { (parsed, None) } else { (None, parsed) };
        Delegation { host, domain, fault: fault.map(|message| entry_fault("SubdomainNotValid", message)) }
    };
    root.subdomains.iter().map(|subdomain| entry(&subdomain.name)).collect()
}

/// Checks the delegates of all domains, and records why an entry is invalid. Domains of older roots come first, since a
/// delegate with a virtual host of its own can serve only one name. Returns the delegates that have one.
pub fn delegate<'r>(proxies: &Proxies<'r>, claims: &mut ContourClaims<'r>) -> BTreeSet<ObjectRef> {
    let mut order: Vec<usize> = (0..claims.delegated_domains.len()).collect();
    let age = |at: &usize| {
        claims.delegated_domains.get(*at).and_then(|delegated_domain| delegated_domain.root).map(|root| root.meta.age())
    };
    order.sort_by_key(age);
    let mut taken = BTreeSet::new();
    let mut faults = Vec::new();
    for at in order {
        let Some(delegated_domain) = claims.delegated_domains.get(at) else { continue };
        let Some(root) = delegated_domain.root else { continue };
        for (entry_at, (entry, written)) in delegated_domain.entries.iter().zip(&root.subdomains).enumerate() {
            if entry.fault.is_some() {
                continue;
            }
            let object = ObjectRef { kind: root.kind, key: written.delegate.clone() };
            let target = proxies.get(&object).copied();
            let inner = nearest(&claims.domains, &written.name).filter(|_| entry.host.is_some());
            let fault = match inner.filter(|inner| *inner != at).and_then(|inner| claims.delegated_domains.get(inner)) {
                Some(inner) => Some(inner.not_delegated(&written.name)),
                None => unfit(entry, target, &object, claims, &taken),
            };
            if fault.is_none() && entry.host.is_some() && target.is_some_and(|target| target.virtual_host.is_some()) {
                taken.insert(object);
            }
            faults.extend(fault.map(|fault| (at, entry_at, fault)));
        }
    }
    for (at, entry_at, fault) in faults {
        let entry = claims
            .delegated_domains
            .get_mut(at)
            .and_then(|delegated_domain| delegated_domain.entries.get_mut(entry_at));
        entry.into_iter().for_each(|entry| entry.fault = Some(fault.clone()));
    }
    taken
}

/// Why an object cannot serve an entry. A missing delegate is valid: requests for the name get an error.
fn unfit(
    entry: &Delegation,
    target: Option<&Arc<ContourProxy>>,
    object: &ObjectRef,
    claims: &ContourClaims<'_>,
    taken: &BTreeSet<ObjectRef>,
) -> Option<Violation> {
    let key = &object.key;
    let fqdn = target.and_then(|target| target.virtual_host.as_ref()).map(|host| &host.fqdn);
    if let Some(domain) = &entry.domain {
        if target.is_none() {
            return Some(entry_fault("IncludeNotFound", format!("delegate {key} not found")));
        }
        let written = fqdn.map_or("", |fqdn| fqdn);
        let message = match claims.domains.get(domain).and_then(|at| claims.delegated_domains.get(*at)) {
            Some(delegated_domain) if delegated_domain.root.is_some_and(|root| root.object() == *object) => {
                return None;
            }
            Some(delegated_domain) if delegated_domain.owners.iter().any(|owner| owner.object() == *object) => {
                format!("fqdn \".{domain}\" is used in multiple IngressRoutes")
            }
            _ => format!("delegate {key} has fqdn {written:?}, expected \".{domain}\""),
        };
        return Some(entry_fault("DelegateNotValid", message));
    }
    let (fqdn, host) = (fqdn?, entry.host.as_ref()?);
    if !fqdn.is_empty() && Hostname::parse(fqdn).as_ref() != Ok(host) {
        let message = format!("delegate {key} has fqdn {fqdn}, expected {host}");
        return Some(entry_fault("DelegateNotValid", message));
    }
    let message = || format!("delegate {key} has a virtualhost, and serves another name already");
    taken.contains(object).then(|| entry_fault("DelegateNotValid", message()))
}
