//! Objects of Gateway API in an API server.

use anyhow::Result;
use serde_json::{Value, json};
use tests::cluster::{Api, Definitions};

use super::site::Site;

/// The API's group, before a version.
pub const GATEWAY_API: &str = "/apis/gateway.networking.k8s.io";
/// `spec.controllerName` of the classes that Sluice serves.
pub const OURS: &str = "sluice.dev/gateway-controller";

/// Installs Gateway API, and a GatewayClass of this name and controller.
pub fn with_class(site: &Site, name: &str, controller: &str) -> Result<Api> {
    site.define(Definitions::GatewayStandard)?;
    let api = site.api()?;
    let class = json!({"metadata": {"name": name}, "spec": {"controllerName": controller}});
    api.create(&format!("{GATEWAY_API}/v1/gatewayclasses"), &of("v1", "GatewayClass", class))?;
    Ok(api)
}

/// An object of Gateway API.
pub fn of(version: &str, kind: &str, mut object: Value) -> Value {
    object["apiVersion"] = json!(format!("gateway.networking.k8s.io/{version}"));
    object["kind"] = json!(kind);
    object
}
