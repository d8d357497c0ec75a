//! Services and EndpointSlices.

pub mod protocol;
pub mod upstream_protocol;

use std::net::IpAddr;
use std::sync::Arc;

use router_model::field::{FieldPath, Findings};
use router_model::object::{Interner, Meta};
use serde_json::Value;

use crate::fields::{Fields, describe};
use crate::kubernetes::endpoints::protocol::AppProtocol;
use crate::kubernetes::endpoints::upstream_protocol::UpstreamProtocols;
use crate::meta::Annotations;
use crate::openshift::route::backends::TargetPort;

/// Label with the name of a slice's service.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";
/// Maximum number of endpoints of a slice, as in the API server.
const MAX_ENDPOINTS: usize = 1000;
/// Maximum number of ports of a slice, as in the API server.
const MAX_PORTS: usize = 20_000;

/// A Service. For Routes only its existence matters; other kinds refer to one of its ports.
#[derive(Clone, Debug)]
pub struct Service {
    /// Metadata.
    pub meta: Meta,
    /// `spec.type: ExternalName`: a DNS alias without endpoints.
    pub is_external: bool,
    /// `spec.ports`, in order.
    pub ports: Box<[ServicePort]>,
    /// Contour's annotations; `None` if there are none.
    pub upstream_protocols: Option<Box<UpstreamProtocols>>,
}

/// `Service.spec.ports[]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePort {
    /// `name`, which slices use for the port; may be empty if the Service has one port.
    pub name: Arc<str>,
    /// `port`.
    pub number: u16,
    /// `protocol` is TCP.
    pub is_tcp: bool,
    /// `targetPort`, by default `port`. Set only for a port without a name: slices may identify it by nothing else.
    pub target: Option<TargetPort>,
    /// `appProtocol`.
    pub protocol: Option<AppProtocol>,
}

/// An EndpointSlice.
#[derive(Clone, Debug)]
pub struct EndpointSlice {
    /// Metadata.
    pub meta: Meta,
    /// Its service; `None`: the slice is unused.
    pub service: Option<Arc<str>>,
    /// Ready and draining endpoints.
    pub endpoints: Vec<SliceEndpoint>,
    /// Number of all other endpoints.
    pub unready: u32,
    /// `addressType: FQDN`: the endpoints are names, which are not supported.
    pub is_of_names: bool,
    /// TCP ports that every endpoint has.
    pub ports: Vec<SlicePort>,
}

/// An endpoint that can serve.
#[derive(Clone, Debug)]
pub struct SliceEndpoint {
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// `serving` and `terminating`, and not `ready`: it finishes its connections, and gets new ones only if no endpoint
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
    /// `appProtocol`.
    pub protocol: Option<AppProtocol>,
    /// Speaks HTTP/2 without TLS: see [`is_h2c`].
    pub h2c: bool,
}

/// Reads a Service. Its endpoints come from slices.
pub(crate) fn service(
    meta: Meta,
    annotations: &Annotations,
    mut object: Fields<'_>,
    texts: &mut Interner,
    findings: &mut Findings,
) -> Service {
    let mut spec = object.mapping("spec", findings);
    let is_external = spec.text("type", findings) == Some("ExternalName");
    if is_external {
        findings.warn(spec.path("type"), "a Service of type ExternalName has no endpoints; routes to it answer 503");
    }
    let items = spec.list("ports", findings);
    let ports = items.into_iter().filter_map(|(path, item)| service_port(item, path, texts, findings)).collect();
    object.finish(findings);
    Service { meta, is_external, ports, upstream_protocols: UpstreamProtocols::parse(annotations) }
}

fn service_port(item: &Value, path: FieldPath, texts: &mut Interner, findings: &mut Findings) -> Option<ServicePort> {
    let mut fields = Fields::of(Some(item), path, findings);
    if fields.value("port").is_none() {
        findings.error(fields.path("port"), "Required value: write a number from 1 to 65535");
    }
    let number = fields.number("port", 1, 65_535, findings).and_then(|number| u16::try_from(number).ok());
    let mut name: Arc<str> = fields.text("name", findings).unwrap_or_default().into();
    texts.share(&mut name);
    let is_tcp = protocol(&mut fields, findings) == "TCP";
    let protocol = AppProtocol::of(fields.text("appProtocol", findings), Some(texts));
    let target = match fields.value("targetPort") {
        None => number.map(|number| number.to_string()),
        Some(Value::Number(target)) => Some(target.to_string()),
        Some(Value::String(target)) => Some(target.clone()),
        Some(other) => {
            let message = format!("is {}; write the name or the number of an endpoint port", describe(other));
            findings.error(fields.path("targetPort"), message);
            None
        }
    };
    let target = target.filter(|_| name.is_empty()).map(|text| {
        let mut text: Arc<str> = text.into();
        texts.share(&mut text);
        TargetPort(text)
    });
    fields.ignore(&["nodePort"]);
    fields.finish(findings);
    Some(ServicePort { name, number: number?, is_tcp, target, protocol })
}

