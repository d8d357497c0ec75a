//! The design "route-admission-policy": its test plan and the defaults of its field.

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

/// Two namespaces with a Route each, for one host and these paths. The first one is older.
fn two_routes(paths: [&str; 2]) -> String {
    let one = |namespace: &str, second: usize, path: &str| {
        format!(
            "
apiVersion: v1
kind: Service
metadata: {{name: app, namespace: {namespace}}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {{name: {namespace}-route, namespace: {namespace}, creationTimestamp: \"2019-09-25T00:00:0{second}Z\"}}
spec: {{host: shared.apps.mycluster.com, path: {path}, to: {{kind: Service, name: app}}}}
"
        )
    };
    [one("team-a", 1, paths[0]), one("team-b", 2, paths[1])].join("---")
}

fn outcomes(spec: &str, paths: [&str; 2]) -> [String; 2] {
    let cluster = Cluster::of(&[&controller(spec), &two_routes(paths)]);
    [cluster.outcome("team-a", "team-a-route"), cluster.outcome("team-b", "team-b-route")]
}

const REFUSED: &str = "HostAlreadyClaimed: a route in another namespace holds shared.apps.mycluster.com and is older \
                       than team-b-route";

#[test]
fn plan_two_routes_in_two_namespaces_with_the_same_host_are_not_both_admitted_by_default_null_or_unset() {
    // Unset, null, an empty policy, and the explicit default.
    for spec in ["", "  routeAdmission: null", "  routeAdmission: {}", "  routeAdmission: {namespaceOwnership: Strict}"]
    {
        assert_eq!(outcomes(spec, ["/a", "/b"]), ["admitted", REFUSED], "{spec}");
    }
}

#[test]
fn plan_two_routes_in_two_namespaces_with_the_same_host_are_admitted_when_configured_to_allow_it() {
    let spec = "  routeAdmission: {namespaceOwnership: InterNamespaceAllowed}";
    assert_eq!(outcomes(spec, ["/a", "/b"]), ["admitted", "admitted"]);
}

#[test]
fn allowing_it_shares_paths_of_a_host_and_not_one_path() {
    // "InterNamespaceAllowed: allow routes to claim different paths of the same host name across namespaces."
    let spec = "  routeAdmission: {namespaceOwnership: InterNamespaceAllowed}";
    assert_eq!(outcomes(spec, ["/same", "/same"]), ["admitted", REFUSED]);
}

#[test]
fn the_policy_in_effect_is_in_the_status() {
    for (spec, effective) in
        [("", "Strict"), ("  routeAdmission: {namespaceOwnership: InterNamespaceAllowed}", "InterNamespaceAllowed")]
    {
        let cluster = Cluster::of(&[&controller(spec)]);
        assert_eq!(cluster.controller("default")["routeAdmission"]["namespaceOwnership"], effective);
    }
}

#[test]
fn rolling_back_to_strict_leaves_the_host_to_its_oldest_route() {
    // The design lets administrators move routes to one namespace by hand; until then the older namespace serves.
    let paths = ["/a", "/b"];
    assert_eq!(
        outcomes("  routeAdmission: {namespaceOwnership: InterNamespaceAllowed}", paths),
        ["admitted", "admitted"]
    );
    assert_eq!(outcomes("  routeAdmission: {namespaceOwnership: Strict}", paths), ["admitted", REFUSED]);
}
