//! Views of the admin API, built from the newest snapshots on request.

mod findings;
mod inclusion_objects;
pub mod intended;
mod kernel;

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use router_access_log::RouteCounters;
use router_datapath::PinFolder;
use router_datapath::dump::connections;
use router_datapath::reconciler::gate::GateReport;
use router_datapath::reconciler::programmed::Programmed;
use router_listener::{BindState, ListenerState, Protocol};
use router_model::certificate::Certificate;
use router_model::kind::Kind;
use router_model::names::RouteId;
use router_model::object::ObjectRef;
use router_proxy::ProxyState;
use router_table::table::{Endpoints, HttpTls, ResolvedRoute, RouteKind, RouterTable, VirtualHost};
use router_translate::status::ingress::IngressEntry;
use serde_json::{Value, json};
use tokio::sync::watch;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::age::age;
use crate::published::Published;
use crate::status::StatusInput;

/// A view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Revision, data path and problems.
    Status,
    /// Routes of every kind, one row for each router or parent.
    Routes,
    /// Listening sockets, and the listeners of Gateways.
    Listeners,
    /// Endpoints by route.
    Endpoints,
    /// Certificates by host.
    Certs,
    /// Objects that lost their host, with the winners.
    Conflicts,
    /// Connections carried by the kernel.
    Flows,
    /// Intended entries of the kernel maps.
    Intended,
}

impl View {
    /// All views.
    pub const ALL: [View; 8] = [
        View::Status,
        View::Routes,
        View::Listeners,
        View::Endpoints,
        View::Certs,
        View::Conflicts,
        View::Flows,
        View::Intended,
    ];

    /// URL path of the view.
    pub const fn path(self) -> &'static str {
        match self {
            View::Status => "/status",
            View::Routes => "/routes",
            View::Listeners => "/listeners",
            View::Endpoints => "/endpoints",
            View::Certs => "/certs",
            View::Conflicts => "/conflicts",
            View::Flows => "/flows",
            View::Intended => "/intended",
        }
    }
}

/// Sources of the views.
pub struct Views {
    /// The newest translation.
    pub published: watch::Receiver<Arc<Published>>,
    /// The listeners.
    pub listeners: watch::Receiver<Arc<Vec<ListenerState>>>,
    /// State of the kernel maps; `Err` with the reason if there is no kernel data path.
    pub programmed: Result<watch::Receiver<Arc<Programmed>>, String>,
    /// Pins of the kernel maps.
    pub pins: PinFolder,
    /// The proxy's state of endpoints.
    pub known: ProxyState,
    /// The proxy's counters.
    pub counters: Box<dyn Fn() -> Vec<RouteCounters> + Send + Sync>,
}

/// The XDP gate; null without a policy, a flood and forwarding.
fn gate(gate: &GateReport) -> Value {
    let is_idle = gate.attached.is_empty() && gate.cookies.flooded.is_empty() && gate.forward.is_none();
    if gate.listeners == 0 && gate.error.is_none() && is_idle {
        return Value::Null;
    }
    let attached: Vec<String> = gate.attached.iter().map(|(name, mode)| format!("{name} ({mode})")).collect();
    json!({"listeners": gate.listeners, "networks": gate.networks, "attached": attached, "sweepsOnly": gate.sweeps_only,
        "flooded": gate.cookies.flooded, "forwards": gate.forward.as_ref().map(|forward| &forward.open), "error": gate.error})
}

impl Views {
    /// The response for a path.
    pub fn show(&self, path: &str) -> Option<Value> {
        let view = View::ALL.into_iter().find(|view| view.path() == path)?;
        let published = Arc::clone(&self.published.borrow());
        Some(match view {
            View::Status => self.status(&published),
            View::Routes => self.routes(&published),
            View::Listeners => self.listeners(&published),
            View::Endpoints => endpoints(&published),
            View::Certs => certificates(&published),
            View::Conflicts => conflicts(&published),
            View::Flows => self.flows(&published),
            View::Intended => self.intended(),
        })
    }

