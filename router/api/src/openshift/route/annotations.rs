//! Annotations of a Route that say how its traffic is carried (docs/openshift.md#annotations-of-routes, and one of
//! Sluice's own). They are read from the stored texts when a route is resolved, so that the many routes without any
//! cost nothing.

pub mod allowlist;
pub mod values;

use std::borrow::Cow;
use std::time::Duration;

use router_model::object::TextMap;
use router_table::policy::RoutePolicy;
use router_table::policy::forwarded::ForwardedHeaders;
use router_table::policy::rewrite::RewriteTarget;
use router_table::table::InsecurePolicy;

use crate::openshift::route::annotations::allowlist::{ALLOWLIST, WHITELIST};
use crate::openshift::route::traffic::Traffic;

/// `v2`: connections to the endpoints of a passthrough route begin with a PROXY protocol header.
pub const PROXY_PROTOCOL: &str = "router.sluice.dev/proxy-protocol";
/// How long an endpoint may be silent; of a passthrough route without [`TIMEOUT_TUNNEL`], how long a tunnel may.
pub const TIMEOUT: &str = "haproxy.router.openshift.io/timeout";
/// How long a passthrough connection, or one after an upgrade, may be silent.
pub const TIMEOUT_TUNNEL: &str = "haproxy.router.openshift.io/timeout-tunnel";
/// What happens to `X-Forwarded-*` and `Forwarded`.
pub const SET_FORWARDED_HEADERS: &str = "haproxy.router.openshift.io/set-forwarded-headers";
/// How an endpoint is chosen.
pub const BALANCE: &str = "haproxy.router.openshift.io/balance";
/// True: no affinity by cookie.
pub const DISABLE_COOKIES: &str = "haproxy.router.openshift.io/disable_cookies";
/// Name of the affinity cookie.
pub const COOKIE_NAME: &str = "router.openshift.io/cookie_name";
/// `SameSite` of the affinity cookie.
pub const COOKIE_SAME_SITE: &str = "router.openshift.io/cookie-same-site";
/// Value of `Strict-Transport-Security`.
pub const HSTS: &str = "haproxy.router.openshift.io/hsts_header";
/// A path in the place of the route's.
pub const REWRITE_TARGET: &str = "haproxy.router.openshift.io/rewrite-target";
/// True: header names in the spelling of the router's `headerNameCaseAdjustments`.
pub const ADJUST_CASE: &str = "haproxy.router.openshift.io/h1-adjust-case";
/// Most connections to one endpoint.
pub const ENDPOINT_CONNECTIONS: &str = "haproxy.router.openshift.io/pod-concurrent-connections";
/// True: the three limits below hold, for each client address.
pub const RATE_LIMIT: &str = "haproxy.router.openshift.io/rate-limit-connections";
/// Connections at the same time.
pub const CONCURRENT_TCP: &str = "haproxy.router.openshift.io/rate-limit-connections.concurrent-tcp";
/// Connections in 3 s.
pub const RATE_TCP: &str = "haproxy.router.openshift.io/rate-limit-connections.rate-tcp";
/// Requests in 10 s.
pub const RATE_HTTP: &str = "haproxy.router.openshift.io/rate-limit-connections.rate-http";
/// Time between checks of an endpoint.
pub const HEALTH_CHECK: &str = "router.openshift.io/haproxy.health.check.interval";
/// Of routers that reload; read and without meaning here.
const POOL_SIZE: &str = "router.openshift.io/pool-size";

/// All of them; a name that is not here is none.
pub const ANNOTATIONS: [&str; 20] = [
    PROXY_PROTOCOL,
    TIMEOUT,
    TIMEOUT_TUNNEL,
    SET_FORWARDED_HEADERS,
    BALANCE,
    DISABLE_COOKIES,
    COOKIE_NAME,
    COOKIE_SAME_SITE,
    HSTS,
    REWRITE_TARGET,
    ADJUST_CASE,
    ENDPOINT_CONNECTIONS,
    RATE_LIMIT,
    CONCURRENT_TCP,
    RATE_TCP,
    RATE_HTTP,
    HEALTH_CHECK,
    POOL_SIZE,
    ALLOWLIST,
    WHITELIST,
];

/// Prefixes of annotations that are for routers alone.
const PREFIXES: [&str; 3] = ["haproxy.router.openshift.io/", "router.openshift.io/", "router.sluice.dev/"];

