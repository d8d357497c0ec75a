//! The result never depends on history: after each change it equals a translation of all objects.

use std::sync::LazyLock;

use proptest::prelude::*;
use router_api::testing::good;

use super::batch::Model;
use super::*;
use crate::translator::HostClaim;

/// An incremental translation with the sum of its deltas.
#[derive(Default)]
pub struct IncrementalRun {
    contour: Contour,
    last: Resources,
    lost: LostHosts,
    claims: BTreeMap<RouterHost, Arc<HostClaim>>,
    hosts: BTreeMap<RouterHost, VirtualHost>,
    pub statuses: BTreeMap<ObjectRef, ObjectStatus>,
    domains: BTreeSet<(RouterName, Hostname)>,
}

/// Number of claims, hosts and statuses that an apply returned.
type Returned = (usize, usize, usize);

impl IncrementalRun {
    /// Applies these objects. `lost` may contain hosts that no object claims.
    ///
    /// # Errors
    /// The difference from a translation of all objects.
    pub fn apply(
        &mut self,
        resources: &Resources,
        lost: &LostHosts,
        routers: &[RouterPorts],
    ) -> Result<Returned, String> {
        let (endpoints, settings) = (EndpointIndex::new(resources, EndpointAddresses::Filtered), Settings::default());
        let inputs = Inputs { resources, settings: &settings, endpoints: &endpoints, routers, addresses: &[] };
        let protocols = BTreeSet::new();
        let changes = Changes { last: &self.last, last_routers: &[], protocols: &protocols };
        let claims = self.contour.claims(&inputs, &changes);
        let mut returned = (claims.len(), 0, 0);
        apply_delta(&mut self.claims, claims);
        let batch = Model::new(&inputs);
        let claims = batch.claims();
        same("claims", &self.claims, &claims)?;

        let lost: LostHosts =
            lost.iter().filter(|(at, _)| claims.contains_key(*at)).map(|(at, it)| (at.clone(), it.clone())).collect();
        let all: BTreeSet<&RouterHost> = lost.keys().chain(self.lost.keys()).collect();
        let changed: Vec<RouterHost> =
            all.into_iter().filter(|at| lost.get(*at) != self.lost.get(*at)).cloned().collect();
        let difference = self.contour.translate(&inputs, &lost, &changed);
        (returned.1, returned.2) = (difference.hosts.len(), difference.statuses.len());
        apply_delta(&mut self.hosts, difference.hosts);
        apply_delta(&mut self.statuses, difference.statuses);
        self.domains = difference.domains.unwrap_or_else(|| std::mem::take(&mut self.domains));
        let translation = batch.translate(&lost);
        same("hosts", &self.hosts, &translation.hosts)?;
        same("statuses", &self.statuses, &translation.statuses)?;
        if self.domains != translation.domains {
            return Err(format!("domains: {:?}, not {:?}", self.domains, translation.domains));
        }
        (self.last, self.lost) = (resources.clone(), lost);
        Ok(returned)
    }
}

fn apply_delta<K: Ord, V>(map: &mut BTreeMap<K, V>, changes: Vec<(K, Option<V>)>) {
    for (key, value) in changes {
        match value {
            Some(value) => drop(map.insert(key, value)),
            None => drop(map.remove(&key)),
        }
    }
}

fn same<K: Ord + std::fmt::Debug, V: PartialEq + std::fmt::Debug>(
    what: &str,
    incremental: &BTreeMap<K, V>,
    fresh: &BTreeMap<K, V>,
) -> Result<(), String> {
    let differs = |key: &&K| incremental.get(*key) != fresh.get(*key);
    let differing = incremental.keys().chain(fresh.keys()).find(differs);
    differing.map_or(Ok(()), |key| {
        Err(format!("{what} of {key:?}:\n    incremental {:#?}\n    fresh {:#?}", incremental.get(key), fresh.get(key)))
    })
}

/// One change.
#[derive(Clone, Debug)]
enum Edit {
    Put(Value),
    Remove(Value),
    /// Another API wins or releases this host.
    Lose(&'static str, Option<u32>),
    /// The router `default` is added or removed, and keeps slashes or not.
    Router(bool, bool),
}

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
        2 => prop::sample::select(SECRETS.clone()),
        2 => grants(),
    ]
}

fn edits() -> impl Strategy<Value = Edit> {
    prop_oneof![
        10 => objects().prop_map(Edit::Put),
        3 => objects().prop_map(Edit::Remove),
        2 => (prop::sample::select(&HOSTS[..]), prop::option::of(2019..2024_u32)).prop_map(|(host, year)| Edit::Lose(host, year)),
        1 => (prop::bool::weighted(0.8), any::<bool>()).prop_map(|(exists, merges)| Edit::Router(exists, merges)),
    ]
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
        Edit::Lose(host, year) => {
            let at = HostMatch::Exact(Hostname::parse(host).expect("a host"));
            let object = ObjectRef { kind: Kind::Route, key: ObjectKey::new("a", "route") };
            for router in ["another", "default"] {
                let at = (RouterName(router.into()), at.clone());
                let time = |year: u32| format!("{year}-01-01T00:00:00Z").parse().expect("a time");
                match year {
                    Some(year) => {
                        let created = Created(Some(time(*year)));
                        lost.insert(at, HostOwner { object: object.clone(), created });
                    }
                    None => drop(lost.remove(&at)),
                }
            }
        }
        Edit::Router(exists, merges) => {
            *routers = ["another", "default"].map(router_ports).to_vec();
            if !exists {
                routers.pop();
            }
            routers.iter_mut().for_each(|router| router.traffic.paths.keep_slashes = *merges);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn history_leaves_no_trace(history in prop::collection::vec(edits(), 1..50)) {
        let (mut resources, mut lost, mut routers) = (beginning(), LostHosts::new(), vec![router_ports("default")]);
        let mut incremental = IncrementalRun::default();
        for (at, change) in history.iter().enumerate() {
            edit(change, &mut resources, &mut lost, &mut routers);
            let step = incremental.apply(&resources, &lost, &routers);
            prop_assert!(step.is_ok(), "after step {}, {:?}: {}", at, change, step.unwrap_err());
            // The same objects again: nothing is translated.
            prop_assert_eq!(incremental.apply(&resources, &lost, &routers), Ok((0, 0, 0)));
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
        let mut incremental = IncrementalRun::default();
        incremental.apply(&resources, &lost, &routers).expect("the same as a batch");
        served += incremental.hosts.len();
        domains += incremental.domains.len();
        for status in incremental.statuses.values() {
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
    let mut incremental = IncrementalRun::default();
    let mut step = |resources: &Resources| {
        incremental.apply(resources, &LostHosts::new(), &[router_ports("default")]).expect("the same as a batch")
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
