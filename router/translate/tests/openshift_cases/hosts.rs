//! Hosts: age, wildcard domains, generation, updates, and effective hosts of a router.

use router_api::defaults::Defaults;
use router_api::object::Object;
use router_api::openshift::ingress_controller::{NamespaceOwnership, WildcardAdmission};
use router_api::parse::{ParseOutcome, parse};
use router_api::resources::Objects;
use router_api::update::parse_update;
use router_model::certificate::MaterialCache;
use router_model::names::HostMatch;
use router_model::object::Origin;
use router_translate::domain_lists::DomainLists;
use router_translate::openshift::claims::cross_api::OtherApiClaims;
use router_translate::openshift::claims::host::effective_host;
use router_translate::openshift::claims::{AdmissionPolicy, admit};
use serde_json::{Value, json};

use crate::differ;
use crate::world::{Verdict, World, good, id_of, manifest};

/// Two routes: true if the first is older.
pub fn ordering(case: &Value, _: &[Value]) -> Vec<String> {
    let objects = [&case["objects"][0], &case["objects"][1]].map(|flat| good(manifest(flat)));
    let [Object::Route(first), Object::Route(second)] = &objects else { panic!("no routes") };
    let is_older = Some(first.meta.age() < second.meta.age());
    differ("first is older", is_older, case["expect"]["first_sorts_before_second"].as_bool())
}

/// The domain of a wildcard route's host.
pub fn wildcard_domain(case: &Value, _: &[Value]) -> Vec<String> {
    let mut flat = case["objects"][0].clone();
    let expected = case["expect"]["domain"].as_str().unwrap();
    flat["wildcardPolicy"] = json!("Subdomain");
    let policy = AdmissionPolicy {
        domain: String::new(),
        ownership: NamespaceOwnership::Strict,
        wildcards: WildcardAdmission::WildcardsAllowed,
        domains: DomainLists::default(),
    };
    // A wildcard needs a host.
    let outcome = crate::world::read(manifest(&flat)).outcome;
    let ParseOutcome::Good(Object::Route(route)) = outcome else { return differ("domain", "", expected) };
    let decisions = admit(&policy, [&route], &Objects::default(), &OtherApiClaims::default()).decisions;
    let domain = match decisions[0].outcome.as_ref().map(|admitted| admitted.host().clone()) {
        Ok(HostMatch::Wildcard(domain)) => domain.to_string(),
        _ => String::new(),
    };
    differ("domain", domain.as_str(), expected)
}

/// Creation and update by the API server: the stored host, and whether it is accepted.
pub fn assignment(case: &Value, _: &[Value]) -> Vec<String> {
    let expect = &case["expect"];
    if let Some(object) = case["objects"].get(0) {
        return match object.get("dnsSuffix") {
            Some(suffix) => suffix_check(suffix, expect),
            None if object.get("host").is_some() => {
                let valid = matches!(crate::world::read(manifest(object)).outcome, ParseOutcome::Good(_));
                differ("valid", Some(valid), expect["valid"].as_bool())
            }
            None => generation(object, &case["policy"], expect),
        };
    }
    let new = &case["objects"]["new"];
    let defaults = Defaults { cluster_domain: "generated".to_owned() };
    let value = manifest(new);
    let mut cache = MaterialCache::new();
    let parsed = match case["objects"].get("old") {
        Some(old) => {
            // Upstream's old objects have no name: they are earlier versions of the new one.
            let mut old = old.clone();
            for member in ["namespace", "name", "wildcardPolicy"] {
                if let Some(value) = new.get(member) {
                    old[member] = value.clone();
                }
            }
            parse_update(value, &good(manifest(&old)), Origin::default(), &defaults, &mut cache)
        }
        None => parse(value, Origin::default(), &defaults, &mut cache),
    };
    let no_errors = expect["error_count"].as_u64().unwrap_or(0) == 0;
    match parsed.outcome {
        ParseOutcome::Good(Object::Route(route)) => {
            let host =
                if route.host_generated { case["policy"]["generated_host"].as_str().unwrap() } else { &route.host };
            let mut found = differ("taken", true, no_errors);
            found.extend(differ("host", host, expect["host"].as_str().unwrap()));
            found
        }
        // Upstream's table stops before validation, which rejects a wildcard without a host.
        ParseOutcome::Refused { errors, .. } => {
            let only_validation = new["host"] == "" && new["wildcardPolicy"] == "Subdomain" && errors.len() == 1;
            differ(format!("taken ({errors:?})"), only_validation, no_errors)
        }
        other => panic!("{other:?}"),
    }
}

