//! Properties for arbitrary objects: Secrets stay within their grants, removing an edge changes only what is below it,
//! and the order of objects does not matter.

use router_api::object::Object;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::*;

const NAMESPACES: [&str; 3] = ["a", "b", "c"];
const NAMES: [&str; 3] = ["x", "y", "z"];
const HOSTS: [&str; 6] = ["", "a.test", ".d.test", "p.d.test", "q.d.test", ".in.d.test"];
const SUBDOMAINS: [&str; 4] = ["p.d.test", "q.d.test", ".in.d.test", "r.in.d.test"];

/// Objects in every test case: Services, and a Secret `tls` in each namespace.
static COMMON_OBJECTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let mut objects = backends(&["a/web", "b/web", "c/web"]);
    objects.extend(NAMESPACES.map(|namespace| secret(&format!("{namespace}/tls"), &["*.d.test"])));
    objects
});

fn id() -> impl Strategy<Value = (usize, usize)> {
    (0..NAMESPACES.len(), 0..NAMES.len())
}

fn reference((namespace, name): (usize, usize)) -> Value {
    json!({ "namespace": NAMESPACES[namespace], "name": NAMES[name] })
}

fn tls() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => Just(json!(null)),
        2 => Just(json!({ "secretName": "tls" })),
        2 => (0..NAMESPACES.len()).prop_map(|namespace| json!({ "secretName": format!("{}/tls", NAMESPACES[namespace]) })),
        1 => Just(json!({ "passthrough": true })),
    ]
}

fn route() -> impl Strategy<Value = Value> {
    let path = prop_oneof![Just("/"), Just("/u"), Just("/u/v")];
    (path, prop_oneof![1 => Just(None), 2 => id().prop_map(Some)]).prop_map(|(path, target)| match target {
        None => json!({ "match": path, "services": to("web") }),
        Some(target) => json!({ "match": path, "delegate": reference(target) }),
    })
}

fn proxy_object() -> impl Strategy<Value = Value> {
    let subdomains = prop::collection::vec((0..SUBDOMAINS.len(), id()), 0..3);
    let routes = prop::collection::vec(route(), 0..3);
    (id(), 2020..2024_u32, prop::option::of((0..HOSTS.len(), tls())), subdomains, routes).prop_map(
        |((namespace, name), year, host, subdomains, routes)| {
            let mut spec = json!({ "routes": routes });
            if let Some((host, tls)) = host {
                spec["virtualhost"] = json!({ "fqdn": HOSTS[host], "tls": tls });
                if HOSTS[host].starts_with('.') {
                    let entry =
                        |(name, target)| json!({ "subdomain": SUBDOMAINS[name], "delegate": reference(target) });
                    spec["subdomains"] = subdomains.into_iter().map(entry).collect();
                    spec["routes"] = json!([]);
                }
            }
            of_year(year, ingress_route(&format!("{}/{}", NAMESPACES[namespace], NAMES[name]), spec))
        },
    )
}

fn grant() -> impl Strategy<Value = Value> {
    (0..NAMESPACES.len(), 0..=NAMESPACES.len()).prop_map(|(namespace, target)| {
        delegation(NAMESPACES[namespace], "tls", json!([NAMESPACES.get(target).unwrap_or(&"*")]))
    })
}

/// IngressRoutes, one for each key, and grants.
fn objects() -> impl Strategy<Value = Vec<Value>> {
    (prop::collection::vec(proxy_object(), 1..8), prop::collection::vec(grant(), 0..2)).prop_map(|(proxies, grants)| {
        let keyed: BTreeMap<String, Value> = proxies
            .into_iter()
            .chain(grants)
            .map(|object| (format!("{}{}", object["kind"], object["metadata"]), object))
            .collect();
        let mut seen = BTreeSet::new();
        let key = |object: &Value| {
            format!("{} {} {}", object["kind"], object["metadata"]["namespace"], object["metadata"]["name"])
        };
        keyed.into_values().filter(|object| seen.insert(key(object))).collect()
    })
}

fn world(objects: &[Value]) -> World {
    World::new(COMMON_OBJECTS.iter().chain(objects).cloned().collect())
}

