//! Rejected Routes and their messages (docs/openshift.md#reasons).

use router_api::testing::{resources, route};
use router_model::object::ObjectKey;
use serde_json::{Value, json};

use super::*;

const STRICT: (NamespaceOwnership, WildcardAdmission) =
    (NamespaceOwnership::Strict, WildcardAdmission::WildcardsDisallowed);
const STRICT_WILD: (NamespaceOwnership, WildcardAdmission) =
    (NamespaceOwnership::Strict, WildcardAdmission::WildcardsAllowed);
const SHARED: (NamespaceOwnership, WildcardAdmission) =
    (NamespaceOwnership::InterNamespaceAllowed, WildcardAdmission::WildcardsDisallowed);
const SHARED_WILD: (NamespaceOwnership, WildcardAdmission) =
    (NamespaceOwnership::InterNamespaceAllowed, WildcardAdmission::WildcardsAllowed);

/// Decisions on Routes given oldest first: the message of each, or `admitted`.
fn verdicts((ownership, wildcards): (NamespaceOwnership, WildcardAdmission), routes: &[(&str, Value)]) -> Vec<String> {
    let policy = AdmissionPolicy { domain: "apps.test".to_owned(), ownership, wildcards, domains: Default::default() };
    let values = routes.iter().zip(1..).map(|((id, spec), age)| route(id, age, spec.clone()));
    let resources = resources(values);
    let mut sorted: Vec<_> = resources.routes.iter().collect();
    sorted.sort_by(|a, b| a.meta.age().cmp(&b.meta.age()));
    admit(&policy, sorted, &resources.secrets, &OtherApiClaims::default())
        .decisions
        .into_iter()
        .map(|decision| match decision.outcome {
            Ok(_) => "admitted".to_owned(),
            Err(Rejection { reason, message, .. }) => format!("{reason}: {message}"),
        })
        .collect()
}

fn h(path: &str) -> Value {
    json!({ "host": "h.test", "path": path })
}

fn wildcard(host: &str) -> Value {
    json!({ "host": host, "wildcardPolicy": "Subdomain" })
}

#[test]
fn in_one_namespace_a_path_has_one_owner() {
    let found =
        verdicts(STRICT, &[("a/one", h("/x")), ("a/two", h("/y")), ("a/three", h("/x")), ("a/four", h("/x/y"))]);
    let taken = "HostAlreadyClaimed: route one already exposes h.test and is older";
    assert_eq!(found, ["admitted", "admitted", taken, "admitted"]);
}

#[test]
fn under_strict_the_host_belongs_to_its_oldest_routes_namespace() {
    let found = verdicts(STRICT, &[("a/one", h("/x")), ("b/two", h("/y")), ("a/three", h("/z"))]);
    let foreign = "HostAlreadyClaimed: a route in another namespace holds h.test and is older than two";
    assert_eq!(found, ["admitted", foreign, "admitted"]);
}

#[test]
fn between_namespaces_only_the_path_counts_when_that_is_allowed() {
    let found = verdicts(SHARED, &[("a/one", h("/x")), ("b/two", h("/y")), ("b/three", h("/x"))]);
    let foreign = "HostAlreadyClaimed: a route in another namespace holds h.test and is older than three";
    assert_eq!(found, ["admitted", "admitted", foreign]);
}

#[test]
fn passthrough_shares_a_host_with_clear_text_only() {
    let pass = json!({ "host": "h.test", "tls": { "termination": "passthrough" } });
    let edge = json!({ "host": "h.test", "path": "/e", "tls": { "termination": "edge" } });
    let newest = "HostAlreadyClaimed: route plain already exposes h.test and is older";
    let found = verdicts(STRICT, &[("a/pass", pass.clone()), ("a/plain", h("/p")), ("a/edge", edge.clone())]);
    assert_eq!(found, ["admitted", "admitted", newest]);
    let found = verdicts(STRICT, &[("a/edge", edge), ("a/pass", pass)]);
    assert_eq!(found, ["admitted", "HostAlreadyClaimed: route edge already exposes h.test and is older"]);
}

#[test]
fn hosts_that_are_none_are_refused() {
    let long = format!("{}.{}", vec!["a".repeat(60); 4].join("."), "x");
    let found = verdicts(
        STRICT,
        &[
            ("a/one", wildcard("w.test")),
            ("a/two", json!({ "host": "10.0.0.1" })),
            ("a/three", json!({ "subdomain": long })),
        ],
    );
    assert_eq!(found[0], "RouteNotAdmitted: wildcard routes are not allowed");
    assert!(found[1].starts_with("InvalidHost: host name validation errors: \"10.0.0.1\" ends in a number"));
    assert!(found[2].starts_with("InvalidHost: host name validation errors: has 25"), "{}", found[2]);
    let policy = AdmissionPolicy {
        domain: String::new(),
        ownership: STRICT.0,
        wildcards: STRICT.1,
        domains: Default::default(),
    };
    let resources = resources([route("a/one", 1, json!({ "subdomain": "x" }))]);
    let decisions = admit(&policy, resources.routes.iter(), &resources.secrets, &OtherApiClaims::default()).decisions;
    let rejection = decisions[0].outcome.as_ref().unwrap_err();
    assert_eq!(rejection.reason, RejectReason::NoHostValue);
    assert_eq!(rejection.message, "no host value was defined for the route");
}

