//! Retries and health checks, from manifest to policy.

use std::time::Duration;

use router_api::testing::refusals;
use router_table::rule::{HealthCheck, HealthRequest, Retry, RulePolicy};

use super::*;

const BACKOFF: Duration = Duration::from_millis(25);

fn ingress(route: Value, service: Value) -> Value {
    let mut route = route;
    let mut service = service;
    (service["name"], service["port"]) = (json!("web"), json!(80));
    (route["match"], route["services"]) = (json!("/"), json!([service]));
    ingress_route("a/root", json!({ "virtualhost": { "fqdn": "www.example.com" }, "routes": [route] }))
}

fn http_proxy(mut route: Value) -> Value {
    route["services"] = json!([{ "name": "web", "port": 80 }, { "name": "two", "port": 80 }]);
    proxy("a/root", json!({ "virtualhost": { "fqdn": "www.example.com" }, "routes": [route] }))
}

/// The rule that serves the root's host.
fn rule(object: Value) -> Arc<Rule> {
    let mut objects = vec![object];
    objects.extend(backends(&["a/web", "a/two"]));
    let world = World::new(objects);
    let host_rules = world.host("www.example.com").and_then(|host| host.rules.as_ref()).expect("host rules");
    let rules = host_rules.cleartext.as_ref().expect("clear text");
    Arc::clone(rules.first().expect("a rule"))
}

fn policy(object: Value) -> RulePolicy {
    RulePolicy::clone(rule(object).route.rule.as_ref().expect("a policy"))
}

fn checks(object: Value) -> Vec<Option<HealthCheck>> {
    let rule = rule(object);
    let of = |policy: &router_table::rule::BackendPolicy| policy.health_check.as_deref().cloned();
    rule.route.cluster.services.iter().map(|service| service.policy.as_deref().and_then(of)).collect()
}

fn on_5xx(count: u32) -> Option<Retry> {
    Some(Retry { count, statuses: vec![500..=599], unanswered: true, unreachable: true, backoff: BACKOFF })
}

#[test]
fn an_ingress_route_retries_on_5xx() {
    let retry_of = |retry: Value| {
        let policy = policy(ingress(json!({ "retryPolicy": retry }), json!({})));
        (policy.retry, policy.backend_timeout)
    };
    assert_eq!(policy(ingress(json!({}), json!({}))).retry, None);
    assert_eq!(
        retry_of(json!({ "count": 3, "perTryTimeout": "1500ms" })),
        (on_5xx(3), Some(Duration::from_millis(1500)))
    );
    assert_eq!(retry_of(json!({ "perTryTimeout": "infinity" })), (on_5xx(1), None));
    assert_eq!(retry_of(json!({ "count": 0 })), (on_5xx(1), None));
}

#[test]
fn an_http_proxy_defines_when_to_retry() {
    let retry_of = |retry: Value| policy(http_proxy(json!({ "retryPolicy": retry }))).retry;
    let retry = |statuses, unanswered, unreachable| {
        Some(Retry { count: 2, statuses, unanswered, unreachable, backoff: BACKOFF })
    };
    assert_eq!(retry_of(json!({ "count": 2 })), on_5xx(2));
    assert_eq!(retry_of(json!({ "count": -1 })), None);
    assert_eq!(retry_of(json!({ "count": 2, "retryOn": ["gateway-error"] })), retry(vec![502..=504], true, true));
    assert_eq!(retry_of(json!({ "count": 2, "retryOn": ["reset", "refused-stream"] })), retry(vec![], true, true));
    assert_eq!(retry_of(json!({ "count": 2, "retryOn": ["connect-failure"] })), retry(vec![], false, true));
    assert_eq!(
        retry_of(
            json!({ "count": 2, "retryOn": ["retriable-4xx", "retriable-status-codes"], "retriableStatusCodes": [418, 503] })
        ),
        retry(vec![409..=409, 418..=418, 503..=503], false, false)
    );
}

#[test]
fn health_checks_are_those_of_the_service_or_of_its_route() {
    let check = |host: &str, times: [u64; 2], counts: [u32; 2], expected: &[(u16, u16)]| {
        Some(HealthCheck {
            request: Some(HealthRequest { host: host.into(), path: "/ok".into(), expected: expected.to_vec() }),
            interval: Duration::from_secs(times[0]),
            timeout: Duration::from_secs(times[1]),
            unhealthy: counts[0],
            healthy: counts[1],
        })
    };
    let by_default = check("contour-envoy-healthcheck", [10, 2], [3, 2], &[(200, 200)]);
    let service = json!({ "healthCheck": { "path": "/ok", "host": "" } });
    assert_eq!(checks(ingress(json!({}), service)), std::slice::from_ref(&by_default));
    let service = json!({ "healthCheck": {
        "path": "/ok", "host": "clinic.test:8080", "intervalSeconds": 5, "timeoutSeconds": 3,
        "unhealthyThresholdCount": 4, "healthyThresholdCount": 6,
    } });
    assert_eq!(checks(ingress(json!({}), service)), [check("clinic.test:8080", [5, 3], [4, 6], &[(200, 200)])]);
    assert_eq!(checks(http_proxy(json!({ "healthCheckPolicy": { "path": "/ok" } }))), [by_default.clone(), by_default]);
    let expected =
        json!({ "path": "/ok", "expectedStatuses": [{ "start": 200, "end": 300 }, { "start": 404, "end": 405 }] });
    let both = check("contour-envoy-healthcheck", [10, 2], [3, 2], &[(200, 299), (404, 404)]);
    assert_eq!(checks(http_proxy(json!({ "healthCheckPolicy": expected }))), [both.clone(), both]);
}

