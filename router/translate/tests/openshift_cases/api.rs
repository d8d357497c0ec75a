//! Checks of the API server: defaults, validation, header actions.

use router_api::defaults::Defaults;
use router_api::object::Object;
use router_api::parse::ParseOutcome;
use router_api::update::parse_update;
use router_model::certificate::MaterialCache;
use router_model::field::FieldError;
use router_model::object::Origin;
use router_table::policy::header_value::{HeaderValue, MessageDirection};
use serde_json::{Value, json};

use crate::certificates::Materials;
use crate::differ;
use crate::world::{Verdict, World, good, manifest, read};

/// Defaults in the object as stored. Upstream's table writes `nonempty` for any non-empty text.
pub fn defaulting(case: &Value, _: &[Value]) -> Vec<String> {
    let (object, expect) = (&case["objects"][0], &case["expect"]);
    if let Some(target) = object.get("targetRef") {
        let replaced = |value: &Value| {
            let mut value = value.clone();
            if value["kind"] == "nonempty" {
                value["kind"] = json!("Service");
            }
            value["name"] = json!("web");
            value
        };
        let stored = stored(manifest(&json!({ "to": replaced(target) })));
        return differ("to", stored["spec"]["to"].clone(), replaced(&expect["targetRef"]));
    }
    if let Some(tls) = object.get("tls") {
        let stored = stored(manifest(&json!({ "tls": tls })));
        let termination = stored["spec"]["tls"]["termination"].as_str().unwrap().to_owned();
        let wanted = expect["tls"]["termination"].as_str().unwrap();
        let wanted = wanted.strip_prefix("v1.TLSTermination").map_or(wanted.to_owned(), str::to_lowercase);
        return differ("termination", termination, wanted);
    }
    // Entries of other writers in status.ingress do not change.
    let ingress = json!([{ "routerName": "other", "wildcardPolicy": object["status.ingress"]["wildcardPolicy"] }]);
    let previous = json!({ "ingress": ingress });
    let now = "2024-01-01T00:00:00Z".parse().unwrap();
    let found = crate::status::merged(&previous, "router", Vec::new(), now)["ingress"][0]["wildcardPolicy"].clone();
    differ("wildcardPolicy", found, expect["status.ingress"]["wildcardPolicy"].clone())
}

fn stored(value: Value) -> Value {
    match good(value) {
        Object::Route(route) => route.manifest.value(),
        other => panic!("no route: {other:?}"),
    }
}

/// Whether a route, or an update of one, is accepted; errors, warnings and the stored object where the case gives them.
pub fn validation(case: &Value, _: &[Value]) -> Vec<String> {
    let expect = &case["expect"];
    if let Some(secret) = case["objects"].get(1).and_then(|object| object.get("secret")) {
        return with_secret(&case["objects"][0], secret, expect);
    }
    let parsed = match case["objects"].get("old") {
        Some(old) => {
            let mut stored = manifest(old);
            // The old object may have been stored when its host was still allowed.
            stored["metadata"]["annotations"] = json!({ "route.openshift.io/allow-non-dns-compliant-host": "true" });
            let new = manifest(&case["objects"]["new"]);
            parse_update(new, &good(stored), Origin::default(), &Defaults::default(), &mut MaterialCache::new())
        }
        None => read(manifest(&case["objects"][0])),
    };
    if let Some(count) = expect["warning_count"].as_u64() {
        return differ("warnings", parsed.warnings.len() as u64, count);
    }
    let is_good = matches!(parsed.outcome, ParseOutcome::Good(_));
    let valid = expect.get("valid").or_else(|| expect.get("accepted")).and_then(Value::as_bool);
    let mut found = differ(format!("valid ({:?})", parsed.outcome), Some(is_good), valid);
    match &parsed.outcome {
        ParseOutcome::Good(Object::Route(route)) => {
            if let Some(result) = expect.get("result") {
                let stored = route.manifest.value();
                for (member, value) in result.as_object().unwrap() {
                    found.extend(differ(member, stored["spec"][member].clone(), value.clone()));
                }
            }
        }
        ParseOutcome::Refused { errors, .. } => {
            for wanted in expect["errors"].as_array().into_iter().flatten() {
                let (field, kind) = (wanted["field"].as_str().unwrap(), wanted["kind"].as_str().unwrap());
                let matches = |error: &FieldError| error.path.to_string() == field && error.message.starts_with(kind);
                found.extend(differ(format!("{field}: {kind} in {errors:?}"), errors.iter().any(matches), true));
            }
        }
        _ => {}
    }
    found
}

/// A route that names a Secret: the Secret is checked in admission, not when the route is parsed.
fn with_secret(flat: &Value, secret: &Value, expect: &Value) -> Vec<String> {
    let materials = Materials::get();
    let data = json!({ "tls.crt": materials.text("testCertificate"), "tls.key": materials.text("testPrivateKey") });
    let mut world = World::new(&json!({}));
    world.insert(json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "namespace": secret["namespace"], "name": secret["name"] },
        "type": secret["type"],
        "stringData": data,
    }));
    world.insert(manifest(flat));
    let admitted = world.verdict(&crate::world::id_of(flat)) == Verdict::Admitted;
    differ("valid", Some(admitted), expect["valid"].as_bool())
}

/// True if a header may have this value.
pub fn header_value(case: &Value, _: &[Value]) -> Vec<String> {
    let object = &case["objects"][0];
    let direction =
        if object["direction"] == "request" { MessageDirection::Request } else { MessageDirection::Response };
    let outcome = HeaderValue::parse(object["value"].as_str().unwrap(), direction);
    differ(format!("{object} ({outcome:?})"), Some(outcome.is_ok()), case["expect"]["valid"].as_bool())
}
