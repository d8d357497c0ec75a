//! Statuses of IngressControllers: what is effective, and what is wrong.

use serde_json::{Value, json};

use super::*;
use crate::testing::{controller, resources};

/// The status of each controller as `type=status reason: message`, in order of name.
fn conditions(plan: &Plan) -> Vec<String> {
    let text = |condition: &Condition| {
        let Condition { kind, reason, message, .. } = condition;
        format!("{kind}={} {reason}: {message}", condition.status())
    };
    plan.statuses.values().flat_map(|status| status.conditions.iter().map(text)).collect()
}

fn planned(objects: impl IntoIterator<Item = Value>) -> Plan {
    plan(&resources(objects), &Settings::default())
}

fn aged(name: &str, created: u32, spec: Value) -> Value {
    let mut object = controller(name, spec);
    object["metadata"]["creationTimestamp"] = json!(format!("2024-01-01T00:00:{created:02}Z"));
    object
}

#[test]
fn what_is_effective_is_in_the_status() {
    let spec = json!({
        "namespaceSelector": { "matchLabels": { "team": "a" } },
        "routeSelector": { "matchExpressions": [{ "key": "shard", "operator": "Exists" }] },
        "routeAdmission": { "wildcardPolicy": "WildcardsAllowed" },
    });
    let plan = planned([controller("one", spec.clone())]);
    let status = plan.statuses.values().next().unwrap();
    assert_eq!(status.domain, "apps.localhost");
    assert_eq!(status.ports, Some((80, 443)));
    assert_eq!(status.route_admission, Some(("Strict", "WildcardsAllowed")));
    assert_eq!(status.namespace_selector.as_ref(), Some(&spec["namespaceSelector"]));
    assert_eq!(status.route_selector.as_ref(), Some(&spec["routeSelector"]));
    assert_eq!(conditions(&plan), ["Admitted=True Valid: ", "Available=True : ", "Degraded=False : "]);
}

#[test]
fn of_two_controllers_with_one_domain_the_older_one_has_it() {
    let plan =
        planned([aged("younger", 2, json!({ "domain": "a.test" })), aged("older", 1, json!({ "domain": "a.test" }))]);
    assert_eq!(plan.routers.iter().map(|router| &*router.name.0).collect::<Vec<_>>(), ["older"]);
    let expected = "Admitted=False Invalid: domain \"a.test\" is that of IngressController \"older\", which is older; \
                    a domain cannot be changed: delete this one and create it anew with another";
    assert_eq!(conditions(&plan)[3], expected);
    assert!(conditions(&plan)[4].starts_with("Available=False NotAdmitted: "));
}

#[test]
fn a_port_conflict_degrades_the_younger_one() {
    let ports = json!({ "hostNetwork": { "httpPort": 8080, "httpsPort": 443 } });
    let plan = planned([
        aged("older", 1, json!({ "domain": "a.test" })),
        aged("younger", 2, json!({ "domain": "b.test", "endpointPublishingStrategy": ports })),
    ]);
    let found = conditions(&plan);
    assert_eq!(found[3], "Admitted=True Valid: ");
    let problem = "port 443 is that of IngressController \"older\", which is older; set \
                   spec.endpointPublishingStrategy.hostNetwork.httpPort and httpsPort";
    assert_eq!(found[4], format!("Available=False PortConflict: {problem}"));
    assert_eq!(found[5], format!("Degraded=True PortConflict: {problem}"));
}

#[test]
fn fields_without_effect_degrade_a_router_that_serves() {
    let spec = json!({
        "clientTLS": { "clientCertificatePolicy": "Optional", "clientCA": { "name": "clients" } },
        "tuningOptions": { "clientTimeout": "45s", "tunnelTimeout": "2h" },
    });
    let plan = planned([controller("one", spec.clone())]);
    assert_eq!(plan.routers.len(), 1);
    let expected = "Degraded=True FieldsWithoutEffect: these fields have no effect yet: spec.clientTLS, \
                    spec.tuningOptions.clientTimeout";
    assert_eq!(conditions(&plan)[2], expected);

    // A certificate that is missing is the first thing to say.
    let mut both = spec;
    both["defaultCertificate"] = json!({ "name": "gone" });
    let found = conditions(&planned([controller("one", both)]));
    assert!(found[2].starts_with("Degraded=True DefaultCertificateUnusable: Secret \"gone\""), "{found:?}");
    let fields = "; these fields have no effect yet: spec.clientTLS, spec.tuningOptions.clientTimeout";
    assert!(found[2].ends_with(fields), "{found:?}");
}

#[test]
fn a_router_that_requires_client_certificates_serves_nobody() {
    let plan = planned([controller(
        "strict",
        json!({ "clientTLS": { "clientCertificatePolicy": "Required", "clientCA": { "name": "clients" } } }),
    )]);
    assert!(plan.routers.is_empty());
    let found = conditions(&plan);
    assert_eq!(found[0], "Admitted=True Valid: ");
    assert!(found[1].starts_with("Available=False ClientTLSNotSupported: spec.clientTLS: "), "{found:?}");
    assert!(found[2].starts_with("Degraded=True ClientTLSNotSupported: "), "{found:?}");
}
