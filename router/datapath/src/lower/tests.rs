//! Lowering: the map entries for a folder of objects, as a readable dump.

use std::net::{Ipv4Addr, Ipv6Addr};

use router_api::defaults::Defaults;
use router_api::parse::{ParseOutcome, parse};
use router_api::resources::Resources;
use router_model::certificate::MaterialCache;
use router_model::kind::Kind;
use router_model::names::{RouteId, RouterName};
use router_model::object::Origin;
use router_table::rule::BackendPolicy;
use router_table::table::{Cluster, RouteKind, WeightedService};
use router_translate::settings::Settings;
use router_translate::translate::translate;
use serde_json::{Value, json};

use super::*;
use crate::egress_routes::Path;

mod bounds;
mod changes;

fn route(name: &str, host: &str, tls: Option<Value>, annotations: Value) -> Value {
    let mut spec = json!({"host": host, "to": {"kind": "Service", "name": "web"}});
    if let Some(tls) = tls {
        spec["tls"] = tls;
    }
    json!({"apiVersion": "route.openshift.io/v1", "kind": "Route",
        "metadata": {"name": name, "namespace": "shop", "annotations": annotations}, "spec": spec})
}

fn table(objects: &[Value]) -> RoutingTable {
    translate(&resources(objects), &Settings::default()).table
}

fn resources(objects: &[Value]) -> Resources {
    let mut resources = Resources::default();
    for object in objects {
        let origin = Origin { file: "test.yaml".into(), line: 1, column: 1 };
        match parse(object.clone(), origin, &Defaults::default(), &mut MaterialCache::new()).outcome {
            ParseOutcome::Good(object) => resources.insert(&object),
            other => panic!("{other:?}"),
        }
    }
    resources
}

fn listener(table: &RoutingTable, protocol: Protocol, address: SocketAddr, state: BindState) -> ListenerState {
    let router = &table.routers[0];
    ListenerState { router: RouterName(Arc::clone(&router.name.0)), router_id: router.id, protocol, address, state }
}

/// One line per entry, sorted.
fn dump(image: &MapImage) -> Vec<String> {
    let hosts = image.hosts.iter().map(|((map, _, host), entry)| {
        let list = if entry.allow_list { " allow-list" } else { "" };
        format!("{} {host} -> {} {}{list}", map.name(), entry.backend, entry.reason.text())
    });
    let allow =
        image.allow.iter().map(|(_, address, bits)| format!("allow {}/{bits}", crate::address::address(address)));
    let listeners = image.listeners.iter().map(|((ip, port), listener)| {
        format!("listener {ip} {port} {} mss {}", listener.protocol, listener.max_segment)
    });
    let pools = image.pools.iter().map(|(route, pool)| {
        let slots = image.slots[&pool.id].iter().map(|slot| image.endpoints[&slot.endpoint].address.to_string());
        format!("pool of {} -> {}", image.routes[route].route, slots.collect::<Vec<_>>().join(" "))
    });
    hosts.chain(allow).chain(listeners).chain(pools).collect()
}

/// Every address is reached over one interface.
fn pools() -> Pools<impl Paths> {
    let source = |to: SocketAddr| if to.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
    Pools::new(move |to: SocketAddr| Ok(Path { source: source(to), interface: 1, max_segment: 1460 }))
}

/// A service with ready endpoints on port 8443.
fn service(name: &str, addresses: &[&str]) -> [Value; 2] {
    let endpoints: Vec<_> =
        addresses.iter().map(|ip| json!({"addresses": [ip], "conditions": {"ready": true}})).collect();
    [
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "shop", "name": name},
            "spec": {"ports": [{"name": "main", "port": 443, "targetPort": 8443}]}}),
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"namespace": "shop", "name": format!("{name}-1"),
                "labels": {"kubernetes.io/service-name": name}},
            "ports": [{"name": "main", "port": 8443}], "endpoints": endpoints}),
    ]
}

