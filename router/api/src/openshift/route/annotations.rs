//! Annotations of a Route that configure its traffic (docs/openshift.md#annotations-of-routes). They are parsed once,
//! when the Route is read; the Route keeps the values, and nothing if all of them are the defaults.

pub mod allowlist;
pub mod names;
pub mod values;

use std::sync::Arc;
use std::time::Duration;

use router_model::field::{FieldPath, Findings};
use router_table::policy::RoutePolicy;
use router_table::policy::forwarded::ForwardedHeaders;
use router_table::policy::rewrite::RewriteTarget;
use router_table::table::InsecurePolicy;

use crate::meta::Annotations;
use crate::openshift::route::annotations::allowlist::AllowList;
use crate::openshift::route::annotations::names::{
    ADJUST_CASE, ANNOTATIONS, BALANCE, CONCURRENT_TCP, COOKIE_NAME, COOKIE_SAME_SITE, DISABLE_COOKIES,
    ENDPOINT_CONNECTIONS, HEALTH_CHECK, HSTS, POOL_SIZE, PREFIXES, PROXY_PROTOCOL, RATE_HTTP, RATE_LIMIT, RATE_TCP,
    REWRITE_TARGET, SET_FORWARDED_HEADERS, TIMEOUT, TIMEOUT_TUNNEL,
};
use crate::openshift::route::traffic::Traffic;

/// The parsed annotations of a Route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteAnnotations {
    /// [`PROXY_PROTOCOL`] of a passthrough route: connections to endpoints begin with a PROXY v2 header.
    pub proxy_protocol: bool,
    /// Idle timeout of tunnels, at most [`values::MAX_TIMEOUT`]; `None`: the router's.
    pub tunnel_timeout: Option<Duration>,
    /// [`SET_FORWARDED_HEADERS`]; `None`: the router's.
    pub forwarded: Option<ForwardedHeaders>,
    /// [`allowlist::ALLOWLIST`] or [`allowlist::WHITELIST`]; `None`: every client may connect.
    pub allow: Option<AllowList>,
    /// All others; shared between routes with equal policies.
    pub policy: Arc<RoutePolicy>,
}

impl Default for RouteAnnotations {
    /// The values of a route without annotations.
    fn default() -> Self {
        RouteAnnotations {
            proxy_protocol: false,
            tunnel_timeout: None,
            forwarded: None,
            allow: None,
            policy: RoutePolicy::shared_default(),
        }
    }
}

impl RouteAnnotations {
    /// Parses the annotations of a route that carries this traffic; `None` if every value is the default. An invalid
    /// value is ignored, with a warning that says what to write.
    pub fn parse(annotations: &Annotations, traffic: &Traffic, findings: &mut Findings) -> Option<Self> {
        if annotations.is_empty() {
            return None;
        }
        let (parsed, policy) = (RouteAnnotations::default(), RoutePolicy::default());
        let mut reader = AnnotationReader { traffic, parsed, policy, findings };
        for (name, text) in annotations {
            if ANNOTATIONS.contains(&name.as_str()) {
                reader.read(name, text);
            } else if PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
                reader.warn(name, "is not an annotation of Routes, ignored; correct its name, or remove it");
            }
        }
        reader.read_limits(annotations);
        reader.read_together(annotations);
        let AnnotationReader { parsed, policy, findings, .. } = reader;
        let allow = allowlist::parse(annotations, findings);
        let parsed = RouteAnnotations { allow, policy: policy.shared(), ..parsed };
        (parsed != RouteAnnotations::default()).then_some(parsed)
    }
}

/// Reads annotations one by one.
struct AnnotationReader<'r> {
    traffic: &'r Traffic,
    parsed: RouteAnnotations,
    policy: RoutePolicy,
    findings: &'r mut Findings,
}

