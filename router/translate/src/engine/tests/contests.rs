//! Hosts that objects of different kinds claim, with two minimal APIs: each HTTPRoute (and, as the second API, each
//! GRPCRoute) claims its hostnames on router `default`, and responds to them by its name.

use router_api::gateway_api::types::GatewayRoute;
use router_api::testing::{controller, good, resources, route};
use router_model::names::{HostMatch, RouteId, RouterName};
use router_model::object::ObjectRef;
use router_table::host_pattern::HostPattern;
use router_table::matchers::RequestMatcher;
use router_table::rule::{HostRules, Rule, RulePolicy};
use router_table::table::{Cluster, Derived, ResolvedRoute, RouteKind, VirtualHost};
use serde_json::{Value, json};

use super::super::*;
use super::batch::{Batch, Batches, Translation};
use crate::owned_age::OwnedAge;
use crate::status::object_status::{ObjectStatus, ParentStatus};
use crate::translator::{HostClaim, LostHosts, RouterHost};

struct Fake<'r> {
    routes: Vec<&'r Arc<GatewayRoute>>,
    port: u16,
}

fn sorted<'r>(routes: impl Iterator<Item = &'r Arc<GatewayRoute>>) -> Vec<&'r Arc<GatewayRoute>> {
    let mut routes: Vec<_> = routes.collect();
    routes.sort_by(|a, b| a.meta.age().cmp(&b.meta.age()));
    routes
}

fn fakes() -> Vec<Box<dyn Translator>> {
    vec![
        Box::new(Batches::new(|inputs| {
            Box::new(Fake { routes: sorted(inputs.resources.http_routes.iter()), port: 8080 })
        })),
        Box::new(Batches::new(|inputs| {
            Box::new(Fake { routes: sorted(inputs.resources.grpc_routes.iter()), port: 9090 })
        })),
    ]
}

fn router() -> RouterName {
    RouterName("default".into())
}

impl Fake<'_> {
    fn created_router(&self) -> RouterName {
        RouterName(format!("gateway-{}", self.port).into())
    }

    /// Hosts with their oldest route.
    fn hosts(&self) -> BTreeMap<RouterHost, &Arc<GatewayRoute>> {
        let mut hosts = BTreeMap::new();
        for route in &self.routes {
            for hostname in &route.hostnames {
                let host = match hostname {
                    HostPattern::Exact(name) => HostMatch::Exact(name.clone()),
                    HostPattern::Suffix(domain) => HostMatch::Suffix(domain.clone()),
                    HostPattern::Any => HostMatch::Any,
                };
                for router in [router(), self.created_router()] {
                    hosts.entry((router, host.clone())).or_insert(*route);
                }
            }
        }
        hosts
    }
}

impl Batch for Fake<'_> {
    fn claims(&self) -> BTreeMap<RouterHost, Arc<HostClaim>> {
        let claim = |(at, route): (RouterHost, &Arc<GatewayRoute>)| {
            (at, Arc::new(HostClaim { kind: route.kind, age: OwnedAge::of(&route.meta) }))
        };
        self.hosts().into_iter().map(claim).collect()
    }

    fn translate(&self, lost: &LostHosts) -> Translation {
        let mut translation = Translation::default();
        let served = self.hosts().into_iter().filter(|(at, _)| !lost.contains_key(at));
        translation.hosts = served.map(|(at, route)| (at.clone(), virtual_host(at.1, route))).collect();
        if !translation.hosts.is_empty() {
            let ports = RouterPorts {
                name: self.created_router(),
                http: Some(self.port),
                https: None,
                traffic: Default::default(),
                tls_fault: None,
                gate: None,
            };
            translation.routers.push(ports);
        }
        for route in &self.routes {
            let object = ObjectRef { kind: route.kind, key: route.meta.key.clone() };
            let mut row = ParentStatus { parent: "default".to_owned(), admitted: true, ..ParentStatus::default() };
            row.winners = lost.values().map(|winner| winner.object.clone()).collect();
            row.winners.dedup();
            translation.statuses.insert(object, ObjectStatus::new(&json!({ "lost": lost.len() }), vec![row]));
        }
        translation
    }
}

