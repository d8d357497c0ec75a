//! HTTPRoutes that include others, with curl as client and nginx as backend: the draft's two Gateways, and teams that
//! share a host.

mod edges;
mod filters;
mod hosts;
mod manifests;
mod other_kinds;
mod precedence;
mod rules;
mod trees;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Result, ensure};
use tempfile::TempDir;
use tests::client::{Answer, Client};
use tests::folder::{self, replace};
use tests::netns::Netns;
use tests::nginx::{Nginx, Server};
use tests::sluice::{DataPath, Options, Sluice};
use tests::wait::{PATIENCE, wait_until};
use tests::workspace;

fn at(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

struct Stage {
    netns: Netns,
    manifests: TempDir,
    sluice: Sluice,
    _nginx: Nginx,
}

impl Stage {
    /// A router on port 8080 with these manifests, and backends with these names on ports 9001, 9002, …
    fn new(backends: &[&str], text: &str) -> Result<Stage> {
        Stage::with(backends, folder::gateway_class(), text, &Options::loopback(DataPath::UserSpace))
    }

    /// As [`Stage::new`], with these options; `base` stays when [`Stage::change`] replaces `text`.
    fn with(backends: &[&str], base: &str, text: &str, options: &Options) -> Result<Stage> {
        let netns = Netns::new("inclusion")?;
        let server = |(name, port)| Server { name, listen: at(port), certificate: None };
        let servers: Vec<_> = backends.iter().copied().zip(9001..).map(server).collect();
        let nginx = Nginx::start(&netns, &servers)?;
        let manifests = TempDir::new()?;
        fs::write(manifests.path().join("base.yaml"), folder::router() + base)?;
        fs::write(manifests.path().join("all.yaml"), text)?;
        let sluice = Sluice::start(&netns, manifests.path(), options)?;
        Ok(Stage { netns, manifests, sluice, _nginx: nginx })
    }

    fn change(&self, text: &str) -> Result<()> {
        replace(&self.manifests.path().join("all.yaml"), text)
    }

    fn curl(&self, url: &str, arguments: &[&str]) -> Result<Answer> {
        Client::of(&self.netns, Ipv4Addr::LOCALHOST.into()).curl(&format!("http://{url}"), arguments)
    }

    /// The responding backend with the path that it received, or the status.
    fn get(&self, url: &str) -> Result<String> {
        let answer = self.curl(url, &[])?;
        let word = |start: &str| answer.body.split_whitespace().find_map(|word| word.strip_prefix(start));
        Ok(match (answer.status, answer.body.split_whitespace().nth(1), word("uri=")) {
            (200, Some(name), Some(path)) => format!("{name} {path}"),
            (status, ..) => status.to_string(),
        })
    }

    fn expect(&self, cases: &[(&str, &str)]) -> Result<()> {
        for (url, expected) in cases {
            let found = self.get(url)?;
            ensure!(found == *expected, "{url} comes to {found}, not to {expected}");
        }
        Ok(())
    }

    /// The status file of an object, such as `httproute.red.child`; `None` if it has no status.
    fn status(&self, object: &str) -> Option<String> {
        fs::read_to_string(self.sluice.state().join("status").join(format!("{object}.yaml"))).ok()
    }

    fn becomes(&self, url: &str, expected: &str) -> Result<()> {
        let is = || self.get(url).is_ok_and(|found| found == expected);
        wait_until(&format!("{url} comes to {expected}"), PATIENCE, is).map(drop)
    }
}

#[test]
fn a_child_is_served_through_the_gateway_that_has_its_host() -> Result<()> {
    let example = workspace().join("router/translate/tests/fixtures/inclusion/two-gateways.yaml");
    let text = fs::read_to_string(example)?
        .replace("port: 80,", "port: 8080,")
        .replace("[10.1.0.1]}]\nports: [{name: http, port: 8080}]", "[127.0.0.1]}]\nports: [{name: http, port: 9001}]")
        .replace("[10.1.0.2]}]\nports: [{name: http, port: 8080}]", "[127.0.0.1]}]\nports: [{name: http, port: 9002}]");
    let stage = Stage::new(&["default", "foo"], &text)?;
    stage.expect(&[
        ("testdomain.example.com:8080/any", "foo /any"),
        ("other.example.com:8080/any", "default /any"),
        ("subdomain.example.com:8080/", "default /"),
        ("example.com:8080/", "404"),
    ])
}

/// A Service of a namespace with one endpoint.
fn service(namespace: &str, name: &str, port: u16) -> String {
    format!(
        "---
apiVersion: v1
kind: Service
metadata: {{namespace: {namespace}, name: {name}}}
spec: {{ports: [{{name: http, port: 80}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{namespace: {namespace}, name: {name}-1, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: IPv4
endpoints: [{{addresses: [127.0.0.1]}}]
ports: [{{name: http, port: {port}}}]
"
    )
}

/// A namespace with or without the label that the slot selects.
fn namespace(name: &str, open: bool) -> String {
    format!("---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}, labels: {{store: \"{open}\"}}}}\n")
}

/// The parent: `/store` is for teams, whose backends do not see this prefix; `/store/admin` is the shop's own.
const PARENT: &str = "---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: shop, name: public}
spec:
  gatewayClassName: sluice
  listeners: [{name: web, port: 8080, protocol: HTTP, hostname: \"*.shop.test\"}]
---
apiVersion: gateway.sluice.dev/v1alpha1
kind: RouteSlot
metadata: {namespace: shop, name: store}
spec: {allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {store: \"true\"}}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: top}
spec:
  parentRefs: [{name: public}]
  rules:
  - name: store
    matches: [{path: {type: PathPrefix, value: /store}}]
    filters:
    - type: URLRewrite
      urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}
    - type: ResponseHeaderModifier
      responseHeaderModifier: {set: [{name: x-order, value: parent}]}
    backendRefs: [{group: gateway.sluice.dev, kind: RouteSlot, name: store}]
  - matches: [{path: {type: PathPrefix, value: /store/admin}}]
    backendRefs: [{name: admin, port: 80}]
  - backendRefs: [{name: admin, port: 80}]
";

/// A team's route in the slot.
fn team(namespace: &str, host: &str, matches: &str, filters: &str) -> String {
    format!(
        "---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{namespace: {namespace}, name: team}}
spec:
  parentRefs: [{{kind: HTTPRoute, namespace: shop, name: top, sectionName: store}}]
  hostnames: [{host}]
  rules:
  - matches: [{matches}]
    filters: [{filters}]
    backendRefs: [{{name: team, port: 80}}]
"
    )
}

fn shop(red_is_open: bool, parent: &str, teams: &[String]) -> String {
    let services = [("shop", "admin", 9001), ("red", "team", 9002), ("blue", "team", 9003)];
    let services = services.map(|(namespace, name, port)| service(namespace, name, port)).concat();
    [namespace("red", red_is_open), namespace("blue", true), parent.to_owned(), services, teams.concat()].concat()
}

fn teams() -> [String; 2] {
    let header = "{type: ResponseHeaderModifier, responseHeaderModifier: {add: [{name: x-order, value: child}]}}";
    [
        team(
            "red",
            "",
            "{path: {type: PathPrefix, value: /team1}}, {path: {type: PathPrefix, value: /admin/x}}",
            header,
        ),
        team("blue", "b.shop.test", "{path: {type: PathPrefix, value: /team10}, method: GET}", ""),
    ]
}

#[test]
fn teams_share_a_host() -> Result<()> {
    let stage = Stage::new(&["admin", "red", "blue"], &shop(true, PARENT, &teams()))?;
    stage.expect(&[
        // The parent's prefix is removed, the child's stays.
        ("a.shop.test:8080/store/team1", "red /team1"),
        ("a.shop.test:8080/store/team1/x?y=1", "red /team1/x?y=1"),
        // Prefixes match whole elements, and each team has its own hosts.
        ("b.shop.test:8080/store/team10", "blue /team10"),
        ("a.shop.test:8080/store/team10", "404"),
        ("b.shop.test:8080/store/team100", "404"),
        // The parent's own rule comes before the slot, however specific the child is.
        ("a.shop.test:8080/store/admin/x", "admin /store/admin/x"),
        // Requests in the slot do not fall back to the parent's wider rule.
        ("a.shop.test:8080/store/none", "404"),
        ("a.shop.test:8080/other", "admin /other"),
        ("other.test:8080/store/team1", "404"),
    ])?;
    let post = stage.curl("b.shop.test:8080/store/team10", &["--request", "POST"])?;
    ensure!(post.status == 404, "{post:?}");
    let answer = stage.curl("a.shop.test:8080/store/team1", &[])?;
    let order: Vec<_> =
        answer.headers.iter().filter(|(name, _)| name == "x-order").map(|(_, value)| &**value).collect();
    ensure!(order == ["parent", "child"] || order == ["parent, child"], "{answer:?}");
    Ok(())
}

#[test]
fn a_slot_opens_and_closes_and_goes_while_requests_come() -> Result<()> {
    let [red, blue] = teams();
    let red_url = "a.shop.test:8080/store/team1";
    let stage = Stage::new(&["admin", "red", "blue"], &shop(false, PARENT, &[red.clone(), blue.clone()]))?;
    stage.expect(&[(red_url, "404"), ("b.shop.test:8080/store/team10", "blue /team10")])?;
    // The namespace's label admits the team, and nothing else changes.
    stage.change(&shop(true, PARENT, &[red.clone(), blue.clone()]))?;
    stage.becomes(red_url, "red /team1")?;
    stage.expect(&[("b.shop.test:8080/store/team10", "blue /team10")])?;
    stage.change(&shop(false, PARENT, &[red.clone(), blue]))?;
    stage.becomes(red_url, "404")?;
    // The slot has no children.
    stage.change(&shop(false, PARENT, std::slice::from_ref(&red)))?;
    stage.becomes(red_url, "500")?;
    stage.expect(&[("a.shop.test:8080/other", "admin /other")])?;
    // Without the parent its children serve nothing.
    stage.change(&shop(true, "", &[red]))?;
    stage.becomes(red_url, "503")
}
