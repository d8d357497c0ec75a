//! Precedence of claims on a host, and the changes between two versions of claims.

use router_api::testing::good;
use router_model::kind::Kind;
use router_model::names::Hostname;
use serde_json::json;

use super::*;
use crate::owned_age::OwnedAge;

/// A claim of an HTTPRoute that was created in this second of 2024.
fn claim(name: &str, second: u32) -> HostClaim {
    let object = good(json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {"namespace": "a", "name": name, "creationTimestamp": format!("2024-01-01T00:00:{second:02}Z")},
        "spec": {},
    }));
    HostClaim { kind: Kind::HttpRoute, age: OwnedAge::of(object.meta()) }
}

fn exact(name: &str) -> HostMatch {
    HostMatch::Exact(Hostname::parse(name).unwrap())
}

fn claims(all: &[(&str, &Arc<HostClaim>)]) -> OtherApiClaims {
    let mut claims = OtherApiClaims::default();
    claims.update(all.iter().map(|(host, claim)| (exact(host), Some(Arc::clone(claim)))));
    claims
}

#[test]
fn wildcards_of_one_label_and_of_many_are_one_claim() {
    let domain = || Hostname::parse("d.test").unwrap();
    let mut claims = OtherApiClaims::default();
    claims.update([(contested(&HostMatch::Wildcard(domain())), Some(Arc::new(claim("one", 1))))]);
    for host in [HostMatch::Wildcard(domain()), HostMatch::Suffix(domain())] {
        assert_eq!(claims.on(&host).unwrap().0, HostMatch::Suffix(domain()));
    }
    assert_eq!(claims.on(&HostMatch::Exact(domain())), None);
}

#[test]
fn set_and_removed_claims_have_changed() {
    let (one, two) = (Arc::new(claim("one", 1)), Arc::new(claim("two", 2)));
    let before = claims(&[("gone.test", &one), ("other.test", &one), ("same.test", &one)]);
    let mut after = before.clone();
    let set = |host, claim: &Arc<HostClaim>| (exact(host), Some(Arc::clone(claim)));
    after.update([set("new.test", &one), set("other.test", &two), (exact("gone.test"), None)]);
    let changed: Vec<String> = after.changed_since(&before).map(ToString::to_string).collect();
    assert_eq!(changed, ["gone.test", "new.test", "other.test"]);
    assert_eq!(after.changed_since(&after).count(), 0);
    assert_eq!(after.on(&exact("other.test")), Some((exact("other.test"), &*two)));
    assert!(after.on(&exact("gone.test")).is_none() && !after.is_empty());
}