#[test]
fn every_kind_of_route_stands_where_openshift_has_it() {
    let mut objects = vec![
        route("plain", "plain.test", None, json!({})),
        route("edge", "edge.test", Some(json!({"termination": "edge"})), json!({})),
        route(
            "redirect",
            "redirect.test",
            Some(json!({"termination": "edge", "insecureEdgeTerminationPolicy": "Redirect"})),
            json!({}),
        ),
        route("tcp", "tcp.test", Some(json!({"termination": "passthrough"})), json!({})),
        route(
            "private",
            "private.test",
            Some(json!({"termination": "passthrough"})),
            json!({"haproxy.router.openshift.io/ip_allowlist": "10.1.2.3/8 2001:db8::1"}),
        ),
        route(
            "sticky",
            "sticky.test",
            Some(json!({"termination": "passthrough"})),
            json!({"haproxy.router.openshift.io/balance": "source"}),
        ),
    ];
    objects.extend(service("web", &["10.0.0.5", "10.0.0.6"]));
    let table = table(&objects);
    let mut ids = RouteIds::default();
    ids.assign(&table);
    let image = lower(&table, &[], &[], &ids, &mut pools());
    assert_eq!(
        dump(&image),
        [
            "http_be plain.test -> be_http:shop:plain needs-proxy",
            "http_be redirect.test -> be_edge_http:shop:redirect needs-proxy",
            "edge_reencrypt edge.test -> be_edge_http:shop:edge tls-terminate",
            "edge_reencrypt redirect.test -> be_edge_http:shop:redirect tls-terminate",
            "tcp_be private.test -> be_tcp:shop:private passthrough allow-list",
            "tcp_be sticky.test -> be_tcp:shop:sticky needs-relay",
            "tcp_be tcp.test -> be_tcp:shop:tcp passthrough",
            "sni_passthrough private.test -> be_tcp:shop:private passthrough allow-list",
            "sni_passthrough sticky.test -> be_tcp:shop:sticky needs-relay",
            "sni_passthrough tcp.test -> be_tcp:shop:tcp passthrough",
            "allow 10.0.0.0/104",
            "allow 2001:db8::1/128",
            "pool of shop/private -> 10.0.0.5:8443 10.0.0.6:8443",
            "pool of shop/tcp -> 10.0.0.5:8443 10.0.0.6:8443",
        ]
    );
    assert_eq!(image.routes.len(), 6);
}

#[test]
fn a_listener_on_every_address_matches_this_hosts_addresses_only() {
    let table = table(&[route("plain", "plain.test", None, json!({}))]);
    let mut ids = RouteIds::default();
    ids.assign(&table);
    let any = |ip: IpAddr| SocketAddr::new(ip, 80);
    let listeners = [
        listener(&table, Protocol::Http, any(Ipv4Addr::UNSPECIFIED.into()), BindState::Bound),
        listener(&table, Protocol::Http, any(Ipv6Addr::UNSPECIFIED.into()), BindState::Failed("in use".to_owned())),
        listener(&table, Protocol::Https, "192.0.2.9:443".parse().unwrap(), BindState::Bound),
        listener(&table, Protocol::Https, "[::]:8443".parse().unwrap(), BindState::Bound),
    ];
    let local = ["127.0.0.1", "192.0.2.9", "::1"].map(|ip| ip.parse().unwrap());
    let image = lower(&table, &listeners, &local, &ids, &mut pools());
    let listeners: Vec<_> = dump(&image).into_iter().filter(|line| line.starts_with("listener")).collect();
    assert_eq!(
        listeners,
        [
            "listener 127.0.0.1 80 1 mss 0",
            "listener 192.0.2.9 80 1 mss 0",
            "listener 192.0.2.9 443 2 mss 0",
            "listener ::1 8443 2 mss 0",
        ]
    );
}

