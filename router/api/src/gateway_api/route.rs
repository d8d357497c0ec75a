//! HTTPRoute, GRPCRoute and TLSRoute.

use std::time::Duration;

use router_model::field::{FieldPath, Findings};
use router_model::kind::Kind;
use router_model::object::{Manifest, Meta};
use router_table::host_pattern::HostPattern;
use router_table::matchers::{PathMatcher, RequestMatcher};
use router_table::rule::Retry;
use serde_json::Value;

use super::filters::{self, FiltersParent};
use super::gateway::{SLOT, allowed_routes};
use super::read::{self, Unsupported};
use super::{matches, references};
use crate::fields::Fields;
use crate::gateway_api::types::{BackendRef, Filter, GatewayRoute, RouteRule};
use crate::redirect::PathModifier;

const MAX_HOSTNAMES: usize = 16;
const MAX_TLS_HOSTNAMES: usize = 1024;
const MAX_RULES: usize = 16;
const MAX_MATCHES: usize = 64;
/// Maximum number of matches of all rules together.
const MAX_ALL_MATCHES: usize = 128;
const MAX_BACKENDS: usize = 16;
const MAX_WEIGHT: i64 = 1_000_000;
/// Maximum number of retries of a request, and the default.
const MAX_RETRIES: i64 = 100;
const RETRIES: u32 = 1;
/// Default of the maximum backoff before the first retry.
const BACKOFF: Duration = Duration::from_millis(25);

/// Reads a route of one of the three kinds.
pub fn route(
    kind: Kind,
    meta: Meta,
    spec: &mut Fields<'_>,
    manifest: Manifest,
    findings: &mut Findings,
) -> GatewayRoute {
    let parents = references::parents(spec, findings);
    let (least, most) = if kind == Kind::TlsRoute { (1, MAX_TLS_HOSTNAMES) } else { (0, MAX_HOSTNAMES) };
    let mut hostnames: Vec<HostPattern> = Vec::new();
    for (path, item) in read::list(spec, "hostnames", least, most, findings) {
        match item {
            Value::String(text) => hostnames.extend(read::host_pattern(text, &path, findings)),
            _ => findings.error(path, "is not a string; write a host name, such as www.example.com"),
        }
    }
    if read::word(spec, "useDefaultGateways", &["All", "None"], findings) == Some("All") {
        findings
            .warn(spec.path("useDefaultGateways"), "has no effect: Sluice has no default Gateways; write parentRefs");
    }
    let rules = rules(kind, spec, findings);
    GatewayRoute { kind, meta, manifest, parents, hostnames, rules }
}

fn rules(kind: Kind, spec: &mut Fields<'_>, findings: &mut Findings) -> Vec<RouteRule> {
    let (least, most) = match kind {
        Kind::TlsRoute => (1, 1),
        Kind::GrpcRoute => (0, MAX_RULES),
        _ => (1, MAX_RULES),
    };
    let (mut rules, mut matches): (Vec<RouteRule>, usize) = (Vec::new(), 0);
    for (path, item) in read::list(spec, "rules", least, most, findings) {
        let rule = rule(kind, item, &path, findings);
        matches += rule.matches.len();
        if let Some(name) =
            rule.name.as_ref().filter(|name| rules.iter().any(|known| known.name.as_ref() == Some(*name)))
        {
            let message = format!("Duplicate value: {name:?}; write another name, each rule needs its own");
            findings.error(path.key("name"), message);
        }
        rules.push(rule);
    }
    if matches > MAX_ALL_MATCHES {
        let message = format!("has {matches} matches; use at most {MAX_ALL_MATCHES}, and another route for the rest");
        findings.error(spec.path("rules"), message);
    }
    rules
}

fn rule(kind: Kind, item: &Value, path: &FieldPath, findings: &mut Findings) -> RouteRule {
    let mut unsupported = Unsupported::default();
    let mut fields = Fields::of(Some(item), path.clone(), findings);
    let mut rule = RouteRule { name: read::section(&mut fields, "name", findings), ..RouteRule::default() };
    if kind == Kind::TlsRoute {
        rule.matches = vec![RequestMatcher::default()];
    } else {
        rule.matches = all_matches(kind, &mut fields, &mut unsupported, findings);
        rule.filters = filters::list(&mut fields, kind, FiltersParent::Rule, &mut unsupported, findings);
        if fields.value("sessionPersistence").is_some() {
            let message = "sessions are not kept with one backend; remove it";
            unsupported.add(fields.path("sessionPersistence"), message);
        }
    }
    rule.backends = backends(kind, &mut fields, &mut unsupported, findings);
    if kind == Kind::HttpRoute {
        timeouts(&mut rule, fields.mapping("timeouts", findings), findings);
        rule.retry = retry(fields.mapping("retry", findings), findings);
        let allowed = fields.mapping("allowedRoutes", findings);
        if allowed.is_present() {
            rule.allowed = Some(allowed_routes(allowed, &SLOT, findings));
        }
        check(&rule, &fields, findings);
    }
    fields.finish(findings);
    rule.unsupported = unsupported.into_texts();
    rule
}

