//! Folders of manifests.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use anyhow::Result;
use tempfile::TempDir;

use crate::pki::Leaf;
use crate::workspace;

/// A copy of `examples/quickstart` whose endpoints are on `backend`.
///
/// # Errors
/// When files cannot be read or written.
pub fn quickstart(backend: IpAddr) -> Result<TempDir> {
    example("quickstart", backend)
}

/// A copy of a folder of `examples` whose endpoints are on `backend`.
///
/// # Errors
/// When there is no such example, or files cannot be read or written.
pub fn example(name: &str, backend: IpAddr) -> Result<TempDir> {
    let folder = TempDir::new()?;
    for entry in fs::read_dir(workspace().join("examples").join(name))? {
        let entry = entry?;
        let family = if backend.is_ipv6() { "IPv6" } else { "IPv4" };
        let text = fs::read_to_string(entry.path())?
            .replace("127.0.0.1", &format!("{:?}", backend.to_string()))
            .replace("addressType: IPv4", &format!("addressType: {family}"));
        fs::write(folder.path().join(entry.file_name()), text)?;
    }
    Ok(folder)
}

/// A router for `apps.test` on ports 8080 and 8443.
pub fn router() -> String {
    "apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec:
  domain: apps.test
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443, statsPort: 1936}}
"
    .to_owned()
}

/// The class `sluice` of Gateways.
pub fn gateway_class() -> &'static str {
    "---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: sluice}
spec: {controllerName: sluice.dev/gateway-controller}
"
}

/// A Service with one endpoint.
pub fn service(name: &str, endpoint: SocketAddr) -> String {
    service_of(name, &[endpoint])
}

/// A Service with endpoints; each has an EndpointSlice of its own, and may have its own port.
pub fn service_of(name: &str, endpoints: &[SocketAddr]) -> String {
    let mut text = format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: test}}
spec: {{ports: [{{name: main, port: 80, targetPort: main}}]}}
"
    );
    for (i, endpoint) in endpoints.iter().enumerate() {
        let family = if endpoint.is_ipv6() { "IPv6" } else { "IPv4" };
        text += &format!(
            "---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}-{number}, namespace: test, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: {family}
endpoints: [{{addresses: [\"{address}\"]}}]
ports: [{{name: main, port: {port}}}]
",
            number = i + 1,
            port = endpoint.port(),
            address = endpoint.ip(),
        );
    }
    text
}

/// A Route `name` for `host` to the service `to`, with further lines of its `spec`.
pub fn route(name: &str, host: &str, to: &str, spec: &str) -> String {
    format!(
        "---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {{name: {name}, namespace: test, creationTimestamp: \"2026-01-01T00:00:00Z\"}}
spec:
  host: {host}
  to: {{kind: Service, name: {to}}}
{spec}"
    )
}

/// `spec` of a passthrough route, for [`route`].
pub const PASSTHROUGH: &str = "  tls: {termination: passthrough}\n";

/// `spec` of a route with TLS terminated by the router, for [`route`]: the termination, the certificate, and further
/// lines of `tls`.
pub fn terminated(termination: &str, certificate: &Leaf, more: &str) -> String {
    format!(
        "  tls:
    termination: {termination}
    certificate: |
{}    key: |
{}{more}",
        block(&certificate.certificate),
        block(&certificate.key),
    )
}

/// A `destinationCACertificate`, for [`terminated`].
pub fn destination_ca(pem: &str) -> String {
    format!("    destinationCACertificate: |\n{}", block(pem))
}

/// A Route with these annotations.
pub fn annotated(route: &str, annotations: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = annotations.iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
    route.replace("metadata: {", &format!("metadata: {{annotations: {{{}}}, ", pairs.join(", ")))
}

/// A manifest with this protocol for its endpoints (`appProtocol` of the ports of EndpointSlices).
pub fn speaking(manifest: &str, protocol: &str) -> String {
    manifest.replace("ports: [{name: main, port: ", &format!("ports: [{{name: main, appProtocol: {protocol}, port: "))
}

/// Lines of a block scalar under a field of `spec.tls`.
fn block(text: &str) -> String {
    text.lines().map(|line| format!("      {line}\n")).collect()
}

/// The documents of a YAML text, without those that have only comments.
pub fn documents(text: &str) -> impl Iterator<Item = &str> {
    let has_content = |line: &str| !line.trim().is_empty() && !line.starts_with('#');
    text.split("\n---")
        .map(|document| document.trim_start_matches("---"))
        .filter(move |document| document.lines().any(has_content))
}

/// Replaces a file atomically, as editors and `kubectl cp` do: a reader sees the old or the new text.
///
/// # Errors
/// It cannot be written.
pub fn replace(file: &Path, text: &str) -> Result<()> {
    let new = file.with_extension("new");
    fs::write(&new, text)?;
    fs::rename(&new, file)?;
    Ok(())
}
