//! The result never depends on history: after each change it equals a translation of all objects.

use std::sync::LazyLock;

use proptest::prelude::*;
use router_api::testing::good;

use super::batch::Model;
use super::*;
use crate::domain_lists::DomainLists;
use crate::translator::testing::Claims;

/// Applies these objects, and compares with a translation of all objects. Returns the number of claims, hosts and
/// statuses in the deltas. `lost` may contain hosts that no object claims.
pub fn step(
    run: &mut Run<Contour>,
    resources: &Resources,
    settings: &Settings,
    lost: &LostHosts,
    routers: &[RouterPorts],
) -> Result<(usize, usize, usize), String> {
    let lost = |claims: &Claims| {
        let claimed = lost.iter().filter(|(at, _)| claims.contains_key(*at));
        claimed.map(|(at, owner)| (at.clone(), owner.clone())).collect()
    };
    let endpoints = EndpointIndex::new(resources, settings.endpoint_addresses);
    let inputs = Inputs { resources, settings, endpoints: &endpoints, routers, addresses: &[] };
    run.apply(resources, routers, lost).same_as(&Model::new(&inputs).translate(lost))?;
    Ok(run.returned)
}

/// One change.
#[derive(Clone, Debug)]
enum Edit {
    Put(Value),
    Remove(Value),
    /// Another API wins or releases this host on this router.
    Lose(&'static str, &'static str, Option<u32>),
    /// The routers, which keep slashes or not, and have a port for TLS or not.
    Routers(&'static [&'static str], bool, bool),
}

const ROUTERS: [&str; 2] = ["another", "default"];
const NAMESPACES: [&str; 2] = ["a", "b"];
const NAMES: [&str; 4] = ["w", "x", "y", "z"];
const HOSTS: [&str; 5] = ["a.test", "p.d.test", "q.d.test", "r.in.d.test", "d.test"];
const DOMAINS: [&str; 3] = [".d.test", ".in.d.test", ".e.test"];
const SUBDOMAINS: [&str; 6] = ["p.d.test", "q.d.test", ".in.d.test", "r.in.d.test", "p.e.test", "q.e.test"];

/// Two Secrets for each namespace: a certificate that covers some names, and a CA.
static SECRETS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let tls = |namespace: &&str| {
        [&["*.d.test"][..], &["a.test", "*.d.test"]].map(|names| secret(&format!("{namespace}/tls"), names))
    };
    let ca = authority("ca");
    let of_ca = |namespace: &&str| {
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": namespace, "name": "ca" },
            "stringData": { "ca.crt": ca } })
    };
    NAMESPACES.iter().flat_map(tls).chain(NAMESPACES.iter().map(of_ca)).collect()
});

fn name() -> impl Strategy<Value = (&'static str, &'static str)> {
    (prop::sample::select(&NAMESPACES[..]), prop::sample::select(&NAMES[..]))
}

fn reference() -> impl Strategy<Value = Value> {
    name().prop_map(|(namespace, name)| json!({ "namespace": namespace, "name": name }))
}

fn tls() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => Just(json!(null)),
        2 => Just(json!({ "secretName": "tls" })),
        2 => prop::sample::select(&NAMESPACES[..]).prop_map(|namespace| json!({ "secretName": format!("{namespace}/tls"),
            "minimumProtocolVersion": "1.3" })),
        1 => Just(json!({ "passthrough": true })),
    ]
}

fn target() -> impl Strategy<Value = Value> {
    let checked = |subject: &str| {
        let validation = json!({ "caSecret": "ca", "subjectName": subject });
        json!({ "name": "web", "port": 81, "validation": validation })
    };
    prop_oneof![
        4 => Just(json!({ "name": "web", "port": 80 })),
        1 => Just(json!({ "name": "other", "port": 80 })),
        1 => Just(checked("web.test")),
        1 => Just(checked("")),
    ]
}

/// A route of an IngressRoute: to a service, or delegated.
fn route() -> impl Strategy<Value = Value> {
    let path = prop::sample::select(&["/", "/u", "/u/v"][..]);
    (path, target(), prop::option::weighted(0.6, reference())).prop_map(|(path, service, target)| match target {
        None => json!({ "match": path, "services": [service] }),
        Some(target) => json!({ "match": path, "delegate": target }),
    })
}

fn meta(mut object: Value, year: u32, class: bool) -> Value {
    if class {
        object["metadata"]["annotations"] = json!({ "kubernetes.io/ingress.class": "another" });
    }
    of_year(year, object)
}