/// What a route's annotations ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrafficOptions {
    /// Passthrough: a PROXY v2 header goes first.
    pub proxy_protocol: bool,
    /// How long a tunnel may be silent, at most [`values::MAX_TIMEOUT`]; `None`: as the router says.
    pub tunnel_timeout: Option<Duration>,
    /// What happens to forwarding headers; `None`: as the router says.
    pub forwarded: Option<ForwardedHeaders>,
    /// All the rest.
    pub policy: RoutePolicy,
}

/// An annotation that has no effect as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotationFault {
    /// Its name.
    pub annotation: Cow<'static, str>,
    /// What is wrong, and what to write instead.
    pub message: String,
}

impl TrafficOptions {
    /// Reads the annotations of a route of this kind. A bad value counts as absent, and is told.
    pub fn read(annotations: &TextMap, traffic: &Traffic) -> (Self, Vec<AnnotationFault>) {
        let mut reader = Reader { traffic, options: TrafficOptions::default(), faults: Vec::new() };
        for (name, text) in annotations.iter() {
            if ANNOTATIONS.contains(&name) {
                reader.read(name, text);
            } else if PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
                reader.fault(name.to_owned(), "is no annotation of routes, ignored; correct its name, or remove it");
            }
        }
        reader.read_limits(annotations);
        reader.read_together(annotations);
        (reader.options, reader.faults)
    }
}

/// Reads annotations one by one.
struct Reader<'t> {
    traffic: &'t Traffic,
    options: TrafficOptions,
    faults: Vec<AnnotationFault>,
}