/// True if objects of a namespace may use the Secret of another one.
fn is_granted(world: &World, secret: &str, namespace: &str) -> bool {
    let (of, name) = secret.split_once('/').expect("namespace/name");
    of == namespace
        || world.resources.certificate_delegations.iter().any(|object| {
            *object.meta.key.namespace == *of
                && object.delegations.iter().any(|(known, targets)| {
                    **known == *name && targets.iter().any(|target| ["*", namespace].contains(&&**target))
                })
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// A host presents a certificate only if the object that names its Secret may use it: the leaf itself, or a
    /// domain's root that delegates the host.
    #[test]
    fn no_secret_is_served_without_a_grant_or_inheritance(objects in objects()) {
        let world = world(&objects);
        for host in world.translated.hosts.values() {
            let name = host.host.to_string();
            let certificate = world.certificate(&name);
            if certificate == "-" {
                continue;
            }
            // Every object with this host, or with a domain around it, and with TLS of its own.
            let may_show = world.resources.ingress_routes.iter().any(|proxy_object| {
                let Some(own) = &proxy_object.virtual_host else { return false };
                let namespace = &*proxy_object.meta.key.namespace;
                let written = own.tls.as_ref().map(|tls| if tls.secret.contains('/') { tls.secret.to_string() } else { format!("{namespace}/{}", tls.secret) });
                let names_it = *own.fqdn == *name || own.fqdn.is_empty() || (own.fqdn.starts_with('.') && name.ends_with(&*own.fqdn));
                names_it && written.as_deref() == Some(&*certificate) && is_granted(&world, &certificate, namespace)
            });
            prop_assert!(may_show, "{name} shows {certificate}");
        }
    }

    /// A host is served only by proxies that delegations lead to, and their statuses say so.
    #[test]
    fn served_proxies_are_reached_by_delegations(objects in objects()) {
        let world = world(&objects);
        for host in world.translated.hosts.values() {
            let host_rules = host.rules.as_ref().expect("host rules");
            for rule in host_rules.cleartext.iter().flat_map(|rules| rules.iter()) {
                let status = &world.translated.statuses[&rule.route.id.object()];
                prop_assert_ne!(&status.status()["currentStatus"], "orphaned");
            }
        }
    }

    /// The order of objects does not matter.
    #[test]
    fn the_order_of_objects_does_not_matter(objects in objects()) {
        let mut reversed = objects.clone();
        reversed.reverse();
        prop_assert_eq!(world(&objects).everything(), world(&reversed).everything());
    }

    /// Removing a delegating route changes nothing for hosts that its object does not serve, and gives no request to an
    /// object that did not have the host before.
    #[test]
    fn a_removed_edge_changes_only_hosts_below_it(objects in objects(), at in any::<prop::sample::Index>()) {
        let edges: Vec<(usize, usize)> = objects.iter().enumerate().flat_map(|(object, value)| {
            let routes = value["spec"]["routes"].as_array().cloned().unwrap_or_default();
            let delegates = routes.into_iter().enumerate().filter(|(_, route)| route.get("delegate").is_some());
            delegates.map(move |(route, _)| (object, route)).collect::<Vec<_>>()
        }).collect();
        prop_assume!(!edges.is_empty());
        let (object, route) = edges[at.index(edges.len())];
        let key = format!("{}/{}", text(&objects[object]["metadata"]["namespace"]), text(&objects[object]["metadata"]["name"]));
        let mut cut = objects.clone();
        cut[object]["spec"]["routes"].as_array_mut().expect("routes").remove(route);
        let (before, after) = (world(&objects), world(&cut));
        let through = |world: &World| -> BTreeSet<String> {
            let hosts = world.translated.statuses.iter().flat_map(|(object, status)| {
                let rows = status.status()["parents"].as_array().cloned().unwrap_or_default();
                let own: Vec<String> = rows.iter().map(|row| text(&row["path"])).collect();
                let hosts = status.rows.iter().flat_map(|row| row.hosts.clone()).collect::<Vec<_>>();
                let is_below = object.key.to_string() == key || own.iter().any(|path| path.split(' ').any(|part| part == key));
                if is_below { hosts } else { Vec::new() }
            });
            hosts.collect()
        };
        let touched = through(&before);
        let hosts: BTreeSet<String> = before.translated.hosts.iter().chain(&after.translated.hosts).map(|(_, host)| host.host.to_string()).collect();
        for host in hosts {
            let same = ["/", "/u", "/u/v"].iter().all(|path| {
                ["http", "https"].iter().all(|scheme| {
                    let url = format!("{scheme}://{host}{path}");
                    before.get(&url) == after.get(&url)
                })
            });
            prop_assert!(same || touched.contains(&host), "{} changed, and {} is on none of its paths", host, key);
            prop_assert_eq!(before.certificate(&host), after.certificate(&host));
        }
    }
}

/// The names, or with a dot the domains, that all roots delegate to this object.
fn delegated_to(objects: &[Value], delegate: &Value) -> BTreeSet<String> {
    let entries =
        objects.iter().flat_map(|object| object["spec"]["subdomains"].as_array().cloned().unwrap_or_default());
    entries.filter(|entry| entry["delegate"] == *delegate).map(|entry| text(&entry["subdomain"])).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Removing a subdomain changes nothing for names that it did not delegate, nor for other delegates.
    #[test]
    fn a_removed_subdomain_changes_no_other(objects in objects(), at in any::<prop::sample::Index>()) {
        let edges: Vec<(usize, usize)> = objects.iter().enumerate().flat_map(|(object, value)| {
            let entries = value["spec"]["subdomains"].as_array().map_or(0, Vec::len);
            (0..entries).map(move |entry| (object, entry))
        }).collect();
        prop_assume!(!edges.is_empty());
        let (object, entry) = edges[at.index(edges.len())];
        let mut cut = objects.clone();
        let gone = cut[object]["spec"]["subdomains"].as_array_mut().expect("subdomains").remove(entry);
        let mut touched = delegated_to(&objects, &gone["delegate"]);
        touched.insert(text(&gone["subdomain"]));
        // Removing a domain also removes the domains that it delegates.
        let inner = objects.iter().filter(|object| {
            object["metadata"]["name"] == gone["delegate"]["name"] && object["metadata"]["namespace"] == gone["delegate"]["namespace"]
        });
        for entry in inner.flat_map(|object| object["spec"]["subdomains"].as_array().cloned().unwrap_or_default()) {
            touched.extend(delegated_to(&objects, &entry["delegate"]));
        }
        let (before, after) = (world(&objects), world(&cut));
        for host in before.translated.hosts.iter().chain(&after.translated.hosts).map(|(_, host)| host.host.to_string()) {
            let is_touched = touched.iter().any(|name| *name == host || (name.starts_with('.') && host.ends_with(&**name)));
            if !is_touched {
                for url in ["http://", "https://"].map(|scheme| format!("{scheme}{host}/u")) {
                    prop_assert_eq!(before.get(&url), after.get(&url), "{} by {}", url, gone);
                }
                prop_assert_eq!(before.certificate(&host), after.certificate(&host));
            }
        }
    }
}

/// Guards against vacuous properties: most test cases serve some host.
#[test]
fn the_worlds_are_not_empty() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut served, mut inherited, mut orphaned) = (0, 0, 0);
    for _ in 0..200 {
        let objects = objects().new_tree(&mut runner).expect("objects").current();
        let world = world(&objects);
        for host in world.translated.hosts.values() {
            let owner = &host.rules.as_ref().expect("host rules").owner;
            served += 1;
            inherited += usize::from(
                host.host.to_string().ends_with("d.test") && world.certificate(&host.host.to_string()) != "-",
            );
            assert!(world.translated.statuses.contains_key(owner));
        }
        orphaned +=
            world.translated.statuses.values().filter(|status| status.status()["currentStatus"] == "orphaned").count();
    }
    assert!(served > 50 && inherited > 10 && orphaned > 50, "{served} {inherited} {orphaned}");
}

