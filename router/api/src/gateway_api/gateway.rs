//! GatewayClass and Gateway.

use std::net::IpAddr;
use std::sync::Arc;

use router_model::dns_names;
use router_model::field::{FieldPath, Findings};
use router_model::object::{Manifest, Meta};
use router_table::host_pattern::HostPattern;
use serde_json::Value;

use super::read::{self, Unsupported};
use super::references;
use crate::fields::Fields;
use crate::gate::gate_policy;
use crate::gateway_api::types::{
    AllowedRoutes, FromNamespaces, Gateway, GatewayClass, Listener, ListenerTls, ObjectReference,
};
use crate::meta::Annotations;
use crate::path_settings::path_settings;
use crate::selector;

const MAX_LISTENERS: usize = 64;
const MAX_ADDRESSES: usize = 16;
const MAX_KINDS: usize = 8;
const MAX_CERTIFICATES: usize = 64;

/// Reads a GatewayClass.
pub fn class(meta: Meta, spec: &mut Fields<'_>, manifest: Manifest, findings: &mut Findings) -> Option<GatewayClass> {
    let controller = read::required(spec, "controllerName", "the name of a controller", findings);
    if let Some(name) = controller {
        let (domain, path) = name.split_once('/').unwrap_or((name, ""));
        let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
        if dns_names::subdomain_fault(domain).is_some() || path.is_empty() || !path.bytes().all(is_path) {
            let message = format!(
                "Invalid value: {name:?}: is not a valid domain with a path; write {}",
                crate::gateway_api::types::CONTROLLER_NAME
            );
            findings.error(spec.path("controllerName"), message);
        }
    }
    let mut parameters = spec.mapping("parametersRef", findings);
    let has_parameters = parameters.is_present();
    if has_parameters {
        references::local(&mut parameters, findings);
        references::namespace(&mut parameters, findings);
    }
    parameters.finish(findings);
    if let Some(text) = spec.text("description", findings) {
        read::fits(text, 64, spec.path("description"), findings);
    }
    Some(GatewayClass { meta, manifest, controller: controller?.into(), has_parameters })
}

/// Reads a Gateway.
pub fn gateway(
    meta: Meta,
    annotations: &Annotations,
    spec: &mut Fields<'_>,
    manifest: Manifest,
    findings: &mut Findings,
) -> Option<Gateway> {
    let mut unsupported = Unsupported::default();
    let class = read::required(spec, "gatewayClassName", "the name of a GatewayClass", findings);
    let items = read::list(spec, "listeners", 1, MAX_LISTENERS, findings);
    let mut listeners: Vec<Listener> = Vec::new();
    for (path, item) in items {
        let Some(listener) = listener(item, &path, findings) else { continue };
        if listeners.iter().any(|known| known.name == listener.name) {
            let message =
                format!("Duplicate value: {:?}; write another name, each listener needs its own", listener.name);
            findings.error(path.key("name"), message);
        }
        let same = |known: &&Listener| {
            known.port == listener.port && known.protocol == listener.protocol && known.hostname == listener.hostname
        };
        if let Some(twin) = listeners.iter().find(same) {
            let message = format!(
                "has the port, protocol and hostname of listener {:?}; write another port or hostname, or remove it",
                twin.name
            );
            findings.error(path, message);
        }
        listeners.push(listener);
    }
    let addresses = addresses(spec, findings);
    let has_parameters = infrastructure(spec, findings);
    tls(spec, &mut unsupported, findings);
    if read::word(spec, "defaultScope", &["All", "None"], findings) == Some("All") {
        let message = "Sluice has no default Gateways; remove it, and name the Gateway in parentRefs of routes";
        unsupported.add(spec.path("defaultScope"), message);
    }
    let mut allowed = spec.mapping("allowedListeners", findings);
    let from = allowed.mapping("namespaces", findings).text("from", findings).unwrap_or("None");
    if from != "None" {
        unsupported
            .add(spec.path("allowedListeners"), "ListenerSets are not read; remove it, and write listeners here");
    }
    let class: Arc<str> = class?.into();
    let paths = path_settings(annotations, findings);
    let gate = gate_policy(annotations, findings).map(Arc::new);
    let unsupported = unsupported.into_texts();
    Some(Gateway { meta, manifest, class, listeners, addresses, has_parameters, paths, gate, unsupported })
}

