//! Updates of stored objects: immutable fields, and fields that the API server restores (docs/openshift.md#updates).

use router_model::certificate::MaterialCache;
use router_model::field::{FieldError, FieldPath};
use router_model::object::{Manifest, Origin, Uid};
use serde_json::{Value, json};

use crate::defaults::Defaults;
use crate::immutable::check_update;
use crate::object::Object;
use crate::openshift::ingress_controller::IngressController;
use crate::openshift::route::{HOST_GENERATED, Route};
use crate::parse::{Parsed, parse_after};

/// Parses a new version of a stored object as the API server handles an update: restores a cleared host of a Route and
/// a cleared domain of an IngressController, checks host labels unless the host is unchanged or was invalid before, and
/// rejects what [`check_update`] rejects.
pub fn parse_update(
    mut value: Value,
    old: &Object,
    origin: Origin,
    defaults: &Defaults,
    materials: &mut MaterialCache,
) -> Parsed {
    let warning = match old {
        Object::Route(old) => keep_host(&mut value, old),
        Object::IngressController(old) => keep_domain(&mut value, old),
        _ => None,
    };
    let mut parsed = parse_after(value, Some(old), origin, defaults, materials);
    parsed.warnings.extend(warning);
    parsed
}

/// The written manifest, if an object that is valid by itself must be parsed again with [`parse_update`] because the
/// result differs. `None` also if `new` is not a version of `old`, but a recreated object.
pub fn reread_good(new: &Object, old: &Object, defaults: &Defaults) -> Option<Value> {
    let is_other = is_created_anew(old, new.uid());
    let is_refused = || !check_update(old, new, defaults).errors.is_empty();
    match (old, new) {
        (Object::Route(before), Object::Route(after)) if !is_other => {
            let is_cleared = after.host_generated || after.host.is_empty();
            let is_moved = is_cleared && !before.host.is_empty() && before.host != after.host;
            (is_moved || is_refused()).then(|| written(after))
        }
        (Object::IngressController(before), Object::IngressController(after)) if !is_other => {
            let is_cleared = after.domain.is_none() && before.domain.is_some();
            (is_cleared || is_refused()).then(|| after.manifest.value())
        }
        _ => None,
    }
}

/// The written manifest, if an object that is rejected as a new one may be valid as an update of `old`.
pub fn reread_refused(new: &Manifest, old: &Object) -> Option<Value> {
    let value = new.value();
    let uid = value.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
    let is_compared = matches!(old, Object::Route(_) | Object::IngressController(_));
    (is_compared && !is_created_anew(old, &uid.into())).then_some(value)
}

/// Whether the uids show that the old object was deleted and recreated.
fn is_created_anew(old: &Object, uid: &Uid) -> bool {
    !uid.is_empty() && !old.uid().is_empty() && old.uid() != uid
}

/// A route's manifest without the host that was generated when it was read.
fn written(route: &Route) -> Value {
    let mut value = route.manifest.value();
    if route.host_generated {
        for (parent, member) in [("/spec", "host"), ("/metadata/annotations", HOST_GENERATED)] {
            value.pointer_mut(parent).and_then(Value::as_object_mut).map(|map| map.remove(member));
        }
    }
    value
}

/// Restores the old host if the new version has none. Returns a warning, unless the host was generated and would be
/// generated again.
fn keep_host(value: &mut Value, old: &Route) -> Option<FieldError> {
    let spec = value.get_mut("spec").and_then(Value::as_object_mut)?;
    let is_empty = |member: Option<&Value>| member.is_none_or(|text| text.is_null() || text == "");
    if !is_empty(spec.get("host")) || old.host.is_empty() {
        return None;
    }
    let has_subdomain = !is_empty(spec.get("subdomain"));
    spec.insert("host".to_owned(), json!(&*old.host));
    let was_generated = old.host_generated || old.host_generated_earlier;
    let warning = (!was_generated || has_subdomain).then(|| {
        let wish = if has_subdomain { "to use spec.subdomain" } else { "to have another one generated" };
        let message = format!(
            "is cleared, and an update cannot do that: {:?} stays; write it, or another host; {wish}, delete the route \
             and create it anew",
            old.host
        );
        FieldError::new(FieldPath::of(&["spec", "host"]), message)
    });
    if was_generated && let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        if annotations.is_null() {
            *annotations = json!({});
        }
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(HOST_GENERATED.to_owned(), json!("true"));
        }
    }
    warning
}

/// Restores the old domain if the new version has none: OpenShift stores it in the status and uses that.
fn keep_domain(value: &mut Value, old: &IngressController) -> Option<FieldError> {
    let domain = old.domain.as_ref()?;
    let spec = value.as_object_mut()?.entry("spec").or_insert_with(|| json!({}));
    if spec.is_null() {
        *spec = json!({});
    }
    let spec = spec.as_object_mut()?;
    if spec.get("domain").is_some_and(|text| !text.is_null() && text != "") {
        return None;
    }
    spec.insert("domain".to_owned(), json!(domain));
    let message = format!(
        "is cleared, and an update cannot do that: {domain:?} stays; write it, or create another IngressController"
    );
    Some(FieldError::new(FieldPath::of(&["spec", "domain"]), message))
}

#[cfg(test)]
mod tests;
