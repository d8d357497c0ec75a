//! What must hold whatever the objects are: Secrets stay where they belong, a cut edge changes only what hangs below
//! it, and the order of objects is nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::*;

const NAMESPACES: [&str; 3] = ["a", "b", "c"];
const NAMES: [&str; 3] = ["x", "y", "z"];
const HOSTS: [&str; 6] = ["", "a.test", ".d.test", "p.d.test", "q.d.test", ".in.d.test"];
const SUBDOMAINS: [&str; 4] = ["p.d.test", "q.d.test", ".in.d.test", "r.in.d.test"];

/// What every world has: Services, and a Secret `tls` in each namespace.
static GROUND: LazyLock<Vec<Value>> = LazyLock::new(|| {
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

fn vertex() -> impl Strategy<Value = Value> {
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
    (prop::collection::vec(vertex(), 1..8), prop::collection::vec(grant(), 0..2)).prop_map(|(vertices, grants)| {
        let keyed: BTreeMap<String, Value> = vertices
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
    World::new(GROUND.iter().chain(objects).cloned().collect())
}

/// Whether objects of a namespace may use the Secret of another one.
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

    /// A Secret is shown for a host only where the object that names it may use it: the leaf's own, or a domain's root
    /// above it that delegates the host.
    #[test]
    fn no_secret_is_served_without_a_grant_or_an_inheritance(objects in objects()) {
        let world = world(&objects);
        for (_, host) in &world.settled.hosts {
            let name = host.host.to_string();
            let certificate = world.certificate(&name);
            if certificate == "-" {
                continue;
            }
            // Every object that names this host, or a domain around it, with TLS of its own.
            let may_show = world.resources.ingress_routes.iter().any(|vertex| {
                let Some(own) = &vertex.virtual_host else { return false };
                let namespace = &*vertex.meta.key.namespace;
                let written = own.tls.as_ref().map(|tls| if tls.secret.contains('/') { tls.secret.to_string() } else { format!("{namespace}/{}", tls.secret) });
                let names_it = *own.fqdn == *name || own.fqdn.is_empty() || (own.fqdn.starts_with('.') && name.ends_with(&*own.fqdn));
                names_it && written.as_deref() == Some(&*certificate) && is_granted(&world, &certificate, namespace)
            });
            prop_assert!(may_show, "{name} shows {certificate}");
        }
    }

    /// What a host serves comes from vertices that delegations lead to, and their statuses say that they are reached.
    #[test]
    fn whoever_serves_is_told_so(objects in objects()) {
        let world = world(&objects);
        for (_, host) in &world.settled.hosts {
            let site = host.site.as_ref().expect("a site");
            for rule in site.cleartext.iter().flat_map(|rules| rules.iter()) {
                let told = &world.settled.statuses[&rule.route.id.object()];
                prop_assert_ne!(&told.status["currentStatus"], "orphaned");
            }
        }
    }

    /// The order of objects makes no difference.
    #[test]
    fn the_order_of_objects_is_nothing(objects in objects()) {
        let mut turned = objects.clone();
        turned.reverse();
        prop_assert_eq!(world(&objects).everything(), world(&turned).everything());
    }

    /// Taking a delegating route away changes nothing for hosts that its object does not serve, and takes no request to
    /// anybody who did not have the host before.
    #[test]
    fn a_cut_edge_changes_only_what_hangs_below(objects in objects(), at in any::<prop::sample::Index>()) {
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
            let ways = world.settled.statuses.iter().flat_map(|(object, told)| {
                let rows = told.status["parents"].as_array().cloned().unwrap_or_default();
                let own: Vec<String> = rows.iter().map(|row| text(&row["path"])).collect();
                let hosts = told.rows.iter().flat_map(|row| row.hosts.clone()).collect::<Vec<_>>();
                let touches = object.key.to_string() == key || own.iter().any(|path| path.split(' ').any(|part| part == key));
                if touches { hosts } else { Vec::new() }
            });
            ways.collect()
        };
        let touched = through(&before);
        let hosts: BTreeSet<String> = before.settled.hosts.iter().chain(&after.settled.hosts).map(|(_, host)| host.host.to_string()).collect();
        for host in hosts {
            let same = ["/", "/u", "/u/v"].iter().all(|path| {
                ["http", "https"].iter().all(|scheme| {
                    let url = format!("{scheme}://{host}{path}");
                    before.get(&url) == after.get(&url)
                })
            });
            prop_assert!(same || touched.contains(&host), "{} changed, and {} is not on its way", host, key);
            prop_assert_eq!(before.certificate(&host), after.certificate(&host));
        }
    }
}

/// The properties would say nothing of worlds in which nothing is served.
#[test]
fn the_worlds_are_not_empty() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut served, mut inherited, mut orphaned) = (0, 0, 0);
    for _ in 0..200 {
        let objects = objects().new_tree(&mut runner).expect("objects").current();
        let world = world(&objects);
        for (_, host) in &world.settled.hosts {
            let owner = &host.site.as_ref().expect("a site").owner;
            served += 1;
            inherited += usize::from(
                host.host.to_string().ends_with("d.test") && world.certificate(&host.host.to_string()) != "-",
            );
            assert!(world.settled.statuses.contains_key(owner));
        }
        orphaned += world.settled.statuses.values().filter(|told| told.status["currentStatus"] == "orphaned").count();
    }
    assert!(served > 50 && inherited > 10 && orphaned > 50, "{served} {inherited} {orphaned}");
}
