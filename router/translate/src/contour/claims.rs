//! Who may have which host: roots, the domains of `.suffix` roots, and the names that these delegate
//! (docs/delegation.md#subdomains, S1 – S4 and S8). Names alone count here; what is served under them, and with which
//! certificate, comes afterwards.

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

use crate::contour::claims::types::{Claim, Claims, Vertices, duplicate, is_domain, root_allowed};
use crate::settings::Settings;
use crate::status::host_conflict::{Held, HostConflict};

/// Decides about all names.
pub fn decide<'r>(vertices: &Vertices<'r>, settings: &Settings) -> Claims<'r> {
    let mut claims = Claims::default();
    delegated_domains::find(vertices, settings, &mut claims);
    let taken = delegated_domains::delegate(vertices, &mut claims);
    claims.check_lists(settings);
    let mut wishes = wishes_of_zones(vertices, &claims);
    for (object, vertex) in vertices {
        let Some(virtual_host) = &vertex.virtual_host else { continue };
        if claims.refused.contains_key(object) || is_domain(vertex) || taken.contains(object) {
            continue;
        }
        let wish = root_allowed(vertex, settings)
            .and_then(|()| host_of(vertex.kind, &virtual_host.fqdn))
            .and_then(|(host, name)| listed(&name, settings).map(|()| (host, name)))
            .and_then(|(host, name)| claims.check_zone(vertex, &name, settings).map(|()| (host, name)));
        match wish {
            Ok((host, name)) => {
                wishes.push(Claim { host, name, root: vertex, entry: None, start: Some(vertex) });
            }
            Err(fault) => drop(claims.refused.insert(object.clone(), fault)),
        }
    }
    claims.grant(wishes);
    claims
}

fn wishes_of_zones<'r>(vertices: &Vertices<'r>, claims: &Claims<'r>) -> Vec<Claim<'r>> {
    let mut wishes = Vec::new();
    for (zone_at, zone) in claims.zones.iter().enumerate() {
        let Some(root) = zone.root else { continue };
        for (entry_at, (entry, written)) in zone.entries.iter().zip(&root.subdomains).enumerate() {
            let Some(host) = entry.host.as_ref().filter(|_| entry.fault.is_none()) else { continue };
            let delegate = ObjectRef { kind: root.kind, key: written.delegate.clone() };
            wishes.push(Claim {
                host: HostMatch::Exact(host.clone()),
                name: Arc::clone(host.text()),
                root,
                entry: Some((zone_at, entry_at)),
                start: vertices.get(&delegate).copied(),
            });
        }
    }
    wishes
}

/// The violation that says to `reader` who has a host.
pub fn lost(conflict: &HostConflict, reader: &ObjectRef) -> Violation {
    Violation::new("VirtualHostError", "HostAlreadyClaimed", conflict.message(reader))
}

/// Whether routers may serve a name at all (`--denied-domains`, `--allowed-domains`).
fn listed(name: &str, settings: &Settings) -> Result<(), Violation> {
    let fault = settings.domains.fault(name.strip_prefix("*.").unwrap_or(name));
    fault.map_or(Ok(()), |why| {
        Err(Violation::new("VirtualHostError", "HostNotAllowed", format!("fqdn {name:?} cannot be served: {why}")))
    })
}

/// The host of a root that is none of a domain. An HTTPProxy's may begin with `*.`, which stands for one label.
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
                "Spec.VirtualHost.Fqdn {fqdn:?} is no host name: {}; write one such as www.example.com",
                error.describe()
            );
            Err(fault("FQDNNotValid", message))
        }
    }
}

impl<'r> Claims<'r> {
    /// Takes away the names that no router may serve.
    fn check_lists(&mut self, settings: &Settings) {
        for entry in self.zones.iter_mut().flat_map(|zone| &mut zone.entries) {
            let fault = entry.host.as_ref().and_then(|host| listed(host.as_str(), settings).err());
            if entry.fault.is_none() {
                entry.fault = fault;
            }
        }
    }

    /// Whether a root may have a name, as far as domains go.
    fn check_zone(&self, vertex: &ContourProxy, name: &str, settings: &Settings) -> Result<(), Violation> {
        let zone = delegated_domains::nearest(&self.domains, name).and_then(|at| self.zones.get(at));
        let Some(zone) = zone else { return Ok(()) };
        // A name that is delegated to another object is contended for by that object and this one.
        if settings.allow_undelegated_subdomains || (vertex.kind == Kind::IngressRoute && zone.delegates(name)) {
            return Ok(());
        }
        Err(zone.not_delegated(name))
    }

    /// Gives each host to the one object that wants it; where several of a kind do, to none; of two kinds, to that of
    /// the oldest object.
    fn grant(&mut self, wishes: Vec<Claim<'r>>) {
        let mut by_host: BTreeMap<HostMatch, Vec<Claim<'r>>> = BTreeMap::new();
        for wish in wishes {
            by_host.entry(wish.host.clone()).or_default().push(wish);
        }
        for (host, claimants) in by_host {
            let Some(oldest) = claimants.iter().map(|claim| claim.root).min_by_key(|root| root.meta.age()) else {
                continue;
            };
            self.wanted.insert(host, oldest);
            let (own, others): (Vec<_>, Vec<_>) =
                claimants.into_iter().partition(|claim| claim.root.kind == oldest.kind);
            for claim in others {
                self.winners.entry((claim.root.object(), Arc::clone(&claim.name))).or_default().insert(oldest.object());
                let conflict = HostConflict {
                    host: claim.name.to_string(),
                    winner: oldest.object(),
                    loser: claim.root.object(),
                    held: Held::Host(oldest.meta.seniority(&claim.root.meta)),
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
            Some((zone, entry)) => {
                let entry = self.zones.get_mut(zone).and_then(|zone| zone.entries.get_mut(entry));
                entry.into_iter().for_each(|entry| entry.fault = Some(fault.clone()));
            }
        }
    }
}