fn ingress_routes() -> impl Strategy<Value = Value> {
    let host = prop_oneof![
        4 => Just(None),
        3 => Just(Some("")),
        4 => prop::sample::select(&HOSTS[..]).prop_map(Some),
        5 => prop::sample::select(&DOMAINS[..]).prop_map(Some),
    ];
    let subdomains =
        prop::collection::vec((any::<prop::sample::Index>(), prop::bool::weighted(0.7), reference()), 0..4);
    let tcp = prop::option::weighted(
        0.2,
        prop_oneof![
            target().prop_map(|service| json!({ "services": [service] })),
            reference().prop_map(|target| json!({ "delegate": target })),
        ],
    );
    let routes = prop::collection::vec(route(), 0..3);
    (name(), 2020..2023_u32, prop::bool::weighted(0.1), host, tls(), subdomains, routes, tcp).prop_map(
        |((namespace, name), year, class, host, tls, subdomains, routes, tcp)| {
            let mut spec = json!({ "routes": routes });
            if let Some(host) = host {
                spec["virtualhost"] = json!({ "fqdn": host, "tls": tls });
            }
            if host.is_some_and(|host| host.starts_with('.')) {
                let inside = SUBDOMAINS.iter().filter(|name| host.is_some_and(|domain| name.ends_with(domain)));
                let inside: Vec<&str> = inside.copied().collect();
                let entry = |(at, is_inside, target): (prop::sample::Index, bool, Value)| {
                    let name = if is_inside { at.get(&inside) } else { at.get(&SUBDOMAINS) };
                    json!({ "subdomain": name, "delegate": target })
                };
                spec["subdomains"] = subdomains.into_iter().map(entry).collect();
                spec["routes"] = json!([]);
            } else if let Some(tcp) = tcp {
                spec["tcpproxy"] = tcp;
            }
            meta(ingress_route(&format!("{namespace}/{name}"), spec), year, class)
        },
    )
}

fn http_proxies() -> impl Strategy<Value = Value> {
    let host = prop_oneof![
        3 => Just(None),
        3 => prop::sample::select(&HOSTS[..]).prop_map(Some),
        1 => Just(Some("*.d.test")),
        1 => Just(Some("not a host")),
    ];
    let prefix = || prop::sample::select(&["/", "/u", "/v"][..]).prop_map(|prefix| json!([{ "prefix": prefix }]));
    let include = (prefix(), reference()).prop_map(|(conditions, mut target)| {
        target["conditions"] = conditions;
        target
    });
    let route = (prefix(), target(), any::<bool>()).prop_map(|(conditions, service, insecure)| {
        json!({ "conditions": conditions, "services": [service], "permitInsecure": insecure })
    });
    let tcp = prop::option::weighted(
        0.2,
        prop_oneof![
            target().prop_map(|service| json!({ "services": [service] })),
            reference().prop_map(|target| json!({ "include": target })),
        ],
    );
    let (includes, routes) = (prop::collection::vec(include, 0..3), prop::collection::vec(route, 0..3));
    (name(), 2020..2023_u32, prop::bool::weighted(0.1), host, tls(), includes, routes, tcp).prop_map(
        |((namespace, name), year, class, host, tls, includes, routes, tcp)| {
            let mut spec = json!({ "includes": includes, "routes": routes });
            if let Some(host) = host {
                spec["virtualhost"] = json!({ "fqdn": host, "tls": tls });
            }
            if let Some(tcp) = tcp {
                spec["tcpproxy"] = tcp;
            }
            meta(proxy(&format!("{namespace}/{name}"), spec), year, class)
        },
    )
}

fn services() -> impl Strategy<Value = Value> {
    let of = (prop::sample::select(&NAMESPACES[..]), prop::sample::select(&["web", "other"][..]));
    (of, any::<bool>(), any::<bool>()).prop_map(|((namespace, name), tls, more)| {
        let mut ports = vec![json!({ "name": "http", "port": 80 })];
        if more {
            ports.push(json!({ "name": "more", "port": 81 }));
        }
        let mut service = service(&format!("{namespace}/{name}"), json!(ports));
        if tls {
            service["metadata"]["annotations"] = json!({ "projectcontour.io/upstream-protocol.tls": "81" });
        }
        service
    })
}

