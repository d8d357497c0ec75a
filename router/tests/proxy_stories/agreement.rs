//! For any objects, requests have an outcome that `explain` predicts, and each predicted outcome occurs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::LazyLock;
use std::time::Duration;

use proptest::prelude::*;
use router_proxy::ProxyConfig;
use router_translate::explain::explanation::Explanation;
use router_translate::explain::outcome::OutcomeKind;
use router_translate::explain::query::Query;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::manifests::{World, object, service};
use crate::{backends, client, gateways};

const HOSTS: [&str; 4] = ["a.world.test", "b.world.test", "deep.a.world.test", "other.test"];
const WANTED: [&str; 4] = ["a.world.test", "b.world.test", "*.world.test", "*.a.world.test"];
const PATHS: [&str; 5] = ["/", "/x", "/x/y", "/xy", "/z?v=1"];
const PREFIXES: [&str; 3] = ["/", "/x", "/x/y"];
/// The last five each lack something: see [`ground`].
const SERVICES: [&str; 7] = ["one", "two", "absent", "empty", "renamed", "unready", "external"];
/// Maximum number of requests until every possible outcome has occurred.
const MOST: usize = 400;

/// A runtime that outlives all cases, and its backends by name.
static STAGE: LazyLock<(Runtime, BTreeMap<&str, SocketAddr>)> = LazyLock::new(|| {
    let runtime = Runtime::new().unwrap();
    let backends = runtime.block_on(async {
        BTreeMap::from([
            ("A", backends::http("A").await),
            ("B", backends::http("B").await),
            ("C", backends::http("C").await),
        ])
    });
    (runtime, backends)
});

/// Objects of every case: a Gateway, and the Services except `absent`.
fn ground() -> Vec<Value> {
    let at = |name: &str| STAGE.1[name];
    let mut objects = gateways::web();
    objects.extend(service("one", &[at("A")]));
    objects.extend(service("two", &[at("B"), at("C")]));
    objects.extend(service("empty", &[]));
    let mut renamed = service("renamed", &[at("A")]);
    renamed[1]["ports"][0]["name"] = json!("web");
    let mut unready = service("unready", &[at("A")]);
    unready[1]["endpoints"][0]["conditions"] = json!({ "ready": false });
    let mut external = service("external", &[]);
    external[0]["spec"] = json!({ "type": "ExternalName", "externalName": "web.example.test" });
    objects.extend(renamed.into_iter().chain(unready).chain(external));
    objects
}

/// References to Services, each once: `name`, `port` and `weight`; most of them to working ones.
fn references() -> impl Strategy<Value = Vec<Value>> {
    let well = prop_oneof![3 => 0..2_usize, 2 => 2..SERVICES.len()];
    let weight = prop_oneof![3 => Just(1), 1 => Just(3), 1 => Just(0)];
    prop::collection::btree_map(well, weight, 1..4).prop_map(|services| {
        let reference = |(service, weight)| json!({ "name": SERVICES[service], "port": 80, "weight": weight });
        services.into_iter().map(reference).collect()
    })
}

fn openshift_route() -> impl Strategy<Value = Value> {
    let tls = prop_oneof![
        2 => Just(Value::Null),
        2 => Just(json!({ "termination": "edge" })),
        1 => Just(json!({ "termination": "edge", "insecureEdgeTerminationPolicy": "Allow" })),
        1 => Just(json!({ "termination": "edge", "insecureEdgeTerminationPolicy": "Redirect" })),
        // There is no CA to verify the endpoints.
        2 => Just(json!({ "termination": "reencrypt", "insecureEdgeTerminationPolicy": "Allow" })),
    ];
    let clients = prop_oneof![4 => Just(""), 1 => Just("127.0.0.0/8"), 1 => Just("192.0.2.1")];
    (0..2_usize, 0..PREFIXES.len(), references(), tls, clients).prop_map(|(host, path, services, tls, clients)| {
        let to = |service: &Value| json!({ "kind": "Service", "name": service["name"], "weight": service["weight"] });
        let mut spec = json!({ "host": HOSTS[host], "path": PREFIXES[path], "to": to(&services[0]), "tls": tls,
            "alternateBackends": services[1..].iter().map(to).collect::<Vec<_>>() });
        spec.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        let mut route = object("route.openshift.io/v1", "Route", "", spec);
        if !clients.is_empty() {
            route["metadata"]["annotations"] = json!({ "haproxy.router.openshift.io/ip_whitelist": clients });
        }
        route
    })
}

