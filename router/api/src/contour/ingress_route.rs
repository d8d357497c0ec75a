//! Fields of IngressRoute only: routes by prefix with their delegates, and subdomains of a domain.

use std::sync::Arc;

use router_model::field::Findings;
use router_table::matchers::{PathMatcher, RequestMatcher};

use super::resilience::{self, Of};
use super::services;
use crate::contour::common::{compared, prefix, reference, timeout};
use crate::contour::types::{ContourProxy, RouteSpec, Subdomain, TcpProxy};
use crate::fields::Fields;

/// Reads `subdomains`, `routes` and `tcpproxy`.
pub(crate) fn fill(vertex: &mut ContourProxy, spec: &mut Fields<'_>, findings: &mut Findings) {
    let namespace = Arc::clone(&vertex.meta.key.namespace);
    for (path, item) in spec.list("subdomains", findings) {
        let mut fields = Fields::of(Some(item), path, findings);
        let name = fields.required("subdomain", "a whole name, such as www.example.com", findings);
        let mut delegate = fields.mapping("delegate", findings);
        if !delegate.is_present() {
            findings
                .error(fields.path("delegate"), "Required value: write the name of the IngressRoute that serves it");
        }
        let target = reference(&mut delegate, &namespace, findings);
        delegate.finish(findings);
        fields.finish(findings);
        if let (Some(name), Some(delegate)) = (name, target) {
            vertex.subdomains.push(Subdomain { name: name.into(), delegate });
        }
    }
    for (path, item) in spec.list("routes", findings) {
        let fields = Fields::of(Some(item), path, findings);
        vertex.routes.extend(route(fields, &namespace, findings));
    }
    let mut tcp = spec.mapping("tcpproxy", findings);
    if tcp.is_present() {
        let mut faults = Vec::new();
        let services = services::list(&mut tcp, services::ServicesParent::IngressRoute, &mut faults, findings);
        let mut delegate = tcp.mapping("delegate", findings);
        let target = reference(&mut delegate, &namespace, findings);
        delegate.finish(findings);
        vertex.tcp = Some(TcpProxy { services, delegate: target, faults, warnings: Vec::new() });
    }
    tcp.finish(findings);
}

fn route(mut fields: Fields<'_>, namespace: &Arc<str>, findings: &mut Findings) -> Option<RouteSpec> {
    let label = fields.required("match", "a path prefix that begins with /", findings);
    if let Some(label) = label.filter(|label| !label.starts_with('/')) {
        findings.error(fields.path("match"), format!("Invalid value: {label:?}; write \"/{label}\""));
    }
    let label = label.map(|label| compared(label, &fields.path("match"), findings));
    let mut faults = Vec::new();
    let services = services::list(&mut fields, services::ServicesParent::IngressRoute, &mut faults, findings);
    let mut delegate = fields.mapping("delegate", findings);
    let target = reference(&mut delegate, namespace, findings);
    delegate.finish(findings);
    let mut policy = fields.mapping("timeoutPolicy", findings);
    let timeout = timeout(&mut policy, "request", &mut faults, findings);
    policy.finish(findings);
    let (retry, per_try) = resilience::retry(&mut fields, Of::IngressRoute, &mut faults, findings);
    let rewrite = fields.text("prefixRewrite", findings).map(|text| (None, Arc::from(text)));
    let label = label?;
    let route = RouteSpec {
        matcher: RequestMatcher { path: PathMatcher::Prefix(prefix(&label)), ..RequestMatcher::default() },
        label: label.into(),
        services,
        delegate: target,
        websockets: fields.truth("enableWebsockets", findings).unwrap_or_default(),
        permit_insecure: fields.truth("permitInsecure", findings).unwrap_or_default(),
        rewrites: rewrite.into_iter().collect(),
        timeout,
        retry,
        per_try,
        faults,
        ..RouteSpec::default()
    };
    fields.finish(findings);
    Some(route)
}
