//! Definitions of kinds, installed in an API server.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tests::cluster::{ControlPlane, Definitions};
use tests::folder::{self, documents};
use tests::wait::PATIENCE;
use tests::workspace;

/// Names of the kinds that the manifests of a folder define.
fn defined(folder: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let text = fs::read_to_string(entry?.path())?;
        // The name is the first one of its level, before those of the kind.
        let definitions = documents(&text).filter(|it| it.contains("\nkind: CustomResourceDefinition\n"));
        let name = |text: &str| text.lines().find_map(|line| line.strip_prefix("  name: ").map(str::to_owned));
        names.extend(definitions.filter_map(name));
    }
    Ok(names)
}

#[test]
fn definitions_of_gateway_api_and_contour_are_installed_and_read_back() -> Result<()> {
    let plane = ControlPlane::shared()?;
    let mut expected = BTreeSet::new();
    for definitions in [Definitions::GatewayStandard, Definitions::Contour] {
        plane.define(definitions)?;
        expected.extend(defined(&definitions.folder()?)?);
    }
    for kind in
        ["gateways.gateway.networking.k8s.io", "httproutes.gateway.networking.k8s.io", "httpproxies.projectcontour.io"]
    {
        ensure!(expected.contains(kind), "{kind} is not among {expected:?}");
    }
    let listed = plane.kubectl(&["get", "customresourcedefinitions", "-o", "name"])?;
    let prefix = "customresourcedefinition.apiextensions.k8s.io/";
    let listed: BTreeSet<String> = listed.lines().filter_map(|it| it.strip_prefix(prefix).map(str::to_owned)).collect();
    assert!(listed.is_superset(&expected), "{listed:?}\nis not all of\n{expected:?}");

    plane.apply(
        "apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: read-back}
spec: {controllerName: sluice.dev/read-back}
",
    )?;
    let path = "/apis/gateway.networking.k8s.io/v1/gatewayclasses";
    let class = plane.api().wait_for(path, "read-back", PATIENCE, |_| true)?;
    assert_eq!(class["spec"], json!({"controllerName": "sluice.dev/read-back"}));
    // Defaults of the definition.
    assert_eq!(class["status"]["conditions"][0]["reason"], "Pending");
    let name = plane.kubectl(&["get", "gatewayclass", "read-back", "-o", "jsonpath={.spec.controllerName}"])?;
    assert_eq!(name, "sluice.dev/read-back");
    let rejected =
        plane.apply("{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: bad}, spec: {}}");
    let rejected = format!("{:#}", rejected.err().context("a GatewayClass without controllerName is accepted")?);
    assert!(rejected.contains("spec.controllerName: Required value"), "{rejected}");
    Ok(())
}

/// Namespaces that the manifests of a folder name.
fn namespaces(folder: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let text = fs::read_to_string(entry?.path())?;
        names.extend(text.lines().filter_map(|line| line.strip_prefix("  namespace: ").map(str::to_owned)));
    }
    Ok(names)
}

#[test]
fn the_definitions_take_the_examples() -> Result<()> {
    let plane = ControlPlane::shared()?;
    plane.define(Definitions::GatewayStandard)?;
    plane.define(Definitions::Sluice)?;
    for example in ["quickstart", "delegation"] {
        // An API server rejects endpoints on loopback.
        let folder = folder::example(example, Ipv4Addr::new(10, 79, 0, 1).into())?;
        let namespaces = namespaces(folder.path())?;
        ensure!(!namespaces.is_empty(), "{example} names no namespace");
        for namespace in namespaces {
            plane.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}"))?;
        }
        let folder = folder.path().to_str().context("a path is UTF-8")?;
        plane.kubectl(&["apply", "--server-side", "--dry-run=server", "-f", folder])?;
    }
    // With the policy of Gateway API against downgrades.
    let overlay = workspace().join("deploy/crds/overlay");
    let overlay = overlay.to_str().context("a path is UTF-8")?;
    plane.kubectl(&["apply", "--server-side", "--dry-run=server", "--force-conflicts", "-f", overlay]).map(drop)
}

#[test]
fn routes_are_printed_as_openshift_prints_them() -> Result<()> {
    let plane = ControlPlane::shared()?;
    plane.define(Definitions::Sluice)?;
    plane.apply("{apiVersion: v1, kind: Namespace, metadata: {name: printed}}")?;
    plane.apply(
        "apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: printed, namespace: printed}
spec: {host: printed.test, path: /a, to: {name: web}, port: {targetPort: 8080}, tls: {termination: edge}}
",
    )?;
    let path = "/apis/route.openshift.io/v1/namespaces/printed/routes/printed";
    plane.api().patch(&format!("{path}/status"), &json!({"status": {"ingress": [{"host": "printed.test"}]}}))?;
    let to = json!({"kind": "Service", "name": "web", "weight": 100});
    assert_eq!(plane.api().get(path)?["spec"]["to"], to, "with the defaults");
    let printed = plane.kubectl(&["get", "routes", "--namespace", "printed"])?;
    let lines: Vec<Vec<&str>> = printed.lines().map(|line| line.split_whitespace().collect()).collect();
    let head = ["NAME", "HOST/PORT", "PATH", "SERVICES", "PORT", "TERMINATION", "WILDCARD"];
    assert_eq!(lines, [head, ["printed", "printed.test", "/a", "web", "8080", "edge", "None"]], "{printed}");
    Ok(())
}