/// Field names and values of the APIs, and invalid texts.
const WORDS: [&str; 52] = [
    "virtualhost",
    "fqdn",
    "tls",
    "secretName",
    "minimumProtocolVersion",
    "passthrough",
    "subdomains",
    "subdomain",
    "delegate",
    "name",
    "namespace",
    "routes",
    "match",
    "services",
    "port",
    "weight",
    "validation",
    "caSecret",
    "subjectName",
    "strategy",
    "tcpproxy",
    "include",
    "includes",
    "conditions",
    "prefix",
    "exact",
    "regex",
    "header",
    "queryParameter",
    "present",
    "contains",
    "ignoreCase",
    "pathRewritePolicy",
    "replacePrefix",
    "replacement",
    "requestHeadersPolicy",
    "set",
    "remove",
    "value",
    "timeoutPolicy",
    "response",
    "request",
    "requestRedirectPolicy",
    "directResponsePolicy",
    "statusCode",
    "delegations",
    "targetNamespaces",
    ".corp.test",
    "*.corp.test",
    "a.corp.test",
    "/a",
    "(((",
];

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..70_000_i64).prop_map(Value::from),
        prop::sample::select(&WORDS[..]).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        let key = prop_oneof![9 => prop::sample::select(&WORDS[..]).prop_map(str::to_owned), 1 => ".{0,4}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6)
                .prop_map(|members| Value::Object(serde_json::Map::from_iter(members))),
        ]
    })
}

