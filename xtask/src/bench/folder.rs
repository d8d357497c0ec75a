//! A folder of many Routes: a third clear text, a third edge, a third passthrough, one per file, a hundred per folder.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;

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
    for number in 0..routes {
        let file = file(folder, number);
        if number % 100 == 0 {
            fs::create_dir(folder.join(format!("team-{:03}", number / 100)))?;
        }
        fs::write(file, route(number, &format!("route-{number}.bench.test")))?;
    }
    Ok(file(folder, 0))
}

fn file(folder: &Path, number: usize) -> PathBuf {
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
