//! The transitions of a status that have an Event.

use serde_json::Value;

/// Types of conditions whose change to False has an Event, by its reason.
const REPORTED: [&str; 4] = ["Accepted", "Admitted", "ManifestValid", "Valid"];

/// Reasons and messages of reported conditions that are False in `new`, and not for this reason in `old`. Each reason once.
pub fn transitions(old: Option<&Value>, new: &Value) -> Vec<(String, String)> {
    let before = old.map(failures).unwrap_or_default();
    let mut transitions: Vec<(String, String)> = Vec::new();
    for failure in failures(new) {
        let is_known = before.iter().any(|it| (it.kind, it.reason) == (failure.kind, failure.reason))
            || transitions.iter().any(|(reason, _)| *reason == failure.reason);
        if !is_known {
            transitions.push((failure.reason.to_owned(), failure.message.to_owned()));
        }
    }
    transitions
}

/// A condition that is False.
struct Failure<'s> {
    kind: &'s str,
    reason: &'s str,
    message: &'s str,
}

/// The reported conditions of a status that are False, at any depth.
fn failures(status: &Value) -> Vec<Failure<'_>> {
    let mut found = Vec::new();
    match status {
        Value::Object(members) => members.values().for_each(|member| found.extend(failures(member))),
        Value::Array(items) => items.iter().for_each(|item| found.extend(failures(item))),
        _ => {}
    }
    let text = |name: &str| status.get(name).and_then(Value::as_str);
    if let (Some(kind), Some("False"), Some(reason)) = (text("type"), text("status"), text("reason"))
        && REPORTED.contains(&kind)
        && !reason.is_empty()
    {
        found.push(Failure { kind, reason, message: text("message").unwrap_or_default() });
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(status: &str, reason: &str) -> Value {
        let condition = json!({"type": "Admitted", "status": status, "reason": reason, "message": "why"});
        json!({"ingress": [{"host": "a.test", "conditions": [condition]}]})
    }

    #[test]
    fn a_condition_that_becomes_false_or_for_another_reason_is_a_transition() {
        let is = |old: Option<Value>, new: Value| transitions(old.as_ref(), &new);
        let why = |reason: &str| vec![(reason.to_owned(), "why".to_owned())];
        assert_eq!(is(None, status("False", "X")), why("X"));
        assert_eq!(is(Some(status("True", "")), status("False", "X")), why("X"));
        assert_eq!(is(Some(status("False", "X")), status("False", "Y")), why("Y"));
        assert_eq!(is(Some(status("False", "X")), status("False", "X")), []);
        assert_eq!(is(Some(status("False", "X")), status("True", "X")), []);
    }

    #[test]
    fn a_reason_is_reported_once_and_other_conditions_are_not() {
        let condition = |kind: &str| json!({"type": kind, "status": "False", "reason": "X"});
        let all = json!({"parents": [
            {"conditions": [condition("Accepted"), condition("Programmed")]},
            {"conditions": [condition("Accepted")]},
        ]});
        assert_eq!(transitions(None, &all), [("X".to_owned(), String::new())]);
        assert_eq!(transitions(None, &json!({"conditions": [condition("Programmed")]})), []);
    }
}