    fn status(&self, published: &Published) -> Value {
        let snapshot = published.as_of.map(|as_of| json!({"asOf": as_of, "age": age(as_of, Timestamp::now())}));
        let from_snapshot = snapshot.as_ref().and_then(|snapshot| snapshot["age"].as_str());
        let from_snapshot = from_snapshot
            .map(|age| format!("the API server has not listed every kind: objects are of a snapshot of {age} ago"));
        let problems: Vec<_> =
            from_snapshot.into_iter().chain(published.diagnostics.iter().map(ToString::to_string)).collect();
        let data_path = match &self.programmed {
            Ok(programmed) => {
                let programmed = Arc::clone(&programmed.borrow());
                json!({"mode": "kernel", "revision": programmed.revision, "entries": programmed.entries,
                    "failed": programmed.failed, "error": programmed.error, "leftOut": programmed.left_out,
                    "attachedBy": programmed.attached_by, "interfaces": programmed.interfaces, "peerRedirect": programmed.peers, "endpoints": programmed.endpoints,
                    "gate": gate(&programmed.gate), "connections": programmed.connections, "superseded": programmed.superseded})
            }
            Err(reason) => json!({"mode": "userspace", "reason": reason}),
        };
        let own = findings::leading_back(&published.table, |address| self.known.is_own(address));
        let mut findings = match &self.programmed {
            Ok(programmed) => {
                let programmed = Arc::clone(&programmed.borrow());
                tokio::task::block_in_place(|| findings::findings(&programmed, &self.pins))
            }
            Err(reason) => findings::without_programs(reason),
        };
        findings.extend(own);
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "revision": published.table.revision,
            "routers": published.table.routers.iter().map(|r| r.name.to_string()).collect::<Vec<_>>(),
            "routes": published.table.routers.iter().map(|r| r.routes.len()).sum::<usize>(),
            "dataPath": data_path,
            "snapshot": snapshot,
            "problems": problems,
            "findings": findings,
        })
    }

    fn routes(&self, published: &Published) -> Value {
        let counters: HashMap<_, _> =
            (self.counters)().into_iter().map(|c| ((c.router.clone(), c.route.clone()), c)).collect();
        let in_kernel = self.programmed.as_ref().ok().map(|it| kernel::Counted::read(&it.borrow(), &self.pins));
        let in_kernel = in_kernel.unwrap_or_default();
        let mut rows = Vec::new();
        for (key, entries) in published.status.report.routes.entries() {
            let id = key.route_id();
            if entries.is_empty() {
                rows.push(json!({"kind": id.kind.name(), "namespace": id.namespace, "name": id.name, "parent": null,
                    "router": null, "state": "not selected"}));
            }
            for entry in &entries.to_vec() {
                let route = published.route(&entry.router_name, &id);
                let mut row = route_row(&published.table.endpoints, &id, entry, route);
                if let Some(of) = route.and_then(|route| in_kernel.of(published, &entry.router_name, &route.id)) {
                    row["kernel"] = of;
                }
                if let Some(counted) = counters.get(&(entry.router_name.clone(), id.clone())) {
                    row["counters"] = json!({"served": counted.served, "failed": counted.failed,
                        "bytesIn": counted.bytes_in, "bytesOut": counted.bytes_out});
                }
                rows.push(row);
            }
        }
        rows.extend(inclusion_objects::routes(published, &counters, &in_kernel));
        Value::Array(rows)
    }

    /// Listening sockets, then listeners of Gateways.
    fn listeners(&self, published: &Published) -> Value {
        let listeners = Arc::clone(&self.listeners.borrow());
        let sockets = listeners.iter().map(|listener| {
            let (state, error) = match &listener.state {
                BindState::Bound => ("bound", None),
                BindState::Failed(error) => ("failed", Some(error)),
            };
            let protocol = match listener.protocol {
                Protocol::Http => "http",
                Protocol::Https => "https",
            };
            json!({"router": listener.router.to_string(), "protocol": protocol,
                    "address": listener.address.to_string(), "state": state, "error": error})
        });
        sockets.chain(inclusion_objects::listeners(published)).collect()
    }

    fn intended(&self) -> Value {
        let Ok(programmed) = &self.programmed else { return json!({}) };
        programmed.borrow().look(kernel::intended)
    }

    /// Connections carried by the kernel; empty without it. This reads a map that may be large.
    fn flows(&self, published: &Published) -> Value {
        if self.programmed.is_err() {
            return json!([]);
        }
        let shown = tokio::task::block_in_place(|| connections(&self.pins));
        match shown {
            Ok(mut rows) => {
                for row in &mut rows {
                    let id = row["router"].as_u64();
                    let router = published.table.routers.iter().find(|router| Some(u64::from(router.id)) == id);
                    row["router"] = router.map(|router| router.name.to_string()).into();
                }
                Value::Array(rows)
            }
            Err(error) => json!({"error": error.to_string()}),
        }
    }
}

fn route_row(known: &Endpoints, id: &RouteId, entry: &IngressEntry, route: Option<&Arc<ResolvedRoute>>) -> Value {
    let condition = |kind: &str| entry.conditions.iter().find(|c| c.kind == kind);
    let admitted = condition("Admitted");
    let stale = condition("ManifestValid").map(|c| c.message.as_str());
    let state = match (admitted.is_some_and(|c| c.holds), stale) {
        (true, None) => "admitted",
        (true, Some(_)) => "stale",
        (false, _) => "rejected",
    };
    let services: Vec<_> = route
        .iter()
        .flat_map(|route| &route.cluster.services)
        .map(|s| json!({"name": s.service, "weight": s.weight, "endpoints": known.of(s).len()}))
        .collect();
    let host = route.map_or_else(|| entry.host.clone(), |route| route.host.to_string());
    json!({
        "kind": id.kind.name(),
        "namespace": id.namespace,
        "name": id.name,
        "parent": entry.router_name.to_string(),
        "router": entry.router_name.to_string(),
        "hosts": [host],
        "host": host,
        "path": route.map(|route| route.path()),
        "termination": route.map(|route| termination(route)),
        "state": state,
        "reason": admitted.map(|c| c.reason.as_str()).unwrap_or_default(),
        "message": stale.or(admitted.map(|c| c.message.as_str())).unwrap_or_default(),
        "services": services,
    })
}

