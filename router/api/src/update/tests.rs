//! Pairs of versions that the API server accepts or rejects.

use serde_json::{Value, json};

use super::*;
use crate::immutable::check_update;
use crate::parse::ParseOutcome;
use crate::testing::{controller, good, route};

/// The new version as an update of the old one: the object, or its errors.
fn updated(old: Value, new: Value) -> Result<Object, Vec<String>> {
    let parsed = parse_update(new, &good(old), Origin::default(), &Defaults::default(), &mut MaterialCache::new());
    match parsed.outcome {
        ParseOutcome::Good(object) => Ok(object),
        ParseOutcome::Refused { errors, .. } => Err(errors.iter().map(ToString::to_string).collect()),
        other => panic!("{other:?}"),
    }
}

fn host_of(object: &Object) -> &str {
    match object {
        Object::Route(route) => &route.host,
        other => panic!("no route: {other:?}"),
    }
}

#[test]
fn a_host_cannot_be_cleared_and_says_so() {
    let old = good(route("a/b", 1, json!({ "host": "h.test" })));
    let new = route("a/b", 1, json!({ "host": "", "subdomain": "s" }));
    let parsed = parse_update(new, &old, Origin::default(), &Defaults::default(), &mut MaterialCache::new());
    let warnings: Vec<String> = parsed.warnings.iter().map(ToString::to_string).collect();
    assert!(warnings.iter().any(|text| text.starts_with("spec.host: is cleared")), "{warnings:?}");
    let ParseOutcome::Good(object) = parsed.outcome else { panic!() };
    assert_eq!(host_of(&object), "h.test");
}

#[test]
fn a_route_by_subdomain_stays_without_host() {
    let new = updated(route("a/b", 1, json!({ "subdomain": "s" })), route("a/b", 1, json!({ "subdomain": "t" })));
    assert_eq!(host_of(&new.unwrap()), "");
}

#[test]
fn a_generated_host_survives_another_cluster_domain() {
    let old = good(route("a/b", 1, json!({})));
    let moved = Defaults { cluster_domain: "other.test".to_owned() };
    let parsed = parse_update(route("a/b", 1, json!({})), &old, Origin::default(), &moved, &mut MaterialCache::new());
    assert!(parsed.warnings.is_empty(), "{:?}", parsed.warnings);
    let ParseOutcome::Good(object) = parsed.outcome else { panic!() };
    assert_eq!(host_of(&object), "b-a.apps.localhost");
    // A second update: the host still counts as generated.
    let again = parse_update(route("a/b", 1, json!({})), &object, Origin::default(), &moved, &mut MaterialCache::new());
    assert!(again.warnings.is_empty(), "{:?}", again.warnings);
    let ParseOutcome::Good(Object::Route(route)) = again.outcome else { panic!() };
    assert_eq!(route.manifest.value()["metadata"]["annotations"]["openshift.io/host.generated"], "true");
}

#[test]
fn wildcard_policy_is_immutable() {
    let of = |policy: &str| route("a/b", 1, json!({ "host": "h.test", "wildcardPolicy": policy }));
    let expected = "spec.wildcardPolicy: Invalid value: \"Subdomain\": field is immutable; write None again, or delete \
                    the route and create it anew";
    assert_eq!(updated(of("None"), of("Subdomain")).unwrap_err(), [expected]);
    updated(of("Subdomain"), of("Subdomain")).unwrap();
    // An omitted policy is None.
    updated(of("None"), route("a/b", 1, json!({ "host": "h.test" }))).unwrap();
}

#[test]
fn labels_are_checked_where_a_host_becomes_bad() {
    let long = format!("{}.test", "a".repeat(64));
    let mut stored = route("a/b", 1, json!({ "host": long }));
    stored["metadata"]["annotations"] = json!({ "route.openshift.io/allow-non-dns-compliant-host": "true" });
    // The annotation may be removed, and the host may change to another invalid one: it was invalid before.
    updated(stored.clone(), route("a/b", 1, json!({ "host": long }))).unwrap();
    updated(stored, route("a/b", 1, json!({ "host": format!("b.{long}") }))).unwrap();
    let fine = route("a/b", 1, json!({ "host": "h.test" }));
    assert_eq!(updated(fine, route("a/b", 1, json!({ "host": long }))).unwrap_err().len(), 1);
}