fn http_route() -> impl Strategy<Value = Value> {
    let matches = prop_oneof![
        2 => (0..PREFIXES.len()).prop_map(|path| json!({ "path": { "value": PREFIXES[path] } })),
        1 => Just(json!({ "method": "POST" })),
        1 => Just(json!({ "headers": [{ "name": "x-version", "value": "2" }] })),
        1 => Just(json!({ "queryParams": [{ "name": "v", "value": "1" }] })),
    ];
    let rule = (matches, references(), prop::bool::weighted(0.2)).prop_map(|(matches, services, redirects)| {
        let redirect = json!([{ "type": "RequestRedirect", "requestRedirect": { "hostname": "elsewhere.test" } }]);
        match redirects {
            true => json!({ "matches": [matches], "filters": redirect }),
            false => json!({ "matches": [matches], "backendRefs": services }),
        }
    });
    let hosts = prop::collection::btree_set(0..WANTED.len(), 0..3);
    let parents = prop_oneof![4 => Just("public"), 1 => Just("gone")];
    (hosts, prop::collection::vec(rule, 1..4), parents).prop_map(|(hosts, rules, parent)| {
        let hosts: Vec<&str> = hosts.into_iter().map(|host| WANTED[host]).collect();
        let spec = json!({ "parentRefs": [{ "name": parent }], "hostnames": hosts, "rules": rules });
        object("gateway.networking.k8s.io/v1", "HTTPRoute", "", spec)
    })
}

fn http_proxy() -> impl Strategy<Value = Value> {
    let route = (0..PREFIXES.len(), references())
        .prop_map(|(path, services)| json!({ "conditions": [{ "prefix": PREFIXES[path] }], "services": services }));
    let class = prop_oneof![4 => Just(Value::Null), 1 => Just(json!("nginx"))];
    (0..HOSTS.len(), prop::collection::vec(route, 0..3), class).prop_map(|(host, routes, class)| {
        let mut spec = json!({ "virtualhost": { "fqdn": HOSTS[host] }, "routes": routes });
        if !class.is_null() {
            spec["ingressClassName"] = class;
        }
        object("projectcontour.io/v1", "HTTPProxy", "", spec)
    })
}

/// Objects of all kinds, by name and age.
fn objects() -> impl Strategy<Value = Vec<Value>> {
    let object = prop_oneof![3 => openshift_route(), 3 => http_route(), 2 => http_proxy()];
    prop::collection::vec((object, 0..6_u32), 1..6).prop_map(|objects| {
        let named = objects.into_iter().enumerate().map(|(number, (mut object, age))| {
            object["metadata"]["name"] = json!(format!("o{number}"));
            object["metadata"]["creationTimestamp"] = json!(format!("2024-01-01T00:00:0{age}Z"));
            object
        });
        named.collect()
    })
}

/// A URL, a method, and whether the request has the header field that rules match.
fn question() -> impl Strategy<Value = (String, &'static str, bool)> {
    let url = |(scheme, host, path): (&str, usize, usize)| format!("{scheme}://{}{}", HOSTS[host], PATHS[path]);
    let method = prop_oneof![3 => Just("GET"), 1 => Just("POST")];
    let scheme = prop_oneof![3 => Just("http"), 2 => Just("https")];
    ((scheme, 0..HOSTS.len(), 0..PATHS.len()).prop_map(url), method, prop::bool::weighted(0.2))
}

