//! Fields of HTTPProxy only: includes, conditions and policies.

use std::sync::Arc;

use router_model::field::Findings;
use router_table::policy::Balance;

use super::conditions::{self, ConditionsParent};
use super::policies::{self, HostHeaderPolicy};
use super::resilience::{self, Of};
use super::{balance, services};
use crate::contour::common::{reference, refuse, timeout};
use crate::contour::types::{ContourProxy, RouteSpec, Strategy, TcpProxy, Violation};
use crate::fields::Fields;

/// Reads `includes`, `routes` and `tcpproxy`.
pub(crate) fn fill(vertex: &mut ContourProxy, spec: &mut Fields<'_>, findings: &mut Findings) {
    let namespace = Arc::clone(&vertex.meta.key.namespace);
    for (path, item) in spec.list("includes", findings) {
        let mut fields = Fields::of(Some(item), path, findings);
        let target = reference(&mut fields, &namespace, findings);
        let mut faults = Vec::new();
        let conditions = conditions::read(&mut fields, ConditionsParent::Include, &mut faults, findings);
        fields.finish(findings);
        vertex.routes.push(RouteSpec {
            label: conditions.label.into(),
            matcher: conditions.matcher,
            delegate: target,
            faults,
            ..RouteSpec::default()
        });
    }
    for (path, item) in spec.list("routes", findings) {
        let fields = Fields::of(Some(item), path, findings);
        vertex.routes.push(route(fields, findings));
    }
    let mut tcp = spec.mapping("tcpproxy", findings);
    if tcp.is_present() {
        let mut faults = Vec::new();
        let mut services = services::list(&mut tcp, services::ServicesParent::Tcp, &mut faults, findings);
        let mut warnings = Vec::new();
        let mut strategy = balance::policy(&mut tcp, &mut warnings, findings);
        if strategy.balance == Balance::Hash {
            let at = tcp.path("loadBalancerPolicy");
            let why = "a tcpproxy has no requests to hash; endpoints are chosen by RoundRobin";
            warnings.push(Violation::new("TCPProxyError", "IgnoredField", format!("ignoring {at}: {why}")));
            strategy = Strategy::default();
        }
        services.iter_mut().for_each(|service| service.strategy.clone_from(&strategy));
        let check = resilience::tcp_health_check(&mut tcp, findings);
        services.iter_mut().for_each(|service| service.health_check.clone_from(&check));
        // An older name of the field.
        let mut targets = Vec::new();
        for name in ["include", "includes"] {
            let mut include = tcp.mapping(name, findings);
            targets.extend(reference(&mut include, &namespace, findings));
            include.finish(findings);
        }
        vertex.tcp = Some(TcpProxy { services, delegate: targets.into_iter().next(), faults, warnings });
    }
    tcp.finish(findings);
}

/// Unsupported members of routes.
const NOT_DONE: [&str; 7] = [
    "authPolicy",
    "cookieRewritePolicies",
    "internalRedirectPolicy",
    "ipAllowPolicy",
    "ipDenyPolicy",
    "jwtVerificationPolicy",
    "rateLimitPolicy",
];

fn route(mut fields: Fields<'_>, findings: &mut Findings) -> RouteSpec {
    let mut faults = Vec::new();
    let conditions = conditions::read(&mut fields, ConditionsParent::Route, &mut faults, findings);
    let mut services = services::list(&mut fields, services::ServicesParent::Route, &mut faults, findings);
    let mut warnings = Vec::new();
    let strategy = balance::policy(&mut fields, &mut warnings, findings);
    services.iter_mut().for_each(|service| service.strategy.clone_from(&strategy));
    if services.iter().filter(|service| service.mirror).count() > 1 {
        let message = "only one service per route may be nominated as mirror";
        faults.push(Violation::new("ServiceError", "OnlyOneMirror", message));
    }
    refuse(&mut fields, &NOT_DONE, &mut faults);
    let check = resilience::health_check(&mut fields, "healthCheckPolicy", Of::HttpProxy, findings);
    services.iter_mut().for_each(|service| service.health_check.clone_from(&check));
    let (retry, per_try) = resilience::retry(&mut fields, Of::HttpProxy, &mut faults, findings);
    let mut policy = fields.mapping("timeoutPolicy", findings);
    let mut time = |name| timeout(&mut policy, name, &mut faults, findings);
    let [timeout, idle, idle_connection] = ["response", "idle", "idleConnection"].map(&mut time);
    policy.finish(findings);
    let (request_headers, rewrite_host) =
        policies::headers(&mut fields, "requestHeadersPolicy", HostHeaderPolicy::Rewritten, &mut faults, findings);
    let (response_headers, _) =
        policies::headers(&mut fields, "responseHeadersPolicy", HostHeaderPolicy::Fixed, &mut faults, findings);
    let rewrites = policies::rewrites(&mut fields, &mut faults, findings);
    let redirect = policies::redirect(&mut fields, &mut faults, findings);
    let answer = direct_response(&mut fields, &mut faults, findings);
    let has_target = !services.is_empty() || redirect.is_some() || answer.is_some();
    if !has_target && faults.is_empty() {
        let message = "route.services must have at least one entry";
        faults.push(Violation::new("RouteError", "NoServicesPresent", message));
    }
    if usize::from(!services.is_empty()) + usize::from(redirect.is_some()) + usize::from(answer.is_some()) > 1 {
        let message = "cannot specify services, requestRedirectPolicy and directResponsePolicy in the same route; keep \
                       one of them";
        faults.push(Violation::new("RouteError", "ActionNotUnique", message));
    }
    let route = RouteSpec {
        label: conditions.label.into(),
        matcher: conditions.matcher,
        services,
        websockets: fields.truth("enableWebsockets", findings).unwrap_or_default(),
        permit_insecure: fields.truth("permitInsecure", findings).unwrap_or_default(),
        rewrites,
        timeout,
        idle,
        idle_connection,
        retry,
        per_try,
        request_headers,
        response_headers,
        rewrite_host,
        redirect,
        answer,
        faults,
        warnings,
        delegate: None,
    };
    fields.finish(findings);
    route
}

fn direct_response(fields: &mut Fields<'_>, faults: &mut Vec<Violation>, findings: &mut Findings) -> Option<u16> {
    let mut policy = fields.mapping("directResponsePolicy", findings);
    let status = policy.number("statusCode", 200, 599, findings);
    if policy.is_present() && policy.value("statusCode").is_none() {
        findings.error(policy.path("statusCode"), "Required value: write a status, from 200 to 599");
    }
    refuse(&mut policy, &["body"], faults);
    policy.finish(findings);
    status.and_then(|status| u16::try_from(status).ok())
}
