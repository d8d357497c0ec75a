//! Gateways from a folder of manifests: ports that open and close, statuses in files, lists, explanations, and hosts
//! that several APIs claim.

use std::ffi::OsStr;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tests::client::Client;
use tests::folder::{self, replace, service};
use tests::netns::Netns;
use tests::nginx::{Nginx, Server};
use tests::pki::Ca;
use tests::sluice::{self, DataPath, Options, Sluice};
use tests::wait::{PATIENCE, wait_for, wait_until};

fn at(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// A Gateway with these lines of `spec.listeners`.
fn gateway(listeners: &str) -> String {
    format!(
        "---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: public, namespace: test, generation: 3}}
spec:
  gatewayClassName: sluice
  listeners:
{listeners}"
    )
}

const WEB: &str = "  - {name: web, port: 8080, protocol: HTTP}\n";
const MORE: &str = "  - {name: more, port: 9090, protocol: HTTP, hostname: \"*.gw.test\"}\n";
const SECURE: &str = "  - {name: secure, port: 8443, protocol: HTTPS, hostname: \"*.gw.test\", \
                      tls: {certificateRefs: [{name: wildcard}]}}\n";

/// An HTTPRoute on the Gateway, created in this year, that sends a path of a host to a service.
fn http_route(name: &str, year: u32, host: &str, path: &str, to: &str) -> String {
    format!(
        "---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: {name}, namespace: test, creationTimestamp: \"{year}-01-01T00:00:00Z\"}}
spec:
  parentRefs: [{{name: public}}]
  hostnames: [\"{host}\"]
  rules:
  - matches: [{{path: {{type: PathPrefix, value: {path}}}}}]
    backendRefs: [{{name: {to}, port: 80}}]
"
    )
}

struct Stage {
    netns: Netns,
    manifests: TempDir,
    sluice: Sluice,
    _nginx: Nginx,
}

impl Stage {
    /// A router with two backends, `one` and `two`, and these manifests.
    fn new(text: &str, options: &Options) -> Result<Stage> {
        let netns = Netns::new("gateway")?;
        let server = |name, port| Server { name, listen: at(port), certificate: None };
        let nginx = Nginx::start(&netns, &[server("one", 9001), server("two", 9002)])?;
        let manifests = TempDir::new()?;
        let services = service("one", at(9001)) + &service("two", at(9002));
        fs::write(manifests.path().join("base.yaml"), folder::router() + folder::gateway_class() + &services)?;
        fs::write(manifests.path().join("change.yaml"), text)?;
        let sluice = Sluice::start(&netns, manifests.path(), options)?;
        Ok(Stage { netns, manifests, sluice, _nginx: nginx })
    }

    fn change(&self, text: &str) -> Result<()> {
        replace(&self.manifests.path().join("change.yaml"), text)
    }

    /// Status and first word of the body: the name of the responding backend.
    fn get(&self, url: &str) -> Result<(u16, String)> {
        self.curl(url, &[])
    }

    fn curl(&self, url: &str, arguments: &[&str]) -> Result<(u16, String)> {
        let answer = Client::of(&self.netns, Ipv4Addr::LOCALHOST.into()).curl(url, arguments)?;
        let word = answer.body.split_whitespace().nth(1).unwrap_or_default().to_owned();
        Ok((answer.status, word))
    }

    fn becomes(&self, url: &str, expected: (u16, &str)) -> Result<()> {
        let is = || self.get(url).is_ok_and(|(status, word)| (status, &*word) == expected);
        wait_until(&format!("{url} gets {expected:?}"), PATIENCE, is).map(drop)
    }

    fn is_open(&self, port: u16) -> Result<bool> {
        self.netns.run(|| Ok(TcpStream::connect(at(port)).is_ok()))
    }

    /// The status in the file of an object.
    fn status(&self, object: &str) -> Result<Value> {
        let file = self.sluice.state().join("status").join(format!("{object}.yaml"));
        let read = |file: &Path| serde_saphyr::from_str(&fs::read_to_string(file).ok()?).ok();
        let (object, _): (Value, _) = wait_for(&format!("{object} has a status"), PATIENCE, || read(&file))?;
        Ok(object["status"].clone())
    }

    fn rows(&self, what: &str) -> Result<Vec<Value>> {
        self.sluice.get(what)?.as_array().cloned().context("a list")
    }

    fn explain(&self, query: &str) -> Result<(Option<i32>, String)> {
        let arguments = ["explain", query, "--state"].map(OsStr::new);
        let output = sluice::run(&[&arguments[..], &[self.sluice.state().as_os_str()]].concat())?;
        Ok((output.status.code(), String::from_utf8(output.stdout)?))
    }
}

/// `type=status/reason` of each condition.
fn conditions(of: &Value) -> Vec<String> {
    let text = |condition: &Value, member: &str| condition[member].as_str().unwrap_or_default().to_owned();
    let mut all: Vec<String> = of["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| format!("{}={}/{}", text(it, "type"), text(it, "status"), text(it, "reason")))
        .collect();
    all.sort();
    all
}

#[test]
fn gateways_are_served_reported_and_explained() -> Result<()> {
    let ca = Ca::new()?;
    let routes = http_route("store", 2026, "store.gw.test", "/", "one")
        + &http_route("cart", 2026, "store.gw.test", "/cart", "two");
    let secret = ca.leaf("*.gw.test")?.secret("test", "wildcard");
    let listeners = [WEB, MORE, SECURE].concat();
    let stage = Stage::new(&(gateway(&listeners) + &routes + &secret), &Options::loopback(DataPath::UserSpace))?;

    let file = ca.file();
    let trusted = ["--cacert", file.to_str().unwrap_or_default()];
    for base in ["http://store.gw.test:8080", "http://store.gw.test:9090", "https://store.gw.test:8443"] {
        for (path, expected) in [("/", "one"), ("/cart/1", "two"), ("/cartoon", "one")] {
            let found = stage.curl(&format!("{base}{path}"), &trusted)?;
            assert_eq!((found.0, &*found.1), (200, expected), "{base}{path}");
        }
    }
    assert_eq!(stage.get("http://other.gw.test:9090/")?.0, 404, "the listener has the host, no route has it");

    let class = stage.status("gatewayclass.sluice")?;
    ensure!(conditions(&class).contains(&"Accepted=True/Accepted".to_owned()), "{class:#}");
    let public = stage.status("gateway.test.public")?;
    assert_eq!(conditions(&public)[..2], ["Accepted=True/Accepted", "Programmed=True/Programmed"], "{public:#}");
    ensure!(public["addresses"][0]["value"].is_string(), "{public:#}");
    for listener in public["listeners"].as_array().context("listeners")? {
        assert_eq!(listener["attachedRoutes"], 2, "{listener:#}");
        ensure!(conditions(listener).contains(&"Programmed=True/Programmed".to_owned()), "{listener:#}");
        ensure!(listener["conditions"][0]["observedGeneration"] == 3, "{listener:#}");
        ensure!(listener["conditions"][0]["lastTransitionTime"].is_string(), "{listener:#}");
    }
    let store = stage.status("httproute.test.store")?;
    let parent = &store["parents"][0];
    assert_eq!(parent["controllerName"], "sluice.dev/gateway-controller");
    assert_eq!(conditions(parent), ["Accepted=True/Accepted", "ResolvedRefs=True/ResolvedRefs"]);

    let rows = stage.rows("routes")?;
    let of_store: Vec<_> = rows.iter().filter(|row| row["name"] == "store").collect();
    ensure!(!of_store.is_empty() && of_store.iter().all(|row| row["kind"] == "HTTPRoute"), "{rows:?}");
    ensure!(of_store.iter().all(|row| row["state"] == "admitted" && row["services"][0]["name"] == "one"), "{rows:?}");
    let listeners = stage.rows("listeners")?;
    let more = listeners.iter().find(|row| row["listener"] == "test/public#more").context("a row of the listener")?;
    assert_eq!(
        (&more["router"], &more["hostname"], &more["attachedRoutes"], &more["state"]),
        (&"gateway-9090".into(), &"*.gw.test".into(), &2.into(), &"programmed".into())
    );
    ensure!(listeners.iter().any(|row| row["address"] == "0.0.0.0:9090" && row["state"] == "bound"), "{listeners:?}");
    ensure!(stage.rows("certs")?.iter().any(|row| row["host"] == "store.gw.test"), "the site's certificate is listed");
    ensure!(stage.rows("endpoints")?.iter().any(|row| row["address"] == "127.0.0.1:9001"), "the endpoint is listed");

    let (code, text) = stage.explain("http://store.gw.test:9090/cart/1")?;
    assert_eq!(code, Some(0), "{text}");
    for part in [
        "* router gateway-9090 http port 9090: has the port",
        "* store.gw.test: is of Gateway test/public#more, and a rule takes /cart/1",
        "* /cart… of HTTPRoute test/cart: the first rule that takes the request",
        "HTTPRoute test/cart, change.yaml:",
        "service two weight 1: 127.0.0.1:9002",
        "served: HTTPRoute test/cart gets it, on 1 endpoint",
    ] {
        ensure!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    let (code, text) = stage.explain("https://nobody.gw.test:8443/")?;
    ensure!(code == Some(4) && text.contains("not served: 404: Gateway test/public#secure has *.gw.test"), "{text}");
    Ok(())
}

#[test]
fn ports_open_and_close_with_their_listeners() -> Result<()> {
    let route = http_route("store", 2026, "store.gw.test", "/", "one");
    let with = |listeners: &str| gateway(listeners) + &route;
    let stage = Stage::new(&with(WEB), &Options::loopback(DataPath::UserSpace))?;
    stage.becomes("http://store.gw.test:8080/", (200, "one"))?;
    ensure!(!stage.is_open(9090)?, "nobody has the port yet");
    stage.change(&with(&[WEB, MORE].concat()))?;
    stage.becomes("http://store.gw.test:9090/", (200, "one"))?;
    // The port is closed; the other one keeps serving.
    stage.change(&with(WEB))?;
    wait_until("the port is closed", PATIENCE, || stage.is_open(9090).is_ok_and(|open| !open))?;
    stage.becomes("http://store.gw.test:8080/", (200, "one"))?;
    // The whole Gateway is removed, with everything that it served.
    stage.change("")?;
    let nobody = || stage.get("http://store.gw.test:8080/").is_ok_and(|(status, _)| status == 503);
    wait_until("nobody serves the host", PATIENCE, nobody)?;
    let gone = stage.sluice.state().join("status/gateway.test.public.yaml");
    wait_until("its status goes too", PATIENCE, || !gone.exists())?;
    Ok(())
}

/// Objects of three kinds claim one host: the oldest one owns it, the others' statuses say so, and when it is deleted,
/// the next one owns it.
#[test]
fn the_oldest_of_three_kinds_has_a_host() -> Result<()> {
    const HOST: &str = "shop.apps.test";
    let route = folder::route("route", HOST, "one", "");
    let http = http_route("http", 2025, HOST, "/", "two");
    let ingress = format!(
        "---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {{name: ingress, namespace: test, creationTimestamp: \"2024-01-01T00:00:00Z\"}}
spec:
  virtualhost: {{fqdn: {HOST}}}
  routes: [{{match: /, services: [{{name: one, port: 80}}]}}]
"
    );
    let all = gateway(WEB) + &route + &http + &ingress;
    let stage = Stage::new(&all, &Options::loopback(DataPath::UserSpace))?;
    let url = format!("http://{HOST}:8080/");
    stage.becomes(&url, (200, "one"))?;
    assert_eq!(stage.status("ingressroute.test.ingress")?["currentStatus"], "valid");
    let admitted = |stage: &Stage| Ok::<_, anyhow::Error>(conditions(&stage.status("route.test.route")?["ingress"][0]));
    assert_eq!(admitted(&stage)?, ["Admitted=False/HostAlreadyClaimed"]);
    let lost = conditions(&stage.status("httproute.test.http")?["parents"][0]);
    ensure!(lost[0].starts_with("Accepted=False/"), "{lost:?}");
    let winners: Vec<String> = stage
        .rows("conflicts")?
        .iter()
        .map(|row| format!("{} {} lost to {}", row["kind"], row["name"], row["winner"]["object"]).replace('"', ""))
        .collect();
    for line in ["Route route lost to IngressRoute test/ingress", "HTTPRoute http lost to IngressRoute test/ingress"] {
        ensure!(winners.iter().any(|found| found == line), "{line:?} is not in {winners:?}");
    }

    stage.change(&(gateway(WEB) + &route + &http))?;
    stage.becomes(&url, (200, "two"))?;
    assert_eq!(admitted(&stage)?, ["Admitted=False/HostAlreadyClaimed"]);
    stage.change(&(gateway(WEB) + &route))?;
    stage.becomes(&url, (200, "one"))?;
    wait_until("the Route is admitted", PATIENCE, || admitted(&stage).is_ok_and(|it| it == ["Admitted=True/"]))?;
    Ok(())
}

/// A rejected manifest leaves the last accepted version in force, and the status reports it.
#[test]
fn a_refused_version_leaves_the_last_good_one() -> Result<()> {
    let good = gateway(WEB) + &http_route("store", 2026, "store.gw.test", "/", "one");
    let stage = Stage::new(&good, &Options::loopback(DataPath::UserSpace))?;
    stage.becomes("http://store.gw.test:8080/", (200, "one"))?;
    stage.change(&good.replace("value: /}", "value: no-slash}"))?;
    let said = || {
        let parent = stage.status("httproute.test.store").ok()?["parents"][0].clone();
        conditions(&parent).contains(&"ManifestValid=False/InvalidManifest".to_owned()).then_some(())
    };
    wait_for("the status says so", PATIENCE, said)?;
    assert_eq!(stage.get("http://store.gw.test:8080/")?.0, 200);
    Ok(())
}

/// The port of a Gateway alone, under `sluice keep`: an upgrade passes on its socket, so that no connection is refused.
#[test]
fn an_upgrade_keeps_the_port_of_a_gateway_open() -> Result<()> {
    let text = gateway(MORE) + &http_route("store", 2026, "store.gw.test", "/", "one");
    let options = Options { kept: true, ..Options::loopback(DataPath::UserSpace) };
    let stage = Stage::new(&text, &options)?;
    let url = "http://store.gw.test:9090/";
    stage.becomes(url, (200, "one"))?;
    let before = stage.sluice.agents()?;
    let arguments = ["upgrade", "--state"].map(OsStr::new);
    let upgraded = sluice::run(&[&arguments[..], &[stage.sluice.state().as_os_str()]].concat())?;
    ensure!(upgraded.status.success(), "{}", String::from_utf8_lossy(&upgraded.stderr));
    wait_until("another agent serves alone", PATIENCE, || {
        let open = stage.get(url).is_ok_and(|(status, _)| status == 200);
        assert!(open, "a connection was refused or broken");
        stage.sluice.agents().is_ok_and(|now| now.len() == 1 && now != before)
    })?;
    Ok(())
}

/// TLSRoutes on a passthrough listener are steered by the kernel like passthrough Routes, on a Gateway's own port too.
#[test]
fn the_kernel_steers_passthrough_routes_of_gateways() -> Result<()> {
    const HOST: &str = "passthrough.apps.localhost";
    let netns = Netns::new("gateway")?;
    let server = Server { name: "passthrough", listen: at(9003), certificate: Some("demo-only-passthrough".into()) };
    let _nginx = Nginx::start(&netns, &[server])?;
    let manifests = TempDir::new()?;
    let tls_route = format!(
        "---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {{name: raw, namespace: test}}
spec:
  parentRefs: [{{name: public}}]
  hostnames: [{HOST}]
  rules: [{{backendRefs: [{{name: raw, port: 80}}]}}]
"
    );
    let listeners = "  - {name: raw, port: 9443, protocol: TLS, tls: {mode: Passthrough}}\n";
    let text =
        folder::router() + folder::gateway_class() + &gateway(listeners) + &service("raw", at(9003)) + &tls_route;
    fs::write(manifests.path().join("all.yaml"), text)?;
    let sluice = Sluice::start(&netns, manifests.path(), &Options::loopback(DataPath::Kernel))?;
    let client = Client::of(&netns, Ipv4Addr::LOCALHOST.into());
    let answer = client.get(&format!("https://{HOST}:9443/"))?;
    ensure!(answer.status == 200 && answer.body.contains("passthrough"), "{}", answer.body);
    let rows = sluice.get("routes")?;
    let row = rows.as_array().into_iter().flatten().find(|row| row["kind"] == "TLSRoute").context("a row")?;
    assert_eq!((&row["name"], &row["kernel"]["steered"]), (&"raw".into(), &1.into()), "{row:#}");
    Ok(())
}