/// Valid objects, parts of which are replaced.
fn valid_objects() -> Vec<Value> {
    let routes = json!([{ "match": "/a", "services": [{ "name": "web", "port": 80, "weight": 1 }], "prefixRewrite": "/",
        "timeoutPolicy": { "request": "1s" } }, { "match": "/b", "delegate": { "name": "it" } }]);
    let conditions = json!([{ "prefix": "/a" }, { "header": { "name": "x", "contains": "y" } },
        { "queryParameter": { "name": "q", "exact": "v" } }]);
    let host = json!({ "fqdn": "a.corp.test", "tls": { "secretName": "tls", "minimumProtocolVersion": "1.3" } });
    vec![
        ingress_route("a/it", json!({ "virtualhost": host, "routes": routes })),
        ingress_route(
            "a/it",
            json!({ "virtualhost": { "fqdn": ".corp.test" }, "subdomains": [
            { "subdomain": "a.corp.test", "delegate": { "name": "it", "namespace": "a" } },
            { "subdomain": ".b.corp.test", "delegate": { "name": "other" } } ] }),
        ),
        proxy(
            "a/it",
            json!({ "virtualhost": host, "includes": [{ "name": "it", "conditions": conditions }], "routes": [{
            "conditions": conditions, "services": [{ "name": "web", "port": 80, "mirror": true }],
            "pathRewritePolicy": { "replacePrefix": [{ "prefix": "/a", "replacement": "/" }] },
            "requestHeadersPolicy": { "set": [{ "name": "x", "value": "y" }], "remove": ["z"] },
            "loadBalancerPolicy": { "strategy": "Cookie" } }] }),
        ),
        proxy(
            "a/it",
            json!({ "virtualhost": { "fqdn": "a.test", "tls": { "passthrough": true } },
            "tcpproxy": { "services": [{ "name": "web", "port": 80 }], "include": { "name": "it" } } }),
        ),
        delegation("a", "tls", json!(["b", "*"])),
    ]
}

/// Replaces the `nth` value inside another one, counted from the outside in.
fn graft(target: &mut Value, nth: &mut usize, with: &Value) {
    if *nth == 0 {
        *target = with.clone();
    }
    *nth = nth.wrapping_sub(1);
    match target {
        Value::Array(items) => items.iter_mut().for_each(|item| graft(item, nth, with)),
        Value::Object(members) => members.values_mut().for_each(|member| graft(member, nth, with)),
        _ => {}
    }
}

proptest! {
    /// For any text, reading ends with errors or with an object, and every object that is read gets a status.
    #[test]
    fn any_manifest_is_rejected_or_gets_a_status(which in 0..5_usize, nth in 0..40_usize, with in anything()) {
        let mut object = valid_objects().swap_remove(which);
        graft(&mut object["spec"], &mut nth.clone(), &with);
        let kind = text(&object["kind"]);
        match router_api::testing::parsed(object).outcome {
            router_api::parse::ParseOutcome::Good(good) => {
                let mut resources = resources(COMMON_OBJECTS.clone());
                resources.insert(&good);
                let world = World::of(&Settings::default(), &LostHosts::new(), resources);
                let is_foreign = matches!(&good, Object::IngressRoute(proxy) | Object::HttpProxy(proxy) if proxy.is_foreign());
                let has_status = world.translated.statuses.iter().any(|(object, status)| {
                    object.kind.name() == kind && !status.rows.is_empty() && status.status().is_object()
                });
                prop_assert!(has_status || is_foreign);
            }
            router_api::parse::ParseOutcome::Refused { errors, .. } => prop_assert!(!errors.is_empty()),
            other => prop_assert!(false, "{other:?}"),
        }
    }
}

#[test]
fn the_objects_to_change_are_valid() {
    for object in valid_objects() {
        router_api::testing::good(object);
    }
}
