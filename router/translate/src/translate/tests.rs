//! Objects in, table and statuses out.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use proptest::prelude::*;
use router_api::openshift::route::annotations::allowlist::ALLOWLIST;
use router_api::resources::Versions;
use router_api::testing::{controller, good, refused, resources, route, slice};
use router_model::field::FieldPath;
use router_model::names::Hostname;
use router_model::object::ObjectKey;
use router_table::lookup::{RequestMatch, SniMatch};
use router_table::table::ResolvedRoute;
use serde_json::{Value, json};

use super::*;
use crate::status::condition::Condition;

fn translated(values: impl IntoIterator<Item = Value>) -> Translation {
    translate(&resources(values), &Settings::default())
}

/// `reason: message` of the Admitted condition, or `admitted`.
fn verdict(translation: &Translation, id: &str) -> String {
    let (namespace, name) = id.split_once('/').unwrap();
    let entries = translation.report.routes[&ObjectKey::new(namespace, name)].to_vec();
    let [entry] = entries.as_slice() else { panic!("{id} has {} entries", entries.len()) };
    let condition = &entry.conditions[0];
    assert_eq!(condition.kind, "Admitted");
    match (condition.holds, condition.message.is_empty()) {
        (true, true) => "admitted".to_owned(),
        _ => format!("{}: {}", condition.reason, condition.message),
    }
}

fn host(name: &str) -> Hostname {
    Hostname::parse(name).unwrap()
}

#[test]
fn a_path_that_matches_no_normal_form_is_reported_if_paths_are_normalised() {
    let mut normal = controller("normal", json!({ "domain": "a.test" }));
    normal["metadata"]["annotations"] = json!({ "router.sluice.dev/normalize-path": "true" });
    let other = controller(
        "other",
        json!({ "domain": "b.test", "endpointPublishingStrategy": {
        "type": "HostNetwork", "hostNetwork": { "httpPort": 81, "httpsPort": 444 },
    } }),
    );
    let at = |id: &str, path: &str| route(id, 1, json!({ "host": "h.test", "path": path }));
    let translation =
        translated([normal, other, at("a/odd", "/%61//b"), at("a/dots", "/a/../b"), at("a/fine", "/a%2F%c3")]);
    let warnings = translation.warnings.iter().filter(|warning| warning.path == FieldPath::of(&["spec", "path"]));
    let warnings: Vec<_> = warnings.map(|warning| format!("{}: {}", warning.object.key, warning.message)).collect();
    let says = |id: &str, path: &str, normal: &str| {
        format!(
            "a/{id}: {path:?} matches no request to router normal, which puts paths in normal form; write {normal:?}"
        )
    };
    assert_eq!(warnings, [says("dots", "/a/../b", "/b"), says("odd", "/%61//b", "/a/b")]);
}

#[test]
fn a_folder_without_controllers_has_a_router_named_default() {
    let translation = translated([
        route("shop/cart", 1, json!({ "subdomain": "cart" })),
        slice("shop/web", &["10.0.0.2", "10.0.0.1"], 8080),
    ]);
    let [router] = translation.table.routers.as_slice() else { panic!("one router") };
    assert_eq!((&*router.name.0, router.http_port, router.https_port), ("default", Some(80), Some(443)));
    assert_ne!(router.id, 0);
    let RequestMatch::Forward(found) = router.match_cleartext_request(&host("cart.apps.localhost"), "/") else {
        panic!("not served")
    };
    let addresses: Vec<SocketAddr> =
        translation.table.endpoints.of(&found.cluster.services[0]).iter().map(|e| e.address).collect();
    assert_eq!(addresses, ["10.0.0.1:8080".parse().unwrap(), "10.0.0.2:8080".parse().unwrap()]);
    let entry = &translation.report.routes[&ObjectKey::new("shop", "cart")].to_vec()[0];
    assert_eq!(entry.host, "cart.apps.localhost");
    assert_eq!(&*entry.router_canonical_hostname, "router-default.apps.localhost");
    assert_eq!(entry.wildcard_policy, "None");
}

