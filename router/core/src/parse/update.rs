//! Between two versions of an object: what may not change, and what the API server puts back (openshift.md a.2, a.4,
//! a.7, e).

use serde_json::{Value, json};

use super::route::HOST_GENERATED;
use super::{Defaults, IngressController, Object, Parsed, Route, parse_after};
use crate::certificate::MaterialCache;
use crate::field::{FieldPath, Findings};
use crate::object::Origin;

/// Reads a new version of a stored object, as the API server reads an update: a Route's host that is cleared is put
/// back, labels of a host are checked only where it changes for the worse, and [`check_update`] must find nothing.
pub fn parse_update(
    mut value: Value,
    old: &Object,
    origin: Origin,
    defaults: &Defaults,
    materials: &mut MaterialCache,
) -> Parsed {
    let kept = match old {
        Object::Route(old) => keep_host(&mut value, old),
        _ => None,
    };
    let mut parsed = parse_after(value, Some(old), origin, defaults, materials);
    if let Some(host) = kept {
        let message = format!("is cleared, and an update cannot do that: {host:?} stays; write it, or another host");
        parsed.warnings.push(crate::field::FieldError::new(FieldPath::of(&["spec", "host"]), message));
    }
    parsed
}

/// What an update may not do: errors are changes of immutable fields. Objects of different kinds or names are no
/// versions of each other, and nothing is found.
pub fn check_update(old: &Object, new: &Object) -> Findings {
    let mut findings = Findings::default();
    if old.key() == new.key() {
        match (old, new) {
            (Object::Route(old), Object::Route(new)) => check_route(old, new, &mut findings),
            (Object::IngressController(old), Object::IngressController(new)) => {
                check_controller(old, new, &mut findings);
            }
            _ => {}
        }
    }
    findings
}

fn check_route(old: &Route, new: &Route, findings: &mut Findings) {
    if old.wildcard_policy != new.wildcard_policy {
        let message = format!(
            "Invalid value: {:?}: field is immutable; write {} again, or delete the route and create it anew",
            new.wildcard_policy.as_str(),
            old.wildcard_policy.as_str()
        );
        findings.error(FieldPath::of(&["spec", "wildcardPolicy"]), message);
    }
}

fn check_controller(old: &IngressController, new: &IngressController, findings: &mut Findings) {
    // A domain that was left to the cluster may be written out, and the other way round.
    if let (Some(before), Some(after)) = (&old.domain, &new.domain)
        && before != after
    {
        let message = format!(
            "Invalid value: {after:?}: field is immutable; write {before:?} again, or create another IngressController"
        );
        findings.error(FieldPath::of(&["spec", "domain"]), message);
    }
}

/// Puts the old host back where the new version has none. Returns it, unless it was generated: then nobody wrote it,
/// and it would be generated again.
fn keep_host(value: &mut Value, old: &Route) -> Option<String> {
    let spec = value.get_mut("spec").and_then(Value::as_object_mut)?;
    let cleared = spec.get("host").is_none_or(|host| host.is_null() || host == "");
    if !cleared || old.host.is_empty() {
        return None;
    }
    spec.insert("host".to_owned(), json!(old.host));
    let was_generated =
        old.host_generated || old.meta.annotations.get(HOST_GENERATED).is_some_and(|generated| generated == "true");
    if !was_generated {
        return Some(old.host.clone());
    }
    let metadata = value.get_mut("metadata").and_then(Value::as_object_mut)?;
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if annotations.is_null() {
        *annotations = json!({});
    }
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(HOST_GENERATED.to_owned(), json!("true"));
    }
    None
}

#[cfg(test)]
mod tests;