/// An outcome of a request, actual or possible.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// A backend responds.
    Backend,
    /// The router responds with this status and cause.
    Answer(u16, String),
}

/// The outcomes that `explain` predicts, those of them without a condition, and the endpoints.
fn said(explanation: &Explanation) -> (BTreeSet<End>, BTreeSet<End>, BTreeSet<String>) {
    let (mut may, mut must, mut backends) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for outcome in &explanation.outcome {
        let end = match &outcome.kind {
            OutcomeKind::Endpoints { endpoints } => {
                backends.extend(endpoints.iter().cloned());
                End::Backend
            }
            OutcomeKind::Response { status, cause, .. } => End::Answer(*status, cause.clone()),
            other => panic!("no world has what comes to {other:?}: {explanation}"),
        };
        if outcome.when.is_none() {
            must.insert(end.clone());
        }
        may.insert(end);
    }
    (may, must, backends)
}

async fn ask(world: &World, query: &Query) -> (End, Option<String>) {
    let (path, host) = (query.path.as_deref().unwrap(), &query.host);
    let search = query.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
    let fields: String = query.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let method = query.method.as_deref().unwrap_or("GET");
    let text = format!("{method} {path}{search} HTTP/1.1\r\nHost: {host}\r\n{fields}Connection: close\r\n\r\n");
    let answer = match query.protocol {
        router_translate::explain::query::QueryProtocol::Http => client::request(world.rig.http, &text).await,
        router_translate::explain::query::QueryProtocol::Https => {
            client::exchange(client::tls(world.rig.https, Some(host), &["http/1.1"]).await, &text).await
        }
    };
    let name = answer.body.split(' ').next().unwrap_or_default();
    match STAGE.1.get(name).filter(|_| answer.status == 200) {
        Some(address) => (End::Backend, Some(address.to_string())),
        None => (End::Answer(answer.status, answer.field("x-sluice-cause").unwrap_or("none").to_owned()), None),
    }
}

async fn compare(objects: Vec<Value>, questions: Vec<(String, &'static str, bool)>) {
    let config = ProxyConfig { workers: NonZeroUsize::new(1), show_cause: true, ..ProxyConfig::default() };
    let world = World::with(config, ground().into_iter().chain(objects.iter().cloned())).await;
    for (url, method, versioned) in questions {
        let query = Query::parse(&url).unwrap().with_method(method).unwrap().from_client([127, 0, 0, 1].into());
        let query = if versioned { query.with_header("x-version: 2").unwrap() } else { query };
        let explanation = world.ask(&query);
        let (may, must, backends) = said(&explanation);
        let (mut seen, mut met) = (BTreeSet::new(), BTreeSet::new());
        for turn in 0..MOST {
            let (end, backend) = ask(&world, &query).await;
            let told = || format!("{method} {url} {versioned}: {end:?} {backend:?}\n{explanation}\n{objects:#?}");
            assert!(may.contains(&end), "{}", told());
            assert!(backend.iter().all(|backend| backends.contains(backend)), "{}", told());
            met.extend(backend);
            seen.insert(end);
            if turn >= 3 && must.is_subset(&seen) {
                break;
            }
        }
        assert!(must.is_subset(&seen), "{method} {url}: {must:?} of {seen:?}\n{explanation}\n{objects:#?}");
        let is_served = seen.iter().all(|end| matches!(end, End::Answer(..300, _) | End::Backend));
        assert!(explanation.served || !is_served, "{method} {url}: {seen:?}\n{explanation}\n{objects:#?}");
    }
    world.rig.proxy.shutdown(Duration::ZERO).await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn requests_meet_what_explain_says(
        objects in objects(),
        questions in prop::collection::vec(question(), 1..8),
    ) {
        STAGE.0.block_on(compare(objects, questions));
    }
}
