//! JSON merge patches (RFC 7396).

use serde_json::{Map, Value};

/// The patch that makes `new` of `old`; `None` if they are equal. Lists are replaced as a whole.
pub fn merge_patch(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        _ if old == new => None,
        (Value::Object(before), Value::Object(after)) => {
            let mut patch: Map<String, Value> = Map::new();
            for (name, value) in after {
                let changed = match before.get(name) {
                    Some(before) => merge_patch(before, value),
                    None => Some(value.clone()),
                };
                patch.extend(changed.map(|changed| (name.clone(), changed)));
            }
            let gone = before.keys().filter(|name| !after.contains_key(*name));
            patch.extend(gone.map(|name| (name.clone(), Value::Null)));
            Some(Value::Object(patch))
        }
        _ => Some(new.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_has_what_differs() {
        let old = json!({"same": 1, "list": [1, 2], "inner": {"a": 1, "b": 2}, "gone": true});
        let new = json!({"same": 1, "list": [1], "inner": {"a": 1, "b": 3}, "new": {"c": []}});
        let patch = json!({"list": [1], "inner": {"b": 3}, "new": {"c": []}, "gone": null});
        assert_eq!((merge_patch(&old, &new), merge_patch(&old, &old)), (Some(patch), None));
    }
}