/// The API's checks of a whole rule.
fn check(rule: &RouteRule, fields: &Fields<'_>, findings: &mut Findings) {
    let redirects = rule.filters.iter().any(|filter| matches!(filter, Filter::Redirect(_)));
    if redirects && !rule.backends.is_empty() {
        let message = "Forbidden: a rule that redirects sends nothing to backends; remove backendRefs, or the filter";
        findings.error(fields.path("backendRefs"), message);
    }
    if rule.allowed.is_some() && !rule.backends.is_empty() {
        let message = "Forbidden: allowedRoutes stands in the place of backendRefs; remove one of the two";
        findings.error(fields.path("allowedRoutes"), message);
    }
    let of_backends = rule.backends.iter().flat_map(|backend| &backend.filters);
    let replaces = rule.filters.iter().chain(of_backends).any(|filter| {
        let path = match filter {
            Filter::Redirect(redirect) => redirect.path.as_ref(),
            Filter::Rewrite(rewrite) => rewrite.path.as_ref(),
            _ => None,
        };
        matches!(path, Some(PathModifier::Prefix(_)))
    });
    let is_one_prefix = matches!(rule.matches.as_slice(), [RequestMatcher { path: PathMatcher::Prefix(_), .. }]);
    // A match that could not be read already has an error; the count would be wrong.
    if replaces && !is_one_prefix && findings.errors.is_empty() {
        let message = "Invalid value: replacePrefixMatch needs to know the prefix; write exactly one match, with a path \
                       of type PathPrefix";
        findings.error(fields.path("matches"), message);
    }
}

fn all_matches(
    kind: Kind,
    fields: &mut Fields<'_>,
    unsupported: &mut Unsupported,
    findings: &mut Findings,
) -> Vec<RequestMatcher> {
    let items = read::list(fields, "matches", 0, MAX_MATCHES, findings);
    let (read, any): (fn(_, _, &mut _, &mut _) -> _, _) = match kind {
        Kind::GrpcRoute => (matches::grpc, matches::any_grpc()),
        _ => (matches::http, RequestMatcher::default()),
    };
    if items.is_empty() {
        return vec![any];
    }
    items.into_iter().filter_map(|(path, item)| read(item, path, unsupported, findings)).collect()
}

fn backends(
    kind: Kind,
    fields: &mut Fields<'_>,
    unsupported: &mut Unsupported,
    findings: &mut Findings,
) -> Vec<BackendRef> {
    let least = usize::from(kind == Kind::TlsRoute);
    let mut backends = Vec::new();
    for (path, item) in read::list(fields, "backendRefs", least, MAX_BACKENDS, findings) {
        let mut entry = Fields::of(Some(item), path, findings);
        let reference = references::backend(&mut entry, findings);
        let weight = entry.number("weight", 0, MAX_WEIGHT, findings).and_then(|weight| u32::try_from(weight).ok());
        let filters = match kind {
            Kind::TlsRoute => Vec::new(),
            _ => filters::list(&mut entry, kind, FiltersParent::Backend, unsupported, findings),
        };
        entry.finish(findings);
        let (Some((object, port)), Some(weight)) = (reference, weight) else { continue };
        backends.push(BackendRef { object, port, weight, filters });
    }
    backends
}

/// `retry` (GEP-1731): on responses with one of `codes`, and on requests without a response.
fn retry(mut fields: Fields<'_>, findings: &mut Findings) -> Option<Retry> {
    if !fields.is_present() {
        return None;
    }
    let mut statuses = Vec::new();
    for (path, item) in fields.list("codes", findings) {
        match item.as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| (400..600).contains(code)) {
            Some(code) => statuses.push(code..=code),
            None => findings.error(path, format!("Invalid value: {item}; write a status from 400 to 599")),
        }
    }
    let count = fields.number("attempts", 0, MAX_RETRIES, findings).and_then(|count| u32::try_from(count).ok());
    let backoff = read::duration(&mut fields, "backoff", findings);
    fields.finish(findings);
    let count = count.unwrap_or(RETRIES);
    let retry = Retry { count, statuses, unanswered: true, unreachable: true, backoff: backoff.unwrap_or(BACKOFF) };
    Some(retry).filter(|retry| retry.count > 0)
}

/// `timeouts`; zero means none.
fn timeouts(rule: &mut RouteRule, mut fields: Fields<'_>, findings: &mut Findings) {
    let request = read::duration(&mut fields, "request", findings).filter(|time| !time.is_zero());
    let backend = read::duration(&mut fields, "backendRequest", findings).filter(|time| !time.is_zero());
    if request.zip(backend).is_some_and(|(request, backend)| backend > request) {
        let message = "Invalid value: is longer than timeouts.request; write at most that";
        findings.error(fields.path("backendRequest"), message);
    }
    fields.finish(findings);
    rule.request_timeout = request;
    rule.backend_timeout = backend;
}
