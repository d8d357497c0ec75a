//! Annotations of IngressControllers and Gateways that say how paths of requests are compared.

use router_model::field::{FieldPath, Findings};
use router_model::object::TextMap;
use router_table::path_form::PathSettings;

use crate::openshift::route::annotations::values::truth;

/// `"true"`: Routes and Gateway API's objects get paths in normal form too. Contour's objects do in any case.
pub const NORMALIZE_PATH: &str = "router.sluice.dev/normalize-path";
/// `"false"`: slashes next to each other stay in the normal form.
pub const MERGE_SLASHES: &str = "router.sluice.dev/merge-slashes";
const PREFIX: &str = "router.sluice.dev/";

/// Reads both; `None` where none of them is written. A value that is no good is an error: what guards a path must not be
/// off because of a typing error.
pub fn path_settings(annotations: &TextMap, findings: &mut Findings) -> Option<PathSettings> {
    let mut settings = None;
    for (name, text) in annotations.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
        let path = FieldPath::of(&["metadata", "annotations", name]);
        if ![NORMALIZE_PATH, MERGE_SLASHES].contains(&name) {
            let message = format!("unknown annotation, ignored; known are {NORMALIZE_PATH} and {MERGE_SLASHES}");
            findings.warn(path, message);
            continue;
        }
        let Some(value) = truth(text) else {
            findings.error(path, format!("Invalid value: {text:?}; write \"true\" or \"false\""));
            continue;
        };
        let settings = settings.get_or_insert_with(PathSettings::default);
        if name == NORMALIZE_PATH {
            settings.normalise = value;
        } else {
            settings.keep_slashes = !value;
        }
    }
    settings
}
