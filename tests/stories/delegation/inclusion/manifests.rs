//! Manifests of trees of routes: a Gateway of `shop`, slots with different `allowedRoutes`, and in each namespace a
//! Service `web`, whose endpoint identifies itself by the namespace.

use super::{Stage, namespace, service};
use anyhow::Result;
use tests::folder;
use tests::sluice::{DataPath, Options};

/// Listeners: `web` on 8080 for `*.t.test`, `any` on 8081 for every host, `one` on 8082 for one host.
const GATEWAY: &str = "---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: shop, name: public}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: web, port: 8080, protocol: HTTP, hostname: \"*.t.test\", allowedRoutes: {namespaces: {from: All}}}
  - {name: any, port: 8081, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
  - {name: one, port: 8082, protocol: HTTP, hostname: a.one.t.test, allowedRoutes: {namespaces: {from: All}}}
";

/// The listener `web` as a parent.
pub const WEB: &str = "{namespace: shop, name: public, sectionName: web}";

/// Namespaces with their Services; the first ones have the label that slots select.
const NAMESPACES: [(&str, bool, u16); 3] = [("shop", true, 9001), ("red", true, 9002), ("blue", false, 9003)];

/// Slots of every namespace, with the namespaces that they admit.
const SLOTS: [(&str, &str); 7] = [
    ("silent", ""),
    ("same", "allowedRoutes: {namespaces: {from: Same}}"),
    ("all", "allowedRoutes: {namespaces: {from: All}}"),
    ("none", "allowedRoutes: {namespaces: {from: None}}"),
    ("labelled", "allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {store: \"true\"}}}}"),
    (
        "named",
        "allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {kubernetes.io/metadata.name: red}}}}",
    ),
    ("unselected", "allowedRoutes: {namespaces: {from: Selector}}"),
];

impl Stage {
    /// A router with all of these and further objects.
    pub fn of(objects: &[String], arguments: &[&str]) -> Result<Stage> {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let options = Options { arguments, ..Options::loopback(DataPath::UserSpace) };
        let backends = NAMESPACES.map(|(name, ..)| name);
        Stage::with(&backends, &surroundings(), &objects.concat(), &options)
    }
}

fn surroundings() -> String {
    let mut text = folder::gateway_class().to_owned() + GATEWAY;
    for (name, open, port) in NAMESPACES {
        text += &namespace(name, open);
        text += &service(name, "web", port);
        for (slot, spec) in SLOTS {
            text += &format!(
                "---
apiVersion: gateway.sluice.dev/v1alpha1
kind: RouteSlot
metadata: {{namespace: {name}, name: {slot}}}
spec: {{{spec}}}
"
            );
        }
    }
    text
}

/// An HTTPRoute, `namespace/name`: parents, hosts and rules as items of YAML lists.
pub fn route(id: &str, parents: &str, hosts: &str, rules: &[String]) -> String {
    aged(id, 2024, parents, hosts, rules)
}

/// A route created in this year.
pub fn aged(id: &str, year: u32, parents: &str, hosts: &str, rules: &[String]) -> String {
    let (namespace, name) = id.split_once('/').unwrap_or_default();
    let rules: String = rules.iter().map(|rule| format!("\n  - {rule}")).collect();
    format!(
        "---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{namespace: {namespace}, name: {name}, creationTimestamp: \"{year}-01-01T00:00:00Z\"}}
spec:
  parentRefs: [{parents}]
  hostnames: [{hosts}]
  rules:{rules}
"
    )
}

/// A route as a parent.
pub fn under(id: &str) -> String {
    let (namespace, name) = id.split_once('/').unwrap_or_default();
    format!("{{kind: HTTPRoute, namespace: {namespace}, name: {name}}}")
}

/// One rule of a route as a parent.
pub fn under_rule(id: &str, rule: &str) -> String {
    under(id).replace('}', &format!(", sectionName: {rule}}}"))
}

/// A rule of this name whose matches use a slot; `more` are further members.
pub fn to_slot(rule: &str, slot: &str, matches: &str, more: &str) -> String {
    let backend = format!("{{group: gateway.sluice.dev, kind: RouteSlot, name: {slot}}}");
    format!("{{name: {rule}, matches: [{matches}], backendRefs: [{backend}]{more}}}")
}

/// A rule that forwards its matches to the namespace's own Service.
pub fn own(matches: &str, more: &str) -> String {
    format!("{{matches: [{matches}], backendRefs: [{{name: web, port: 80}}]{more}}}")
}

/// A match of a prefix.
pub fn prefix(path: &str) -> String {
    format!("{{path: {{type: PathPrefix, value: {path:?}}}}}")
}

/// A match of an exact path.
pub fn exact(path: &str) -> String {
    format!("{{path: {{type: Exact, value: {path:?}}}}}")
}
