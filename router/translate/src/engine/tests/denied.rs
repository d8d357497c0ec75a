//! Denied and allowed domains below wildcards.

use router_api::testing::{controller, resources, route};
use router_model::names::Hostname;
use router_table::lookup::{RequestMatch, SniMatch};
use serde_json::json;

use super::super::*;
use crate::domain_lists::DomainLists;

/// Settings with these denied and allowed domains.
pub fn lists(denied: &[&str], allowed: &[&str]) -> Settings {
    let texts = |domains: &[&str]| domains.iter().map(|domain| (*domain).to_owned()).collect();
    Settings { domains: DomainLists { denied: texts(denied), allowed: texts(allowed) }, ..Settings::default() }
}

fn controllers() -> serde_json::Value {
    controller("default", json!({ "routeAdmission": { "wildcardPolicy": "WildcardsAllowed" } }))
}

fn name(text: &str) -> Hostname {
    Hostname::parse(text).unwrap()
}

fn answer_for(table: &RoutingTable, host: &str) -> String {
    match table.routers[0].match_cleartext_request(&name(host), "/") {
        RequestMatch::Forward(route) => route.id.name.to_string(),
        RequestMatch::Rule(rule) => rule.route.id.name.to_string(),
        RequestMatch::Closed => "404".to_owned(),
        RequestMatch::NoRoute => "503".to_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_wildcard_route_does_not_serve_a_denied_name() {
    let wild = route("a/wild", 1, json!({ "host": "x.d.test", "wildcardPolicy": "Subdomain" }));
    let resources = resources([controllers(), wild]);
    let (table, report) = Engine::new(lists(&["www.d.test"], &[])).apply(&resources);
    for (host, answer) in [("x.d.test", "wild"), ("www.d.test", "404"), ("y.www.d.test", "404"), ("other.test", "503")]
    {
        assert_eq!(answer_for(&table, host), answer, "{host}");
    }
    let entries = report.routes[&ObjectKey::new("a", "wild")].to_vec();
    assert_eq!(entries[0].conditions[0].status(), "True");
}

#[test]
fn a_passthrough_wildcard_does_not_cover_a_denied_name() {
    let tls = json!({ "termination": "passthrough", "insecureEdgeTerminationPolicy": "Redirect" });
    let wild = route("a/wild", 1, json!({ "host": "x.d.test", "wildcardPolicy": "Subdomain", "tls": tls }));
    let (table, _) = Engine::new(lists(&["www.d.test"], &[])).apply(&resources([controllers(), wild]));
    let router = &table.routers[0];
    assert!(matches!(router.match_sni(Some(&name("x.d.test"))), SniMatch::Passthrough(_)));
    assert!(matches!(router.match_sni(Some(&name("www.d.test"))), SniMatch::Default));
    assert!(matches!(router.match_tls_request(&name("www.d.test"), "/"), RequestMatch::Closed));
    assert_eq!(answer_for(&table, "www.d.test"), "404");
    // A host with rules has its own entry in the kernel's maps, so that no wildcard covers it.
    assert!(router.hosts.exact.get("www.d.test").is_some_and(|host| host.rules.is_some()));
}

#[test]
fn a_wildcard_route_needs_its_whole_domain_to_be_allowed() {
    let wild = route("a/wild", 1, json!({ "host": "www.d.test", "wildcardPolicy": "Subdomain" }));
    let resources = resources([controllers(), wild]);
    let entry = |allowed: &[&str]| {
        let (table, report) = Engine::new(lists(&[], allowed)).apply(&resources);
        let entries = report.routes[&ObjectKey::new("a", "wild")].to_vec();
        let admitted = &entries[0].conditions[0];
        (answer_for(&table, "www.d.test"), format!("{} {}", admitted.reason, admitted.message))
    };
    let rejected = "RouteNotAdmitted host not in the allowed list of domains";
    assert_eq!(entry(&["www.d.test"]), ("503".to_owned(), rejected.to_owned()));
    assert_eq!(entry(&["d.test"]), ("wild".to_owned(), " ".to_owned()));
}

#[test]
fn a_wildcard_of_an_http_proxy_does_not_serve_a_denied_name() {
    let proxy = json!({
        "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": { "namespace": "a", "name": "wild" },
        "spec": { "virtualhost": { "fqdn": "*.d.test" },
            "routes": [{ "conditions": [{ "prefix": "/" }], "services": [{ "name": "web", "port": 80 }] }] },
    });
    let (table, _) = Engine::new(lists(&["www.d.test"], &[])).apply(&resources([controllers(), proxy]));
    for (host, answer) in [("x.d.test", "wild"), ("www.d.test", "404")] {
        assert_eq!(answer_for(&table, host), answer, "{host}");
    }
}

#[test]
fn a_denied_name_stays_closed_as_objects_change() {
    let wild = || route("a/wild", 1, json!({ "host": "x.d.test", "wildcardPolicy": "Subdomain" }));
    let mut engine = Engine::new(lists(&["www.d.test"], &[]));
    for objects in [vec![], vec![wild()], vec![controllers()], vec![controllers(), wild()], vec![wild()]] {
        let (table, _) = engine.apply(&resources(objects.clone()));
        assert_eq!(answer_for(&table, "www.d.test"), "404", "{objects:?}");
        assert_eq!(answer_for(&table, "other.test"), "503", "{objects:?}");
    }
}
