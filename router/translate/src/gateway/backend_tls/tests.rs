//! TLS settings of Services, and statuses, for sets of BackendTLSPolicies.

use router_api::testing::{authority, config_map, resources, service};
use router_model::names::Hostname;
use router_table::rule::PeerName;
use serde_json::{Value, json};

use super::*;

/// A policy of namespace `shop`, `age` minutes into 2024.
fn policy(name: &str, age: u32, section: Option<&str>, validation: Value) -> Value {
    let mut target = json!({ "group": "", "kind": "Service", "name": "web" });
    if let Some(section) = section {
        target["sectionName"] = json!(section);
    }
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "BackendTLSPolicy",
        "metadata": {
            "namespace": "shop", "name": name, "generation": 3,
            "creationTimestamp": format!("2024-01-01T00:{age:02}:00Z"),
        },
        "spec": { "targetRefs": [target], "validation": validation },
    })
}

fn trusts(name: &str, config_map: &str) -> Value {
    json!({ "hostname": name, "caCertificateRefs": [{ "group": "", "kind": "ConfigMap", "name": config_map }] })
}

fn resources_with(policies: impl IntoIterator<Item = Value>) -> Resources {
    let ports = json!([{ "name": "tls", "port": 443 }, { "name": "alt", "port": 8443 }]);
    let mut objects = vec![
        service("shop/web", ports),
        config_map("shop/ca", json!({ "ca.crt": authority("shop") })),
        config_map("shop/other", json!({ "ca.crt": authority("other") })),
        config_map("shop/empty", json!({ "ca-bundle.pem": authority("shop") })),
        config_map("shop/broken", json!({ "ca.crt": "no certificate" })),
        config_map("else/foreign", json!({ "ca.crt": authority("else") })),
    ];
    objects.extend(policies);
    resources(objects)
}

fn name_at(resources: &Resources, policies: &BackendTlsPolicies, port: u16) -> Option<String> {
    let tls = policies.tls_for(resources, &ObjectKey::new("shop", "web"), port)?.unwrap();
    Some(tls.server_name().as_ref().to_owned())
}

/// `Accepted` and `ResolvedRefs` of a policy for the Gateway that reaches its Service.
fn conditions_of(resources: &Resources, name: &str) -> Vec<String> {
    let reached = |service: &ObjectKey| {
        let is_web = *service == ObjectKey::new("shop", "web");
        is_web.then(|| ObjectKey::new("infra", "public")).into_iter().collect()
    };
    let statuses = BackendTlsPolicies::new(resources).statuses(resources, &|_| true, &reached);
    let object = ObjectRef { kind: Kind::BackendTlsPolicy, key: ObjectKey::new("shop", name) };
    let ancestors = statuses[&object].status()["ancestors"].as_array().unwrap().clone();
    assert_eq!(ancestors.len(), 1);
    let text = |condition: &Value| {
        assert_eq!(condition["observedGeneration"], 3);
        let member = |name: &str| condition[name].as_str().unwrap().to_owned();
        format!("{}={} {}: {}", member("type"), member("status"), member("reason"), member("message"))
    };
    ancestors[0]["conditions"].as_array().unwrap().iter().map(text).collect()
}

const VALID: [&str; 2] = ["Accepted=True Accepted: ", "ResolvedRefs=True ResolvedRefs: "];

#[test]
fn a_port_policy_precedes_a_service_policy_and_an_older_one_a_younger() {
    let resources = resources_with([
        policy("all", 5, None, trusts("all.test", "ca")),
        policy("port", 9, Some("tls"), trusts("port.test", "ca")),
        policy("late", 10, Some("tls"), trusts("late.test", "ca")),
        policy("a-late", 5, Some("none"), trusts("none.test", "ca")),
    ]);
    let policies = BackendTlsPolicies::new(&resources);
    assert_eq!(name_at(&resources, &policies, 443).as_deref(), Some("port.test"));
    assert_eq!(name_at(&resources, &policies, 8443).as_deref(), Some("all.test"));
    assert!(policies.tls_for(&resources, &ObjectKey::new("shop", "other"), 443).is_none());
    assert!(policies.tls_for(&resources, &ObjectKey::new("else", "web"), 443).is_none());
    assert_eq!(conditions_of(&resources, "all"), VALID);
    assert_eq!(conditions_of(&resources, "port"), VALID);
    let lost = "Accepted=False Conflicted: spec.targetRefs: Service web#tls has the older policy port";
    assert_eq!(conditions_of(&resources, "late")[0], lost);
    let missing =
        "Accepted=False TargetNotFound: spec.targetRefs: no port of that name: web#none; write a port's name, or none";
    assert_eq!(conditions_of(&resources, "a-late")[0], missing);
}

/// One condition covers all targets, so the message lists those for which the policy is in force.
#[test]
fn a_conflicted_policy_lists_the_targets_where_it_is_in_force() {
    let mut late = policy("late", 9, Some("tls"), trusts("late.test", "ca"));
    let more = [json!({ "group": "", "kind": "Service", "name": "web", "sectionName": "alt" })];
    late["spec"]["targetRefs"].as_array_mut().unwrap().extend(more);
    let resources = resources_with([policy("early", 1, Some("tls"), trusts("early.test", "ca")), late]);
    let policies = BackendTlsPolicies::new(&resources);
    assert_eq!(name_at(&resources, &policies, 443).as_deref(), Some("early.test"));
    assert_eq!(name_at(&resources, &policies, 8443).as_deref(), Some("late.test"));
    let expected = "Accepted=False Conflicted: spec.targetRefs: Service web#tls has the older policy early; in force for \
                    Service web#alt";
    assert_eq!(conditions_of(&resources, "late")[0], expected);
}

