//! Who may have which host: roots, the domains of `.suffix` roots, and the names that these delegate
//! (docs/delegation.md#subdomains, S1 – S4 and S8). Names alone count here; what is served under them, and with which
//! certificate, comes afterwards.

mod zones;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_common::hostname::HostError;

use super::spec::{Fault, Vertex};
use crate::model::{HostMatch, Hostname};
use crate::object::{Kind, ObjectKey, ObjectRef, Seniority};
use crate::translate::Settings;

pub use zones::{Domains, Zone};

/// The IngressRoutes and HTTPProxies that are ours, by object.
pub type Vertices<'r> = BTreeMap<ObjectRef, &'r Arc<Vertex>>;

/// What is decided about names.
#[derive(Debug, Default)]
pub struct Claims<'r> {
    /// Hosts that somebody may serve, in order.
    pub granted: Vec<Claim<'r>>,
    /// Every host that is wanted, also where nobody gets it, with the oldest object that wants it: a name must not
    /// change hands because somebody else wants it too.
    pub wanted: BTreeMap<HostMatch, &'r Arc<Vertex>>,
    /// The domains.
    pub zones: Vec<Zone<'r>>,
    /// Their places by name.
    pub domains: Domains,
    /// Objects with a virtual host of their own that do not get it, and why.
    pub refused: BTreeMap<ObjectRef, Fault>,
    /// Who stands in the way of an object that wants a name. For operators only.
    pub winners: Winners,
}

/// By the object that wants a name, and the name.
pub type Winners = BTreeMap<(ObjectRef, Arc<str>), BTreeSet<ObjectRef>>;

/// A host that an object may serve.
#[derive(Clone, Debug)]
pub struct Claim<'r> {
    /// The host.
    pub host: HostMatch,
    /// As people write it.
    pub name: Arc<str>,
    /// The root object: that of the domain for a subdomain.
    pub root: &'r Arc<Vertex>,
    /// For a subdomain: its domain and its place in the root's list.
    pub entry: Option<(usize, usize)>,
    /// Where routes begin: the root itself, or the delegate of a subdomain; `None`: that is not there.
    pub start: Option<&'r Arc<Vertex>>,
}

/// Decides about all names.
pub fn decide<'r>(vertices: &Vertices<'r>, settings: &Settings) -> Claims<'r> {
    let mut claims = Claims::default();
    zones::find(vertices, settings, &mut claims);
    let taken = zones::delegate(vertices, &mut claims);
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
    fn check_zone(&self, vertex: &Vertex, name: &str, settings: &Settings) -> Result<(), Fault> {
        let zone = zones::nearest(&self.domains, name).and_then(|at| self.zones.get(at));
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
                let fault = lost(&claim.name, oldest.kind, oldest.meta.seniority(&claim.root.meta));
                self.refuse(&claim, fault);
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

    fn refuse(&mut self, claim: &Claim<'r>, fault: Fault) {
        match claim.entry {
            None => drop(self.refused.insert(claim.root.object(), fault)),
            Some((zone, entry)) => {
                let entry = self.zones.get_mut(zone).and_then(|zone| zone.entries.get_mut(entry));
                entry.into_iter().for_each(|entry| entry.fault = Some(fault.clone()));
            }
        }
    }
}

/// What the loser of a host is told: nothing of whose it is but the kind.
pub fn lost(name: &str, winner: Kind, seniority: Seniority) -> Fault {
    let message = format!("fqdn {name:?} belongs to {}", seniority.named(winner));
    Fault::new("VirtualHostError", "HostAlreadyClaimed", message)
}

/// Several roots with one name: none has it.
fn duplicate(kind: Kind, name: &str, roots: &BTreeSet<&ObjectKey>) -> Fault {
    let plural = if kind == Kind::IngressRoute { "IngressRoutes" } else { "HTTPProxies" };
    let roots: Vec<String> = roots.iter().map(ToString::to_string).collect();
    let message = format!("fqdn {name:?} is used in multiple {plural}: {}", roots.join(", "));
    Fault::new("VirtualHostError", "DuplicateVhost", message)
}

/// Whether routers may serve a name at all (`--denied-domains`, `--allowed-domains`).
fn listed(name: &str, settings: &Settings) -> Result<(), Fault> {
    let fault = settings.domains.fault(name.strip_prefix("*.").unwrap_or(name));
    fault.map_or(Ok(()), |why| {
        Err(Fault::new("VirtualHostError", "HostNotAllowed", format!("fqdn {name:?} cannot be served: {why}")))
    })
}

/// Whether a vertex is written as the root of a domain.
fn is_domain(vertex: &Vertex) -> bool {
    let begins_with_dot = vertex.virtual_host.as_ref().is_some_and(|host| host.fqdn.starts_with('.'));
    vertex.kind == Kind::IngressRoute && begins_with_dot
}

/// Whether roots may be in this object's namespace.
fn root_allowed(vertex: &Vertex, settings: &Settings) -> Result<(), Fault> {
    let namespaces = &settings.root_namespaces;
    if namespaces.is_empty() || namespaces.iter().any(|namespace| **namespace == *vertex.meta.key.namespace) {
        return Ok(());
    }
    let message = format!("root {} cannot be defined in this namespace", vertex.kind);
    Err(Fault::new("RootNamespaceError", "RootProxyNotAllowedInNamespace", message))
}

/// The host of a root that is none of a domain. An HTTPProxy's may begin with `*.`, which stands for one label.
fn host_of(kind: Kind, fqdn: &str) -> Result<(HostMatch, Arc<str>), Fault> {
    let fault = |reason, message: String| Fault::new("VirtualHostError", reason, message);
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