/// Reads an EndpointSlice.
pub(crate) fn slice(meta: Meta, mut object: Fields<'_>, findings: &mut Findings) -> Option<EndpointSlice> {
    let service = meta.labels.get(SERVICE_LABEL).map(Arc::from);
    if service.is_none() {
        let path = FieldPath::of(&["metadata", "labels", SERVICE_LABEL]);
        findings.warn(path, "is missing, so no service uses these endpoints; write the service's name here");
    }
    let family = match object.text("addressType", findings) {
        Some("IPv4") => AddressFamily::V4,
        Some("IPv6") => AddressFamily::V6,
        Some("FQDN") => {
            findings.warn(object.path("addressType"), "endpoints that are names are not used; write IPv4 or IPv6");
            AddressFamily::Name
        }
        other => {
            let given = other.map_or("Required value".to_owned(), |other| format!("Unsupported value: {other:?}"));
            findings.error(object.path("addressType"), format!("{given}; write IPv4 or IPv6"));
            AddressFamily::Name
        }
    };
    let items = object.list("endpoints", findings);
    check_count(items.len(), MAX_ENDPOINTS, object.path("endpoints"), findings);
    let (mut endpoints, mut unready) = (Vec::new(), 0);
    for (path, item) in items.into_iter().take(MAX_ENDPOINTS) {
        match endpoint(Fields::of(Some(item), path, findings), family, findings) {
            Some(endpoint) => endpoints.push(endpoint),
            None => unready += 1,
        }
    }
    let items = object.list("ports", findings);
    check_count(items.len(), MAX_PORTS, object.path("ports"), findings);
    let mut ports: Vec<_> = items
        .into_iter()
        .take(MAX_PORTS)
        .filter_map(|(path, item)| port(Fields::of(Some(item), path, findings), findings))
        .collect();
    endpoints.shrink_to_fit();
    ports.shrink_to_fit();
    object.finish(findings);
    Some(EndpointSlice { meta, service, endpoints, unready, is_of_names: family == AddressFamily::Name, ports })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AddressFamily {
    V4,
    V6,
    Name,
}

fn check_count(count: usize, most: usize, path: FieldPath, findings: &mut Findings) {
    if count > most {
        findings.error(path, format!("has {count} items; use at most {most}, and another slice for the rest"));
    }
}

fn endpoint(mut fields: Fields<'_>, family: AddressFamily, findings: &mut Findings) -> Option<SliceEndpoint> {
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
            (_, AddressFamily::Name) => {}
            (Ok(address @ IpAddr::V4(_)), AddressFamily::V4) | (Ok(address @ IpAddr::V6(_)), AddressFamily::V6) => {
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
    addresses.shrink_to_fit();
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
    let is_tcp = protocol(&mut fields, findings) == "TCP";
    let protocol = AppProtocol::of(fields.text("appProtocol", findings), None);
    let h2c = is_h2c(name, protocol.as_ref());
    fields.finish(findings);
    is_tcp.then_some(SlicePort { name: name.into(), number: number?, protocol, h2c })
}

fn protocol<'v>(fields: &mut Fields<'v>, findings: &mut Findings) -> &'v str {
    let protocol = fields.text("protocol", findings).unwrap_or("TCP");
    if !["TCP", "UDP", "SCTP"].contains(&protocol) {
        findings.error(fields.path("protocol"), format!("Unsupported value: {protocol:?}; write TCP"));
    }
    protocol
}

/// Whether a port speaks HTTP/2 without TLS, with prior knowledge (RFC 9113, section 3.3): if `appProtocol` is set, it
/// must be `h2c` or `kubernetes.io/h2c`; else the port's name must be `h2c`, `http2` or `grpc`, alone or before a `-`,
/// such as `grpc-api`.
fn is_h2c(name: &str, app_protocol: Option<&AppProtocol>) -> bool {
    match app_protocol {
        Some(protocol) => protocol.is_h2c(),
        None => {
            let protocol = name.split_once('-').map_or(name, |(protocol, _)| protocol);
            matches!(protocol, "h2c" | "http2" | "grpc")
        }
    }
}