#[test]
fn a_tcpproxy_that_is_checked_is_relayed() {
    for (policy, relayed) in [(json!({ "intervalSeconds": 1 }), true), (json!(null), false)] {
        let mut tcp = json!({ "services": [{ "name": "web", "port": 80 }] });
        if !policy.is_null() {
            tcp["healthCheckPolicy"] = policy;
        }
        let host = json!({ "fqdn": "www.example.com", "tls": { "passthrough": true } });
        let mut objects = vec![proxy("a/root", json!({ "virtualhost": host, "tcpproxy": tcp }))];
        objects.extend(backends(&["a/web"]));
        let world = World::new(objects);
        let route = world.host("www.example.com").and_then(|host| host.passthrough.as_ref()).expect("a route");
        assert_eq!(route.relay_only, relayed);
        let own = route.cluster.services[0].policy.as_ref().and_then(|own| own.health_check.as_deref());
        assert_eq!(own.map(|check| (check.request.is_some(), check.interval.as_secs())), relayed.then_some((false, 1)));
    }
}

#[test]
fn a_tcpproxy_with_a_service_whose_connections_are_counted_is_relayed() {
    for (strategy, relayed) in [("WeightedLeastRequest", true), ("Random", false)] {
        let service = |name: &str, strategy: &str| json!({ "name": name, "port": 80, "strategy": strategy });
        let host = json!({ "fqdn": "www.example.com", "tls": { "passthrough": true } });
        let tcp = json!({ "services": [service("web", strategy), service("two", "RoundRobin")] });
        let mut objects = vec![ingress_route("a/root", json!({ "virtualhost": host, "tcpproxy": tcp }))];
        objects.extend(backends(&["a/web", "a/two"]));
        let world = World::new(objects);
        let route = world.host("www.example.com").and_then(|host| host.passthrough.as_ref()).expect("a route");
        assert_eq!(route.relay_only, relayed, "{strategy}");
    }
}

#[test]
fn invalid_values_are_reported() {
    let spec = "spec.routes[0]";
    let retry = |retry: Value| http_proxy(json!({ "retryPolicy": retry }));
    let check = |check: Value| http_proxy(json!({ "healthCheckPolicy": check }));
    for (object, expected) in [
        (retry(json!({ "count": -2 })), format!("{spec}.retryPolicy.count: ")),
        (retry(json!({ "count": 101 })), format!("{spec}.retryPolicy.count: ")),
        (
            retry(json!({ "retriableStatusCodes": [99] })),
            format!("{spec}.retryPolicy.retriableStatusCodes[0]: Invalid value: 99; write a status from 100 to 599"),
        ),
        (
            check(json!({ "host": "a" })),
            format!("{spec}.healthCheckPolicy.path: Required value: write the path to ask for, such as /healthz"),
        ),
        (
            check(json!({ "path": "ok" })),
            format!(
                "{spec}.healthCheckPolicy.path: Invalid value: \"ok\"; write a path that begins with /, in printable ASCII"
            ),
        ),
        (
            check(json!({ "path": "/a b" })),
            format!(
                "{spec}.healthCheckPolicy.path: Invalid value: \"/a b\"; write a path that begins with /, in printable ASCII"
            ),
        ),
        (
            check(json!({ "path": "/", "host": "a\r\nX: y" })),
            format!(
                "{spec}.healthCheckPolicy.host: Invalid value: \"a\\r\\nX: y\"; write a host name, such as www.example.com"
            ),
        ),
        (check(json!({ "path": "/", "intervalSeconds": -1 })), format!("{spec}.healthCheckPolicy.intervalSeconds: ")),
        (
            check(json!({ "path": "/", "expectedStatuses": [{ "start": 300, "end": 300 }] })),
            format!(
                "{spec}.healthCheckPolicy.expectedStatuses[0]: Invalid value: the range is empty; write an end above its start"
            ),
        ),
    ] {
        let errors = refusals(object);
        assert!(matches!(errors.as_slice(), [one] if one.starts_with(&expected)), "{errors:?} is not {expected:?}");
    }
    let mut objects = vec![retry(json!({ "retryOn": ["5xx", "cancelled"] }))];
    objects.extend(backends(&["a/web", "a/two"]));
    let world = World::new(objects);
    let advice =
        "write 5xx, gateway-error, reset, connect-failure, retriable-4xx, refused-stream or retriable-status-codes";
    assert_eq!(
        world.errors("a/root"),
        [format!("SpecError/UnsupportedField: {spec}.retryPolicy.retryOn[1]: cancelled is not supported; {advice}")]
    );
}
