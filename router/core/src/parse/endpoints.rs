//! Services and EndpointSlices.

use std::net::IpAddr;
use std::sync::Arc;

use super::fields::Fields;
use crate::field::{FieldPath, Findings};
use crate::object::Meta;

/// Label that ties a slice to its service.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";
/// Most endpoints of one slice, as the API server allows.
const MAX_ENDPOINTS: usize = 1000;
/// Most ports of one slice, as the API server allows.
const MAX_PORTS: usize = 20_000;

/// A Service: that it exists is all that routing asks of it.
#[derive(Clone, Debug)]
pub struct Service {
    /// Metadata.
    pub meta: Meta,
}

/// An EndpointSlice.
#[derive(Clone, Debug)]
pub struct EndpointSlice {
    /// Metadata.
    pub meta: Meta,
    /// Service it belongs to; `None`: none, and nobody uses it.
    pub service: Option<Arc<str>>,
    /// Endpoints that are ready, or draining.
    pub endpoints: Vec<SliceEndpoint>,
    /// TCP ports that every endpoint has.
    pub ports: Vec<SlicePort>,
}

/// An endpoint that can serve.
#[derive(Clone, Debug)]
pub struct SliceEndpoint {
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// `serving` and `terminating`, and not `ready`: it finishes what it has, and gets new work only where no endpoint
    /// is ready (Kubernetes, `EndpointConditions`).
    pub is_draining: bool,
    /// Name of its pod.
    pub target: Option<Arc<str>>,
}

/// A port of a slice.
#[derive(Clone, Debug)]
pub struct SlicePort {
    /// Name; may be empty.
    pub name: Arc<str>,
    /// Number.
    pub number: u16,
    /// Speaks HTTP/2 without TLS: see [`is_h2c`].
    pub h2c: bool,
}

/// Reads a Service. Its ports are checked only for being there: endpoints come from slices.
pub(super) fn service(meta: Meta, mut object: Fields<'_>, findings: &mut Findings) -> Service {
    let mut spec = object.mapping("spec", findings);
    if spec.text("type", findings) == Some("ExternalName") {
        findings.warn(spec.path("type"), "a Service of type ExternalName has no endpoints; routes to it answer 503");
    }
    object.finish(findings);
    Service { meta }
}

/// Reads an EndpointSlice.
pub(super) fn slice(meta: Meta, mut object: Fields<'_>, findings: &mut Findings) -> Option<EndpointSlice> {
    let service = meta.labels.get(SERVICE_LABEL).map(Arc::from);
    if service.is_none() {
        let path = FieldPath::of(&["metadata", "labels", SERVICE_LABEL]);
        findings.warn(path, "is missing, so no service uses these endpoints; write the service's name here");
    }
    let family = match object.text("addressType", findings) {
        Some("IPv4") => Family::V4,
        Some("IPv6") => Family::V6,
        Some("FQDN") => {
            findings.warn(object.path("addressType"), "endpoints that are names are not used; write IPv4 or IPv6");
            Family::Name
        }
        other => {
            let given = other.map_or("Required value".to_owned(), |other| format!("Unsupported value: {other:?}"));
            findings.error(object.path("addressType"), format!("{given}; write IPv4 or IPv6"));
            Family::Name
        }
    };
    let items = object.list("endpoints", findings);
    check_count(items.len(), MAX_ENDPOINTS, object.path("endpoints"), findings);
    let endpoints = items
        .into_iter()
        .take(MAX_ENDPOINTS)
        .filter_map(|(path, item)| endpoint(Fields::of(Some(item), path, findings), family, findings))
        .collect();
    let items = object.list("ports", findings);
    check_count(items.len(), MAX_PORTS, object.path("ports"), findings);
    let ports = items
        .into_iter()
        .take(MAX_PORTS)
        .filter_map(|(path, item)| port(Fields::of(Some(item), path, findings), findings))
        .collect();
    object.finish(findings);
    Some(EndpointSlice { meta, service, endpoints, ports })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    V4,
    V6,
    Name,
}

fn check_count(count: usize, most: usize, path: FieldPath, findings: &mut Findings) {
    if count > most {
        findings.error(path, format!("has {count} items; use at most {most}, and another slice for the rest"));
    }
}

fn endpoint(mut fields: Fields<'_>, family: Family, findings: &mut Findings) -> Option<SliceEndpoint> {
    let mut conditions = fields.mapping("conditions", findings);
    // The API says of absence: "should be interpreted as ready".
    let ready = conditions.truth("ready", findings).unwrap_or(true);
    let terminating = conditions.truth("terminating", findings).unwrap_or(false);
    let is_draining = !ready && terminating && conditions.truth("serving", findings).unwrap_or(ready);
    conditions.ignore(&["serving"]);
    conditions.finish(findings);
    let mut addresses = Vec::new();
    for (path, text) in fields.texts("addresses", findings) {
        match (text.parse::<IpAddr>(), family) {
            (_, Family::Name) => {}
            (Ok(address @ IpAddr::V4(_)), Family::V4) | (Ok(address @ IpAddr::V6(_)), Family::V6) => {
                addresses.push(address);
            }
            (Ok(_), _) => {
                findings.error(path, format!("Invalid value: {text:?}: is of the other family than addressType says"));
            }
            (Err(_), _) => {
                findings.error(path, format!("Invalid value: {text:?}; write an IP address, such as 10.0.0.7"));
            }
        }
    }
    let mut target = fields.mapping("targetRef", findings);
    let name = match target.text("kind", findings) {
        Some("Pod") => target.text("name", findings).map(Arc::from),
        _ => None,
    };
    fields.ignore(&["hostname", "nodeName", "zone", "hints", "deprecatedTopology"]);
    fields.finish(findings);
    let can_serve = ready || is_draining;
    (can_serve && !addresses.is_empty()).then_some(SliceEndpoint { addresses, is_draining, target: name })
}

fn port(mut fields: Fields<'_>, findings: &mut Findings) -> Option<SlicePort> {
    let name = fields.text("name", findings).unwrap_or_default();
    let number = fields.number("port", 1, 65535, findings).and_then(|number| u16::try_from(number).ok());
    let protocol = fields.text("protocol", findings).unwrap_or("TCP");
    if !["TCP", "UDP", "SCTP"].contains(&protocol) {
        findings.error(fields.path("protocol"), format!("Unsupported value: {protocol:?}; write TCP"));
    }
    let h2c = is_h2c(name, fields.text("appProtocol", findings));
    fields.finish(findings);
    (protocol == "TCP").then_some(SlicePort { name: name.into(), number: number?, h2c })
}

/// Whether a port speaks HTTP/2 without TLS, with prior knowledge (RFC 9113, section 3.3). `appProtocol` alone decides
/// where it is written: `h2c` and `kubernetes.io/h2c` are the ones. Else the port's name does: `h2c`, `http2` and
/// `grpc`, alone or before a `-`, such as `grpc-api`.
fn is_h2c(name: &str, app_protocol: Option<&str>) -> bool {
    match app_protocol {
        Some(protocol) => matches!(protocol, "h2c" | "kubernetes.io/h2c"),
        None => {
            let protocol = name.split_once('-').map_or(name, |(protocol, _)| protocol);
            matches!(protocol, "h2c" | "http2" | "grpc")
        }
    }
}
