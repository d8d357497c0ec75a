//! The design "route-subdomain": its user stories and its test plan.

use super::Cluster;

const DEFAULT: &str = "
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.mycluster.com}
";
const INTERNAL: &str = "
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: internal, namespace: openshift-ingress-operator}
spec:
  domain: apps-internal.mycluster.com
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443}}
";
const SHARD1: &str = "
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: shard1, namespace: openshift-ingress-operator}
spec:
  domain: shard1.apps.mycluster.com
  routeSelector: {matchLabels: {shard: shard1}}
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443}}
";
const OTHERS: &str = "
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec:
  domain: apps.mycluster.com
  routeSelector: {matchExpressions: [{key: shard, operator: DoesNotExist}]}
";
const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata: {name: hello-openshift, namespace: hello-openshift}
";

/// The design's Route, with this name and these lines of `spec`.
fn route(name: &str, spec: &str) -> String {
    labelled(name, "{}", spec)
}

fn labelled(name: &str, labels: &str, spec: &str) -> String {
    format!(
        "
apiVersion: route.openshift.io/v1
kind: Route
metadata: {{name: {name}, namespace: hello-openshift, labels: {labels}}}
spec:
  to: {{kind: Service, name: hello-openshift}}
{spec}"
    )
}

fn on(router: &str, domain: &str, host: &str) -> [String; 4] {
    [router.to_owned(), format!("router-{router}.{domain}"), host.to_owned(), "admitted".to_owned()]
}

fn on_both(in_default: &str, in_internal: &str) -> Vec<[String; 4]> {
    vec![on("default", "apps.mycluster.com", in_default), on("internal", "apps-internal.mycluster.com", in_internal)]
}

#[test]
fn story_an_explicit_host_name() {
    let cluster = Cluster::of(&[DEFAULT, SERVICE, &route("hello-openshift", "  host: www.example.com")]);
    let expected = [on("default", "apps.mycluster.com", "www.example.com")];
    assert_eq!(cluster.ingress("hello-openshift", "hello-openshift"), expected);
}

#[test]
fn story_a_default_host_name_from_the_cluster_ingress_domain() {
    let cluster = Cluster::of(&[DEFAULT, SERVICE, &route("hello-openshift", "")]);
    let host = "hello-openshift-hello-openshift.apps.mycluster.com";
    assert_eq!(cluster.spec("hello-openshift", "hello-openshift")["host"], host);
    assert_eq!(cluster.ingress("hello-openshift", "hello-openshift"), [on("default", "apps.mycluster.com", host)]);
}

#[test]
fn story_a_subdomain_of_my_choosing_under_the_cluster_ingress_domain() {
    let cluster = Cluster::of(&[DEFAULT, SERVICE, &route("hello-openshift", "  subdomain: hello")]);
    assert_eq!(
        cluster.ingress("hello-openshift", "hello-openshift"),
        [on("default", "apps.mycluster.com", "hello.apps.mycluster.com")]
    );
}

#[test]
fn story_exposed_by_multiple_router_deployments_using_their_respective_domains() {
    let cluster = Cluster::of(&[DEFAULT, INTERNAL, SERVICE, &route("hello-openshift", "  subdomain: hello")]);
    assert!(cluster.spec("hello-openshift", "hello-openshift").get("host").is_none(), "host is left unset");
    assert_eq!(
        cluster.ingress("hello-openshift", "hello-openshift"),
        on_both("hello.apps.mycluster.com", "hello.apps-internal.mycluster.com")
    );
}

#[test]
fn story_a_default_host_name_from_the_shard_that_exposes_the_route() {
    let route = labelled("hello-openshift", "{shard: shard1}", "  subdomain: hello");
    let cluster = Cluster::of(&[OTHERS, SHARD1, SERVICE, &route]);
    assert_eq!(
        cluster.ingress("hello-openshift", "hello-openshift"),
        [on("shard1", "shard1.apps.mycluster.com", "hello.shard1.apps.mycluster.com")]
    );
}

/// Items 1 and 2 of the plan: two routers with distinct domains, and four Routes.
fn plan() -> Cluster {
    Cluster::of(&[
        DEFAULT,
        INTERNAL,
        SERVICE,
        &route("neither", ""),
        &route("subdomain", "  subdomain: hello"),
        &route("host", "  host: host.example.com"),
        &route("both", "  host: both.example.com\n  subdomain: ignored"),
    ])
}

#[test]
fn plan_1_deploy_two_router_deployments_with_distinct_domains() {
    let cluster = plan();
    for (name, domain) in [("default", "apps.mycluster.com"), ("internal", "apps-internal.mycluster.com")] {
        let status = cluster.controller(name);
        assert_eq!(status["domain"], domain);
        let conditions = status["conditions"].as_array().unwrap();
        let is_true = |kind: &str| conditions.iter().any(|c| c["type"] == kind && c["status"] == "True");
        assert!(is_true("Admitted") && is_true("Available"), "{status}");
    }
}

#[test]
fn plan_3_a_route_that_omits_host_and_subdomain_gets_a_default_host_from_the_api() {
    let cluster = plan();
    let host = "neither-hello-openshift.apps.mycluster.com";
    assert_eq!(cluster.spec("hello-openshift", "neither")["host"], host);
    assert_eq!(cluster.ingress("hello-openshift", "neither"), on_both(host, host));
}

#[test]
fn plan_3_a_route_that_specifies_host_is_exposed_using_it_with_or_without_subdomain() {
    let cluster = plan();
    for name in ["host", "both"] {
        let host = format!("{name}.example.com");
        assert_eq!(cluster.spec("hello-openshift", name)["host"], host);
        assert_eq!(cluster.ingress("hello-openshift", name), on_both(&host, &host));
    }
}

#[test]
fn plan_3_a_route_with_subdomain_alone_keeps_host_empty_and_takes_each_routers_domain() {
    let cluster = plan();
    assert!(cluster.spec("hello-openshift", "subdomain").get("host").is_none());
    assert_eq!(
        cluster.ingress("hello-openshift", "subdomain"),
        on_both("hello.apps.mycluster.com", "hello.apps-internal.mycluster.com")
    );
}

#[test]
fn a_route_that_was_defaulted_before_keeps_its_host() {
    // "A Route object that has already had spec.host defaulted … will continue to be served using the same host name."
    let stored = "  host: hello-openshift-hello-openshift.apps.mycluster.com\n  subdomain: hello";
    let cluster = Cluster::of(&[DEFAULT, SERVICE, &route("hello-openshift", stored)]);
    let host = "hello-openshift-hello-openshift.apps.mycluster.com";
    assert_eq!(cluster.ingress("hello-openshift", "hello-openshift"), [on("default", "apps.mycluster.com", host)]);
}