#[test]
fn an_id_stays_with_its_route_and_is_never_given_again() {
    let tcp = |name: &str| route(name, &format!("{name}.test"), Some(json!({"termination": "passthrough"})), json!({}));
    let mut ids = RouteIds::default();
    let id = |ids: &RouteIds, table: &RoutingTable, name: &str| {
        ids.of(table.routers[0].id, &RouteId::of_route("shop", name))
    };
    let both = table(&[tcp("a"), tcp("b")]);
    ids.assign(&both);
    let (a, b) = (id(&ids, &both, "a"), id(&ids, &both, "b"));
    assert!(a != 0 && b != 0 && a != b);

    let only_b = table(&[tcp("b")]);
    ids.assign(&only_b);
    assert_eq!(id(&ids, &only_b, "b"), b);
    assert_eq!(id(&ids, &only_b, "a"), 0);

    let again = table(&[tcp("b"), tcp("a")]);
    ids.assign(&again);
    assert_eq!(id(&ids, &again, "b"), b);
    assert!(![0, a, b].contains(&id(&ids, &again, "a")));
}

#[test]
fn what_is_left_out_takes_its_wildcard_along() {
    let mut image = MapImage::default();
    for (host, route) in [("*.w.test", 1), ("a.w.test", 2), ("b.test", 3), ("*.b.test", 4)] {
        let entry = HostEntry { route, reason: Reason::NeedsProxy, allow_list: false, backend: String::new() };
        image.hosts.insert((RouteMap::HttpBe, 1, host.to_owned()), entry);
    }
    leave_out(&mut image, BTreeSet::from([(1, "a.w.test".to_owned())]));
    let hosts: Vec<_> = image.hosts.keys().map(|(_, _, host)| host.as_str()).collect();
    assert_eq!(hosts, ["*.b.test", "b.test"]);
    assert_eq!(image.left_out, 2);
}

#[test]
fn lowering_the_changes_gives_what_lowering_the_whole_does() {
    use crate::plan::plan;
    use router_translate::engine::Engine;

    let edge = || Some(json!({"termination": "edge"}));
    let tcp = || Some(json!({"termination": "passthrough"}));
    let list = |list: &str| json!({"haproxy.router.openshift.io/ip_allowlist": list});
    let mut versions: Vec<Vec<Value>> = vec![
        vec![route("a", "a.test", None, json!({})), route("b", "b.test", tcp(), list("10.0.0.1"))],
        vec![route("a", "a.test", edge(), json!({})), route("b", "b.test", tcp(), list("10.0.0.2 10.0.0.3"))],
        vec![route("b", "c.test", tcp(), json!({})), route("d", "a.test", tcp(), list("10.0.0.4"))],
        vec![route("a", "a.test", None, json!({})), route("d", "a.test", None, json!({}))],
        vec![],
    ];
    // The endpoints change together with the routes, and once alone.
    versions.insert(1, versions[0].clone());
    for (version, addresses) in
        versions.iter_mut().zip([&["10.0.0.5"][..], &["10.0.0.5", "10.0.0.6"], &["10.0.0.6"], &[]])
    {
        version.extend(service("web", addresses));
    }
    let mut engine = Engine::new(Settings::default());
    let (mut old, _) = engine.apply(&Resources::default());
    let mut ids = RouteIds::default();
    ids.assign(&old);
    let (mut pools, mut whole) = (pools(), 0);
    let mut image = lower(&old, &[], &[], &ids, &mut pools);
    for objects in versions {
        let (new, _) = engine.apply(&resources(&objects));
        match lower_changes(&old, &new, &mut ids, &mut pools) {
            Some((gone, come)) => plan(&gone, &come).iter().for_each(|change| change.apply_to(&mut image)),
            // The smallest segment of all endpoints changed: from none to one, and back.
            None => {
                whole += 1;
                ids.assign(&new);
                image = lower(&new, &[], &[], &ids, &mut pools);
            }
        }
        let had: Vec<_> = old.routers[0].routes.values().map(|route| route.id.clone()).collect();
        forget_gone(&old, &new, &mut ids);
        for route in had {
            let stays = new.routers[0].routes.get(&route).is_some();
            assert_eq!(ids.of(new.routers[0].id, &route) != 0, stays, "{route}");
        }
        assert_eq!(image, lower(&new, &[], &[], &ids, &mut pools));
        old = new;
    }
    assert!(image.is_empty() && image.routes.is_empty() && image.pools.is_empty() && image.endpoints.is_empty());
    assert_eq!(whole, 2, "all other changes were small");
}

