//! Statuses in short form.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// The status of an object such as `route test/shop`, as lines; `None` if it has no status.
pub fn status(state: &Path, object: &str) -> Option<Vec<String>> {
    let name = object.to_ascii_lowercase().replace([' ', '/'], ".");
    let file = state.join("status").join(format!("{name}.yaml"));
    let object: Value = serde_saphyr::from_str(&fs::read_to_string(file).ok()?).ok()?;
    let mut lines = Vec::new();
    members(&object["status"], "", &mut lines);
    Some(lines)
}

/// Members that name the items of lists.
const NAMES: &[&str] = &["routerName", "name", "path"];
/// Members that are omitted: times, generations, and those that are equal for every object.
const PASSED_OVER: &[&str] = &[
    "lastTransitionTime",
    "observedGeneration",
    "controllerName",
    "supportedFeatures",
    "supportedKinds",
    "addresses",
    "group",
    "routerCanonicalHostname",
    // Copies of the spec.
    "endpointPublishingStrategy",
    "routeAdmission",
];

fn members(value: &Value, indent: &str, lines: &mut Vec<String>) {
    let Value::Object(all) = value else { return };
    let named = NAMES.iter().find(|name| all.contains_key(**name)).copied().unwrap_or_default();
    let is_told = |name: &str| !PASSED_OVER.contains(&name) && (indent.is_empty() || name != named);
    for (name, value) in all.iter().filter(|(name, _)| is_told(name)) {
        match value {
            Value::Array(items) if name == "conditions" => {
                lines.extend(items.iter().map(|item| format!("{indent}{}", condition(item))));
                for error in items.iter().flat_map(|item| item["errors"].as_array().into_iter().flatten()) {
                    lines.push(format!("{indent}  {}", condition(error)));
                }
            }
            Value::Array(items) => {
                for item in items {
                    let own = NAMES.iter().find_map(|name| item[*name].as_str());
                    lines.push(format!("{indent}{name}: {}", own.unwrap_or_default()).trim_end().to_owned());
                    members(item, &format!("{indent}  "), lines);
                }
            }
            Value::Object(_) if name == "parentRef" => lines.push(format!("{indent}{}", parent(value))),
            Value::Object(_) => {
                lines.push(format!("{indent}{name}:"));
                members(value, &format!("{indent}  "), lines);
            }
            Value::String(text) => lines.push(format!("{indent}{name}: {text}")),
            Value::Number(number) => lines.push(format!("{indent}{name}: {number}")),
            Value::Bool(_) | Value::Null => {}
        }
    }
}

/// `Type=Status Reason: message`.
fn condition(condition: &Value) -> String {
    let text = |member: &str| condition[member].as_str().unwrap_or_default();
    let mut line = format!("{}={}", text("type"), text("status"));
    if !text("reason").is_empty() && text("reason") != text("type") {
        line += &format!(" {}", text("reason"));
    }
    if !text("message").is_empty() {
        line += &format!(": {}", text("message"));
    }
    line
}

fn parent(parent: &Value) -> String {
    let text = |member: &str| parent[member].as_str().map(str::to_owned);
    let mut line = text("kind").unwrap_or_else(|| "Gateway".to_owned());
    line += &format!(" {}", [text("namespace"), text("name")].into_iter().flatten().collect::<Vec<_>>().join("/"));
    if let Some(section) = text("sectionName") {
        line += &format!("#{section}");
    }
    if let Some(port) = parent["port"].as_u64() {
        line += &format!(":{port}");
    }
    line
}