fn suffix_check(suffix: &Value, expect: &Value) -> Vec<String> {
    let defaults = Defaults { cluster_domain: suffix.as_str().unwrap().to_owned() };
    let route = json!({ "namespace": "ns", "name": "name" });
    let parsed = parse(manifest(&route), Origin::default(), &defaults, &mut MaterialCache::new());
    let host = match parsed.outcome {
        ParseOutcome::Good(Object::Route(route)) => Some(route.host.to_string()),
        _ => None,
    };
    let expected = expect["effective_suffix"].as_str().map(|suffix| format!("name-ns.{suffix}"));
    differ("generated host", host, expected)
}

fn generation(object: &Value, policy: &Value, expect: &Value) -> Vec<String> {
    let defaults = Defaults { cluster_domain: policy["dnsSuffix"].as_str().unwrap().to_owned() };
    let parsed = parse(manifest(object), Origin::default(), &defaults, &mut MaterialCache::new());
    let ParseOutcome::Good(Object::Route(route)) = parsed.outcome else { return vec!["refused".to_owned()] };
    differ("host", &*route.host, expect["host"].as_str().unwrap())
}

/// A router's verdict on a host. A host that the API server rejects reaches a router only through a subdomain.
pub fn router_validation(case: &Value, _: &[Value]) -> Vec<String> {
    let host = case["objects"][0]["host"].as_str().unwrap();
    // Both parts must be valid by themselves.
    let middle = host[host.len() / 2..].find('.').map_or(0, |dot| host.len() / 2 + dot);
    let (first, rest) = (&host[..middle], host[middle..].trim_start_matches('.'));
    let world = |flat: Value, policy: Value| {
        let mut world = World::new(&policy);
        world.insert(manifest(&flat));
        world.verdict("ns/name")
    };
    let verdict = if host.len() > 253 {
        world(json!({ "subdomain": first }), json!({ "routerDomain": rest }))
    } else {
        world(json!({ "host": host }), json!({}))
    };
    match verdict {
        Verdict::Refused(reason, _) => {
            let mut found = differ("valid", Some(false), case["expect"]["valid"].as_bool());
            found.extend(differ("reason", reason.as_str(), case["expect"]["reason_if_invalid"].as_str().unwrap()));
            found
        }
        verdict => differ("valid", Some(verdict == Verdict::Admitted), case["expect"]["valid"].as_bool()),
    }
}

/// Effective host and status of a route on a router.
pub fn resolution(case: &Value, _: &[Value]) -> Vec<String> {
    let (policy, flat, expect) = (&case["policy"], &case["objects"][0], &case["expect"]);
    let mut world = World::new(policy);
    world.insert(manifest(flat));
    let id = id_of(flat);
    let verdict = world.verdict(&id);
    let Object::Route(route) = good(manifest(flat)) else { panic!("no route") };
    let host = effective_host(&route, policy["routerDomain"].as_str().unwrap_or_default());
    let text = |name: &str| expect[name].as_str().unwrap_or_default().to_owned();
    let mut found = differ("effective host", host.to_string(), text("effective_host"));
    found.extend(differ("admitted", Some(verdict == Verdict::Admitted), expect["admitted"].as_bool()));
    let reason = match verdict {
        Verdict::Refused(reason, _) => reason,
        _ => String::new(),
    };
    found.extend(differ("reason", reason, text("reason")));
    found.extend(differ("status host", world.status_host(&id).unwrap_or_default(), text("status_ingress_host")));
    found
}