#[test]
fn each_shard_has_its_own_host_ports_and_entry() {
    let ports = |http, https| json!({ "hostNetwork": { "httpPort": http, "httpsPort": https } });
    let translation = translated([
        controller("one", json!({ "domain": "one.test", "endpointPublishingStrategy": ports(8080, 8443) })),
        controller(
            "two",
            json!({
                "domain": "two.test",
                "endpointPublishingStrategy": ports(9080, 9443),
                "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": "shop" } },
            }),
        ),
        route("shop/cart", 1, json!({ "subdomain": "cart" })),
        route("blog/main", 1, json!({ "subdomain": "blog" })),
    ]);
    let hosts = |id: (&str, &str)| -> Vec<String> {
        translation.report.routes[&ObjectKey::new(id.0, id.1)].to_vec().into_iter().map(|entry| entry.host).collect()
    };
    assert_eq!(hosts(("shop", "cart")), ["cart.one.test", "cart.two.test"]);
    assert_eq!(hosts(("blog", "main")), ["blog.one.test"]);
    let ids: BTreeSet<_> = translation.table.routers.iter().map(|router| router.id).collect();
    assert_eq!(ids.len(), 2);
}

#[test]
fn of_two_controllers_on_one_port_the_older_serves() {
    let mut young = controller("a", json!({ "domain": "a.test" }));
    young["metadata"]["creationTimestamp"] = json!("2024-01-02T00:00:00Z");
    let mut old = controller("b", json!({ "domain": "b.test" }));
    old["metadata"]["creationTimestamp"] = json!("2024-01-01T00:00:00Z");
    let translation = translated([young, old]);
    let served: Vec<_> = translation.table.routers.iter().map(|router| router.name.to_string()).collect();
    assert_eq!(served, ["b"]);
    let status = &translation.report.ingress_controllers[&ObjectKey::new("openshift-ingress-operator", "a")];
    let texts: Vec<_> = status.conditions.iter().map(|c| format!("{}={} {}", c.kind, c.status(), c.reason)).collect();
    assert_eq!(texts, ["Admitted=True Valid", "Available=False PortConflict", "Degraded=True PortConflict"]);
}

#[test]
fn the_most_specific_host_with_tls_wins_and_passthrough_has_no_path() {
    let translation = translated([
        controller("default", json!({ "routeAdmission": { "wildcardPolicy": "WildcardsAllowed" } })),
        route(
            "a/wild",
            1,
            json!({ "host": "x.d.test", "wildcardPolicy": "Subdomain",
            "tls": { "termination": "passthrough" } }),
        ),
        route("a/edge", 2, json!({ "host": "www.d.test", "tls": { "termination": "edge" } })),
    ]);
    let router = &translation.table.routers[0];
    assert!(matches!(router.match_sni(Some(&host("other.d.test"))), SniMatch::Passthrough(r) if &*r.id.name == "wild"));
    assert!(matches!(router.match_sni(Some(&host("www.d.test"))), SniMatch::Terminate(_)));
    assert!(matches!(router.match_sni(Some(&host("d.test"))), SniMatch::Default));
    assert!(matches!(router.match_cleartext_request(&host("www.d.test"), "/"), RequestMatch::NoRoute));
}

#[test]
fn clear_text_is_served_by_policy() {
    let tls = |policy: &str| json!({ "termination": "edge", "insecureEdgeTerminationPolicy": policy });
    let translation = translated([
        route("a/none", 1, json!({ "host": "none.test", "tls": tls("None") })),
        route("a/allow", 1, json!({ "host": "allow.test", "tls": tls("Allow") })),
        route("a/redirect", 1, json!({ "host": "redirect.test", "tls": tls("Redirect") })),
        route(
            "a/pass",
            1,
            json!({ "host": "pass.test",
            "tls": { "termination": "passthrough", "insecureEdgeTerminationPolicy": "Redirect" } }),
        ),
    ]);
    let router = &translation.table.routers[0];
    let match_host = |name: &str| router.match_cleartext_request(&host(name), "/x");
    assert!(matches!(match_host("none.test"), RequestMatch::NoRoute));
    assert!(router.hosts.exact[&host("none.test")].cleartext.is_empty());
    assert!(matches!(match_host("allow.test"), RequestMatch::Forward(_)));
    assert!(matches!(match_host("redirect.test"), RequestMatch::RedirectToHttps(_)));
    assert!(matches!(match_host("pass.test"), RequestMatch::RedirectToHttps(_)));
}

