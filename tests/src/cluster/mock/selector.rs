//! Selectors of objects by fields and labels, as the query of a list or a watch has them.

use http::StatusCode;

use super::object::Object;
use super::status::Failure;

/// Which objects a request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    terms: Vec<Term>,
}

/// A condition; all must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    what: What,
    /// One of them; without any, the label must exist.
    values: Vec<String>,
    is_negated: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Name,
    Namespace,
    Type,
    Label(String),
}

impl Selector {
    /// The selector of two parameters of a query, without escapes.
    ///
    /// # Errors
    /// When one is malformed, or names a field by which the server does not select.
    pub fn parse(fields: &str, labels: &str) -> Result<Selector, Failure> {
        let mut terms = Vec::new();
        for field in fields.split(',').filter(|field| !field.is_empty()) {
            let (name, value, is_negated) = split(field).ok_or_else(|| invalid(field))?;
            let what = match name {
                "metadata.name" => What::Name,
                "metadata.namespace" => What::Namespace,
                "type" => What::Type,
                _ => return Err(bad(format!("field label not supported: {name}"))),
            };
            terms.push(Term { what, values: vec![value.to_owned()], is_negated });
        }
        for label in requirements(labels) {
            terms.push(label_term(label.trim())?);
        }
        Ok(Selector { terms })
    }

    /// Whether an object is selected.
    pub fn selects(&self, object: &Object) -> bool {
        self.terms.iter().all(|term| {
            let value = match &term.what {
                What::Name => Some(&object.key.1),
                What::Namespace => Some(&object.key.0),
                What::Type => object.type_.as_ref(),
                What::Label(name) => object.labels.get(name),
            };
            let holds = value.is_some_and(|value| term.values.is_empty() || term.values.contains(value));
            holds != term.is_negated
        })
    }

    /// The name that a selected object has, if there is one.
    pub fn name(&self) -> Option<&str> {
        let named = self.terms.iter().find(|term| term.what == What::Name && !term.is_negated);
        named.and_then(|term| term.values.first()).map(String::as_str)
    }
}

/// The requirements of a label selector: parts between commas that are in no parentheses.
fn requirements(labels: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let parts = labels.split(move |c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    parts.filter(|part| !part.trim().is_empty())
}

/// `a=b`, `a==b` or `a!=b`.
fn split(text: &str) -> Option<(&str, &str, bool)> {
    if let Some((name, value)) = text.split_once("!=") {
        return Some((name.trim(), value.trim(), true));
    }
    let (name, value) = text.split_once("==").or_else(|| text.split_once('='))?;
    Some((name.trim(), value.trim(), false))
}

/// A requirement of a label (apimachinery's labels.Parse).
fn label_term(text: &str) -> Result<Term, Failure> {
    let label = |name: &str| What::Label(name.to_owned());
    if let Some((name, value, is_negated)) = split(text) {
        return Ok(Term { what: label(name), values: vec![value.to_owned()], is_negated });
    }
    if let Some((before, values)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        let values = values.split(',').map(|value| value.trim().to_owned()).collect();
        let mut words = before.split_whitespace();
        return match (words.next(), words.next(), words.next()) {
            (Some(name), Some("in"), None) => Ok(Term { what: label(name), values, is_negated: false }),
            (Some(name), Some("notin"), None) => Ok(Term { what: label(name), values, is_negated: true }),
            _ => Err(invalid(text)),
        };
    }
    let (name, is_negated) = text.strip_prefix('!').map_or((text, false), |name| (name, true));
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err(invalid(text));
    }
    Ok(Term { what: label(name), values: Vec::new(), is_negated })
}

fn invalid(text: &str) -> Failure {
    bad(format!("unable to parse requirement: {text:?}"))
}

fn bad(message: String) -> Failure {
    Failure::new(StatusCode::BAD_REQUEST, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_selected_by_fields_and_labels() {
        let metadata = json!({"labels": {"app": "web", "tier": "front"}});
        let value = json!({"metadata": metadata, "type": "kubernetes.io/tls"});
        let object = Object::new(("space".to_owned(), "one".to_owned()), 1, value);
        let selects = |fields: &str, labels: &str| {
            Selector::parse(fields, labels).map(|selector| selector.selects(&object)).map_err(|failure| failure.code)
        };
        let all = [
            ("", ""),
            ("metadata.name=one,metadata.namespace==space", ""),
            ("type=kubernetes.io/tls", ""),
            ("type!=Opaque", "app"),
            ("", "app=web,tier in (back, front)"),
            ("", "tier notin (back),!other"),
            ("", "other!=x"),
        ];
        let none = [
            ("metadata.name!=one", ""),
            ("metadata.namespace=other", ""),
            ("type=Opaque", ""),
            ("", "app=web,tier in (back)"),
            ("", "other"),
            ("", "!app"),
            ("", "app notin (web)"),
        ];
        for (selectors, expected) in [(all, true), (none, false)] {
            for (fields, labels) in selectors {
                assert_eq!(selects(fields, labels), Ok(expected), "{fields:?} {labels:?}");
            }
        }
        for (fields, labels) in [("spec.host=a", ""), ("metadata.name", ""), ("", "a b"), ("", "a on (b)")] {
            assert_eq!(selects(fields, labels), Err(StatusCode::BAD_REQUEST), "{fields:?} {labels:?}");
        }
    }
}
