//! Precedence of claims on a host, and the changes between two versions of claims.

use router_api::testing::good;
use router_model::kind::Kind;
use router_model::names::Hostname;
use router_model::object::ObjectKey;
use serde_json::json;

use super::*;

/// A claim of an HTTPRoute that was created in this second of 2024.
fn claim(name: &str, second: u32) -> OtherApiClaim {
    let object = good(json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {"namespace": "a", "name": name, "creationTimestamp": format!("2024-01-01T00:00:{second:02}Z")},
        "spec": {},
    }));
    let owner = ObjectRef { kind: Kind::HttpRoute, key: ObjectKey::new("a", name) };
    OtherApiClaim { owner, age: OwnedAge::of(object.meta()) }
}

fn exact(name: &str) -> HostMatch {
    HostMatch::Exact(Hostname::parse(name).unwrap())
}

fn claims(all: &[(&str, &OtherApiClaim)]) -> OtherApiClaims {
    let mut claims = OtherApiClaims::default();
    all.iter().for_each(|(host, claim)| claims.add(exact(host), (*claim).clone()));
    claims
}

#[test]
fn the_older_claim_counts_in_whatever_order_they_come() {
    let (older, younger) = (claim("older", 1), claim("younger", 2));
    for order in [[&older, &younger], [&younger, &older]] {
        let claims = claims(&order.map(|claim| ("h.test", claim)));
        assert_eq!(claims.on(&exact("h.test")), Some((exact("h.test"), &older)));
        assert_eq!(claims.iter().collect::<Vec<_>>(), [(&exact("h.test"), &older)]);
    }
    assert_eq!(claims(&[("h.test", &older)]).on(&exact("other.test")), None);
}

#[test]
fn of_equally_old_claims_the_first_counts() {
    let first = claim("one", 1);
    let second = OtherApiClaim { owner: claim("two", 1).owner, age: first.age.clone() };
    assert_eq!(claims(&[("h.test", &first), ("h.test", &second)]).on(&exact("h.test")).unwrap().1, &first);
    assert_eq!(claims(&[("h.test", &second), ("h.test", &first)]).on(&exact("h.test")).unwrap().1, &second);
}

#[test]
fn wildcards_of_one_label_and_of_many_are_one_claim() {
    let domain = || Hostname::parse("d.test").unwrap();
    let mut claims = OtherApiClaims::default();
    claims.add(contested(&HostMatch::Wildcard(domain())), claim("one", 1));
    for host in [HostMatch::Wildcard(domain()), HostMatch::Suffix(domain())] {
        assert_eq!(claims.on(&host).unwrap().0, HostMatch::Suffix(domain()));
    }
    assert_eq!(claims.on(&HostMatch::Exact(domain())), None);
}

#[test]
fn added_removed_and_reassigned_claims_have_changed() {
    let (one, two) = (claim("one", 1), claim("two", 2));
    let before = claims(&[("gone.test", &one), ("other.test", &one), ("same.test", &one)]);
    let after = claims(&[("new.test", &one), ("other.test", &two), ("same.test", &one)]);
    let mut changed: Vec<String> = after.changed_since(&before).map(ToString::to_string).collect();
    changed.sort();
    assert_eq!(changed, ["gone.test", "new.test", "other.test"]);
    assert_eq!(after.changed_since(&after).count(), 0);
}