#[test]
fn an_empty_path_and_a_slash_are_two_claims_and_the_older_serves() {
    let translation = translated([
        route("a/slash", 1, json!({ "host": "h.test", "path": "/" })),
        route("a/empty", 2, json!({ "host": "h.test" })),
        route("a/deep", 3, json!({ "host": "h.test", "path": "/deep" })),
    ]);
    let router = &translation.table.routers[0];
    let served = |path: &str| match router.match_cleartext_request(&host("h.test"), path) {
        RequestMatch::Forward(route) => route.id.name.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!((served("/"), served("/x"), served("/deep/er")), ("slash".into(), "slash".into(), "deep".into()));
    let expected =
        "Shadowed: shadowed over http: route slash has path \"/\", which covers the same requests, and is older";
    assert_eq!(verdict(&translation, "a/empty"), expected);
    assert_eq!(verdict(&translation, "a/slash"), "admitted");
}

#[test]
fn a_rejected_version_leaves_the_last_accepted_one_serving() {
    let mut resources = resources([route("a/r", 1, json!({ "host": "h.test" }))]);
    let key = ObjectKey::new("a", "r");
    let last_accepted = resources.routes.versions_of(&key).unwrap().accepted.clone();
    let newer = route("a/r", 1, json!({ "host": "UPPER.test" }));
    let problem = refused(newer.clone(), "r.yaml:9: spec.host: Invalid value");
    resources.routes.insert(key.clone(), Versions { accepted: last_accepted, rejected: Some(problem.clone()) });
    let translation = translate(&resources, &Settings::default());
    assert_eq!(translation.table.routers[0].routes.len(), 1);
    let entry = &translation.report.routes[&key].to_vec()[0];
    assert_eq!(entry.host, "h.test");
    assert_eq!(
        entry.conditions[1],
        Condition::new(
            "ManifestValid",
            false,
            "InvalidManifest",
            "r.yaml:9: spec.host: Invalid value; the last good version goes on serving"
        )
    );

    resources.routes.insert(key.clone(), Versions { accepted: None, rejected: Some(problem) });
    let translation = translate(&resources, &Settings::default());
    assert!(translation.table.routers[0].routes.is_empty());
    assert_eq!(verdict(&translation, "a/r"), "InvalidManifest: r.yaml:9: spec.host: Invalid value");
    assert_eq!(translation.report.routes[&key].to_vec()[0].host, "UPPER.test");
}

#[test]
fn a_route_without_an_accepted_version_is_reported_by_the_routers_that_select_it() {
    let ports = |http: u16| json!({ "hostNetwork": { "httpPort": http, "httpsPort": http + 1 } });
    let router = |name: &str, http: u16, spec: Value| {
        let mut controller = controller(name, spec);
        controller["spec"]["endpointPublishingStrategy"] = ports(http);
        controller
    };
    let by_name = |name: &str| json!({ "matchLabels": { "kubernetes.io/metadata.name": name } });
    let routers = [
        router("all", 8080, json!({ "domain": "all.test" })),
        router("blue", 8180, json!({ "domain": "blue.test", "routeSelector": { "matchLabels": { "shard": "blue" } } })),
        router("red", 8280, json!({ "domain": "red.test", "routeSelector": { "matchLabels": { "shard": "red" } } })),
        router("shop", 8380, json!({ "domain": "shop.test", "namespaceSelector": by_name("shop") })),
        router("blog", 8480, json!({ "domain": "blog.test", "namespaceSelector": by_name("blog") })),
    ];
    let entries_for = |labels: Value| -> Vec<(String, &str)> {
        let mut object = route("shop/cart", 1, json!({ "host": "UPPER.test", "wildcardPolicy": "Subdomain" }));
        object["metadata"]["labels"] = labels;
        let mut resources = resources(routers.clone());
        let key = ObjectKey::new("shop", "cart");
        let problem = refused(object, "r.yaml:9: spec.host: Invalid value");
        resources.routes.insert(key.clone(), Versions { accepted: None, rejected: Some(problem) });
        let entries = translate(&resources, &Settings::default()).report.routes[&key].to_vec();
        assert!(entries.iter().all(|entry| entry.conditions[0].reason == "InvalidManifest"));
        entries.into_iter().map(|entry| (entry.router_name.to_string(), entry.wildcard_policy)).collect()
    };
    let subdomain = |names: &[&str]| -> Vec<_> { names.iter().map(|name| ((*name).to_owned(), "Subdomain")).collect() };
    assert_eq!(entries_for(json!({ "shard": "blue" })), subdomain(&["all", "blue", "shop"]));
    assert_eq!(entries_for(Value::Null), subdomain(&["all", "shop"]));
    // Invalid labels may be those of any shard.
    assert_eq!(entries_for(json!({ "shard": 1 })), subdomain(&["all", "blue", "red", "shop"]));
}

#[test]
fn an_allowlist_without_a_valid_address_admits_no_client_and_is_reported() {
    let mut object = route("a/r", 1, json!({ "host": "h.test" }));
    object["metadata"]["annotations"] = json!({ ALLOWLIST: "10. nonsense" });
    let translation = translated([object]);
    assert_eq!(translation.table.routers[0].routes.values().next().unwrap().allow(), Some(&[][..]));
    assert!(!translation.table.routers[0].routes.values().next().unwrap().admits_source("10.0.0.1".parse().unwrap()));
    assert!(verdict(&translation, "a/r").starts_with("NobodyAllowed: "));
}

/// Hosts, routes and statuses of a translation as text.
fn fingerprint(translation: &Translation) -> String {
    let mut text = String::new();
    for router in &translation.table.routers {
        text.push_str(&format!("{} {}\n", router.name, router.id));
        let hosts: BTreeMap<String, _> = router
            .hosts
            .exact
            .values()
            .chain(router.hosts.wildcard.values())
            .map(|host| (host.host.to_string(), host))
            .collect();
        for (name, host) in hosts {
            let ids = |routes: &[Arc<ResolvedRoute>]| routes.iter().map(|r| r.id.to_string()).collect::<Vec<_>>();
            let passthrough = host.passthrough.as_ref().map(|route| route.id.to_string());
            text.push_str(&format!("{name} {passthrough:?} {:?} {:?}\n", ids(&host.terminated), ids(&host.cleartext)));
        }
    }
    text.push_str(&format!("{:?}", translation.report));
    text
}

/// Routes of three namespaces that contest few hosts and paths.
fn conflicting_routes() -> impl Strategy<Value = Vec<Value>> {
    let one = (0..3usize, 0..5u32, 0..4usize, 0..4usize, 0..4usize, any::<bool>());
    prop::collection::vec(one, 1..14).prop_map(|specs| {
        specs
            .into_iter()
            .enumerate()
            .map(|(i, (namespace, age, host, path, kind, wildcard))| {
                let host = ["a.d.test", "b.d.test", "d.test", "x.a.d.test"][host];
                let path = ["", "/", "/p", "/p/q"][path];
                let mut spec = json!({ "host": host, "path": path });
                if wildcard {
                    spec["wildcardPolicy"] = json!("Subdomain");
                }
                match kind {
                    0 => {}
                    1 => spec["tls"] = json!({ "termination": "edge" }),
                    2 => {
                        spec["tls"] = json!({ "termination": "edge", "insecureEdgeTerminationPolicy": "Allow" });
                    }
                    _ => {
                        spec["tls"] = json!({ "termination": "passthrough" });
                        spec["path"] = json!("");
                    }
                }
                let mut object = route(&format!("{}/r{i}", ["red", "green", "blue"][namespace]), age, spec);
                object["metadata"]["uid"] = json!(format!("{i:02}"));
                object
            })
            .collect()
    })
}

fn policies() -> impl Strategy<Value = Value> {
    (any::<bool>(), any::<bool>()).prop_map(|(shared, wildcards)| {
        let ownership = if shared { "InterNamespaceAllowed" } else { "Strict" };
        let wildcards = if wildcards { "WildcardsAllowed" } else { "WildcardsDisallowed" };
        controller("c", json!({ "routeAdmission": { "namespaceOwnership": ownership, "wildcardPolicy": wildcards } }))
    })
}

proptest! {
    #[test]
    fn order_of_arrival_changes_nothing(policy in policies(), routes in conflicting_routes(), seed in any::<u64>()) {
        let mut shuffled = routes.clone();
        let len = shuffled.len();
        for i in 0..len {
            shuffled.swap(i, (seed as usize).wrapping_mul(i + 7) % len);
        }
        let straight = translated(routes.into_iter().chain([policy.clone()]));
        let mixed = translated([policy].into_iter().chain(shuffled));
        prop_assert_eq!(fingerprint(&straight), fingerprint(&mixed));
    }

    #[test]
    fn a_removed_route_leaves_no_trace(policy in policies(), routes in conflicting_routes(), pick in any::<prop::sample::Index>()) {
        let removed = good(routes[pick.index(routes.len())].clone());
        let without: Vec<Value> = routes
            .iter()
            .filter(|value| value["metadata"]["name"].as_str() != Some(&*removed.key().name))
            .cloned()
            .collect();
        let mut resources = resources(routes.into_iter().chain([policy.clone()]));
        translate(&resources, &Settings::default());
        resources.routes.remove(removed.key());
        let after = translate(&resources, &Settings::default());
        prop_assert_eq!(fingerprint(&after), fingerprint(&translated(without.into_iter().chain([policy]))));
    }

    #[test]
    fn no_two_admitted_routes_own_one_host_and_path(policy in policies(), routes in conflicting_routes()) {
        let translation = translated(routes.into_iter().chain([policy]));
        let mut owners = BTreeMap::new();
        for route in translation.table.routers[0].routes.values() {
            let claim = (route.host.clone(), route.path().to_owned());
            let earlier = owners.insert(claim.clone(), route.id.clone());
            prop_assert!(earlier.is_none(), "{:?} is owned by {:?} and {}", claim, earlier, route.id);
        }
        for host in translation.table.routers[0].hosts.exact.values() {
            prop_assert!(host.passthrough.is_none() || host.terminated.is_empty());
        }
    }

    #[test]
    fn a_route_changes_nothing_for_unrelated_hosts(
        policy in policies(), routes in conflicting_routes(), newcomer in conflicting_routes(), age in 0..5u32,
    ) {
        // Hosts of another domain, which neither exact claims nor wildcards can overlap.
        let elsewhere = newcomer.into_iter().map(|mut value| {
            let host = value["spec"]["host"].as_str().unwrap_or_default().replace("d.test", "unrelated.example");
            value["spec"]["host"] = json!(host);
            value["metadata"]["name"] = json!(format!("new-{age}-{}", value["metadata"]["name"].as_str().unwrap_or_default()));
            value
        });
        let before = translated(routes.iter().cloned().chain([policy.clone()]));
        let after = translated(routes.into_iter().chain([policy]).chain(elsewhere));
        for (key, entries) in before.report.routes.entries() {
            prop_assert_eq!(&after.report.routes[key], entries);
        }
        let ids = |routes: &[Arc<ResolvedRoute>]| routes.iter().map(|route| route.id.clone()).collect::<Vec<_>>();
        for host in before.table.routers[0].hosts.iter() {
            let same = after.table.routers[0].hosts.entry(&host.host).unwrap();
            prop_assert_eq!(ids(&same.terminated), ids(&host.terminated));
            prop_assert_eq!(ids(&same.cleartext), ids(&host.cleartext));
            prop_assert_eq!(same.passthrough.as_ref().map(|r| &r.id), host.passthrough.as_ref().map(|r| &r.id));
        }
    }
}
