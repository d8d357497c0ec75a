//! `services`, of routes and of `tcpproxy`.

use router_model::field::Findings;

use super::balance;
use super::policies::{self, HostHeaderPolicy};
use super::resilience::{self, Of};
use crate::contour::common::{refuse, unsupported};
use crate::contour::types::{ServiceSpec, Violation};
use crate::fields::Fields;

/// Parent of services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServicesParent {
    /// An IngressRoute.
    IngressRoute,
    /// A route of an HTTPProxy.
    Route,
    /// The `tcpproxy` of an HTTPProxy.
    Tcp,
}

/// Reads `services`. Ports are checked later, because the status reports their errors.
pub fn list(
    holder: &mut Fields<'_>,
    parent: ServicesParent,
    faults: &mut Vec<Violation>,
    findings: &mut Findings,
) -> Vec<ServiceSpec> {
    let mut services = Vec::new();
    for (path, item) in holder.list("services", findings) {
        let mut fields = Fields::of(Some(item), path, findings);
        services.extend(service(&mut fields, parent, faults, findings));
        fields.finish(findings);
    }
    services
}

fn service(
    fields: &mut Fields<'_>,
    parent: ServicesParent,
    faults: &mut Vec<Violation>,
    findings: &mut Findings,
) -> Option<ServiceSpec> {
    let name = fields.required("name", "the name of a Service of this namespace", findings);
    if fields.value("port").is_none() {
        findings.error(fields.path("port"), "Required value: write the number of a port of the Service");
    }
    let number = i64::from(i32::MAX);
    let port = fields.number("port", -number, number, findings);
    let weight = fields.number("weight", 0, i64::from(u32::MAX), findings).unwrap_or_default();
    let mut service = ServiceSpec {
        name: name?.into(),
        port: port?,
        weight: u32::try_from(weight).unwrap_or(u32::MAX),
        ..ServiceSpec::default()
    };
    let mut validation = fields.mapping("validation", findings);
    if validation.is_present() {
        let secret = validation.text("caSecret", findings).unwrap_or_default();
        let mut names = vec![validation.text("subjectName", findings).unwrap_or_default().into()];
        if parent != ServicesParent::IngressRoute {
            names.extend(validation.texts("subjectNames", findings).into_iter().map(|(_, name)| name.into()));
            names.retain(|name: &std::sync::Arc<str>| !name.is_empty());
            names.sort();
            names.dedup();
        }
        service.validation = Some((secret.into(), names));
    }
    validation.finish(findings);
    if parent == ServicesParent::IngressRoute {
        service.strategy = balance::strategy(fields, findings);
        service.health_check = resilience::health_check(fields, "healthCheck", Of::IngressRoute, findings);
        return Some(service);
    }
    service.protocol = fields.text("protocol", findings).unwrap_or_default().into();
    if !["", "tls", "h2", "h2c"].contains(&&*service.protocol) {
        let message = format!("Unsupported value: {:?}; write h2, h2c or tls", service.protocol);
        findings.error(fields.path("protocol"), message);
    }
    service.mirror = fields.truth("mirror", findings).unwrap_or_default();
    if parent == ServicesParent::Tcp && service.mirror {
        faults.push(unsupported(&fields.path("mirror"), "remove it"));
    }
    if parent == ServicesParent::Tcp && !["", "tls"].contains(&&*service.protocol) {
        let advice = "write tls, or remove it; bytes go to the service as they are";
        faults.push(unsupported(&fields.path("protocol"), advice));
    }
    refuse(fields, &["cookieRewritePolicies", "slowStartPolicy"], faults);
    if parent == ServicesParent::Route {
        service.request_headers =
            policies::headers(fields, "requestHeadersPolicy", HostHeaderPolicy::OfService, faults, findings).0;
        service.response_headers =
            policies::headers(fields, "responseHeadersPolicy", HostHeaderPolicy::Fixed, faults, findings).0;
    } else {
        refuse(fields, &["requestHeadersPolicy", "responseHeadersPolicy"], faults);
    }
    if fields.number("healthPort", 0, 65535, findings).is_some_and(|health| ![0, service.port].contains(&health)) {
        faults.push(unsupported(&fields.path("healthPort"), "remove it; the port that is served is checked"));
    }
    Some(service)
}
