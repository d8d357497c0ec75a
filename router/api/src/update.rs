//! Between two versions of an object: what may not change, and what the API server puts back
//! (docs/openshift.md#updates).

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

/// The fields that an update may be refused, or warned of, because of the version before.
pub const COMPARED: [&[&str]; 4] =
    [&["spec", "host"], &["spec", "subdomain"], &["spec", "wildcardPolicy"], &["spec", "domain"]];

/// Reads a new version of a stored object, as the API server reads an update: a Route's host or an IngressController's
/// domain that is cleared is put back, labels of a host are checked only where it changes for the worse, and
/// [`check_update`] must find nothing.
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

/// What was written, when an object that is good by itself must be read again with [`parse_update`], because that
/// gives something else. `None` as well where `new` is no version of `old`, but an object created anew.
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

/// What was written, when an object that is refused as a new one may be good as a version of `old`.
pub fn reread_refused(new: &Manifest, old: &Object) -> Option<Value> {
    let value = new.value();
    let uid = value.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
    let is_compared = matches!(old, Object::Route(_) | Object::IngressController(_));
    (is_compared && !is_created_anew(old, &uid.into())).then_some(value)
}

/// Whether the uids say that the old object was deleted and another one created under its name.
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

/// Puts the old host back where the new version has none. Says so, unless it was generated and would be again: then
/// nobody wrote it.
fn keep_host(value: &mut Value, old: &Route) -> Option<FieldError> {
    let spec = value.get_mut("spec").and_then(Value::as_object_mut)?;
    let is_empty = |member: Option<&Value>| member.is_none_or(|text| text.is_null() || text == "");
    if !is_empty(spec.get("host")) || old.host.is_empty() {
        return None;
    }
    let has_subdomain = !is_empty(spec.get("subdomain"));
    spec.insert("host".to_owned(), json!(&*old.host));
    let was_generated = old.host_generated || old.meta.annotations.get(HOST_GENERATED) == Some("true");
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

/// Puts the old domain back where the new version has none: OpenShift keeps it in the status, and goes by that.
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
