//! The worlds that the engine is measured on: their objects, and changes of single ones.

use serde_json::{Value, json};

use crate::objects::{
    EACH, common, gateway, http_route, http_route_of, https, proxies_of, root, route, secret, service, slice, team,
    to_slots, tree_route,
};

/// Namespaces of the large worlds, with [`EACH`] routes in each.
const NAMESPACES: usize = 5_000;
/// Namespaces that hold Contour's roots; each root includes four HTTPProxies.
const ROOTS: usize = 2_000;
const INCLUDED: usize = 4;
/// Most listeners of one Gateway, as the API allows, and Gateways that have so many.
const LISTENERS: usize = 64;
const GATEWAYS: usize = 16;
/// The inclusion tree: slots of the root, children of each, their slots, children of each of these.
const TREE: [usize; 4] = [10, 9, 10, 11];

type ObjectStream = Box<dyn Iterator<Item = Value>>;
type Change = Box<dyn Fn(usize) -> Value>;

/// Objects, and versions of single objects by the number of the round.
pub struct World {
    pub objects: ObjectStream,
    /// How many routes there are, of whatever kind: what memory is divided by.
    pub counted: usize,
    /// How many routes and rules the table has of them.
    pub served: usize,
    pub changes: Vec<(&'static str, Change)>,
    /// An EndpointSlice with another address.
    pub churn: Change,
}

/// The world of this name.
pub fn named(name: &str) -> Option<World> {
    Some(match name {
        "routes" => routes(),
        "http-routes" => http_routes(),
        "http-proxies" => http_proxies(),
        "listeners" => listeners(),
        "inclusion" => inclusion(),
        "mixed" => mixed(),
        _ => return None,
    })
}

/// 100,000 Routes of 5,000 namespaces on one router. In each namespace: a Service with one slice of two endpoints, and
/// twenty Routes: twelve with hosts of their own (clear text, edge and passthrough in turn), four with a subdomain, and
/// four that share a host by path, of which the last wants the first one's path and loses.
fn routes() -> World {
    let objects = (0..NAMESPACES).flat_map(|namespace| {
        let name = team(namespace);
        let backend = [service(&name, "web"), slice(&name, "web", namespace, 0)];
        backend.into_iter().chain((0..EACH).map(move |number| route(namespace, number)))
    });
    let with_certificate = |round| {
        let mut object = route(0, 1);
        object["spec"]["tls"]["externalCertificate"] = json!({ "name": "tls" });
        object["metadata"]["annotations"] = json!({ "round": round });
        object
    };
    World {
        objects: Box::new(common().into_iter().chain(objects).chain([with_certificate("-"), secret(&team(0), 0)])),
        counted: NAMESPACES * EACH,
        served: NAMESPACES * (EACH - 1),
        changes: changes(
            |round| {
                let mut object = route(round * 37 % NAMESPACES, 0);
                object["spec"]["host"] = json!(format!("moved-{round}.example.test"));
                object
            },
            |round| slice(&team(round * 37 % NAMESPACES), "web", round, 1),
            |round| secret(&team(0), round),
        ),
        churn: Box::new(|round| slice(&team(round % NAMESPACES), "web", round, 2)),
    }
}

/// 100,000 HTTPRoutes, each with a host, a Service and a slice of its own, on one Gateway with a listener for clear
/// text and one for TLS with a Secret.
fn http_routes() -> World {
    let objects =
        (0..NAMESPACES).flat_map(|namespace| (0..EACH).flat_map(move |number| http_route_of(namespace, number)));
    let listeners = json!([
        { "name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": { "namespaces": { "from": "All" } } },
        https("secure", "secure.example.test", "tls"),
    ]);
    World {
        objects: Box::new(common().into_iter().chain(gateway("public", listeners)).chain(objects)),
        counted: NAMESPACES * EACH,
        served: NAMESPACES * EACH,
        changes: changes(
            |round| http_route(round * 37 % NAMESPACES, 0, &format!("moved-{round}.example.test")),
            |round| slice(&team(round * 37 % NAMESPACES), "app-0", round, 1),
            |round| secret("infra", round),
        ),
        churn: Box::new(|round| slice(&team(round % NAMESPACES), "app-0", round, 2)),
    }
}

/// 10,000 HTTPProxies: 2,000 roots that include four each.
fn http_proxies() -> World {
    let objects = (0..ROOTS).flat_map(|namespace| proxies_of(namespace, INCLUDED));
    World {
        objects: Box::new(common().into_iter().chain(objects).chain([secret(&team(0), 0)])),
        counted: ROOTS * (INCLUDED + 1),
        // The root with TLS has each rule twice: clear text is redirected.
        served: (ROOTS + 1) * (INCLUDED + 1),
        changes: changes(
            |round| root(round * 37 % ROOTS, INCLUDED, &format!("moved-{round}.example.test")),
            |round| slice(&team(round * 37 % ROOTS), "web", round, 1),
            |round| secret(&team(0), round),
        ),
        churn: Box::new(|round| slice(&team(round % ROOTS), "web", round, 2)),
    }
}

/// 1,024 listeners with hostnames of their own: sixteen Gateways with as many as the API allows. Each has an HTTPRoute.
fn listeners() -> World {
    let gateways = (0..GATEWAYS).flat_map(|gateway_number| {
        let listener = |number: usize| {
            let number = gateway_number * LISTENERS + number;
            https(&format!("l{number}"), &format!("l{number}.example.test"), "tls")
        };
        gateway(&format!("gw-{gateway_number}"), (0..LISTENERS).map(listener).collect())
    });
    let attached = |number: usize, round: usize| {
        let mut object = http_route(number, 0, &format!("l{number}.example.test"));
        object["spec"]["parentRefs"] = json!([{ "namespace": "infra", "name": format!("gw-{}", number / LISTENERS) }]);
        object["spec"]["rules"][0]["matches"] = json!([{ "path": { "value": format!("/{round}") } }]);
        object
    };
    let all = GATEWAYS * LISTENERS;
    let objects = (0..all).flat_map(move |number| {
        let name = team(number);
        [service(&name, "app-0"), slice(&name, "app-0", number, 0), attached(number, 0)]
    });
    World {
        objects: Box::new(common().into_iter().chain(gateways).chain(objects)),
        counted: all,
        served: all,
        changes: changes(
            move |round| attached(round * 37 % all, round + 1),
            move |round| slice(&team(round * 37 % all), "app-0", round, 1),
            |round| secret("infra", round),
        ),
        churn: Box::new(move |round| slice(&team(round % all), "app-0", round, 2)),
    }
}

/// One tree of 9,991 HTTPRoutes on one host, of which 9,900 are leaves.
fn inclusion() -> World {
    let [slots, children, inner, leaves] = TREE;
    let leaf = move |top: usize, child: usize, slot: usize, leaf: usize, round: usize| {
        let parent =
            json!([{ "kind": "HTTPRoute", "name": format!("c{top}-{child}"), "sectionName": format!("s{slot}") }]);
        let rules = json!([{
            "matches": [{ "path": { "value": format!("/leaf-{leaf}-{round}") } }],
            "backendRefs": [{ "name": "web", "port": 80 }],
        }]);
        tree_route(&format!("l{top}-{child}-{slot}-{leaf}"), &parent, &rules)
    };
    let parents = (0..slots).flat_map(move |top| {
        (0..children).map(move |child| {
            let parent = json!([{ "kind": "HTTPRoute", "name": "root", "sectionName": format!("s{top}") }]);
            tree_route(&format!("c{top}-{child}"), &parent, &to_slots(inner, &format!("/child-{child}")))
        })
    });
    let all_leaves = (0..slots).flat_map(move |top| {
        (0..children).flat_map(move |child| {
            (0..inner).flat_map(move |slot| (0..leaves).map(move |number| leaf(top, child, slot, number, 0)))
        })
    });
    let mut root = tree_route("root", &json!([{ "name": "public" }]), &to_slots(slots, ""));
    root["spec"]["hostnames"] = json!(["tree.example.test"]);
    let listeners = json!([
        { "name": "http", "port": 80, "protocol": "HTTP" },
        https("secure", "secure.example.test", "tls"),
    ]);
    let slot_objects = (0..slots.max(inner)).map(|number| {
        json!({
            "apiVersion": "gateway.sluice.dev/v1alpha1", "kind": "RouteSlot",
            "metadata": { "namespace": "infra", "name": format!("s{number}") },
            "spec": {},
        })
    });
    let objects = common().into_iter().chain(gateway("public", listeners)).chain(slot_objects);
    let objects = objects.chain([service("infra", "web"), slice("infra", "web", 0, 0), root]).chain(parents);
    World {
        objects: Box::new(objects.chain(all_leaves)),
        counted: 1 + slots * children * (1 + inner * leaves),
        // A slot has a rule for what none of its children takes.
        served: slots * children * inner * (leaves + 1) + slots,
        changes: changes(
            move |round| leaf(round % slots, round % children, round % inner, round % leaves, round + 1),
            |round| slice("infra", "web", round, 1),
            |round| secret("infra", round),
        ),
        churn: Box::new(|round| slice("infra", "web", round, 2)),
    }
}

/// 100,000 routes of mixed kinds: 40,000 Routes, 40,000 HTTPRoutes and 20,000 HTTPProxies.
fn mixed() -> World {
    let (routes_to, http_to, proxies_to) = (2_000, 4_000, 8_000);
    let of_routes = (0..routes_to).flat_map(|namespace| {
        let name = team(namespace);
        let backend = [service(&name, "web"), slice(&name, "web", namespace, 0)];
        backend.into_iter().chain((0..EACH).map(move |number| route(namespace, number)))
    });
    let of_gateway =
        (routes_to..http_to).flat_map(|namespace| (0..EACH).flat_map(move |number| http_route_of(namespace, number)));
    let of_contour = (http_to..proxies_to).flat_map(|namespace| proxies_of(namespace, INCLUDED));
    let listeners = json!([
        { "name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": { "namespaces": { "from": "All" } } },
        https("secure", "secure.example.test", "tls"),
    ]);
    let objects = common().into_iter().chain(gateway("public", listeners)).chain(of_routes).chain(of_gateway);
    let with_proxies = proxies_to - http_to;
    let service_of = move |round: usize| {
        let namespace = round * 37 % proxies_to;
        (team(namespace), if (routes_to..http_to).contains(&namespace) { "app-0" } else { "web" })
    };
    let changed = move |round: usize, host: u8| {
        let (namespace, service) = service_of(round);
        slice(&namespace, service, round, host)
    };
    World {
        objects: Box::new(objects.chain(of_contour)),
        counted: routes_to * EACH + (http_to - routes_to) * EACH + with_proxies * (INCLUDED + 1),
        served: routes_to * (EACH - 1) + (http_to - routes_to) * EACH + with_proxies * (INCLUDED + 1),
        changes: changes(
            move |round| {
                http_route(routes_to + round * 37 % (http_to - routes_to), 0, &format!("moved-{round}.example.test"))
            },
            move |round| changed(round, 1),
            |round| secret("infra", round),
        ),
        churn: Box::new(move |round| changed(round, 2)),
    }
}

/// The changes that all worlds have. A namespace gets a label that no selector reads; a grant comes in another
/// namespace than the one of its last round.
fn changes(
    route: impl Fn(usize) -> Value + 'static,
    slice: impl Fn(usize) -> Value + 'static,
    secret: impl Fn(usize) -> Value + 'static,
) -> Vec<(&'static str, Change)> {
    let label = |round: usize| {
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": team(1), "labels": { "round": round.to_string() } },
        })
    };
    let grant = |round: usize| {
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant",
            "metadata": { "namespace": team(round), "name": "grant" },
            "spec": {
                "from": [{ "group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": team(round + 1) }],
                "to": [{ "group": "", "kind": "Service" }],
            },
        })
    };
    vec![
        ("change", Box::new(route)),
        ("slice", Box::new(slice)),
        ("secret", Box::new(secret)),
        ("label", Box::new(label)),
        ("grant", Box::new(grant)),
    ]
}
