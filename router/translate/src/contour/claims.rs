//! Decides which object owns which host: roots, domains of `.suffix` roots, and names that domains delegate
//! (docs/delegation.md#subdomains, S1 – S4 and S8). Only names matter here; rules and certificates are resolved later.

pub mod delegated_domain;
pub(crate) mod delegated_domains;
pub mod types;

use std::collections::BTreeMap;
use std::sync::Arc;

use router_api::contour::types::{ContourProxy, Violation};
use router_common::hostname::HostError;
use router_model::kind::Kind;
use router_model::names::{HostMatch, Hostname};
use router_model::object::ObjectRef;

use crate::contour::claims::types::{Claim, Contest, ContourClaims, Proxies, is_domain, root_allowed};
use crate::owned_age::OwnedAge;
use crate::settings::Settings;
use crate::status::host_conflict::{HostConflict, WinningClaim};
use crate::translator::HostClaim;

/// Decides on the hosts of these proxies. The result for a host depends only on proxies whose names can conflict.
pub fn decide(proxies: &Proxies<'_>, settings: &Settings) -> ContourClaims {
    let mut claims = ContourClaims::default();
    delegated_domains::find(proxies, settings, &mut claims);
    let assigned = delegated_domains::check_delegates(proxies, &mut claims);
    claims.check_lists(settings);
    let mut candidates = claims_of_domains(proxies, &claims);
    for (object, proxy) in proxies {
        let Some(virtual_host) = &proxy.virtual_host else { continue };
        if claims.rejected.contains_key(object) || is_domain(proxy) || assigned.contains(object) {
            continue;
        }
        let candidate = root_allowed(proxy, settings)
            .and_then(|()| host_of(proxy.kind, &virtual_host.fqdn))
            .and_then(|(host, name)| check_name(&name, settings).map(|()| (host, name)))
            .and_then(|(host, name)| claims.check_domains(proxy, &name, settings).map(|()| (host, name)));
        match candidate {
            Ok((host, name)) => {
                let (root, start) = (object.clone(), object.clone());
                candidates.push(Claim { host, name, root, domain: None, start });
            }
            Err(fault) => drop(claims.rejected.insert(object.clone(), fault)),
        }
    }
    claims.contests = contests(candidates, proxies);
    claims
}

fn claims_of_domains(proxies: &Proxies<'_>, claims: &ContourClaims) -> Vec<Claim> {
    let mut candidates = Vec::new();
    for delegated_domain in claims.domains.values() {
        let Some(root) = delegated_domain.root.as_ref().and_then(|root| proxies.get(root)) else { continue };
        for (entry, written) in delegated_domain.entries.iter().zip(&root.subdomains) {
            let Some(host) = entry.host.as_ref().filter(|_| entry.fault.is_none()) else { continue };
            candidates.push(Claim {
                host: HostMatch::Exact(host.clone()),
                name: Arc::clone(host.text()),
                root: root.object(),
                domain: Some(delegated_domain.domain.clone()),
                start: ObjectRef { kind: root.kind, key: written.delegate.clone() },
            });
        }
    }
    candidates
}

/// The claims on each host. A host is granted to the only object that claims it. If several objects of one kind claim
/// it, it is granted to none; if objects of both kinds claim it, to the kind of the oldest object.
fn contests(candidates: Vec<Claim>, proxies: &Proxies<'_>) -> BTreeMap<HostMatch, Contest> {
    let mut by_host: BTreeMap<HostMatch, Vec<Claim>> = BTreeMap::new();
    for candidate in candidates {
        by_host.entry(candidate.host.clone()).or_default().push(candidate);
    }
    let contest = |(host, claimants): (HostMatch, Vec<Claim>)| {
        let roots = claimants.iter().filter_map(|claim| proxies.get(&claim.root));
        let oldest = roots.min_by_key(|root| root.meta.age())?;
        let (own, others): (Vec<Claim>, Vec<Claim>) =
            claimants.into_iter().partition(|claim| claim.root.kind == oldest.kind);
        let lost = |claim: Claim| {
            let held = WinningClaim::Host(oldest.meta.seniority(&proxies.get(&claim.root)?.meta));
            let (winner, loser) = (oldest.object(), claim.root.clone());
            let conflict = HostConflict { host: claim.name.to_string(), winner, loser, held };
            Some((claim, conflict))
        };
        let others = others.into_iter().filter_map(lost).collect();
        let claim = Arc::new(HostClaim { kind: oldest.kind, age: OwnedAge::of(&oldest.meta) });
        Some((host, Contest { claim, own, others }))
    };
    by_host.into_iter().filter_map(contest).collect()
}