#[test]
fn the_domain_of_a_controller_is_immutable() {
    let of = |domain: &str| controller("c", json!({ "domain": domain }));
    let errors = updated(of("a.test"), of("b.test")).unwrap_err();
    assert!(errors[0].starts_with("spec.domain: Invalid value: \"b.test\": field is immutable"), "{errors:?}");
    updated(of("a.test"), of("a.test")).unwrap();
    // The effective domain may be written out if it is the same; an omitted one stays.
    let domain_of = |object: Object| match object {
        Object::IngressController(controller) => controller.domain.clone(),
        other => panic!("no controller: {other:?}"),
    };
    for cleared in [json!({}), json!(null), json!({ "domain": "" })] {
        let new = updated(of("a.test"), controller("c", cleared)).unwrap();
        assert_eq!(domain_of(new).as_deref(), Some("a.test"));
    }
    updated(controller("c", json!({})), of("apps.localhost")).unwrap();
    assert_eq!(updated(controller("c", json!({})), of("b.test")).unwrap_err().len(), 1);
}

/// True if the new version must be parsed again as an update of the old one.
fn is_reread(old: Value, new: Value) -> bool {
    reread_good(&good(new), &good(old), &Defaults::default()).is_some()
}

#[test]
fn only_what_an_update_would_change_is_read_again() {
    let of = |spec: Value| route("a/b", 1, spec);
    let host = || of(json!({ "host": "h.test" }));
    assert!(is_reread(host(), of(json!({ "host": "h.test", "wildcardPolicy": "Subdomain" }))));
    assert!(is_reread(host(), of(json!({}))));
    assert!(is_reread(host(), of(json!({ "subdomain": "s" }))));
    assert!(is_reread(of(json!({})), of(json!({ "subdomain": "s" }))), "a generated host stays too");
    assert!(!is_reread(host(), of(json!({ "host": "i.test" }))));
    assert!(!is_reread(of(json!({})), of(json!({}))));
    assert!(!is_reread(of(json!({ "subdomain": "s" })), of(json!({ "subdomain": "t" }))));
    let of = |spec: Value| controller("c", spec);
    assert!(is_reread(of(json!({ "domain": "a.test" })), of(json!({ "domain": "b.test" }))));
    assert!(is_reread(of(json!({ "domain": "a.test" })), of(json!({}))));
    assert!(!is_reread(of(json!({})), of(json!({}))));
}

#[test]
fn another_uid_is_another_object() {
    let of = |uid: Value, policy: &str| {
        let mut object = route("a/b", 1, json!({ "host": "h.test", "wildcardPolicy": policy }));
        object["metadata"]["uid"] = uid;
        object
    };
    for (before, after, is_same) in
        [("1", json!("2"), false), ("1", json!("1"), true), ("1", json!(null), true), ("", json!("2"), true)]
    {
        let (old, new) = (of(json!(before), "None"), of(after, "Subdomain"));
        assert_eq!(is_reread(old.clone(), new.clone()), is_same, "{new}");
        assert_eq!(reread_refused(&Manifest::new(&new), &good(old)).is_some(), is_same, "{new}");
    }
}

#[test]
fn what_is_read_again_is_what_was_written() {
    let mut new = route("a/b", 1, json!({ "subdomain": null }));
    new["metadata"]["annotations"] = json!({ "note": "kept" });
    let old = good(route("a/b", 1, json!({ "host": "h.test" })));
    let value = reread_good(&good(new), &old, &Defaults::default()).unwrap();
    assert_eq!((value["spec"].get("host"), &value["metadata"]["annotations"]), (None, &json!({ "note": "kept" })));
    let parsed = parse_update(value, &old, Origin::default(), &Defaults::default(), &mut MaterialCache::new());
    let ParseOutcome::Good(Object::Route(route)) = parsed.outcome else { panic!() };
    assert_eq!((&*route.host, route.host_generated, parsed.warnings.len()), ("h.test", false, 1));
}

#[test]
fn other_objects_are_no_versions() {
    let one = good(route("a/b", 1, json!({ "host": "h.test" })));
    let other = good(route("a/c", 1, json!({ "host": "h.test", "wildcardPolicy": "Subdomain" })));
    assert!(check_update(&one, &other, &Defaults::default()).errors.is_empty());
}
