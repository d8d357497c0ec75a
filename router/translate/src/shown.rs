//! Which object shows clients which certificate for a host, and which of these certificates clients refuse. They are
//! served all the same: that a client refuses one is between the client and whoever issued it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use router_api::openshift::route::traffic::{CertificateSource, Traffic};
use router_api::resources::Resources;
use router_model::certificate::Certificate;
use router_model::certificate::refusals;
use router_model::field::FieldPath;
use router_model::kind::Kind;
use router_model::names::{HostMatch, Hostname};
use router_model::object::{ObjectKey, ObjectRef};
use router_table::table::{RouteKind, RouterTable, RoutingTable, VirtualHost};

use crate::warning::Warning;

/// A certificate, for a host.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The host.
    pub host: HostMatch,
    /// The object that names the certificate.
    pub object: ObjectRef,
    /// The field that names it.
    pub path: FieldPath,
    /// The certificates; clients are shown the first that suits them.
    pub certificates: Vec<Certificate>,
    /// It is the default certificate of the router.
    pub is_default: bool,
}

impl Shown {
    /// Why clients refuse all of the certificates: the reasons of the first. Without `now`, dates are left out.
    pub fn refusals(&self, now: Option<Timestamp>) -> Vec<String> {
        let (name, shown) = match &self.host {
            HostMatch::Exact(name) => (Some(name.to_string()), name.to_string()),
            HostMatch::Wildcard(domain) | HostMatch::Suffix(domain) => {
                (Some(format!("any-name.{domain}")), format!("*.{domain}"))
            }
            HostMatch::Any => (None, "*".to_owned()),
        };
        let mut of_each = self.certificates.iter().map(|pair| refusals(pair, name.as_deref(), &shown, now));
        let first = of_each.next().unwrap_or_default();
        if first.is_empty() || of_each.any(|refusals| refusals.is_empty()) { Vec::new() } else { first }
    }
}

/// What clients are shown for a host of a router where TLS is terminated; empty where it is not, or where the router's
/// default certificate is the agent's own.
pub fn shown(router: &RouterTable, host: &VirtualHost, resources: &Resources) -> Vec<Shown> {
    let of_host =
        |object, path, certificates| Shown { host: host.host.clone(), object, path, certificates, is_default: false };
    let mut all = Vec::new();
    if let Some((site, tls)) = host.site.as_ref().and_then(|site| Some((site, site.tls.as_ref()?))) {
        let path = match tls.shown_by.kind {
            Kind::Gateway => listener(&tls.shown_by.key, &site.listener, resources),
            _ => FieldPath::of(&["spec", "virtualhost", "tls", "secretName"]),
        };
        all.push(of_host(tls.shown_by.clone(), path, tls.certificates.clone()));
    }
    for route in host.terminated.iter() {
        let RouteKind::Http { tls: Some(tls), .. } = &route.kind else { continue };
        let key = ObjectKey { namespace: route.id.namespace.clone(), name: route.id.name.clone() };
        let object = ObjectRef { kind: Kind::Route, key };
        match &tls.certificate {
            Some(pair) => {
                let path = certificate_field(&object.key, resources);
                all.push(of_host(object, path, vec![pair.clone()]));
            }
            None if host.certificate.is_none() => {
                let default = router.default_certificate.iter().cloned().collect();
                all.push(Shown { is_default: true, ..of_host(object, FieldPath::of(&["spec", "tls"]), default) });
            }
            None => {}
        }
    }
    all.retain(|shown| !shown.certificates.is_empty());
    all
}

/// Certificates that clients refuse, by the objects that name them.
pub fn warnings(table: &RoutingTable, resources: &Resources, now: Timestamp) -> Vec<Warning> {
    let mut warnings = BTreeSet::new();
    for router in &table.routers {
        let default = of_controller(router, resources);
        let of_routes = router.hosts.iter().flat_map(|host| shown(router, host, resources));
        for shown in default.into_iter().chain(of_routes) {
            // The dates of a default certificate are the controller's to mend, and told there.
            let (whose, dates) = match shown.is_default && shown.object.kind == Kind::Route {
                true => (format!("the default certificate of router {}", router.name), None),
                false => ("the certificate".to_owned(), Some(now)),
            };
            let of_shown = shown.refusals(dates).into_iter().map(|refusal| Warning {
                object: shown.object.clone(),
                path: shown.path.clone(),
                message: format!("{whose} {refusal}"),
            });
            warnings.extend(of_shown);
        }
    }
    warnings.into_iter().collect()
}

/// What the IngressController of a router names for the hosts of its domain.
fn of_controller(router: &RouterTable, resources: &Resources) -> Option<Shown> {
    let certificates = vec![router.default_certificate.clone()?];
    let controller = resources.ingress_controllers.iter().find(|it| *it.meta.key.name == *router.name.0)?;
    let object = ObjectRef { kind: Kind::IngressController, key: controller.meta.key.clone() };
    let host = Hostname::parse(&router.domain).map_or(HostMatch::Any, HostMatch::Wildcard);
    let path = FieldPath::of(&["spec", "defaultCertificate"]);
    Some(Shown { host, object, path, certificates, is_default: true })
}

/// `spec.listeners[i].tls.certificateRefs` of the listener that a site names, `Gateway shop/public#web`.
fn listener(gateway: &ObjectKey, name: &str, resources: &Resources) -> FieldPath {
    let section = name.rsplit('#').next().unwrap_or_default();
    let listeners = resources.gateways.get(gateway).map(|gateway| &gateway.listeners);
    let at = listeners.and_then(|listeners| listeners.iter().position(|listener| *listener.name == *section));
    let path = FieldPath::of(&["spec", "listeners"]);
    at.map_or(path.clone(), |at| path.index(at).key("tls").key("certificateRefs"))
}

fn certificate_field(route: &ObjectKey, resources: &Resources) -> FieldPath {
    let is_named = resources.routes.get(route).is_some_and(|route| {
        let Traffic::Http { tls: Some(tls), .. } = &route.traffic else { return false };
        tls.material.as_ref().is_ok_and(|material| matches!(material.certificate, CertificateSource::Secret(_)))
    });
    FieldPath::of(&["spec", "tls", if is_named { "externalCertificate" } else { "certificate" }])
}

#[cfg(test)]
mod tests;