fn virtual_host(host: HostMatch, route: &Arc<GatewayRoute>) -> VirtualHost {
    let part = route.hostnames.iter().position(|own| own.to_string() == host.to_string()).unwrap();
    let id = RouteId { kind: route.kind, part: part as u32, ..route.meta.key.route_id() };
    let resolved = ResolvedRoute {
        id,
        host: host.clone(),
        kind: RouteKind::Http { path: router_model::names::PathMatch::any(), tls: None },
        cluster: Cluster::default(),
        rare: None,
        proxy_protocol: false,
        forwarded: Default::default(),
        request_work: true,
        is_plain: false,
        relay_only: false,
        policy: Arc::default(),
        rule: Some(Arc::new(RulePolicy { action: router_table::rule::Action::Answer(204), ..RulePolicy::default() })),
        derived: Derived::default(),
    };
    let rule = Rule {
        matcher: RequestMatcher::default(),
        path_form: Default::default(),
        prefix: "/".into(),
        route: Arc::new(resolved),
        origin: "x".into(),
    };
    let host_rules = HostRules {
        owner: ObjectRef { kind: route.kind, key: route.meta.key.clone() },
        listener: "default".into(),
        cleartext_listener: None,
        cleartext: Some([Arc::new(rule)].into()),
        tls: None,
    };
    VirtualHost {
        host,
        passthrough: None,
        terminated: Default::default(),
        cleartext: Default::default(),
        certificate: None,
        rules: Some(Box::new(host_rules)),
    }
}

fn engine() -> Engine {
    Engine::with(Settings::default(), fakes())
}

/// An HTTPRoute or GRPCRoute `namespace/name` of this age.
fn other(kind: &str, id: &str, age: u32, hosts: &[&str]) -> Value {
    let mut object = route(id, age, json!({}));
    object["apiVersion"] = json!("gateway.networking.k8s.io/v1");
    object["kind"] = json!(kind);
    object["spec"] = json!({ "hostnames": hosts });
    object
}

fn http(id: &str, age: u32, hosts: &[&str]) -> Value {
    other("HTTPRoute", id, age, hosts)
}

fn grpc(id: &str, age: u32, hosts: &[&str]) -> Value {
    other("GRPCRoute", id, age, hosts)
}

/// `router host: who serves it` for each host.
fn served(table: &RoutingTable) -> Vec<String> {
    let mut served = Vec::new();
    for router in &table.routers {
        for host in router.hosts.iter() {
            let routes = host.cleartext.iter().map(|route| route.id.object().to_string());
            let who: Vec<_> = host.rules.iter().map(|rules| rules.owner.to_string()).chain(routes).collect();
            served.push(format!("{} {}: {}", router.name, host.host, who.join(" ")));
        }
    }
    served
}

/// The hosts of router `default`, with their owners.
fn on_default(objects: impl IntoIterator<Item = Value>) -> Vec<String> {
    let (table, _) = engine().apply(&resources(objects));
    served(&table).iter().filter_map(|line| line.strip_prefix("default ")).map(str::to_owned).collect()
}

