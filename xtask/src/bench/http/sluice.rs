//! Sluice on its ways: the objects of a router with one host or many.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;

use super::backend::{ECHO_PORT, WEB_PORT};
use super::names::{self, Hosts, SelfSignedCertificate};
use super::ways::{HTTP_PORT, HTTPS_PORT, endpoints};
use crate::bench::network::Middle;
use crate::bench::tools::Tools;
use crate::process::{Running, Server};

/// Routes in a file.
const IN_A_FILE: usize = 1000;

/// Starts it with the data path in user space: the proxy is measured.
pub fn start(tools: &Tools, hosts: Hosts, middle: &Middle, folder: &Path) -> Result<Running> {
    let manifests = folder.join("manifests");
    fs::create_dir_all(&manifests)?;
    let certificate = SelfSignedCertificate::generate()?;
    fs::write(manifests.join("router.yaml"), router(middle, &certificate))?;
    let names: Vec<String> = names::all(hosts).collect();
    for (number, part) in names.chunks(IN_A_FILE).enumerate() {
        let mut text = String::new();
        for (at, name) in part.iter().enumerate() {
            let own = (at % names::WITH_CERTIFICATE == 0).then_some(&certificate);
            text += &route(&format!("route-{}", number * IN_A_FILE + at), name, None, "app", own)?;
        }
        fs::write(manifests.join(format!("routes-{number:03}.yaml")), text)?;
    }
    if hosts == Hosts::One {
        let echo = route("echo", &names::one(hosts), Some("/own"), "echo", Some(&certificate))?;
        fs::write(manifests.join("echo.yaml"), echo)?;
    }
    let mut command = middle.netns.command(&tools.sluice)?;
    command
        .args(["run", "--huge-text", "auto"])
        .arg("--manifests")
        .arg(manifests)
        .arg("--state")
        .arg(folder.join("state"));
    let instance = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    command.args(["--data-path", "userspace", "--drain", "1"]);
    command.args(["--instance", &format!("bench-{}-{instance}", std::process::id())]);
    // No access log, as with the peers.
    command.env("SLUICE_LOG", "warn");
    let mut server = Server::start("sluice run", &mut command)?;
    server.wait_for("sluice: ready")?;
    Ok(server.echo())
}

/// Cookies are off as with the peers, and clear text is served beside TLS.
fn route(
    name: &str,
    host: &str,
    path: Option<&str>,
    service: &str,
    certificate: Option<&SelfSignedCertificate>,
) -> Result<String> {
    let mut text = format!(
        "---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: {name}
  namespace: bench
  creationTimestamp: \"2026-01-01T00:00:00Z\"
  annotations: {{haproxy.router.openshift.io/disable_cookies: \"true\"}}
spec:
  host: {host}
  to: {{kind: Service, name: {service}, weight: 100}}
  tls:
    termination: edge
    insecureEdgeTerminationPolicy: Allow
"
    );
    if let Some(SelfSignedCertificate { certificate, key }) = certificate {
        writeln!(text, "    certificate: |\n{}\n    key: |\n{}", indented(certificate), indented(key))?;
    }
    if let Some(path) = path {
        // Another key of the same mapping.
        text = text.replace("spec:\n", &format!("spec:\n  path: {path}\n"));
    }
    Ok(text)
}

fn indented(pem: &str) -> String {
    pem.lines().map(|line| format!("      {line}")).collect::<Vec<_>>().join("\n")
}

/// The router with its default certificate, and both services.
fn router(middle: &Middle, SelfSignedCertificate { certificate, key }: &SelfSignedCertificate) -> String {
    let block = |pem: &str| pem.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n");
    let mut text = format!(
        "apiVersion: operator.openshift.io/v1
kind: IngressController
metadata:
  name: default
  namespace: openshift-ingress-operator
  annotations: {{ingress.operator.openshift.io/default-enable-http2: \"true\"}}
spec:
  domain: bench.test
  defaultCertificate: {{name: default}}
  endpointPublishingStrategy:
    type: HostNetwork
    hostNetwork: {{httpPort: {HTTP_PORT}, httpsPort: {HTTPS_PORT}, statsPort: 1936}}
---
apiVersion: v1
kind: Secret
metadata: {{name: default, namespace: openshift-ingress}}
type: kubernetes.io/tls
stringData:
  tls.crt: |
{}
  tls.key: |
{}
",
        block(certificate),
        block(key),
    );
    for (name, port) in [("app", WEB_PORT), ("echo", ECHO_PORT)] {
        let addresses: Vec<String> = endpoints(middle, port).iter().map(|to| to.ip().to_string()).collect();
        text += &format!(
            "---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: bench}}
spec: {{ports: [{{port: 80, targetPort: {port}}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}-1, namespace: bench, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: IPv4
endpoints: [{{addresses: [{}]}}]
ports: [{{port: {port}}}]
",
            addresses.join(", ")
        );
    }
    text
}