fn slices() -> impl Strategy<Value = Value> {
    let protocol = prop::sample::select(vec![None, Some("h2c"), Some("kafka.example/plain")]);
    (prop::sample::select(&NAMESPACES[..]), protocol).prop_map(|(namespace, protocol)| {
        let mut slice = slice(&format!("{namespace}/web"), &["10.0.0.1"], 8080);
        slice["ports"][0]["appProtocol"] = json!(protocol);
        slice
    })
}

fn grants() -> impl Strategy<Value = Value> {
    let targets = prop::sample::select(vec![json!(["*"]), json!(["a"]), json!(["b"]), json!([])]);
    let of = (prop::sample::select(&NAMESPACES[..]), prop::sample::select(&["tls", "gone"][..]));
    (of, targets, any::<bool>()).prop_map(|((namespace, secret), targets, heptio)| {
        let mut grant = delegation(namespace, secret, targets);
        if heptio {
            grant["apiVersion"] = json!("contour.heptio.com/v1beta1");
        }
        grant
    })
}

fn objects() -> impl Strategy<Value = Value> {
    prop_oneof![
        10 => ingress_routes(),
        8 => http_proxies(),
        2 => services(),
        1 => slices(),
        2 => prop::sample::select(SECRETS.clone()),
        2 => grants(),
    ]
}

fn edits() -> impl Strategy<Value = Edit> {
    prop_oneof![
        10 => objects().prop_map(Edit::Put),
        3 => objects().prop_map(Edit::Remove),
        4 => losses(),
        1 => routers(),
    ]
}

fn losses() -> impl Strategy<Value = Edit> {
    let at = (prop::sample::select(&ROUTERS[..]), prop::sample::select(&HOSTS[..]));
    (at, prop::option::of(2019..2024_u32)).prop_map(|((router, host), year)| Edit::Lose(router, host, year))
}

fn routers() -> impl Strategy<Value = Edit> {
    let names = prop_oneof![
        4 => Just(&ROUTERS[..]),
        2 => Just(&["default"][..]),
        2 => Just(&["another"][..]),
        1 => Just(&[][..]),
    ];
    (names, any::<bool>(), any::<bool>()).prop_map(|(names, keeps, tls)| Edit::Routers(names, keeps, tls))
}

fn settings() -> impl Strategy<Value = Settings> {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let lists = prop_oneof![
        3 => Just((names(&[]), names(&[]))),
        1 => Just((names(&["q.d.test"]), names(&[]))),
        1 => Just((names(&["e.test"]), names(&["d.test", "a.test"]))),
    ];
    (lists, prop::bool::weighted(0.2), prop::bool::weighted(0.3)).prop_map(
        move |((denied, allowed), one_namespace, undelegated)| Settings {
            domains: DomainLists { denied, allowed },
            root_namespaces: if one_namespace { names(&["a"]) } else { Vec::new() },
            allow_undelegated_subdomains: undelegated,
            ..Settings::default()
        },
    )
}

/// Objects at the start of histories, so that hosts are soon served.
fn beginning() -> Resources {
    let services =
        ["a/web", "b/web"].map(|id| service(id, json!([{ "name": "http", "port": 80 }, { "name": "s", "port": 81 }])));
    resources(services.into_iter().chain(SECRETS.iter().cloned()))
}