fn listener(item: &Value, path: &FieldPath, findings: &mut Findings) -> Option<Listener> {
    let mut unsupported = Unsupported::default();
    let mut fields = Fields::of(Some(item), path.clone(), findings);
    let name = read::required(&mut fields, "name", "a name, such as web", findings);
    if let Some(fault) = name.and_then(dns_names::subdomain_fault) {
        findings.error(fields.path("name"), format!("Invalid value: {:?}: {fault}", name.unwrap_or_default()));
    }
    let hostname = match fields.text("hostname", findings) {
        None => Some(HostPattern::Any),
        Some(text) => read::host_pattern(text, &fields.path("hostname"), findings),
    };
    if fields.value("port").is_none() {
        findings.error(fields.path("port"), "Required value: write a number from 1 to 65535");
    }
    let port = read::port(&mut fields, "port", findings);
    let protocol = read::required(&mut fields, "protocol", "HTTP, HTTPS or TLS", findings);
    if let Some(protocol) = protocol.filter(|protocol| !is_protocol(protocol)) {
        let message = format!("Invalid value: {protocol:?}: is not a valid protocol; write HTTP, HTTPS or TLS");
        findings.error(fields.path("protocol"), message);
    }
    let tls = listener_tls(fields.mapping("tls", findings), protocol, &mut unsupported, findings);
    if tls.is_none() && protocol == Some("TLS") {
        findings
            .error(fields.path("tls"), "Required value: protocol TLS needs it; write mode: Terminate or Passthrough");
    }
    if let Some(protocol @ ("HTTP" | "TCP" | "UDP")) = protocol.filter(|_| tls.is_some()) {
        let message = format!("Forbidden: protocol {protocol} has no TLS; remove tls, or write protocol: HTTPS");
        findings.error(fields.path("tls"), message);
    }
    let has_no_names = matches!(protocol, Some("TCP" | "UDP"));
    if has_no_names && hostname != Some(HostPattern::Any) {
        let message = "Forbidden: protocols TCP and UDP have no host names; remove it";
        findings.error(fields.path("hostname"), message);
    }
    let allowed = allowed_routes(fields.mapping("allowedRoutes", findings), &UPSTREAM, findings);
    fields.finish(findings);
    Some(Listener {
        name: name?.into(),
        hostname: hostname?,
        port: port?,
        protocol: protocol?.into(),
        tls,
        allowed,
        unsupported: unsupported.into_texts(),
    })
}

/// `ProtocolType`: a name, or a domain with a path.
fn is_protocol(text: &str) -> bool {
    let is_word = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match text.split_once('/') {
        Some((domain, word)) => dns_names::subdomain_fault(domain).is_none() && is_word(word),
        None => is_word(&text.replace('-', "")) && !text.starts_with('-') && !text.ends_with('-'),
    }
}

fn listener_tls(
    mut fields: Fields<'_>,
    protocol: Option<&str>,
    unsupported: &mut Unsupported,
    findings: &mut Findings,
) -> Option<ListenerTls> {
    if !fields.is_present() {
        return None;
    }
    let mode = read::word(&mut fields, "mode", &["Terminate", "Passthrough"], findings);
    let passthrough = mode == Some("Passthrough");
    if passthrough && protocol == Some("HTTPS") {
        let message =
            "Unsupported value: \"Passthrough\": protocol HTTPS ends TLS here; write Terminate, or protocol: TLS";
        findings.error(fields.path("mode"), message);
    }
    let mut certificates: Vec<ObjectReference> = Vec::new();
    for (path, item) in read::list(&mut fields, "certificateRefs", 0, MAX_CERTIFICATES, findings) {
        let mut reference = Fields::of(Some(item), path, findings);
        certificates.extend(references::object(&mut reference, findings));
        reference.finish(findings);
    }
    let options = fields.text_map("options", findings);
    if mode == Some("Terminate") && fields.value("certificateRefs").is_none_or(is_empty_list) && options.is_empty() {
        let message = "Required value: mode Terminate needs a certificate; write a reference to a Secret";
        findings.error(fields.path("certificateRefs"), message);
    }
    for name in options.keys() {
        unsupported.add(fields.path("options").key(name), "no TLS option is known; remove it");
    }
    fields.finish(findings);
    Some(ListenerTls { passthrough, certificates })
}