#[test]
fn a_subdomain_contends_like_any_host() {
    let found =
        verdicts(STRICT, &[("a/one", json!({ "subdomain": "foo" })), ("b/two", json!({ "host": "foo.apps.test" }))]);
    assert_eq!(found[1], "HostAlreadyClaimed: a route in another namespace holds foo.apps.test and is older than two");
}

#[test]
fn a_wildcard_owns_its_domain_against_other_namespaces_under_strict() {
    let found = verdicts(
        STRICT_WILD,
        &[
            ("a/wild", wildcard("w.d.test")),
            ("b/exact", json!({ "host": "www.d.test" })),
            ("a/exact", json!({ "host": "www.d.test" })),
            ("a/again", wildcard("v.d.test")),
            ("b/deep", json!({ "host": "x.y.d.test" })),
            ("b/apex", json!({ "host": "d.test" })),
        ],
    );
    let expected = [
        "admitted",
        "HostAlreadyClaimed: a route in another namespace holds host www.d.test",
        "admitted",
        "HostAlreadyClaimed: wildcard route a/wild has host *.d.test, blocking v.d.test",
        "admitted",
        "admitted",
    ];
    assert_eq!(found, expected);
}

#[test]
fn an_older_exact_host_keeps_other_namespaces_wildcards_away_under_strict() {
    let routes = [("b/exact", json!({ "host": "www.d.test" })), ("a/wild", wildcard("w.d.test"))];
    assert_eq!(
        verdicts(STRICT_WILD, &routes),
        ["admitted", "HostAlreadyClaimed: a route in another namespace holds host w.d.test"]
    );
    assert_eq!(verdicts(SHARED_WILD, &routes), ["admitted", "admitted"]);
}

#[test]
fn exact_and_wildcard_routes_of_one_literal_host_do_not_collide() {
    let found =
        verdicts(STRICT_WILD, &[("a/wild", wildcard("www.d.test")), ("a/exact", json!({ "host": "www.d.test" }))]);
    assert_eq!(found, ["admitted", "admitted"]);
    let found = verdicts(STRICT_WILD, &[("a/one", h("/x")), ("a/two", h("/x"))]);
    assert_eq!(found[1], "HostAlreadyClaimed: route a/one has host h.test");
}

#[test]
fn a_broken_certificate_holds_the_host_and_serves_nothing() {
    let broken = json!({ "host": "h.test", "tls": { "certificate": "x" } });
    let found = verdicts(STRICT, &[("a/broken", broken), ("b/thief", h(""))]);
    assert!(found[0].starts_with("ExtendedValidationFailed: spec.tls.certificate: Invalid value: (redacted): "));
    assert_eq!(found[1], "HostAlreadyClaimed: a route in another namespace holds h.test and is older than thief");
}

#[test]
fn an_external_certificate_must_be_a_tls_secret_of_the_namespace() {
    let external = json!({ "host": "h.test", "tls": { "externalCertificate": { "name": "s" } } });
    let missing = verdicts(STRICT, &[("a/r", external.clone())]);
    let expected = "ExternalCertificateGetFailed: spec.tls.externalCertificate.name: Not found: there is no Secret a/s";
    assert_eq!(missing, [expected]);

    let made = rcgen::generate_simple_self_signed(vec!["h.test".to_owned()]).unwrap();
    let secret = |kind: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": { "namespace": "a", "name": "s" },
            "stringData": { "tls.crt": made.cert.pem(), "tls.key": made.signing_key.serialize_pem() },
        })
    };
    let decide = |kind: &str| {
        let resources = resources([route("a/r", 1, external.clone()), secret(kind)]);
        let policy = AdmissionPolicy {
            domain: String::new(),
            ownership: STRICT.0,
            wildcards: STRICT.1,
            domains: Default::default(),
        };
        admit(&policy, resources.routes.iter(), &resources.secrets, &OtherApiClaims::default())
            .decisions
            .remove(0)
            .outcome
    };
    assert!(decide("kubernetes.io/tls").unwrap().certificate().is_some());
    let rejection = decide("Opaque").unwrap_err();
    assert_eq!(rejection.reason, RejectReason::ExternalCertificateValidationFailed);
    assert!(rejection.message.ends_with("Secret a/s has type Opaque, not kubernetes.io/tls"));
}

#[test]
fn age_is_time_then_uid_then_name_and_no_time_is_youngest() {
    let mut dated = route("a/dated", 1, h(""));
    dated["metadata"]["uid"] = json!("0");
    let mut undated = route("z/undated", 1, h(""));
    undated["metadata"].as_object_mut().unwrap().remove("creationTimestamp");
    let mut later_uid = route("a/a", 1, h(""));
    later_uid["metadata"]["uid"] = json!("1");
    let resources = resources([dated, undated, later_uid, route("b/b", 1, h(""))]);
    let mut sorted: Vec<_> = resources.routes.iter().collect();
    sorted.sort_by(|a, b| a.meta.age().cmp(&b.meta.age()));
    let names: Vec<_> = sorted.iter().map(|route| route.meta.key.to_string()).collect();
    assert_eq!(names, ["b/b", "a/dated", "a/a", "z/undated"]);
    assert!(resources.routes.get(&ObjectKey::new("a", "a")).is_some());
}
