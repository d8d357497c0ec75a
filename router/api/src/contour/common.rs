//! Common fields of Contour's objects.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use router_model::field::{FieldPath, Findings};
use router_model::object::ObjectKey;
use router_table::path_form::PathForm;
use serde_json::Value;

use crate::contour::types::Violation;
use crate::fields::Fields;
use crate::go_duration::go_duration;

/// Reports unsupported members that are set. Empty and false values are not reported.
pub(crate) fn refuse(fields: &mut Fields<'_>, names: &[&'static str], faults: &mut Vec<Violation>) {
    for name in names {
        let asks = match fields.value(name) {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Array(items)) => !items.is_empty(),
            Some(Value::Object(members)) => !members.is_empty(),
            Some(Value::Bool(true) | Value::Number(_)) => true,
        };
        if asks {
            faults.push(unsupported(&fields.path(name), "remove it"));
        }
    }
}

/// The violation of an unsupported field.
pub(crate) fn unsupported(path: &FieldPath, advice: &str) -> Violation {
    Violation::new("SpecError", "UnsupportedField", format!("{path} is not supported; {advice}"))
}

/// A reference to another object: `delegate`, `include`.
pub(crate) fn reference(fields: &mut Fields<'_>, namespace: &Arc<str>, findings: &mut Findings) -> Option<ObjectKey> {
    if !fields.is_present() {
        return None;
    }
    let name = fields.required("name", "the name of the object that is delegated to", findings);
    let namespace = fields.text("namespace", findings).map_or_else(|| Arc::clone(namespace), Arc::from);
    Some(ObjectKey { namespace, name: name?.into() })
}

/// A prefix in normal form: without a trailing slash; `/` for every path.
pub(crate) fn prefix(text: &str) -> Arc<str> {
    match text.trim_end_matches('/') {
        "" => "/".into(),
        trimmed => trimmed.into(),
    }
}

/// A timeout: a Go duration, `infinity`, or absent, which 0 also means.
pub(crate) fn timeout(
    fields: &mut Fields<'_>,
    name: &'static str,
    faults: &mut Vec<Violation>,
    findings: &mut Findings,
) -> Option<Option<Duration>> {
    let text = fields.text(name, findings)?;
    if matches!(text, "infinity" | "infinite") {
        return Some(None);
    }
    let parsed = go_duration(text);
    if parsed.is_none() {
        let path = fields.path(name);
        let message = format!("{path}: {text:?} is not a valid duration; write one such as 30s or 1m30s, or infinity");
        faults.push(Violation::new("RouteError", "TimeoutPolicyNotValid", message));
    }
    parsed.filter(|duration| !duration.is_zero()).map(Some)
}

/// The path of a condition in the normal form of request paths, except adjacent slashes, which routers may keep. It is
/// normalised on its own, so that `..` cannot leave the parent's prefix.
pub(crate) fn compared<'t>(text: &'t str, at: &FieldPath, findings: &mut Findings) -> Cow<'t, str> {
    let normal = PathForm::Normal { merge_slashes: false }.of(text);
    if *normal != *text {
        let message = format!("paths are compared in normal form, in which {text:?} is {normal:?}; write that");
        findings.warn(at.clone(), message);
    }
    normal
}
