//! Finds delegated domains (IngressRoutes whose `fqdn` begins with a dot) and checks the names that they delegate.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_api::contour::types::{ContourProxy, Violation};
use router_model::kind::Kind;
use router_model::names::Hostname;
use router_model::object::{ObjectKey, ObjectRef};

use crate::contour::claims::delegated_domain::{DelegatedDomain, Delegation};
use crate::contour::claims::types::{ContourClaims, Proxies, duplicate, is_domain, root_allowed};
use crate::settings::Settings;

/// Domains by name.
type Domains = BTreeMap<Hostname, DelegatedDomain>;

/// The innermost domain that encloses a name or wildcard.
pub fn nearest<'d>(domains: &'d Domains, name: &str) -> Option<&'d DelegatedDomain> {
    let mut rest = name;
    while let Some((_, domain)) = rest.split_once('.') {
        if let Some(found) = domains.get(domain) {
            return Some(found);
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
pub fn find(proxies: &Proxies<'_>, settings: &Settings, claims: &mut ContourClaims) {
    let ContourClaims { domains, rejected, .. } = claims;
    let mut by_domain: BTreeMap<(usize, Hostname), Vec<&Arc<ContourProxy>>> = BTreeMap::new();
    for (object, proxy) in proxies.iter().filter(|(_, proxy)| is_domain(proxy)) {
        match domain_of(proxy) {
            Ok(domain) => by_domain.entry((domain.as_str().len(), domain)).or_default().push(proxy),
            Err(fault) => drop(rejected.insert(object.clone(), fault)),
        }
    }
    for ((_, domain), claimants) in by_domain {
        let outer = nearest(domains, domain.as_str());
        let (mut owners, mut parent) = (Vec::new(), None);
        for proxy in claimants {
            match may_own(&domain, proxy, outer, proxies, settings) {
                Ok(is_delegated) => {
                    owners.push(proxy);
                    parent = parent.or(outer.filter(|_| is_delegated).map(|outer| outer.domain.clone()));
                }
                Err(fault) => drop(rejected.insert(proxy.object(), fault)),
            }
        }
        let root = if let [only] = &*owners { Some(*only) } else { None };
        if root.is_none() {
            let keys: BTreeSet<&ObjectKey> = owners.iter().map(|owner| &owner.meta.key).collect();
            for owner in &owners {
                let fault = duplicate(Kind::IngressRoute, &format!(".{domain}"), &keys);
                rejected.insert(owner.object(), fault);
            }
        }
        if !owners.is_empty() {
            let entries = root.map(|root| entries_of(root, &domain)).unwrap_or_default();
            let named = entries.iter().enumerate().filter_map(|(at, entry)| Some((entry.host.clone()?, at)));
            let found = DelegatedDomain {
                domain: domain.clone(),
                owners: owners.iter().map(|owner| owner.object()).collect(),
                root: root.map(|root| root.object()),
                parent: parent.filter(|_| root.is_some()),
                names: named.collect(),
                entries,
            };
            domains.insert(domain, found);
        }
    }
}

/// The domain of a root whose `fqdn` begins with a dot.
///
/// # Errors
/// The `fqdn` is not a valid domain.
pub fn domain_of(proxy: &ContourProxy) -> Result<Hostname, Violation> {
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

/// Checks that an object may own a domain. `Ok(true)` if the enclosing domain delegates it.
fn may_own(
    domain: &Hostname,
    proxy: &ContourProxy,
    outer: Option<&DelegatedDomain>,
    proxies: &Proxies<'_>,
    settings: &Settings,
) -> Result<bool, Violation> {
    if let Some(delegated_domain) = outer {
        let root = delegated_domain.root.as_ref().and_then(|root| proxies.get(root));
        let of_domain = root.into_iter().flat_map(|root| delegated_domain.entries.iter().zip(&root.subdomains));
        let mut delegated =
            of_domain.filter(|(entry, _)| entry.fault.is_none() && entry.domain.as_ref() == Some(domain));
        if delegated.any(|(_, written)| written.delegate == proxy.meta.key) {
            return Ok(true);
        }
    }
    root_allowed(proxy, settings)?;
    match outer {
        Some(delegated_domain)
            if delegated_domain.owners.iter().any(|owner| owner.key.namespace != proxy.meta.key.namespace) =>
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
/// delegate with its own virtual host can serve only one name. Returns such delegates that serve a name.
pub fn check_delegates(proxies: &Proxies<'_>, claims: &mut ContourClaims) -> BTreeSet<ObjectRef> {
    let domains = &claims.domains;
    let mut order: Vec<(&DelegatedDomain, &Arc<ContourProxy>)> =
        domains.values().filter_map(|domain| Some((domain, *proxies.get(domain.root.as_ref()?)?))).collect();
    order.sort_by_key(|(_, root)| root.meta.age());
    let mut assigned = BTreeSet::new();
    let mut faults = Vec::new();
    for (delegated_domain, root) in order {
        for (entry_at, (entry, written)) in delegated_domain.entries.iter().zip(&root.subdomains).enumerate() {
            if entry.fault.is_some() {
                continue;
            }
            let object = ObjectRef { kind: root.kind, key: written.delegate.clone() };
            let target = proxies.get(&object).copied();
            let inner = nearest(domains, &written.name).filter(|_| entry.host.is_some());
            let fault = match inner.filter(|inner| inner.domain != delegated_domain.domain) {
                Some(inner) => Some(inner.not_delegated(&written.name)),
                None => delegate_fault(entry, target, &object, domains, &assigned),
            };
            if fault.is_none() && entry.host.is_some() && target.is_some_and(|target| target.virtual_host.is_some()) {
                assigned.insert(object);
            }
            faults.extend(fault.map(|fault| (delegated_domain.domain.clone(), entry_at, fault)));
        }
    }
    for (domain, entry_at, fault) in faults {
        let entries = claims.domains.get_mut(&domain).map(|domain| &mut domain.entries);
        entries.and_then(|entries| entries.get_mut(entry_at)).into_iter().for_each(|it| it.fault = Some(fault.clone()));
    }
    assigned
}

/// Why an object cannot serve an entry. A missing delegate is valid: requests for the name get an error.
fn delegate_fault(
    entry: &Delegation,
    target: Option<&Arc<ContourProxy>>,
    object: &ObjectRef,
    domains: &Domains,
    assigned: &BTreeSet<ObjectRef>,
) -> Option<Violation> {
    let key = &object.key;
    let fqdn = target.and_then(|target| target.virtual_host.as_ref()).map(|host| &host.fqdn);
    if let Some(domain) = &entry.domain {
        if target.is_none() {
            return Some(entry_fault("IncludeNotFound", format!("delegate {key} not found")));
        }
        let written = fqdn.map_or("", |fqdn| fqdn);
        let message = match domains.get(domain) {
            Some(delegated_domain) if delegated_domain.root.as_ref() == Some(object) => return None,
            Some(delegated_domain) if delegated_domain.owners.contains(object) => {
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
    assigned.contains(object).then(|| entry_fault("DelegateNotValid", message()))
}