#[test]
fn clear_text_is_steered_only_if_no_request_needs_parsing() {
    let never = || {
        json!({
            "haproxy.router.openshift.io/set-forwarded-headers": "never",
            "haproxy.router.openshift.io/disable_cookies": "true",
        })
    };
    let mut deep = route("deep", "deep.test", None, never());
    deep["spec"]["path"] = json!("/x");
    let table =
        table(&[route("told", "told.test", None, json!({})), route("whole", "whole.test", None, never()), deep]);
    let mut ids = RouteIds::default();
    ids.assign(&table);
    let lines = dump(&lower(&table, &[], &[], &ids, &mut pools()));
    let lines: Vec<_> = lines.iter().filter(|line| line.starts_with("http_be")).collect();
    let expected = [
        "http_be deep.test -> be_http:shop:deep needs-proxy",
        "http_be told.test -> be_http:shop:told needs-proxy",
        "http_be whole.test -> be_http:shop:whole cleartext",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_rule_with_a_share_that_is_lost_needs_the_relay() {
    let mut objects = vec![route("pass", "pass.test", Some(json!({"termination": "passthrough"})), json!({}))];
    objects.extend(service("web", &["10.0.0.1"]));
    // The same route as if it were of a TLSRoute's rule, with another backend in addition.
    let with = |backend: Option<WeightedService>| {
        let mut table = table(&objects);
        let router = Arc::get_mut(&mut table.routers[0]).unwrap();
        let host = Arc::clone(router.hosts.iter().next().unwrap());
        let plain = host.passthrough.as_deref().unwrap();
        let mut services = plain.cluster.services.to_vec();
        services.extend(backend);
        let of_rule = Arc::new(ResolvedRoute {
            id: RouteId { kind: Kind::TlsRoute, ..plain.id.clone() },
            host: plain.host.clone(),
            kind: RouteKind::Passthrough { redirect: false },
            cluster: Cluster { services: services.into() },
            rare: None,
            proxy_protocol: false,
            forwarded: Default::default(),
            request_work: false,
            is_plain: false,
            relay_only: false,
            policy: Arc::default(),
            rule: None,
            derived: Default::default(),
        });
        router.routes = [Arc::clone(&of_rule)].into_iter().collect();
        router.hosts.extend(vec![Arc::new(VirtualHost {
            host: of_rule.host.clone(),
            passthrough: Some(of_rule),
            terminated: Default::default(),
            cleartext: Default::default(),
            certificate: None,
            rules: None,
        })]);
        let mut ids = RouteIds::default();
        ids.assign(&table);
        let image = lower(&table, &[], &[], &ids, &mut pools());
        let (_, entry) = image.hosts.iter().find(|((map, ..), _)| *map == RouteMap::SniPassthrough).unwrap();
        (entry.reason, image.pools.len())
    };
    let backend = |weight, policy: BackendPolicy| {
        Some(WeightedService { service: "bad".into(), port: None, weight, key: None, policy: Some(Arc::new(policy)) })
    };
    let failing = || BackendPolicy { failure: Some(500), ..BackendPolicy::default() };
    assert_eq!(with(None), (Reason::Passthrough, 1));
    assert_eq!(with(backend(1, failing())), (Reason::NeedsRelay, 0));
    assert_eq!(with(backend(1, BackendPolicy::default())), (Reason::NeedsRelay, 0));
    assert_eq!(with(backend(0, failing())), (Reason::Passthrough, 1), "it has no share");
}

#[test]
fn host_rules_have_an_exact_name_in_all_maps_and_a_wider_host_in_none() {
    use router_model::kind::Kind;
    use router_model::names::Hostname;
    use router_model::object::{ObjectKey, ObjectRef};
    use router_table::rule::HostRules;

    let never = json!({
        "haproxy.router.openshift.io/set-forwarded-headers": "never",
        "haproxy.router.openshift.io/disable_cookies": "true",
    });
    let wild = |name: &str, tls: Option<Value>| {
        let mut route = route(name, "any.w.test", tls, never.clone());
        route["spec"]["wildcardPolicy"] = json!("Subdomain");
        route
    };
    let controller = json!({"apiVersion": "operator.openshift.io/v1", "kind": "IngressController",
        "metadata": {"namespace": "openshift-ingress-operator", "name": "default"},
        "spec": {"routeAdmission": {"wildcardPolicy": "WildcardsAllowed"}}});
    let objects = [controller, wild("plain", None)];
    let mut table = translate(&resources(&objects), &Settings::default()).table;
    let routers = &mut table.routers;
    let mut router = Arc::into_inner(routers.remove(0)).expect("nobody else has it");
    let name = |text: &str| Hostname::parse(text).unwrap();
    let passed = |host: HostMatch, part| {
        let id = RouteId { kind: Kind::TlsRoute, part, ..RouteId::of_route("shop", "tls") };
        let kind = RouteKind::Passthrough { redirect: false };
        let route = crate::testing::route(&[(1, &[8443])]);
        Arc::new(ResolvedRoute { id, host, kind, ..route })
    };
    let host_rules = |host: HostMatch, passthrough: Option<Arc<ResolvedRoute>>| {
        let owner = ObjectRef { kind: Kind::HttpRoute, key: ObjectKey::new("shop", "store") };
        let host_rules = HostRules {
            owner,
            listener: "Gateway shop/g#l".into(),
            cleartext_listener: None,
            cleartext: None,
            tls: None,
        };
        let none = Default::default;
        let (terminated, cleartext) = (none(), none());
        Arc::new(VirtualHost {
            host,
            passthrough,
            terminated,
            cleartext,
            certificate: None,
            rules: Some(Box::new(host_rules)),
        })
    };
    let exact = HostMatch::Exact(name("tls.w.test"));
    let wide = HostMatch::Suffix(name("w.test"));
    let (narrow, broad) = (passed(exact.clone(), 0), passed(wide.clone(), 1));
    router.routes.extend([&narrow, &broad].map(Arc::clone));
    table.endpoints = crate::testing::endpoints(&narrow);
    let hosts = vec![
        host_rules(HostMatch::Exact(name("site.w.test")), None),
        host_rules(exact, Some(narrow)),
        host_rules(wide, Some(broad)),
        host_rules(HostMatch::Any, None),
    ];
    router.hosts.extend(hosts);
    routers.push(Arc::new(router));

    let mut ids = RouteIds::default();
    ids.assign(&table);
    let image = lower(&table, &[], &[], &ids, &mut pools());
    let expected = [
        "http_be *.w.test -> be_http:shop:plain cleartext",
        "http_be site.w.test -> HTTPRoute shop/store needs-proxy",
        "http_be tls.w.test -> HTTPRoute shop/store needs-proxy",
        "edge_reencrypt site.w.test -> HTTPRoute shop/store tls-terminate",
        "tcp_be tls.w.test -> be_tcp:shop:tls passthrough",
        "sni_passthrough tls.w.test -> be_tcp:shop:tls passthrough",
        "pool of shop/plain -> ",
        "pool of TLSRoute:shop/tls:0 -> 127.0.0.1:8443",
    ];
    assert_eq!(dump(&image), expected);
    assert!(image.hosts.values().filter(|entry| entry.backend.starts_with("HTTPRoute")).all(|entry| entry.route == 0));
}
