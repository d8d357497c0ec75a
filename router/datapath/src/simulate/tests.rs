//! The kernel's tables and the proxy's look-ups are made from one routing table, and lead to the same routes.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use router_api::defaults::Defaults;
use router_api::parse::{ParseOutcome, parse};
use router_api::resources::Resources;
use router_common::maps::PROTOCOL_HTTP;
use router_common::verdict::{Reason, Verdict};
use router_model::certificate::MaterialCache;
use router_model::kind::Kind;
use router_model::names::{HostMatch, Hostname, RouteId};
use router_model::object::{ObjectKey, ObjectRef, Origin};
use router_table::lookup::{RequestMatch, SniMatch};
use router_table::rule::{HostRules, HostRulesTls, Rule};
use router_table::table::{ResolvedRoute, RouteKind, RouterTable, RoutingTable, VirtualHost};
use router_translate::settings::Settings;
use router_translate::translate::translate;
use serde_json::{Value, json};

use super::*;
use crate::egress_routes::Obstacle;
use crate::lower::{RouteIds, lower};
use crate::pools::Pools;
use crate::testing;

const HOSTS: [&str; 6] = ["a.x.test", "b.x.test", "x.test", "a.y.test", "deep.a.x.test", "localhost"];

fn routes() -> impl Strategy<Value = Value> {
    let tls = prop_oneof![
        Just(json!(null)),
        Just(json!({"termination": "edge"})),
        Just(json!({"termination": "edge", "insecureEdgeTerminationPolicy": "Redirect"})),
        Just(json!({"termination": "passthrough"})),
        Just(json!({"termination": "passthrough", "insecureEdgeTerminationPolicy": "Redirect"})),
    ];
    (0..9u32, 0..HOSTS.len(), tls, any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(name, host, tls, wildcard, path, list, unread)| {
            let passthrough = tls["termination"] == "passthrough";
            let mut spec = json!({"host": HOSTS[host], "to": {"name": "web"}});
            if !tls.is_null() {
                spec["tls"] = tls;
            }
            if wildcard {
                spec["wildcardPolicy"] = json!("Subdomain");
            }
            if path && !passthrough {
                spec["path"] = json!("/p");
            }
            let mut annotations = json!({});
            if list {
                annotations["haproxy.router.openshift.io/ip_allowlist"] = json!("10.0.0.0/8");
            }
            if unread {
                annotations["haproxy.router.openshift.io/set-forwarded-headers"] = json!("never");
                annotations["haproxy.router.openshift.io/disable_cookies"] = json!("true");
            }
            json!({"apiVersion": "route.openshift.io/v1", "kind": "Route", "spec": spec,
                "metadata": {"namespace": "ns", "name": format!("r{name}"), "uid": format!("{name}"),
                    "annotations": annotations}})
        },
    )
}

/// A host of a kind that is served by rules, or passed through.
fn other_hosts() -> impl Strategy<Value = VirtualHost> {
    let name = |text: &str| Hostname::parse(text).unwrap();
    let host = prop_oneof![
        4 => (0..HOSTS.len()).prop_map(move |at| HostMatch::Exact(name(HOSTS[at]))),
        3 => prop::sample::select(vec!["x.test", "a.x.test", "test"]).prop_map(move |at| HostMatch::Suffix(name(at))),
        1 => Just(HostMatch::Any),
    ];
    (host, any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(host, passed, cleartext, tls, bare)| {
            let id = |kind| RouteId { namespace: "ns".into(), name: host.to_string().into(), kind, part: 7 };
            let route = |kind, serves| {
                let route = testing::route(&[]);
                Arc::new(ResolvedRoute { id: id(kind), host: host.clone(), kind: serves, ..route })
            };
            let rules = || -> Arc<[Arc<Rule>]> {
                let serves = RouteKind::Http { path: router_model::names::PathMatch::any(), tls: None };
                let route = route(Kind::HttpRoute, serves);
                [Arc::new(Rule {
                    matcher: Default::default(),
                    path_form: Default::default(),
                    prefix: "/".into(),
                    route,
                    origin: "".into(),
                })]
                .into()
            };
            let tls = HostRulesTls {
                shown_by: ObjectRef { kind: Kind::Gateway, key: ObjectKey::new("ns", "g") },
                certificates: Vec::new(),
                minimum: None,
                rules: if tls { rules() } else { [].into() },
                tcp: None,
            };
            let host_rules = HostRules {
                owner: ObjectRef { kind: Kind::HttpRoute, key: ObjectKey::new("ns", "owner") },
                listener: "Gateway ns/g#l".into(),
                cleartext_listener: None,
                cleartext: cleartext.then(rules),
                tls: (!bare && !passed).then_some(tls),
            };
            VirtualHost {
                host: host.clone(),
                passthrough: passed.then(|| route(Kind::TlsRoute, RouteKind::Passthrough { redirect: false })),
                terminated: Default::default(),
                cleartext: Default::default(),
                certificate: None,
                rules: (!(passed && bare)).then(|| Box::new(host_rules)),
            }
        },
    )
}

fn table(routes: Vec<Value>, hosts: Vec<VirtualHost>) -> Arc<RouterTable> {
    let controller = json!({"apiVersion": "operator.openshift.io/v1", "kind": "IngressController",
        "metadata": {"namespace": "openshift-ingress-operator", "name": "default"},
        "spec": {"routeAdmission": {"wildcardPolicy": "WildcardsAllowed"}}});
    let mut resources = Resources::default();
    for value in routes.into_iter().chain([controller]) {
        if let ParseOutcome::Good(object) =
            parse(value, Origin::default(), &Defaults::default(), &mut MaterialCache::new()).outcome
        {
            resources.insert(&object);
        }
    }
    let mut routers = translate(&resources, &Settings::default()).table.routers;
    let mut router = Arc::into_inner(routers.remove(0)).expect("nobody else has it");
    let passed = hosts.iter().filter_map(|host| host.passthrough.clone());
    router.routes.extend(passed.collect::<Vec<_>>());
    router.hosts.extend(hosts.into_iter().map(Arc::new).collect());
    Arc::new(router)
}