fn edit(edit: &Edit, resources: &mut Resources, lost: &mut LostHosts, routers: &mut Vec<RouterPorts>) {
    match edit {
        Edit::Put(value) => resources.insert(&good(value.clone())),
        Edit::Remove(value) => {
            let object = good(value.clone());
            resources.set(object.key().clone(), object.kind(), None, None);
        }
        Edit::Lose(router, host, year) => {
            let at = (RouterName((*router).into()), HostMatch::Exact(Hostname::parse(host).expect("a host")));
            let object = ObjectRef { kind: Kind::Route, key: ObjectKey::new("a", "route") };
            let time = |year: u32| format!("{year}-01-01T00:00:00Z").parse().expect("a time");
            match year {
                Some(year) => drop(lost.insert(at, HostOwner { object, created: Created(Some(time(*year))) })),
                None => drop(lost.remove(&at)),
            }
        }
        Edit::Routers(names, keeps, tls) => {
            *routers = names.iter().map(|name| router_ports(name)).collect();
            for router in routers {
                router.traffic.paths.keep_slashes = *keeps;
                router.https = router.https.filter(|_| *tls);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn history_leaves_no_trace(settings in settings(), history in prop::collection::vec(edits(), 1..50)) {
        let (mut resources, mut lost, mut routers) = (beginning(), LostHosts::new(), vec![router_ports("default")]);
        let mut run = Run::new(&settings);
        for (at, change) in history.iter().enumerate() {
            edit(change, &mut resources, &mut lost, &mut routers);
            let first = step(&mut run, &resources, &settings, &lost, &routers);
            prop_assert!(first.is_ok(), "after step {}, {:?}: {}", at, change, first.unwrap_err());
            // The same objects again: nothing is translated.
            prop_assert_eq!(step(&mut run, &resources, &settings, &lost, &routers), Ok((0, 0, 0)));
        }
    }
}

/// Guards against vacuous histories.
#[test]
fn histories_contain_hosts_that_are_served_contested_and_delegated() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut served, mut domains, mut messages) = (0, 0, BTreeSet::new());
    for _ in 0..300 {
        let history = prop::collection::vec(edits(), 40).new_tree(&mut runner).expect("a history").current();
        let (mut resources, mut lost, mut routers) = (beginning(), LostHosts::new(), vec![router_ports("default")]);
        for change in &history {
            edit(change, &mut resources, &mut lost, &mut routers);
        }
        let (settings, mut run) = (Settings::default(), Run::new(&Settings::default()));
        step(&mut run, &resources, &settings, &lost, &routers).expect("the same as a batch");
        served += run.outcome.hosts.len();
        domains += run.outcome.domains.len();
        for status in run.outcome.statuses.values() {
            messages.extend(status.rows.iter().map(|row| row.message.clone()));
            messages.insert(status.status().to_string());
        }
    }
    assert!(served > 50 && domains > 30, "{served} {domains}");
    for part in [
        "is used in multiple",
        "HTTPProxy",
        "holds",
        "not delegated",
        "cycle",
        "delegation not permitted",
        "does not cover",
        "not found",
        "subject",
    ] {
        assert!(messages.iter().any(|message| message.contains(part)), "{part}");
    }
}

/// A set of roots, each with an include of its own and one that all share.
fn tree(roots: usize) -> Resources {
    let to_web = json!([{ "services": to("web") }]);
    let root = |at: usize| {
        let includes = json!([{ "name": format!("own{at}"), "conditions": [{ "prefix": "/own" }] },
            { "name": "shared", "conditions": [{ "prefix": "/shared" }] }]);
        let host = json!({ "fqdn": format!("h{at}.test") });
        [
            proxy(&format!("a/root{at}"), json!({ "virtualhost": host, "includes": includes, "routes": to_web })),
            proxy(&format!("a/own{at}"), json!({ "routes": to_web })),
        ]
    };
    let mut resources = resources((0..roots).flat_map(root));
    resources.insert(&good(proxy("a/shared", json!({ "routes": to_web }))));
    resources.insert(&good(service("a/web", json!([{ "port": 80 }]))));
    resources
}

#[test]
fn a_change_returns_what_depends_on_it() {
    let mut resources = tree(20);
    let (settings, mut run) = (Settings::default(), Run::new(&Settings::default()));
    let mut step = |resources: &Resources| {
        step(&mut run, resources, &settings, &LostHosts::new(), &[router_ports("default")])
            .expect("the same as a batch")
    };
    assert_eq!(step(&resources), (20, 20, 41));
    resources.insert(&good(proxy("a/own7", json!({ "routes": [{ "services": to("gone") }] }))));
    assert_eq!(step(&resources), (0, 1, 1), "an include of one root");
    resources.insert(&good(proxy("a/shared", json!({ "routes": [{ "services": to("gone") }] }))));
    assert_eq!(step(&resources), (0, 20, 1), "an include of all roots");
    resources.insert(&good(service("a/gone", json!([{ "port": 80 }]))));
    assert_eq!(step(&resources), (0, 20, 2), "a Service");
    resources.insert(&good(service("a/unused", json!([{ "port": 80 }]))));
    assert_eq!(step(&resources), (0, 0, 0), "a Service that nothing names");
    let host = json!({ "virtualhost": { "fqdn": "new.test" }, "routes": [{ "services": to("web") }] });
    resources.insert(&good(proxy("a/root3", host)));
    let (claims, hosts, statuses) = step(&resources);
    assert_eq!((claims, statuses), (2, 3), "another name, of a root, its include and the shared one");
    assert!((2..=4).contains(&hosts), "{hosts}: other hosts change only if their numbers move");
}
