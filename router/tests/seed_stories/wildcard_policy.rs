//! The design "wildcard-admission-policy": its two test cases and its migration.

use super::Cluster;

/// The default IngressController with these lines of `spec`.
fn controller(spec: &str) -> String {
    format!(
        "
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {{name: default, namespace: openshift-ingress-operator}}
spec:
  domain: apps.mycluster.com
{spec}"
    )
}

const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata: {name: app, namespace: shop}
";
const ALLOWED: &str = "  routeAdmission: {wildcardPolicy: WildcardsAllowed}";
const DISALLOWED: &str = "  routeAdmission: {wildcardPolicy: WildcardsDisallowed}";
const REFUSED: &str = "RouteNotAdmitted: wildcard routes are not allowed";

/// A Route with these further members of `spec`.
fn route(name: &str, host: &str, spec: &str) -> String {
    format!(
        "
apiVersion: route.openshift.io/v1
kind: Route
metadata: {{name: {name}, namespace: shop}}
spec: {{host: {host}, to: {{kind: Service, name: app}}{spec}}}
"
    )
}

fn subdomain() -> String {
    route("wild", "www.wild.example.com", ", wildcardPolicy: Subdomain")
}

#[test]
fn case_1_a_nil_wildcard_policy_defaults_to_wildcards_disallowed() {
    for spec in ["", "  routeAdmission: {}", "  routeAdmission: {wildcardPolicy: \"\"}"] {
        let cluster = Cluster::of(&[&controller(spec)]);
        assert_eq!(cluster.controller("default")["routeAdmission"]["wildcardPolicy"], "WildcardsDisallowed");
    }
}

#[test]
fn case_1_a_route_without_a_wildcard_policy_is_admitted() {
    let cluster = Cluster::of(&[&controller(""), SERVICE, &route("plain", "www.example.com", "")]);
    assert_eq!(cluster.spec("shop", "plain")["wildcardPolicy"], "None", "the default behavior of a route");
    assert_eq!(cluster.outcome("shop", "plain"), "admitted");
}

#[test]
fn case_1_a_route_with_wildcard_policy_subdomain_is_not_admitted() {
    let cluster = Cluster::of(&[&controller(""), SERVICE, &subdomain()]);
    assert_eq!(cluster.outcome("shop", "wild"), REFUSED);
}

#[test]
fn case_2_with_wildcards_allowed_routes_of_either_wildcard_policy_are_admitted() {
    let plain = route("plain", "www.example.com", ", wildcardPolicy: None");
    let cluster = Cluster::of(&[&controller(ALLOWED), SERVICE, &plain, &subdomain()]);
    assert_eq!([cluster.outcome("shop", "plain"), cluster.outcome("shop", "wild")], ["admitted", "admitted"]);
}

#[test]
fn migration_the_status_tells_that_a_wildcard_route_stopped_working() {
    assert_eq!(Cluster::of(&[&controller(ALLOWED), SERVICE, &subdomain()]).outcome("shop", "wild"), "admitted");
    // Here Sluice deliberately differs (docs/openshift.md#recomputed). The design leaves Admitted at True although
    // "this route no longer works even though the status indicates otherwise"; Sluice's statuses report what is served.
    assert_eq!(Cluster::of(&[&controller(DISALLOWED), SERVICE, &subdomain()]).outcome("shop", "wild"), REFUSED);
    // "Delete the route … and recreate it with wildcardPolicy: None."
    let recreated = route("wild", "www.wild.example.com", ", wildcardPolicy: None");
    assert_eq!(Cluster::of(&[&controller(DISALLOWED), SERVICE, &recreated]).outcome("shop", "wild"), "admitted");
}
