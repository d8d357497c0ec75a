//! Folders of many routes, one per file, a hundred per folder: Routes, a third clear text, a third edge, a third
//! passthrough; or HTTPRoutes.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Result;

/// Address of the endpoints of HTTPRoutes.
pub const ENDPOINT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Where the router listens and who answers.
#[derive(Clone, Copy)]
pub struct Setting {
    /// `httpPort`.
    pub http: u16,
    /// `httpsPort`.
    pub https: u16,
    /// `statsPort`.
    pub stats: u16,
    /// The one endpoint of all Routes.
    pub endpoint: SocketAddr,
}

/// Writes everything, and returns the file of the first Route, which is one of clear text.
pub fn write(folder: &Path, routes: usize, setting: Setting) -> Result<PathBuf> {
    let Setting { http, https, stats, endpoint } = setting;
    fs::write(
        folder.join("router.yaml"),
        format!(
            "apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {{name: default, namespace: openshift-ingress-operator}}
spec:
  domain: bench.test
  endpointPublishingStrategy:
    type: HostNetwork
    hostNetwork: {{httpPort: {http}, httpsPort: {https}, statsPort: {stats}}}
---
apiVersion: v1
kind: Service
metadata: {{name: app, namespace: bench}}
spec: {{ports: [{{port: 80, targetPort: {port}}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: app-1, namespace: bench, labels: {{kubernetes.io/service-name: app}}}}
addressType: IPv4
endpoints: [{{addresses: [{address}]}}]
ports: [{{port: {port}}}]
",
            port = endpoint.port(),
            address = endpoint.ip(),
        ),
    )?;
    write_each(folder, routes, |number| route(number, &format!("route-{number}.bench.test")))
}

/// Writes a Gateway and HTTPRoutes, each with a host, a Service and an EndpointSlice; returns the file of the first one.
pub fn write_http_routes(folder: &Path, routes: usize, setting: Setting) -> Result<PathBuf> {
    let Setting { http, endpoint, .. } = setting;
    fs::write(
        folder.join("gateway.yaml"),
        format!(
            "apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: sluice}}
spec: {{controllerName: sluice.dev/gateway-controller}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: public, namespace: bench}}
spec:
  gatewayClassName: sluice
  listeners: [{{name: http, port: {http}, protocol: HTTP}}]
"
        ),
    )?;
    write_each(folder, routes, |number| http_route(number, endpoint))
}

fn write_each(folder: &Path, routes: usize, text: impl Fn(usize) -> String) -> Result<PathBuf> {
    for number in 0..routes {
        if number % 100 == 0 {
            fs::create_dir(folder.join(format!("team-{:03}", number / 100)))?;
        }
        fs::write(file(folder, number), text(number))?;
    }
    Ok(file(folder, 0))
}

/// The manifests of one HTTPRoute: itself, its Service and its EndpointSlice.
pub fn http_route(number: usize, endpoint: SocketAddr) -> String {
    let (address, port) = (endpoint.ip(), endpoint.port());
    format!(
        "apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: route-{number}, namespace: bench}}
spec:
  parentRefs: [{{name: public}}]
  hostnames: [route-{number}.bench.test]
  rules:
  - backendRefs: [{{name: app-{number}, port: 80}}]
---
apiVersion: v1
kind: Service
metadata: {{name: app-{number}, namespace: bench}}
spec: {{ports: [{{port: 80, targetPort: {port}}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: app-{number}-1, namespace: bench, labels: {{kubernetes.io/service-name: app-{number}}}}}
addressType: IPv4
endpoints: [{{addresses: [{address}]}}]
ports: [{{port: {port}}}]
"
    )
}

/// The file of a route.
pub fn file(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("team-{:03}/route-{number}.yaml", number / 100))
}

/// A Route for a host. If the number is a multiple of three, it is a clear-text Route.
pub fn route(number: usize, host: &str) -> String {
    let tls = ["", "  tls: {termination: edge}\n", "  tls: {termination: passthrough}\n"][number % 3];
    format!(
        "apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: route-{number}
  namespace: bench
  creationTimestamp: \"2026-01-01T00:00:00Z\"
spec:
  host: {host}
  to: {{kind: Service, name: app, weight: 100}}
{tls}"
    )
}
