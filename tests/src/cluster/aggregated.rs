//! API servers behind the cluster's own one (apiregistration.k8s.io): a server of the test that serves a group of kinds.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use super::api::Api;
use crate::wait::PATIENCE;

/// Namespace of the Services of such servers.
const NAMESPACE: &str = "default";

/// Host name for which the certificate of a group's server must be.
pub fn host(group: &str) -> String {
    format!("{}.{NAMESPACE}.svc", service(group))
}

/// Registers a server for a version of a group, and waits until requests go to it.
///
/// # Errors
/// When the API server rejects it, or does not reach it in time.
pub fn register(api: &Api, group: &str, version: &str, server: SocketAddr, ca: &str) -> Result<()> {
    let name = service(group);
    let port = json!({"name": "https", "port": 443, "targetPort": server.port()});
    let object = json!({"metadata": {"name": name}, "spec": {"ports": [port]}});
    api.create(&format!("/api/v1/namespaces/{NAMESPACE}/services"), &object)?;
    let slice = json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
        "addressType": if server.is_ipv6() { "IPv6" } else { "IPv4" },
        "endpoints": [{"addresses": [server.ip()], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "port": server.port()}],
    });
    api.create(&format!("/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"), &slice)?;
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    let service = json!({
        "metadata": {"name": format!("{version}.{group}")},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 1000,
            "versionPriority": 10,
            "service": {"namespace": NAMESPACE, "name": name},
            "caBundle": BASE64_STANDARD.encode(ca),
        },
    });
    api.create(services, &service)?;
    let available = |service: &Value| {
        let conditions = service["status"]["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|it| it["type"] == "Available" && it["status"] == "True")
    };
    let waited = api.wait_for(services, &format!("{version}.{group}"), PATIENCE, available);
    waited.map(drop).with_context(|| format!("the API server of {group} is not available"))
}

/// Name of the Service of a group's server.
fn service(group: &str) -> String {
    group.replace('.', "-")
}