#[test]
fn the_kind_of_the_oldest_object_owns_the_entire_host() {
    let at = |age| route("shop/route", age, json!({ "host": "a.test" }));
    let second = |age| route("shop/second", age, json!({ "host": "a.test", "path": "/p" }));
    let (h, g) = ([http("red/h", 5, &["a.test"])], [grpc("blue/g", 6, &["a.test"])]);
    let with = |more: Vec<Value>| on_default(h.iter().chain(&g).cloned().chain(more));
    assert_eq!(with(vec![]), ["a.test: HTTPRoute red/h"]);
    assert_eq!(with(vec![at(4)]), ["a.test: Route shop/route"]);
    assert_eq!(with(vec![at(7)]), ["a.test: HTTPRoute red/h"]);
    assert_eq!(
        with(vec![at(4), second(9)]),
        ["a.test: Route shop/second Route shop/route"],
        "the entire host: younger ones too"
    );
    assert_eq!(with(vec![at(7), second(9)]), ["a.test: HTTPRoute red/h"]);
    assert_eq!(
        on_default([http("red/h", 5, &["a.test"]), grpc("blue/g", 4, &["a.test"])]),
        ["a.test: GRPCRoute blue/g"]
    );
    assert_eq!(
        on_default([http("red/x", 5, &["a.test"]), route("red/x", 5, json!({ "host": "a.test" }))]),
        ["a.test: Route red/x"]
    );
}

#[test]
fn an_exact_host_and_a_wildcard_are_two_hosts() {
    let wild = json!({ "routeAdmission": { "wildcardPolicy": "WildcardsAllowed" } });
    let wildcard = |age| route("shop/wild", age, json!({ "host": "www.x.test", "wildcardPolicy": "Subdomain" }));
    let with = |objects: Vec<Value>| on_default(objects.into_iter().chain([controller("default", wild.clone())]));
    assert_eq!(
        with(vec![wildcard(9), http("red/h", 5, &["a.x.test"])]),
        ["a.x.test: HTTPRoute red/h", "*.x.test: Route shop/wild"]
    );
    assert_eq!(with(vec![wildcard(9), http("red/h", 5, &["*.x.test"])]), ["*.x.test: HTTPRoute red/h"]);
    assert_eq!(with(vec![wildcard(2), http("red/h", 5, &["*.x.test"])]), ["*.x.test: Route shop/wild"]);
    assert_eq!(
        with(vec![wildcard(9), route("red/r", 1, json!({ "host": "a.x.test" })), http("red/h", 5, &["*.x.test"])]),
        ["a.x.test: Route red/r", "*.x.test: HTTPRoute red/h"]
    );
}

#[test]
fn a_route_with_an_invalid_certificate_owns_its_host_across_kinds_too() {
    let mut broken = route("shop/broken", 1, json!({ "host": "a.test" }));
    broken["spec"]["tls"] = json!({ "termination": "edge", "externalCertificate": { "name": "gone" } });
    assert_eq!(on_default([broken, http("red/h", 5, &["a.test"])]), Vec::<String>::new());
}

#[test]
fn losers_report_the_conflict_without_a_foreign_namespace() {
    let objects = [
        http("red/h", 5, &["a.test", "b.test"]),
        route("red/near", 6, json!({ "host": "a.test" })),
        route("blue/far", 6, json!({ "host": "b.test" })),
        route("blue/old", 1, json!({ "host": "c.test" })),
        grpc("red/g", 7, &["a.test", "c.test"]),
    ];
    let (_, report) = engine().apply(&resources(objects));
    let message = |id: &str| {
        let (namespace, name) = id.split_once('/').unwrap();
        let entry = &report.routes[&ObjectKey::new(namespace, name)].to_vec()[0];
        format!("{}: {}", entry.conditions[0].reason, entry.conditions[0].message)
    };
    assert_eq!(message("red/near"), "HostAlreadyClaimed: HTTPRoute h already exposes a.test and is older");
    assert_eq!(
        message("blue/far"),
        "HostAlreadyClaimed: an HTTPRoute in another namespace holds b.test and is older than far"
    );
    let conflicts: Vec<_> =
        report.conflicts.entries().map(|(key, lost)| format!("{key} lost to {}", lost[0].winner)).collect();
    assert_eq!(conflicts, ["blue/far lost to HTTPRoute red/h", "red/near lost to HTTPRoute red/h"]);
    let winners: Vec<_> = report
        .others
        .entries()
        .map(|(object, status)| {
            let winners: Vec<_> = status.rows[0].winners.iter().map(ToString::to_string).collect();
            format!("{object}: {}", winners.join(", "))
        })
        .collect();
    assert_eq!(winners, ["HTTPRoute red/h: ", "GRPCRoute red/g: HTTPRoute red/h, Route blue/old"]);
}

