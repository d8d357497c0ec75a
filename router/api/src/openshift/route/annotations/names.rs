//! Names of the annotations of Routes (docs/openshift.md#annotations-of-routes).

use crate::openshift::route::annotations::allowlist::{ALLOWLIST, WHITELIST};

/// `v2`: connections to the endpoints of a passthrough route begin with a PROXY protocol header.
pub const PROXY_PROTOCOL: &str = "router.sluice.dev/proxy-protocol";
/// Response timeout of endpoints; idle timeout of a passthrough route without [`TIMEOUT_TUNNEL`].
pub const TIMEOUT: &str = "haproxy.router.openshift.io/timeout";
/// Idle timeout of passthrough and upgraded connections.
pub const TIMEOUT_TUNNEL: &str = "haproxy.router.openshift.io/timeout-tunnel";
/// Policy for `X-Forwarded-*` and `Forwarded` of requests.
pub const SET_FORWARDED_HEADERS: &str = "haproxy.router.openshift.io/set-forwarded-headers";
/// Load balancing algorithm.
pub const BALANCE: &str = "haproxy.router.openshift.io/balance";
/// True: no session affinity by cookie.
pub const DISABLE_COOKIES: &str = "haproxy.router.openshift.io/disable_cookies";
/// Name of the affinity cookie.
pub const COOKIE_NAME: &str = "router.openshift.io/cookie_name";
/// `SameSite` of the affinity cookie.
pub const COOKIE_SAME_SITE: &str = "router.openshift.io/cookie-same-site";
/// Value of `Strict-Transport-Security`.
pub const HSTS: &str = "haproxy.router.openshift.io/hsts_header";
/// Path that replaces the route's path in requests.
pub const REWRITE_TARGET: &str = "haproxy.router.openshift.io/rewrite-target";
/// True: header names in the case of the router's `headerNameCaseAdjustments`.
pub const ADJUST_CASE: &str = "haproxy.router.openshift.io/h1-adjust-case";
/// Maximum number of connections per endpoint.
pub const ENDPOINT_CONNECTIONS: &str = "haproxy.router.openshift.io/pod-concurrent-connections";
/// True: enables the three limits below, per client address.
pub const RATE_LIMIT: &str = "haproxy.router.openshift.io/rate-limit-connections";
/// Maximum number of concurrent connections.
pub const CONCURRENT_TCP: &str = "haproxy.router.openshift.io/rate-limit-connections.concurrent-tcp";
/// Maximum number of new connections in 3 s.
pub const RATE_TCP: &str = "haproxy.router.openshift.io/rate-limit-connections.rate-tcp";
/// Maximum number of requests in 10 s.
pub const RATE_HTTP: &str = "haproxy.router.openshift.io/rate-limit-connections.rate-http";
/// Interval of health checks.
pub const HEALTH_CHECK: &str = "router.openshift.io/haproxy.health.check.interval";
/// Pool of prepared backends of OpenShift's dynamic configuration manager; has no effect.
pub const POOL_SIZE: &str = "router.openshift.io/pool-size";

/// Every annotation of a Route that configures its traffic.
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

/// Prefixes that belong to routers: an unknown name below one of them is a mistake.
pub const PREFIXES: [&str; 3] = ["haproxy.router.openshift.io/", "router.openshift.io/", "router.sluice.dev/"];
