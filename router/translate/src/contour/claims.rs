//! Decides which object may have which host: roots, domains of `.suffix` roots, and names that domains delegate
//! (docs/delegation.md#subdomains, S1 – S4 and S8). Only names matter here; rules and certificates are resolved later.

pub mod delegated_domain;
pub(crate) mod delegated_domains;
pub mod types;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_api::contour::types::{ContourProxy, Violation};
use router_common::hostname::HostError;
use router_model::kind::Kind;
use router_model::names::{HostMatch, Hostname};
use router_model::object::{ObjectKey, ObjectRef};

use crate::contour::claims::types::{Claim, ContourClaims, Proxies, duplicate, is_domain, root_allowed};
use crate::settings::Settings;
use crate::status::host_conflict::{HostConflict, WinningClaim};

/// Decides on all hosts.
pub fn decide<'r>(proxies: &Proxies<'r>, settings: &Settings) -> ContourClaims<'r> {
    let mut claims = ContourClaims::default();
    delegated_domains::find(proxies, settings, &mut claims);
    let taken = delegated_domains::delegate(proxies, &mut claims);
    claims.check_lists(settings);
    let mut candidates = claims_of_domains(proxies, &claims);
    for (object, proxy) in proxies {
        let Some(virtual_host) = &proxy.virtual_host else { continue };
        if claims.refused.contains_key(object) || is_domain(proxy) || taken.contains(object) {
            continue;
        }
        let candidate = root_allowed(proxy, settings)
            .and_then(|()| host_of(proxy.kind, &virtual_host.fqdn))
            .and_then(|(host, name)| listed(&name, settings).map(|()| (host, name)))
            .and_then(|(host, name)| claims.check_domains(proxy, &name, settings).map(|()| (host, name)));
        match candidate {
            Ok((host, name)) => {
                candidates.push(Claim { host, name, root: proxy, entry: None, start: Some(proxy) });
            }
            Err(fault) => drop(claims.refused.insert(object.clone(), fault)),
        }
    }
    claims.grant(candidates);
    claims
}

fn claims_of_domains<'r>(proxies: &Proxies<'r>, claims: &ContourClaims<'r>) -> Vec<Claim<'r>> {
    let mut candidates = Vec::new();
    for (zone_at, delegated_domain) in claims.delegated_domains.iter().enumerate() {
        let Some(root) = delegated_domain.root else { continue };
        for (entry_at, (entry, written)) in delegated_domain.entries.iter().zip(&root.subdomains).enumerate() {
            let Some(host) = entry.host.as_ref().filter(|_| entry.fault.is_none()) else { continue };
            let delegate = ObjectRef { kind: root.kind, key: written.delegate.clone() };
            candidates.push(Claim {
                host: HostMatch::Exact(host.clone()),
                name: Arc::clone(host.text()),
                root,
                entry: Some((zone_at, entry_at)),
                start: proxies.get(&delegate).copied(),
            });
        }
    }
    candidates
}

/// The violation of an object that lost a host; it reveals only the winner's kind.
pub fn lost(conflict: &HostConflict, reader: &ObjectRef) -> Violation {
    Violation::new("VirtualHostError", "HostAlreadyClaimed", conflict.message(reader))
}

/// Checks a name against the operator's lists (`--denied-domains`, `--allowed-domains`).
fn listed(name: &str, settings: &Settings) -> Result<(), Violation> {
    let fault = settings.domains.fault(name.strip_prefix("*.").unwrap_or(name));
    fault.map_or(Ok(()), |why| {
        Err(Violation::new("VirtualHostError", "HostNotAllowed", format!("fqdn {name:?} cannot be served: {why}")))
    })
}

/// The host of a root that is not a domain. That of an HTTPProxy may begin with `*.`, which covers one label.
fn host_of(kind: Kind, fqdn: &str) -> Result<(HostMatch, Arc<str>), Violation> {
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

impl<'r> ContourClaims<'r> {
    /// Removes claims on denied names.
    fn check_lists(&mut self, settings: &Settings) {
        for entry in self.delegated_domains.iter_mut().flat_map(|delegated_domain| &mut delegated_domain.entries) {
            let fault = entry.host.as_ref().and_then(|host| listed(host.as_str(), settings).err());
            if entry.fault.is_none() {
                entry.fault = fault;
            }
        }
    }

    /// Checks whether a root may have a name, given the delegated domains.
    fn check_domains(&self, proxy: &ContourProxy, name: &str, settings: &Settings) -> Result<(), Violation> {
        let delegated_domain =
            delegated_domains::nearest(&self.domains, name).and_then(|at| self.delegated_domains.get(at));
        let Some(delegated_domain) = delegated_domain else { return Ok(()) };
        // A name that a domain delegates to another object is contested by that object and this root.
        if settings.allow_undelegated_subdomains
            || (proxy.kind == Kind::IngressRoute && delegated_domain.delegates(name))
        {
            return Ok(());
        }
        Err(delegated_domain.not_delegated(name))
    }

    /// Grants each host to the only object that claims it. If several objects of one kind claim it, none gets it; if
    /// objects of both kinds do, the oldest object's kind does.
    fn grant(&mut self, candidates: Vec<Claim<'r>>) {
        let mut by_host: BTreeMap<HostMatch, Vec<Claim<'r>>> = BTreeMap::new();
        for candidate in candidates {
            by_host.entry(candidate.host.clone()).or_default().push(candidate);
        }
        for (host, claimants) in by_host {
            let Some(oldest) = claimants.iter().map(|claim| claim.root).min_by_key(|root| root.meta.age()) else {
                continue;
            };
            self.claimed.insert(host, oldest);
            let (own, others): (Vec<_>, Vec<_>) =
                claimants.into_iter().partition(|claim| claim.root.kind == oldest.kind);
            for claim in others {
                self.winners.entry((claim.root.object(), Arc::clone(&claim.name))).or_default().insert(oldest.object());
                let conflict = HostConflict {
                    host: claim.name.to_string(),
                    winner: oldest.object(),
                    loser: claim.root.object(),
                    held: WinningClaim::Host(oldest.meta.seniority(&claim.root.meta)),
                };
                self.refuse(&claim, lost(&conflict, &conflict.loser));
                self.lost_to_other_kind.push((claim, conflict));
            }
            match <[Claim<'r>; 1]>::try_from(own) {
                Ok([only]) => self.granted.push(only),
                Err(rivals) => {
                    let names: BTreeSet<&ObjectKey> = rivals.iter().map(|claim| &claim.root.meta.key).collect();
                    for claim in &rivals {
                        let object = claim.root.object();
                        let others = rivals.iter().map(|rival| rival.root.object()).filter(|other| *other != object);
                        self.winners.entry((object.clone(), Arc::clone(&claim.name))).or_default().extend(others);
                        self.refuse(claim, duplicate(oldest.kind, &claim.name, &names));
                    }
                }
            }
        }
    }

    fn refuse(&mut self, claim: &Claim<'r>, fault: Violation) {
        match claim.entry {
            None => drop(self.refused.insert(claim.root.object(), fault)),
            Some((delegated_domain, entry)) => {
                let entry = self
                    .delegated_domains
                    .get_mut(delegated_domain)
                    .and_then(|delegated_domain| delegated_domain.entries.get_mut(entry));
                entry.into_iter().for_each(|entry| entry.fault = Some(fault.clone()));
            }
        }
    }
}