#[test]
fn routers_are_created_for_ports_and_removed_with_their_last_host() {
    let mut objects = resources([http("red/h", 5, &["a.test"])]);
    let mut engine = engine();
    let names = |table: &RoutingTable| -> Vec<_> {
        table.routers.iter().map(|router| (router.name.to_string(), router.http_port, router.https_port)).collect()
    };
    let default = ("default".to_owned(), Some(80), Some(443));
    let (table, _) = engine.apply(&objects);
    assert_eq!(names(&table), [default.clone(), ("gateway-8080".to_owned(), Some(8080), None)]);
    assert_eq!(table.routers[1].routes.len(), 1);
    objects.http_routes.remove(&ObjectKey::new("red", "h"));
    let (table, report) = engine.apply(&objects);
    assert_eq!(names(&table), [default]);
    assert!(table.routers[0].routes.is_empty() && report.others.is_empty());
    assert!(engine.others.is_empty(), "nothing is left to look after");
}

#[test]
fn equal_values_keep_their_identity() {
    let mut objects = resources([
        http("red/h", 5, &["a.test", "b.test"]),
        grpc("red/g", 6, &["c.test"]),
        route("blue/r", 7, json!({ "host": "r.test" })),
    ]);
    let mut engine = engine();
    let (before, report_before) = engine.apply(&objects);
    // Another object is added: everything is translated again. A Route whose endpoints change stays the same as well.
    objects.insert(&good(http("red/new", 9, &["new.test"])));
    objects.insert(&good(router_api::testing::slice("blue/web", &["10.0.0.1"], 80)));
    let (after, report) = engine.apply(&objects);
    let (before, after) = (&before.routers[0], &after.routers[0]);
    let hosts: Vec<_> = after.hosts.changes_since(&before.hosts).map(|changed| changed.key.to_string()).collect();
    assert_eq!(hosts, ["new.test"]);
    let routes: Vec<_> = after.routes.changes_since(&before.routes).map(|changed| changed.key.to_string()).collect();
    assert_eq!(routes, ["HTTPRoute:red/new:0"]);
    let changed = report.others.changes_since(&report_before.others).map(|changed| changed.key.to_string());
    assert_eq!(changed.collect::<Vec<_>>(), ["HTTPRoute red/new"]);

    // New routers: their host rules stay.
    objects.insert(&good(controller("default", json!({ "domain": "new.domain" }))));
    let (renewed, _) = engine.apply(&objects);
    let hosts: Vec<_> = renewed.routers[0].hosts.changes_since(&after.hosts).map(|c| c.key.to_string()).collect();
    assert_eq!(hosts, ["r.test"]);
}

#[test]
fn an_older_route_wins_the_host_until_it_is_removed() {
    let mut objects = resources([http("red/h", 5, &["a.test"])]);
    let mut engine = engine();
    let mut now = |objects: &Resources| {
        let (table, _) = engine.apply(objects);
        let router = &table.routers[0];
        let routes: Vec<_> = router.routes.entries().map(|(id, _)| id.to_string()).collect();
        (served(&table).into_iter().filter(|line| line.starts_with("default")).collect::<Vec<_>>().join(" "), routes)
    };
    let of_http_route = ("default a.test: HTTPRoute red/h".to_owned(), vec!["HTTPRoute:red/h:0".to_owned()]);
    assert_eq!(now(&objects), of_http_route);
    objects.insert(&good(route("blue/r", 1, json!({ "host": "a.test" }))));
    assert_eq!(now(&objects), ("default a.test: Route blue/r".to_owned(), vec!["blue/r".to_owned()]));
    objects.routes.remove(&ObjectKey::new("blue", "r"));
    assert_eq!(now(&objects), of_http_route);
}