/// The violation of an object that lost a host; it reveals only the winner's kind.
pub fn lost(conflict: &HostConflict, reader: &ObjectRef) -> Violation {
    Violation::new("VirtualHostError", "HostAlreadyClaimed", conflict.message(reader))
}

/// Checks a name against the operator's lists (`--denied-domains`, `--allowed-domains`).
fn check_name(name: &str, settings: &Settings) -> Result<(), Violation> {
    let fault = settings.domains.fault(name.strip_prefix("*.").unwrap_or(name));
    fault.map_or(Ok(()), |why| {
        Err(Violation::new("VirtualHostError", "HostNotAllowed", format!("fqdn {name:?} cannot be served: {why}")))
    })
}

/// The host of a root that is not a domain. That of an HTTPProxy may begin with `*.`, which covers one label.
///
/// # Errors
/// The `fqdn` is not a valid host.
pub fn host_of(kind: Kind, fqdn: &str) -> Result<(HostMatch, Arc<str>), Violation> {
    let fault = |reason, message: String| Violation::new("VirtualHostError", reason, message);
    if fqdn.trim().is_empty() {
        return Err(fault("FQDNNotSpecified", "Spec.VirtualHost.Fqdn must be specified".to_owned()));
    }
    let domain = fqdn.strip_prefix("*.").filter(|_| kind == Kind::HttpProxy);
    if domain.unwrap_or(fqdn).contains('*') {
        return Err(fault("WildCardNotAllowed", format!("Spec.VirtualHost.Fqdn {fqdn:?} cannot use wildcards")));
    }
    let written = domain.unwrap_or(fqdn);
    let parsed = if written.contains(':') { Err(HostError::BadByte) } else { Hostname::parse(written) };
    match parsed {
        Ok(name) if domain.is_some() => {
            let text = format!("*.{name}").into();
            Ok((HostMatch::Wildcard(name), text))
        }
        Ok(name) => {
            let text = Arc::clone(name.text());
            Ok((HostMatch::Exact(name), text))
        }
        Err(error) => {
            let message = format!(
                "Spec.VirtualHost.Fqdn {fqdn:?} is not a valid host name: {}; write one such as www.example.com",
                error.describe()
            );
            Err(fault("FQDNNotValid", message))
        }
    }
}

impl ContourClaims {
    /// Removes claims on denied names.
    fn check_lists(&mut self, settings: &Settings) {
        for entry in self.domains.values_mut().flat_map(|delegated_domain| &mut delegated_domain.entries) {
            let fault = entry.host.as_ref().and_then(|host| check_name(host.as_str(), settings).err());
            if entry.fault.is_none() {
                entry.fault = fault;
            }
        }
    }

    /// Checks that a root may claim a name, given the delegated domains.
    fn check_domains(&self, proxy: &ContourProxy, name: &str, settings: &Settings) -> Result<(), Violation> {
        let Some(delegated_domain) = delegated_domains::nearest(&self.domains, name) else { return Ok(()) };
        // A name that a domain delegates to another object is contested by that object and this root.
        if settings.allow_undelegated_subdomains
            || (proxy.kind == Kind::IngressRoute && delegated_domain.delegates(name))
        {
            return Ok(());
        }
        Err(delegated_domain.not_delegated(name))
    }
}