#[test]
fn policies_of_equal_age_are_ordered_by_name() {
    let resources =
        resources_with([policy("b", 1, None, trusts("b.test", "ca")), policy("a", 1, None, trusts("a.test", "ca"))]);
    assert_eq!(name_at(&resources, &BackendTlsPolicies::new(&resources), 443).as_deref(), Some("a.test"));
}

#[test]
fn an_unusable_reference_makes_requests_fail_and_is_reported() {
    let reference = |kind: &str, name: &str| json!({ "group": "", "kind": kind, "name": name });
    let refs = "spec.validation.caCertificateRefs";
    let table = [
        (
            reference("ConfigMap", "nothing"),
            "InvalidCACertificateRef",
            "there is no ConfigMap nothing; create it, or write another",
        ),
        (
            reference("ConfigMap", "foreign"),
            "InvalidCACertificateRef",
            "there is no ConfigMap foreign; create it, or write another",
        ),
        (
            reference("ConfigMap", "empty"),
            "InvalidCACertificateRef",
            "ConfigMap empty has no key ca.crt; write the CA there",
        ),
        (
            reference("ConfigMap", "broken"),
            "InvalidCACertificateRef",
            "ConfigMap broken: ca.crt holds no certificate; paste the PEM text of the CA",
        ),
        (reference("Secret", "ca"), "InvalidKind", "Secret is not read; write a reference to a ConfigMap"),
    ];
    for (reference, reason, message) in table {
        let validation = json!({ "hostname": "h.test", "caCertificateRefs": [reference] });
        let resources = resources_with([policy("it", 1, None, validation)]);
        let used = BackendTlsPolicies::new(&resources).tls_for(&resources, &ObjectKey::new("shop", "web"), 443);
        assert!(used.unwrap().is_err());
        let expected = [
            format!(
                "Accepted=False NoValidCACertificate: {refs}: none of them can be used, so requests are answered 5xx"
            ),
            format!("ResolvedRefs=False {reason}: {refs}[0]: {message}"),
        ];
        assert_eq!(conditions_of(&resources, "it"), expected);
    }
}

#[test]
fn a_valid_reference_is_used_despite_an_invalid_one() {
    let reference = |name: &str| json!({ "group": "", "kind": "ConfigMap", "name": name });
    let validation = json!({
        "hostname": "h.test",
        "caCertificateRefs": [reference("ca"), reference("nothing"), reference("other")],
    });
    let resources = resources_with([policy("it", 1, None, validation)]);
    let tls =
        BackendTlsPolicies::new(&resources).tls_for(&resources, &ObjectKey::new("shop", "web"), 443).unwrap().unwrap();
    assert_eq!(tls.roots().unwrap().len(), 2);
    let conditions = conditions_of(&resources, "it");
    assert_eq!(conditions[0], VALID[0]);
    assert!(conditions[1].starts_with("ResolvedRefs=False InvalidCACertificateRef: "), "{conditions:?}");
}

#[test]
fn system_roots_and_subject_alt_names_are_translated() {
    let validation = json!({
        "hostname": "h.test",
        "wellKnownCACertificates": "System",
        "subjectAltNames": [
            { "type": "Hostname", "hostname": "*.san.test" },
            { "type": "URI", "uri": "spiffe://san.test/a" },
        ],
    });
    let resources = resources_with([policy("it", 1, None, validation)]);
    let tls =
        BackendTlsPolicies::new(&resources).tls_for(&resources, &ObjectKey::new("shop", "web"), 443).unwrap().unwrap();
    assert!(tls.roots().is_none());
    let domain = Hostname::parse("san.test").unwrap();
    assert_eq!(**tls.names(), [PeerName::Below(domain), PeerName::Uri("spiffe://san.test/a".into())]);
    assert_eq!(conditions_of(&resources, "it"), VALID);
}

#[test]
fn the_hostname_is_verified_without_subject_alt_names() {
    let resources = resources_with([policy("it", 1, None, trusts("h.test", "ca"))]);
    let tls =
        BackendTlsPolicies::new(&resources).tls_for(&resources, &ObjectKey::new("shop", "web"), 443).unwrap().unwrap();
    assert_eq!(**tls.names(), [PeerName::Host(tls.server_name().clone())]);
}

#[test]
fn an_unsupported_option_makes_the_policy_invalid() {
    let mut other = policy("it", 1, None, trusts("h.test", "ca"));
    other["spec"]["options"] = json!({ "example.com/ciphers": "best" });
    let resources = resources_with([other]);
    let expected = "Accepted=False Invalid: spec.options[example.com/ciphers]: no TLS option is known; remove it";
    assert_eq!(conditions_of(&resources, "it")[0], expected);
    assert!(
        BackendTlsPolicies::new(&resources).tls_for(&resources, &ObjectKey::new("shop", "web"), 443).unwrap().is_err()
    );
}
