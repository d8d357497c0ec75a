//! The host of a route from `spec.host`, `spec.subdomain` and the router's domain (docs/openshift.md#subdomain).

use router_api::testing::{resources, route};
use router_model::object::ObjectKey;
use serde_json::json;

use super::*;

#[test]
fn the_host_comes_first_and_a_subdomain_needs_a_domain() {
    for (host, subdomain, domain, expected) in [
        ("h.test", "", "apps.test", "h.test"),
        ("h.test", "sub", "apps.test", "h.test"),
        ("h.test", "sub", "", "h.test"),
        ("h.test", "", "", "h.test"),
        ("", "sub", "apps.test", "sub.apps.test"),
        ("", "sub", "", ""),
        ("", "a.b", "apps.test", "a.b.apps.test"),
    ] {
        let objects = resources([route("a/r", 1, json!({"host": host, "subdomain": subdomain}))]);
        let route = objects.routes.get(&ObjectKey::new("a", "r")).unwrap();
        assert_eq!(&*effective_host(route, domain), expected, "{host:?} {subdomain:?} {domain:?}");
    }
    // Without both there is no host, whatever the domain.
    let mut bare = (**resources([route("a/r", 1, json!({"host": "h.test"}))]).routes.iter().next().unwrap()).clone();
    bare.host = "".into();
    assert_eq!(&*effective_host(&bare, "apps.test"), "");
}