impl AnnotationReader<'_> {
    fn warn(&mut self, annotation: &str, message: impl Into<String>) {
        self.findings.warn(FieldPath::of(&["metadata", "annotations", annotation]), message);
    }

    /// A value, or a warning that says what to write.
    fn value<T>(&mut self, name: &'static str, text: &str, value: Option<T>, write: &str) -> Option<T> {
        if value.is_none() {
            self.warn(name, format!("Invalid value: {text:?}, ignored; write {write}"));
        }
        value
    }

    /// A value of an enumeration, or a warning that lists what to write.
    fn choice<T>(&mut self, name: &'static str, text: &str, value: Option<T>, write: &str) -> Option<T> {
        if value.is_none() {
            self.warn(name, format!("Unsupported value: {text:?}, ignored; write {write}"));
        }
        value
    }

    fn timeout(&mut self, name: &'static str, text: &str) -> Option<Duration> {
        self.value(name, text, values::timeout(text), "a whole number and us, ms, s, m, h or d, such as 30s")
    }

    fn read(&mut self, name: &str, text: &str) {
        let is_passthrough = self.traffic.is_passthrough();
        match name {
            PROXY_PROTOCOL if !is_passthrough => self.warn(PROXY_PROTOCOL, ONLY_PASSTHROUGH),
            PROXY_PROTOCOL => {
                let is_v2 = self.choice(PROXY_PROTOCOL, text, (text == "v2").then_some(true), "v2, or remove it");
                self.parsed.proxy_protocol = is_v2.is_some();
            }
            TIMEOUT_TUNNEL => self.parsed.tunnel_timeout = self.timeout(TIMEOUT_TUNNEL, text),
            TIMEOUT => self.policy.server_timeout = self.timeout(TIMEOUT, text),
            BALANCE => {
                let write = "roundrobin, leastconn, source or random";
                self.policy.balance = self.choice(BALANCE, text, values::balance(text), write);
            }
            ENDPOINT_CONNECTIONS if text == "0" => {}
            ENDPOINT_CONNECTIONS => {
                let write = "a whole number, such as 100; 0 for no limit";
                self.policy.endpoint_connections = self.value(ENDPOINT_CONNECTIONS, text, values::limit(text), write);
            }
            HEALTH_CHECK => self.policy.health_check = self.timeout(HEALTH_CHECK, text),
            RATE_HTTP if is_passthrough => self.warn(RATE_HTTP, NO_REQUESTS),
            POOL_SIZE => self.warn(POOL_SIZE, "has no effect: there are no pools of prepared backends; remove it"),
            SET_FORWARDED_HEADERS if is_passthrough => self.warn(SET_FORWARDED_HEADERS, NO_HEADERS),
            DISABLE_COOKIES | COOKIE_NAME | COOKIE_SAME_SITE | HSTS | REWRITE_TARGET | ADJUST_CASE
                if is_passthrough =>
            {
                self.warn(name, NO_REQUESTS);
            }
            SET_FORWARDED_HEADERS
            | DISABLE_COOKIES
            | COOKIE_NAME
            | COOKIE_SAME_SITE
            | HSTS
            | REWRITE_TARGET
            | ADJUST_CASE => self.read_http(name, text),
            // `read_limits` and `allowlist::parse` read the others.
            _ => {}
        }
    }

    /// Annotations of routes that are not passthrough.
    fn read_http(&mut self, name: &str, text: &str) {
        const TRUTH: &str = "true or false";
        match name {
            SET_FORWARDED_HEADERS => {
                let write = "append, replace, if-none or never";
                self.parsed.forwarded = self.choice(SET_FORWARDED_HEADERS, text, values::forwarded(text), write);
            }
            DISABLE_COOKIES => {
                let disabled = self.choice(DISABLE_COOKIES, text, values::truth(text), TRUTH);
                self.policy.affinity.disabled = disabled.unwrap_or_default();
            }
            COOKIE_NAME => {
                let write = "a name of letters, digits, '-' and '_'";
                self.policy.affinity.cookie = self.value(COOKIE_NAME, text, values::cookie_name(text), write);
            }
            COOKIE_SAME_SITE if !self.is_tls_alone() => self.warn(COOKIE_SAME_SITE, NO_SAME_SITE),
            COOKIE_SAME_SITE => {
                let same_site = self.choice(COOKIE_SAME_SITE, text, values::same_site(text), "Lax, Strict or None");
                self.policy.affinity.same_site = same_site.unwrap_or_default();
            }
            HSTS if !self.traffic.has_tls() => {
                self.warn(HSTS, "has no meaning for a route without spec.tls, ignored; remove it, or use edge");
            }
            HSTS => {
                let write = "for example max-age=31536000;includeSubDomains;preload";
                self.policy.hsts = self.value(HSTS, text, values::hsts(text), write);
            }
            REWRITE_TARGET => match RewriteTarget::parse(text) {
                Ok(target) => self.policy.rewrite_target = Some(target),
                Err(fault) => self.warn(REWRITE_TARGET, format!("Invalid value: {text:?}, ignored: {fault}")),
            },
            _ => {
                let adjust = self.choice(ADJUST_CASE, text, values::truth(text), TRUTH);
                self.policy.adjust_case = adjust.unwrap_or_default();
            }
        }
    }

    /// Whether the route serves TLS only, so that its cookie may be `Secure`.
    fn is_tls_alone(&self) -> bool {
        match self.traffic {
            Traffic::Http { tls: Some(tls), .. } => tls.insecure != InsecurePolicy::Allow,
            _ => false,
        }
    }

    /// The limits per client address.
    fn read_limits(&mut self, annotations: &Annotations) {
        let wanted = match annotations.get(RATE_LIMIT) {
            Some(text) => self.choice(RATE_LIMIT, text, values::truth(text), "true or false") == Some(true),
            None => false,
        };
        let mut named = 0;
        for name in [CONCURRENT_TCP, RATE_TCP, RATE_HTTP] {
            let Some(text) = annotations.get(name) else { continue };
            if name == RATE_HTTP && self.traffic.is_passthrough() {
                continue;
            }
            named += 1;
            if !wanted {
                self.warn(name, format!("has no effect without {RATE_LIMIT}: \"true\"; write that too, or remove it"));
                continue;
            }
            let limit = self.value(name, text, values::limit(text), "a whole number of at least 1");
            let limits = &mut self.policy.source_limits;
            match name {
                CONCURRENT_TCP => limits.concurrent = limit,
                RATE_TCP => limits.connections = limit,
                _ => limits.requests = limit,
            }
        }
        if wanted && named == 0 {
            let message = "limits nothing by itself; write rate-limit-connections.concurrent-tcp, .rate-tcp or \
                           .rate-http too, or remove it";
            self.warn(RATE_LIMIT, message);
        }
    }

    /// Rules that need more than one annotation.
    fn read_together(&mut self, annotations: &Annotations) {
        if self.traffic.is_passthrough() {
            let silent = self.policy.server_timeout.take();
            self.parsed.tunnel_timeout = self.parsed.tunnel_timeout.or(silent);
        }
        if self.policy.affinity.disabled {
            for name in [COOKIE_NAME, COOKIE_SAME_SITE].into_iter().filter(|name| annotations.contains_key(*name)) {
                self.warn(name, format!("has no effect, because {DISABLE_COOKIES} is true; remove one of the two"));
            }
            // Policies without affinity must be equal to be shared.
            self.policy.affinity.cookie = None;
            self.policy.affinity.same_site = Default::default();
        }
    }
}

const ONLY_PASSTHROUGH: &str = "is only for passthrough routes, ignored; remove it, or write spec.tls.termination: \
                                passthrough; endpoints of other routes learn the client's address from X-Forwarded-For";
const NO_HEADERS: &str = "has no meaning for a passthrough route, whose requests are not read, ignored; remove it, or \
                          write router.sluice.dev/proxy-protocol: v2 to tell endpoints the client's address";
const NO_REQUESTS: &str = "has no meaning for a passthrough route, whose requests are not read, ignored; remove it, or \
                           use edge or reencrypt";
const NO_SAME_SITE: &str = "is only for edge and reencrypt routes that do not allow clear text, ignored; remove it, or \
                            write insecureEdgeTerminationPolicy: Redirect";

#[cfg(test)]
mod tests;