fn is_empty_list(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

/// The API's values of `from`.
pub const UPSTREAM: [&str; 3] = ["Same", "All", "Selector"];
/// Values of `from` of a RouteSlot, which can be closed.
pub const SLOT: [&str; 4] = ["Same", "All", "Selector", "None"];

/// `AllowedRoutes`.
pub fn allowed_routes(mut fields: Fields<'_>, words: &[&'static str], findings: &mut Findings) -> AllowedRoutes {
    let mut kinds = Vec::new();
    for (path, item) in read::list(&mut fields, "kinds", 0, MAX_KINDS, findings) {
        let mut entry = Fields::of(Some(item), path, findings);
        let (group, kind) = (references::group(&mut entry, findings), references::kind(&mut entry, findings));
        entry.finish(findings);
        kinds.extend(group.zip(kind));
    }
    let mut namespaces = fields.mapping("namespaces", findings);
    let selector = namespaces.mapping("selector", findings);
    let has_selector = selector.is_present();
    let selector = selector::parse(selector, findings);
    let from = match read::word(&mut namespaces, "from", words, findings) {
        None | Some("Same") => FromNamespaces::Same,
        Some("All") => FromNamespaces::All,
        Some("Selector") if has_selector => FromNamespaces::Selector(selector),
        Some("Selector") => {
            findings.warn(namespaces.path("selector"), "is missing, so no namespace is selected; write a selector");
            FromNamespaces::None
        }
        Some(_) => FromNamespaces::None,
    };
    namespaces.finish(findings);
    fields.finish(findings);
    AllowedRoutes { kinds: Some(kinds).filter(|kinds| !kinds.is_empty()), from }
}

fn addresses(spec: &mut Fields<'_>, findings: &mut Findings) -> Vec<(Arc<str>, Arc<str>)> {
    let mut addresses: Vec<(Arc<str>, Arc<str>)> = Vec::new();
    for (path, item) in read::list(spec, "addresses", 0, MAX_ADDRESSES, findings) {
        let mut fields = Fields::of(Some(item), path.clone(), findings);
        let kind = read::required(&mut fields, "type", "IPAddress or Hostname", findings).unwrap_or_default();
        let value = fields.text("value", findings).unwrap_or_default();
        fields.finish(findings);
        let value_path = path.key("value");
        read::fits(value, read::MAX_TEXT, value_path.clone(), findings);
        if kind == "IPAddress" && !value.is_empty() && value.parse::<IpAddr>().is_err() {
            findings
                .error(value_path.clone(), format!("Invalid value: {value:?}; write an IP address, such as 192.0.2.1"));
        }
        if kind == "Hostname" && !value.is_empty() {
            read::host_pattern(value, &value_path, findings);
        }
        let address = (Arc::from(kind), Arc::from(value));
        if !value.is_empty() && matches!(kind, "IPAddress" | "Hostname") && addresses.contains(&address) {
            findings.error(value_path, format!("Duplicate value: {value:?}; keep one of them"));
        }
        addresses.push(address);
    }
    addresses
}

/// Whether there is a `parametersRef`. Labels and annotations apply to objects that a controller creates in the
/// cluster; Sluice creates none.
fn infrastructure(spec: &mut Fields<'_>, findings: &mut Findings) -> bool {
    let mut fields = spec.mapping("infrastructure", findings);
    for (name, most) in [("labels", 8), ("annotations", 16)] {
        let count = fields.text_map(name, findings).len();
        if count > most {
            findings.error(fields.path(name), format!("has {count} items; use at most {most}"));
        }
    }
    let mut parameters = fields.mapping("parametersRef", findings);
    let has_parameters = parameters.is_present();
    if has_parameters {
        references::local(&mut parameters, findings);
    }
    parameters.finish(findings);
    fields.finish(findings);
    has_parameters
}

/// `spec.tls`, which is unsupported.
fn tls(spec: &mut Fields<'_>, unsupported: &mut Unsupported, findings: &mut Findings) {
    let mut fields = spec.mapping("tls", findings);
    if fields.value("frontend").is_some() {
        let message =
            "clients' certificates are not checked for Gateways; remove it, or use an IngressController's clientTLS";
        unsupported.add(fields.path("frontend"), message);
    }
    if fields.value("backend").is_some() {
        unsupported.add(fields.path("backend"), "no certificate is shown to backends; remove it");
    }
    fields.finish(findings);
}

#[cfg(test)]
mod tests {
    use super::is_protocol;

    #[test]
    fn protocols_are_words_or_have_a_domain() {
        for good in ["HTTP", "x-1", "example.com/bar"] {
            assert!(is_protocol(good), "{good}");
        }
        for bad in ["", "-a", "a b", "HTTP/", "Example.com/bar", "example.com/a-b"] {
            assert!(!is_protocol(bad), "{bad}");
        }
    }
}