proptest! {
    #[test]
    fn kernel_and_proxy_lead_to_the_same_route(routes in vec(routes(), 0..12), hosts in vec(other_hosts(), 0..6)) {
        let router = table(routes, hosts);
        let whole = RoutingTable { revision: 1, routers: vec![Arc::clone(&router)], ..RoutingTable::default() };
        let mut ids = RouteIds::default();
        ids.assign(&whole);
        let mut pools = Pools::new(|_: SocketAddr| Err(Obstacle::NoRoute));
        let image = lower(&whole, &[], &[], &ids, &mut pools);
        let id = |route: &ResolvedRoute| ids.of(router.id, &route.id);
        let names: BTreeSet<&str> = HOSTS.into_iter().chain(["other.x.test", "unknown.test", "c.deep.a.x.test"]).collect();
        for client in ["10.1.2.3", "192.0.2.1"].map(|a| a.parse::<IpAddr>().unwrap()) {
            for name in &names {
                let host = Hostname::parse(name).unwrap();
                let decision = image.decide_name(router.id, PROTOCOL_TLS, client, name);
                // The maps have no wider hosts: connections to these go up as unknown.
                let is_lowered = |host: &HostMatch| matches!(host, HostMatch::Exact(_) | HostMatch::Wildcard(_));
                let decided = router.candidates(&host).find(|host| {
                    host.passthrough.is_some() || !host.terminated.is_empty() || host.rules.is_some()
                });
                match (decided, router.match_sni(Some(&host))) {
                    (Some(host), SniMatch::Passthrough(route)) if is_lowered(&host.host) => {
                        let admitted = route.admits_source(client);
                        let reason = if admitted { Reason::Passthrough } else { Reason::SourceNotAllowed };
                        prop_assert_eq!((decision.reason, decision.route), (reason, id(route)), "{}", name);
                    }
                    (Some(host), _) if is_lowered(&host.host) => {
                        prop_assert_eq!(decision.reason, Reason::TlsTerminate, "{}", name);
                    }
                    _ => prop_assert_eq!(decision.reason, Reason::UnknownSni, "{}", name),
                }
                let decision = image.decide_name(router.id, PROTOCOL_HTTP, client, name);
                match router.match_cleartext_request(&host, "/p") {
                    // The kernel carries a request only to the route to which the proxy would forward it, whatever its
                    // path.
                    RequestMatch::Forward(route) if decision.reason == Reason::Cleartext => {
                        prop_assert_eq!(decision.route, id(route), "{}", name);
                        let other = router.match_cleartext_request(&host, "/other");
                        prop_assert!(matches!(other, RequestMatch::Forward(other) if Arc::ptr_eq(other, route)));
                        prop_assert!(route.admits_source(client), "{}", name);
                    }
                    found => {
                        // Requests need the proxy; the kernel only needs their possible route.
                        prop_assert_eq!(decision.verdict(), Verdict::Pass, "{} {:?}", name, found);
                        if matches!(found, RequestMatch::Forward(_) | RequestMatch::RedirectToHttps(_)) {
                            prop_assert_eq!(decision.reason, Reason::NeedsProxy, "{}", name);
                        }
                    }
                }
            }
        }
    }
}

/// The maps of a router with these routes, and its id.
fn image_of(routes: Vec<Value>) -> (MapImage, u32) {
    let router = table(routes, Vec::new());
    let id = router.id;
    let whole = RoutingTable { revision: 1, routers: vec![router], ..RoutingTable::default() };
    let mut ids = RouteIds::default();
    ids.assign(&whole);
    let image = lower(&whole, &[], &[], &ids, &mut Pools::new(|_: SocketAddr| Err(Obstacle::NoRoute)));
    (image, id)
}

fn route(host: &str, tls: Value, list: &str) -> Value {
    json!({"apiVersion": "route.openshift.io/v1", "kind": "Route",
        "metadata": {"namespace": "ns", "name": host, "annotations": {"haproxy.router.openshift.io/ip_allowlist": list}},
        "spec": {"host": host, "to": {"name": "web"}, "tls": tls}})
}

#[test]
fn a_list_admits_the_networks_that_it_names() {
    let lists = "10.1.2.0/23 192.0.2.7 2001:db8::/33 0.0.0.0/32";
    let (image, router) = image_of(vec![
        route("tcp.test", json!({"termination": "passthrough"}), lists),
        route("other.test", json!({"termination": "passthrough"}), "::/0"),
    ]);
    let admits = |name, client: &str| {
        image.decide_name(router, PROTOCOL_TLS, client.parse().unwrap(), name).reason == Reason::Passthrough
    };
    for (client, admitted) in [
        ("10.1.2.0", true),
        ("10.1.3.255", true),
        ("10.1.4.0", false),
        ("10.1.1.255", false),
        ("192.0.2.7", true),
        ("192.0.2.6", false),
        ("2001:db8:7fff::1", true),
        ("2001:db8:8000::", false),
    ] {
        assert_eq!(admits("tcp.test", client), admitted, "{client}");
        assert!(admits("other.test", client), "{client}");
    }
}
