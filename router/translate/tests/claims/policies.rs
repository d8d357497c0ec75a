//! Traffic policies as text: non-default fields by name.

use std::fmt::Debug;

use router_table::policy::{ClientAuth, RoutePolicy, RouterPolicy};
use router_table::rule::{BackendPolicy, Mirror, RulePolicy};

use crate::certificates::Certificates;
use crate::hosts::Hosts;

/// Collects fields that differ from their default.
struct Differing(Vec<String>);

impl Differing {
    fn add<T: Debug>(&mut self, name: &str, value: &T, default: &T) {
        let (text, usual) = (format!("{value:?}"), format!("{default:?}"));
        if text != usual {
            self.0.push(format!("{name}: {text}"));
        }
    }
}

macro_rules! differing {
    ($policy:expr, $default:expr, $type:ident { $($field:ident),* $(,)? } beside { $($other:ident),* $(,)? }) => {{
        let $type { $($field,)* $($other: _,)* } = $policy;
        let default = $default;
        let mut differing = Differing(Vec::new());
        $(differing.add(stringify!($field), $field, &default.$field);)*
        differing.0
    }};
}

/// Policy of a router.
pub fn router(policy: &RouterPolicy, certificates: &Certificates) -> Vec<String> {
    let mut lines = differing!(policy, RouterPolicy::default(), RouterPolicy {
        timeouts, limits, tls, actions, unique_id, case_adjustments, pages, compress, ignore_empty_requests,
        defer_idle_termination, abort_closed_clients, log, path_form, accept_proxy, gate,
    } beside { client_tls });
    if let Some(auth) = &policy.client_tls {
        let ClientAuth { required, roots, subjects } = &**auth;
        let subjects: Vec<&str> = subjects.iter().map(|subject| subject.as_str()).collect();
        let asked = if *required { "required" } else { "optional" };
        lines.push(format!("client certificates {asked}, of {}, subjects {subjects:?}", certificates.names(roots)));
    }
    lines
}

/// Policy of a route.
pub fn route(policy: &RoutePolicy) -> Vec<String> {
    differing!(policy, RoutePolicy::default(), RoutePolicy {
        balance, hash, affinity, server_timeout, rewrite_target, hsts, source_limits, endpoint_connections, actions,
        adjust_case, health_check,
    } beside {})
}

/// Policy of a rule.
pub fn rule(policy: &RulePolicy, hosts: Hosts<'_>) -> Vec<String> {
    let mut lines = differing!(policy, RulePolicy::default(), RulePolicy {
        action, request_headers, response_headers, rewrite_host, rewrite_path, cors, request_timeout, backend_timeout,
        idle_timeout, keep_connections, retry,
    } beside { mirrors });
    for Mirror { cluster, share } in &policy.mirrors {
        lines.push(format!("mirrors {} of {}", share.0, share.1));
        lines.extend(hosts.cluster(cluster).into_iter().map(|line| format!("  {line}")));
    }
    lines
}

/// Policy of a backend.
pub fn backend(policy: &BackendPolicy, certificates: &Certificates) -> Vec<String> {
    let mut lines = differing!(policy, BackendPolicy::default(), BackendPolicy {
        namespace, failure, request_headers, response_headers, balance, health_check,
    } beside { tls });
    if let Some(tls) = &policy.tls {
        let roots = tls.roots().map_or("the system's CAs".to_owned(), |roots| certificates.names(roots));
        lines.push(format!("TLS for {:?}, names {:?}, of {roots}", tls.server_name(), tls.names()));
    }
    lines
}
