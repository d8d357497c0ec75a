//! `metav1.LabelSelector`.

use router_model::field::{FieldPath, Findings};
use router_model::selector::{LabelSelector, Operator, Requirement};
use serde_json::Value;

use crate::fields::Fields;

/// Reads a `metav1.LabelSelector`.
pub fn parse(mut fields: Fields<'_>, findings: &mut Findings) -> LabelSelector {
    let mut requirements: Vec<Requirement> = fields
        .text_map("matchLabels", findings)
        .into_iter()
        .map(|(key, value)| Requirement { key, operator: Operator::In(vec![value]) })
        .collect();
    for (path, item) in fields.list("matchExpressions", findings) {
        requirements.extend(requirement(item, path, findings));
    }
    fields.finish_strictly(findings);
    LabelSelector::new(requirements)
}

fn requirement(item: &Value, path: FieldPath, findings: &mut Findings) -> Option<Requirement> {
    let mut fields = Fields::of(Some(item), path, findings);
    let key = fields.text("key", findings);
    if key.is_none() {
        findings.error(fields.path("key"), "Required value: write the name of a label");
    }
    let operator = fields.text("operator", findings);
    let values: Vec<String> = fields.texts("values", findings).into_iter().map(|(_, text)| text.to_owned()).collect();
    let values_path = fields.path("values");
    let operator_path = fields.path("operator");
    fields.finish(findings);
    match operator {
        Some("In" | "NotIn") if values.is_empty() => {
            findings.error(values_path, "Required value: In and NotIn need at least one value");
        }
        Some("Exists" | "DoesNotExist") if !values.is_empty() => {
            findings.error(values_path, "Forbidden: Exists and DoesNotExist take no values; remove them");
        }
        _ => {}
    }
    let operator = match operator {
        Some("In") => Operator::In(values),
        Some("NotIn") => Operator::NotIn(values),
        Some("Exists") => Operator::Exists,
        Some("DoesNotExist") => Operator::DoesNotExist,
        other => {
            let given = other.map_or("Required value".to_owned(), |other| format!("Unsupported value: {other:?}"));
            findings.error(operator_path, format!("{given}; write In, NotIn, Exists or DoesNotExist"));
            return None;
        }
    };
    Some(Requirement { key: key?.to_owned(), operator })
}