impl Reader<'_> {
    fn fault(&mut self, annotation: impl Into<Cow<'static, str>>, message: impl Into<String>) {
        self.faults.push(AnnotationFault { annotation: annotation.into(), message: message.into() });
    }

    /// A value, or a fault that says what to write.
    fn value<T>(&mut self, name: &'static str, text: &str, value: Option<T>, write: &str) -> Option<T> {
        if value.is_none() {
            self.fault(name, format!("Invalid value: {text:?}, ignored; write {write}"));
        }
        value
    }

    /// A value that is one of a few.
    fn choice<T>(&mut self, name: &'static str, text: &str, value: Option<T>, write: &str) -> Option<T> {
        if value.is_none() {
            self.fault(name, format!("Unsupported value: {text:?}, ignored; write {write}"));
        }
        value
    }

    fn timeout(&mut self, name: &'static str, text: &str) -> Option<Duration> {
        self.value(name, text, values::timeout(text), "a whole number and us, ms, s, m, h or d, such as 30s")
    }

    fn read(&mut self, name: &str, text: &str) {
        let is_passthrough = self.traffic.is_passthrough();
        match name {
            PROXY_PROTOCOL if !is_passthrough => self.fault(PROXY_PROTOCOL, ONLY_PASSTHROUGH),
            PROXY_PROTOCOL => {
                let is_v2 = self.choice(PROXY_PROTOCOL, text, (text == "v2").then_some(true), "v2, or remove it");
                self.options.proxy_protocol = is_v2.is_some();
            }
            TIMEOUT_TUNNEL => self.options.tunnel_timeout = self.timeout(TIMEOUT_TUNNEL, text),
            TIMEOUT => self.options.policy.server_timeout = self.timeout(TIMEOUT, text),
            BALANCE => {
                let write = "roundrobin, leastconn, source or random";
                self.options.policy.balance = self.choice(BALANCE, text, values::balance(text), write);
            }
            ENDPOINT_CONNECTIONS if text == "0" => {}
            ENDPOINT_CONNECTIONS => {
                let write = "a whole number, such as 100; 0 for no limit";
                self.options.policy.endpoint_connections =
                    self.value(ENDPOINT_CONNECTIONS, text, values::limit(text), write);
            }
            HEALTH_CHECK => self.options.policy.health_check = self.timeout(HEALTH_CHECK, text),
            RATE_HTTP if is_passthrough => self.fault(RATE_HTTP, NO_REQUESTS),
            POOL_SIZE => self.fault(POOL_SIZE, "has no effect: there are no pools of prepared backends; remove it"),
            SET_FORWARDED_HEADERS if is_passthrough => self.fault(SET_FORWARDED_HEADERS, NO_HEADERS),
            DISABLE_COOKIES | COOKIE_NAME | COOKIE_SAME_SITE | HSTS | REWRITE_TARGET | ADJUST_CASE
                if is_passthrough =>
            {
                self.fault(name.to_owned(), NO_REQUESTS);
            }
            SET_FORWARDED_HEADERS
            | DISABLE_COOKIES
            | COOKIE_NAME
            | COOKIE_SAME_SITE
            | HSTS
            | REWRITE_TARGET
            | ADJUST_CASE => self.read_http(name, text),
            // The limits need each other, and allow-lists are read where they are asked for.
            _ => {}
        }
    }

    /// Annotations of routes whose requests are read.
    fn read_http(&mut self, name: &str, text: &str) {
        const TRUTH: &str = "true or false";
        match name {
            SET_FORWARDED_HEADERS => {
                let write = "append, replace, if-none or never";
                self.options.forwarded = self.choice(SET_FORWARDED_HEADERS, text, values::forwarded(text), write);
            }
            DISABLE_COOKIES => {
                let disabled = self.choice(DISABLE_COOKIES, text, values::truth(text), TRUTH);
                self.options.policy.affinity.disabled = disabled.unwrap_or_default();
            }
            COOKIE_NAME => {
                let write = "a name of letters, digits, '-' and '_'";
                self.options.policy.affinity.cookie = self.value(COOKIE_NAME, text, values::cookie_name(text), write);
            }
            COOKIE_SAME_SITE if !self.is_tls_alone() => self.fault(COOKIE_SAME_SITE, NO_SAME_SITE),
            COOKIE_SAME_SITE => {
                let same_site = self.choice(COOKIE_SAME_SITE, text, values::same_site(text), "Lax, Strict or None");
                self.options.policy.affinity.same_site = same_site.unwrap_or_default();
            }
            HSTS if !self.traffic.has_tls() => {
                self.fault(HSTS, "has no meaning for a route without spec.tls, ignored; remove it, or use edge");
            }
            HSTS => {
                let write = "for example max-age=31536000;includeSubDomains;preload";
                self.options.policy.hsts = self.value(HSTS, text, values::hsts(text), write);
            }
            REWRITE_TARGET => match RewriteTarget::parse(text) {
                Ok(target) => self.options.policy.rewrite_target = Some(target),
                Err(fault) => self.fault(REWRITE_TARGET, format!("Invalid value: {text:?}, ignored: {fault}")),
            },
            _ => {
                let adjust = self.choice(ADJUST_CASE, text, values::truth(text), TRUTH);
                self.options.policy.adjust_case = adjust.unwrap_or_default();
            }
        }
    }

    /// Whether requests of the route come over TLS only, so that its cookie may be `Secure`.
    fn is_tls_alone(&self) -> bool {
        match self.traffic {
            Traffic::Http { tls: Some(tls), .. } => tls.insecure != InsecurePolicy::Allow,
            _ => false,
        }
    }

    /// The limits for each client address.
    fn read_limits(&mut self, annotations: &TextMap) {
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
                self.fault(name, format!("has no effect without {RATE_LIMIT}: \"true\"; write that too, or remove it"));
                continue;
            }
            let limit = self.value(name, text, values::limit(text), "a whole number of at least 1");
            let limits = &mut self.options.policy.source_limits;
            match name {
                CONCURRENT_TCP => limits.concurrent = limit,
                RATE_TCP => limits.connections = limit,
                _ => limits.requests = limit,
            }
        }
        if wanted && named == 0 {
            let message = "limits nothing by itself; write rate-limit-connections.concurrent-tcp, .rate-tcp or \
                           .rate-http too, or remove it";
            self.fault(RATE_LIMIT, message);
        }
    }

    /// What only several annotations, or the whole of one, can tell.
    fn read_together(&mut self, annotations: &TextMap) {
        if self.traffic.is_passthrough() {
            let silent = self.options.policy.server_timeout.take();
            self.options.tunnel_timeout = self.options.tunnel_timeout.or(silent);
        }
        if self.options.policy.affinity.disabled {
            for name in [COOKIE_NAME, COOKIE_SAME_SITE].into_iter().filter(|name| annotations.get(name).is_some()) {
                self.fault(name, format!("has no effect, because {DISABLE_COOKIES} is true; remove one of the two"));
            }
            // Else equal policies would differ.
            self.options.policy.affinity.cookie = None;
            self.options.policy.affinity.same_site = Default::default();
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