fn termination(route: &ResolvedRoute) -> &'static str {
    match &route.kind {
        RouteKind::Passthrough { .. } => "passthrough",
        RouteKind::Http { tls: None, .. } => "none",
        RouteKind::Http { tls: Some(HttpTls { reencrypt: None, .. }), .. } => "edge",
        RouteKind::Http { tls: Some(_), .. } => "reencrypt",
    }
}

fn endpoints(published: &Published) -> Value {
    let mut rows = Vec::new();
    for router in &published.table.routers {
        for route in router.routes.values() {
            for service in &route.cluster.services {
                for endpoint in published.table.endpoints.of(service) {
                    rows.push(json!({"router": router.name.to_string(), "route": route.id.to_string(),
                        "service": service.service, "weight": service.weight,
                        "address": endpoint.address.to_string(), "target": endpoint.target}));
                }
            }
        }
    }
    Value::Array(rows)
}

fn certificates(published: &Published) -> Value {
    let mut rows = Vec::new();
    for router in &published.table.routers {
        rows.push(certificate_row(router, "(default)", router.default_certificate.as_ref()));
        let of_site = |host: &VirtualHost| -> Vec<Certificate> {
            let tls = host.rules.as_ref().and_then(|host_rules| host_rules.tls.as_ref());
            tls.map(|tls| tls.certificates.clone()).unwrap_or_default()
        };
        let mut of_hosts: Vec<_> = router
            .hosts
            .iter()
            .flat_map(|host| {
                host.certificate.iter().cloned().chain(of_site(host)).map(|it| (host.host.to_string(), it))
            })
            .map(|(host, certificate)| certificate_row(router, &host, Some(&certificate)))
            .collect();
        of_hosts.sort_by_cached_key(|row| row["host"].to_string());
        rows.append(&mut of_hosts);
    }
    Value::Array(rows)
}

/// Only public fields of the leaf certificate.
fn certificate_row(router: &RouterTable, host: &str, certificate: Option<&Certificate>) -> Value {
    let mut row = json!({"router": router.name.to_string(), "host": host});
    let Some(certificate) = certificate else {
        row["subject"] = json!("self-signed by the agent");
        return row;
    };
    let parsed = certificate.cert.first().and_then(|leaf| X509Certificate::from_der(leaf).ok());
    let Some((_, leaf)) = parsed else { return row };
    let names: Vec<_> = leaf
        .subject_alternative_name()
        .ok()
        .flatten()
        .map(|extension| extension.value.general_names.iter().map(ToString::to_string).collect())
        .unwrap_or_default();
    row["subject"] = json!(leaf.subject().to_string());
    row["issuer"] = json!(leaf.issuer().to_string());
    row["names"] = json!(names);
    row["notAfter"] =
        json!(jiff::Timestamp::from_second(leaf.validity().not_after.timestamp()).ok().map(|t| t.to_string()));
    row
}

fn conflicts(published: &Published) -> Value {
    let StatusInput { report, resources, .. } = &*published.status;
    let now = Timestamp::now();
    let winner = |winner: &ObjectRef| {
        let created = resources.object(winner.kind, &winner.key).and_then(|object| object.meta().created.0);
        json!({"kind": winner.kind.name(), "namespace": winner.key.namespace, "name": winner.key.name,
            "object": winner.to_string(), "created": created.map(|at| at.to_string()),
            "age": created.map(|at| age(at, now))})
    };
    let mut rows = Vec::new();
    for (key, conflicts) in report.conflicts.entries() {
        for lost in conflicts.iter() {
            rows.push(json!({"kind": Kind::Route.name(), "namespace": key.namespace, "name": key.name,
                "router": lost.router.to_string(), "parent": lost.router.to_string(), "host": lost.host,
                "reason": lost.reason, "message": lost.message, "winner": winner(&lost.winner)}));
        }
    }
    for (object, row, by) in inclusion_objects::conflicts(published) {
        rows.push(json!({"kind": object.kind.name(), "namespace": object.key.namespace, "name": object.key.name,
            "router": null, "parent": row.parent, "host": row.hosts.join(","), "reason": row.reason,
            "message": row.message, "winner": winner(by)}));
    }
    Value::Array(rows)
}
