//! Certificates with other names, without names, and outside of their validity, for every kind of object that presents
//! one.

use rcgen::{CertificateParams, KeyPair};
use router_api::testing::{controller, resources, route};
use serde_json::{Value, json};

use super::*;
use crate::settings::Settings;
use crate::translate::translate;

/// A certificate with these names and its key, valid for these years.
fn pair(names: &[&str], from: i32, to: i32) -> (String, String) {
    let mut params = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
    params.not_before = rcgen::date_time_ymd(from, 1, 1);
    params.not_after = rcgen::date_time_ymd(to, 1, 1);
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

fn secret(id: &str, (certificate, key): &(String, String)) -> Value {
    let (namespace, name) = id.split_once('/').unwrap();
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace, "name": name},
        "type": "kubernetes.io/tls", "stringData": {"tls.crt": certificate, "tls.key": key}})
}

fn findings(objects: Vec<Value>) -> Vec<String> {
    let resources = resources(objects);
    let table = translate(&resources, &Settings::default()).table;
    let now = "2026-06-01T00:00:00Z".parse().unwrap();
    let texts = warnings(&table, &resources, now);
    texts.iter().map(|warning| format!("{}: {}: {}", warning.object, warning.path, warning.message)).collect()
}

const ADVICE: &str = "so clients refuse it; use one with that name (subjectAltName), or another host";

#[test]
fn certificates_of_routes_are_checked_for_names_and_validity() {
    let edge = |host: &str, policy: &str, (certificate, key): &(String, String)| {
        let tls = json!({"termination": "edge", "certificate": certificate, "key": key});
        route("a/b", 1, json!({"host": host, "wildcardPolicy": policy, "tls": tls}))
    };
    let valid = pair(&["h.test", "*.w.test"], 2026, 2027);
    for (host, policy) in [("h.test", "None"), ("a.w.test", "None")] {
        assert_eq!(findings(vec![edge(host, policy, &valid)]), Vec::<String>::new(), "{host}");
    }
    let about = |what: &str| vec![format!("Route a/b: spec.tls.certificate: the certificate {what}")];
    let expected = about(&format!("is made out for h.test, *.w.test and not for w.test, {ADVICE}"));
    assert_eq!(findings(vec![edge("w.test", "None", &valid)]), expected);
    let old = edge("h.test", "None", &pair(&["h.test"], 2024, 2025));
    assert_eq!(findings(vec![old]), about("expired at 2025-01-01T00:00:00Z, so clients refuse it; renew it"));
    let early = edge("h.test", "None", &pair(&["h.test"], 2027, 2028));
    let message = "is valid from 2027-01-01T00:00:00Z, so clients refuse it until then; use one that is valid now, or set \
                   this machine's clock";
    assert_eq!(findings(vec![early]), about(message));
    let nameless = edge("h.test", "None", &pair(&[], 2026, 2027));
    let message = "has no subjectAltName, so clients refuse it whatever its common name says; have it issued with the names \
                   of its hosts";
    assert_eq!(findings(vec![nameless]), about(message));
}

#[test]
fn a_wildcard_route_needs_a_certificate_for_the_wildcard() {
    let (certificate, key) = pair(&["www.w.test"], 2026, 2027);
    let tls = json!({"termination": "edge", "certificate": certificate, "key": key});
    let wildcards = controller("default", json!({"routeAdmission": {"wildcardPolicy": "WildcardsAllowed"}}));
    let one = route("a/b", 1, json!({"host": "www.w.test", "wildcardPolicy": "Subdomain", "tls": tls}));
    let expected = format!(
        "Route a/b: spec.tls.certificate: the certificate is made out for www.w.test and not for *.w.test, {ADVICE}"
    );
    assert_eq!(findings(vec![wildcards, one]), [expected]);
}

