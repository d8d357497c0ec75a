//! Annotations of IngressControllers and Gateways that configure path normalisation.

use router_model::field::{FieldPath, Findings};
use router_table::path_form::PathSettings;

use crate::meta::Annotations;
use crate::openshift::route::annotations::values::truth;

/// `"true"`: normalises request paths for Routes and Gateway API objects too, as it is always done for Contour's.
pub const NORMALIZE_PATH: &str = "router.sluice.dev/normalize-path";
/// `"false"`: adjacent slashes are not merged.
pub const MERGE_SLASHES: &str = "router.sluice.dev/merge-slashes";
const PREFIX: &str = "router.sluice.dev/";

/// Parses both; `None` if neither is set. An invalid value is an error: a typing error must not disable the protection
/// of a path.
pub fn path_settings(annotations: &Annotations, findings: &mut Findings) -> Option<PathSettings> {
    let mut settings = None;
    for (name, text) in annotations.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
        let path = FieldPath::of(&["metadata", "annotations", name]);
        if ![NORMALIZE_PATH, MERGE_SLASHES].contains(&name.as_str()) {
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
