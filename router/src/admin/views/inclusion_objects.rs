//! Views of Gateway API and Contour objects.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use router_access_log::RouteCounters;
use router_api::gateway_api::types::{Gateway, Listener};
use router_model::kind::Kind;
use router_model::names::{RouteId, RouterName};
use router_model::object::ObjectRef;
use router_table::host_pattern::HostPattern;
use router_table::table::{ResolvedRoute, RouterTable};
use router_translate::status::object_status::ParentStatus;
use serde_json::{Value, json};

use super::kernel::Counted;
use crate::published::Published;

/// Kinds of objects that route requests.
const ROUTES: [Kind; 5] = [Kind::HttpRoute, Kind::GrpcRoute, Kind::TlsRoute, Kind::IngressRoute, Kind::HttpProxy];

/// One row for each object of these kinds and each of its parents.
pub fn routes(
    published: &Published,
    counters: &HashMap<(RouterName, RouteId), RouteCounters>,
    in_kernel: &Counted,
) -> Vec<Value> {
    let mut counted: HashMap<ObjectRef, [u64; 6]> = HashMap::new();
    for counters in counters.values().filter(|counters| counters.route.kind != Kind::Route) {
        let sums = counted.entry(counters.route.object()).or_default();
        let RouteCounters { served, failed, bytes_in, bytes_out, copies, copies_lost, .. } = counters;
        let more = [served, failed, bytes_in, bytes_out, copies, copies_lost];
        sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
    let mut rows = Vec::new();
    let told = published.status.report.others.entries().filter(|(object, _)| ROUTES.contains(&object.kind));
    for (object, told) in told {
        let services = services(published, object);
        let nowhere = told.rows.is_empty().then(ParentStatus::default);
        for (i, row) in told.rows.iter().chain(&nowhere).enumerate() {
            let mut shown = json!({
                "kind": object.kind.name(),
                "namespace": object.key.namespace,
                "name": object.key.name,
                "parent": row.parent,
                "router": null,
                "host": row.hosts.join(","),
                "hosts": row.hosts,
                "state": match (row.admitted, nowhere.is_some()) {
                    (true, _) => "admitted",
                    (false, true) => "not selected",
                    (false, false) => "rejected",
                },
                "reason": row.reason,
                "message": row.message,
                "services": services,
            });
            // An object is counted as a whole, for all of its parents.
            if let Some([served, failed, bytes_in, bytes_out, copies, copies_lost]) =
                counted.get(object).filter(|_| i == 0)
            {
                shown["counters"] = json!({"served": served, "failed": failed, "bytesIn": bytes_in,
                    "bytesOut": bytes_out, "copies": copies, "copiesLost": copies_lost});
            }
            if let Some(steered) = in_kernel_of(published, object, in_kernel).filter(|_| i == 0) {
                shown["kernel"] = json!({"steered": steered});
            }
            rows.push(shown);
        }
    }
    rows
}

/// Connections that the kernel has steered for the parts of an object; `None` if it knows none of them.
fn in_kernel_of(published: &Published, object: &ObjectRef, in_kernel: &Counted) -> Option<u64> {
    let steered = |router: &RouterTable| -> Vec<u64> {
        let counted = parts(router, object).filter_map(|route| in_kernel.of(published, &router.name, &route.id));
        counted.filter_map(|counted| counted["steered"].as_u64()).collect()
    };
    let all: Vec<u64> = published.table.routers.iter().flat_map(|router| steered(router)).collect();
    (!all.is_empty()).then(|| all.iter().sum())
}

/// The resolved routes of an object on a router.
fn parts<'t>(router: &'t RouterTable, object: &ObjectRef) -> impl Iterator<Item = &'t Arc<ResolvedRoute>> {
    let (key, kind) = (object.key.clone(), object.kind);
    let first = RouteId { namespace: key.namespace, name: key.name, kind, part: 0 };
    let from = router.routes.entries_from(|id| *id < first);
    from.take_while(move |(id, _)| (&id.namespace, &id.name, id.kind) == (&first.namespace, &first.name, first.kind))
        .map(|(_, route)| route)
}

/// Services of an object's resolved routes, each once.
fn services(published: &Published, object: &ObjectRef) -> Vec<Value> {
    let mut services = BTreeMap::new();
    let known = &published.table.endpoints;
    for router in &published.table.routers {
        for service in parts(router, object).flat_map(|route| &route.cluster.services) {
            services.entry(service.service.clone()).or_insert((service.weight, known.of(service).len()));
        }
    }
    let shown = |(name, (weight, endpoints))| json!({"name": name, "weight": weight, "endpoints": endpoints});
    services.into_iter().map(shown).collect()
}

/// One row for each listener of a Gateway of ours.
pub fn listeners(published: &Published) -> Vec<Value> {
    let status = &published.status;
    let told = status.report.others.entries().filter(|(object, _)| object.kind == Kind::Gateway);
    told.filter_map(|(object, told)| Some((status.resources.gateways.get(&object.key)?, told)))
        .flat_map(|(gateway, told)| {
            let told = told.status();
            let told = told.get("listeners").and_then(Value::as_array).into_iter().flatten();
            let told: HashMap<_, _> = told.filter_map(|told| Some((told.get("name")?.as_str()?, told))).collect();
            let row =
                |listener: &Listener| listener_row(published, gateway, listener, told.get(&*listener.name).copied());
            gateway.listeners.iter().map(row).collect::<Vec<_>>()
        })
        .collect()
}

/// The row of a listener; `said` is its part of the Gateway's status.
fn listener_row(published: &Published, gateway: &Gateway, listener: &Listener, said: Option<&Value>) -> Value {
    let conditions = said.and_then(|said| said.get("conditions")).and_then(Value::as_array);
    let text =
        |condition: &Value, member: &str| condition.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
    let of = |kind: &str| conditions.into_iter().flatten().find(|condition| text(condition, "type") == kind);
    let programmed = of("Programmed").is_some_and(|condition| text(condition, "status") == "True");
    // `Programmed: False` only says that a listener does not work; another condition says why.
    let wrong = |kind: &str, bad: &str| of(kind).filter(|condition| text(condition, "status") == bad);
    let wrong = wrong("Accepted", "False")
        .or_else(|| wrong("Conflicted", "True"))
        .or_else(|| wrong("ResolvedRefs", "False"))
        .or_else(|| wrong("Programmed", "False"));
    let hostname = match &listener.hostname {
        HostPattern::Any => "*".to_owned(),
        pattern => pattern.to_string(),
    };
    let has_port = |router: &&Arc<RouterTable>| [router.http_port, router.https_port].contains(&Some(listener.port));
    let router = published.table.routers.iter().find(has_port).map(|router| router.name.to_string());
    json!({
        "router": router,
        "protocol": listener.protocol,
        "address": format!(":{}", listener.port),
        "state": if programmed { "programmed" } else { "refused" },
        "listener": format!("{}#{}", gateway.meta.key, listener.name),
        "hostname": hostname,
        "attachedRoutes": said.and_then(|said| said.get("attachedRoutes")),
        "reason": wrong.map(|condition| text(condition, "reason")),
        "message": wrong.map(|condition| text(condition, "message")),
    })
}

/// One row for each loser and winner of a host.
pub fn conflicts(published: &Published) -> Vec<(&ObjectRef, &ParentStatus, &ObjectRef)> {
    let told = published.status.report.others.entries();
    told.flat_map(|(object, told)| {
        told.rows.iter().flat_map(move |row| row.winners.iter().map(move |winner| (object, row, winner)))
    })
    .collect()
}