#[test]
fn a_default_certificate_is_checked_for_the_domain_and_for_routes_without_one() {
    let spec = json!({"domain": "apps.test", "defaultCertificate": {"name": "all"}});
    let plain = |host: &str| route("a/b", 1, json!({"host": host, "tls": {"termination": "edge"}}));
    let with = |pair, host: &str| {
        findings(vec![controller("default", spec.clone()), secret("openshift-ingress/all", &pair), plain(host)])
    };
    assert_eq!(with(pair(&["*.apps.test"], 2026, 2027), "x.apps.test"), Vec::<String>::new());
    let other = format!(
        "Route a/b: spec.tls: the default certificate of router default is made out for *.apps.test and not for x.test, \
         {ADVICE}"
    );
    assert_eq!(with(pair(&["*.apps.test"], 2026, 2027), "x.test"), [other]);
    let expired = "IngressController openshift-ingress-operator/default: spec.defaultCertificate: the certificate expired at \
                   2025-01-01T00:00:00Z, so clients refuse it; renew it";
    assert_eq!(with(pair(&["*.apps.test"], 2024, 2025), "x.apps.test"), [expired]);
}

#[test]
fn listeners_of_gateways_need_a_certificate_for_each_host() {
    let objects = |certificates: Value| {
        let class = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
            "metadata": {"name": "sluice"}, "spec": {"controllerName": "sluice.dev/gateway-controller"}});
        let listeners = json!([
            {"name": "web", "port": 80, "protocol": "HTTP"},
            {"name": "secure", "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": certificates}},
        ]);
        let gateway = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
            "metadata": {"namespace": "a", "name": "g"}, "spec": {"gatewayClassName": "sluice", "listeners": listeners}});
        let route = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
            "metadata": {"namespace": "a", "name": "r"},
            "spec": {"parentRefs": [{"name": "g"}], "hostnames": ["h.test"], "rules": [{}]}});
        let one = secret("a/one", &pair(&["other.test"], 2026, 2027));
        let two = secret("a/two", &pair(&["h.test"], 2026, 2027));
        vec![class, gateway, route, one, two]
    };
    let expected = format!(
        "Gateway a/g: spec.listeners[1].tls.certificateRefs: the certificate is made out for other.test and not for h.test, \
         {ADVICE}"
    );
    assert_eq!(findings(objects(json!([{"name": "one"}]))), [expected]);
    assert_eq!(findings(objects(json!([{"name": "one"}, {"name": "two"}]))), Vec::<String>::new());
}

#[test]
fn secrets_of_contour_roots_are_checked_for_their_hosts_and_delegates() {
    let root = |fqdn: &str| {
        json!({"apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": {"namespace": "a", "name": "p"},
            "spec": {"virtualhost": {"fqdn": fqdn, "tls": {"secretName": "tls"}},
                "routes": [{"directResponsePolicy": {"statusCode": 200}}]}})
    };
    let expected = format!(
        "HTTPProxy a/p: spec.virtualhost.tls.secretName: the certificate is made out for other.test and not for h.test, \
         {ADVICE}"
    );
    let other = || secret("a/tls", &pair(&["other.test"], 2026, 2027));
    assert_eq!(findings(vec![other(), root("h.test")]), [expected]);
    let domain = json!({"apiVersion": "contour.heptio.com/v1beta1", "kind": "IngressRoute",
        "metadata": {"namespace": "a", "name": "domain"},
        "spec": {"virtualhost": {"fqdn": ".d.test", "tls": {"secretName": "tls"}},
            "subdomains": [{"subdomain": "x.d.test", "delegate": {"name": "leaf", "namespace": "b"}}]}});
    let leaf = json!({"apiVersion": "contour.heptio.com/v1beta1", "kind": "IngressRoute",
        "metadata": {"namespace": "b", "name": "leaf"},
        "spec": {"routes": [{"match": "/", "services": [{"name": "s", "port": 80}]}]}});
    let expected = format!(
        "IngressRoute a/domain: spec.virtualhost.tls.secretName: the certificate is made out for other.test and not for \
         x.d.test, {ADVICE}"
    );
    assert_eq!(findings(vec![other(), domain, leaf]), [expected]);
}
