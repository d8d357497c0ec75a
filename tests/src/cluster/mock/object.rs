//! An object as the server keeps it: the bytes that answers have.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value, json};

/// Namespace, empty for objects without one, and name.
pub type Key = (String, String);

/// A version of an object. It never changes.
#[derive(Debug)]
pub struct Object {
    /// Its place in its collection.
    pub key: Key,
    /// Its resource version.
    pub version: u64,
    /// Its labels; none if they are no texts.
    pub labels: BTreeMap<String, String>,
    /// Its member `type`, by which Secrets are selected.
    pub type_: Option<String>,
    /// Members in JSON without the braces around them: `metadata` first, no `apiVersion`, no `kind`.
    members: Bytes,
    /// Length of the member `metadata`.
    metadata: usize,
}

/// How an object is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Whole, as a kind of an `apiVersion`.
    Whole {
        /// `apiVersion`
        api_version: String,
        /// `kind`
        kind: String,
    },
    /// Whole, without its kind, which lists of built-in kinds say once.
    Untyped,
    /// As PartialObjectMetadata (meta.k8s.io/v1).
    Metadata,
}

impl Object {
    /// A version of an object; its metadata gets the version.
    pub fn new(key: Key, version: u64, mut value: Value) -> Object {
        let mut metadata = value["metadata"].take();
        if let Some(members) = metadata.as_object_mut() {
            members.insert("resourceVersion".to_owned(), json!(version.to_string()));
        }
        let labels = metadata["labels"].as_object().into_iter().flatten();
        let labels = labels.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
        let mut text = format!("\"metadata\":{metadata}");
        let end = text.len();
        for (name, member) in value.as_object().into_iter().flatten() {
            if !["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
                text.push_str(&format!(",{}:{member}", Value::from(name.as_str())));
            }
        }
        Object {
            key,
            version,
            labels,
            type_: value["type"].as_str().map(str::to_owned),
            members: text.into_bytes().into(),
            metadata: end,
        }
    }

    /// Its members, without `apiVersion` and `kind`.
    pub fn value(&self) -> Value {
        let mut text = Vec::new();
        self.write(&Form::Untyped, &mut text);
        // It was written from a value.
        serde_json::from_slice(&text).unwrap_or_else(|_| Value::Object(Map::new()))
    }

    /// Appends it in a form.
    pub fn write(&self, form: &Form, to: &mut Vec<u8>) {
        let typed = |api_version: &str, kind: &str| {
            format!("{{\"apiVersion\":{},\"kind\":{},", Value::from(api_version), Value::from(kind))
        };
        let metadata = &self.members[..self.metadata];
        let (before, members) = match form {
            Form::Whole { api_version, kind } => (typed(api_version, kind), &self.members[..]),
            Form::Untyped => ("{".to_owned(), &self.members[..]),
            Form::Metadata => (typed("meta.k8s.io/v1", "PartialObjectMetadata"), metadata),
        };
        to.extend_from_slice(before.as_bytes());
        to.extend_from_slice(members);
        to.push(b'}');
    }

    /// Appends an event of a watch.
    pub fn write_event(&self, what: &str, form: &Form, to: &mut Vec<u8>) {
        to.extend_from_slice(format!("{{\"type\":\"{what}\",\"object\":").as_bytes());
        self.write(form, to);
        to.extend_from_slice(b"}\n");
    }

    /// It in a form.
    pub fn text(&self, form: &Form) -> Vec<u8> {
        let mut text = Vec::new();
        self.write(form, &mut text);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_written_in_each_form() {
        let value = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"a": "\""},
            "metadata": {"name": "n", "labels": {"l": "1", "wrong": 2}},
        });
        let object = Object::new((String::new(), "n".to_owned()), 7, value.clone());
        assert_eq!(object.labels, BTreeMap::from([("l".to_owned(), "1".to_owned())]));
        assert_eq!(object.type_.as_deref(), Some("Opaque"));
        let read = |form: &Form| serde_json::from_slice::<Value>(&object.text(form)).unwrap_or_default();
        let mut expected = value;
        expected["metadata"]["resourceVersion"] = json!("7");
        let whole = Form::Whole { api_version: "v1".to_owned(), kind: "Secret".to_owned() };
        assert_eq!(read(&whole), expected);
        let metadata = expected["metadata"].clone();
        let partial = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata});
        assert_eq!(read(&Form::Metadata), partial);
        let members = expected.as_object_mut().map(|members| (members.remove("apiVersion"), members.remove("kind")));
        assert!(members.is_some_and(|removed| removed.0.is_some() && removed.1.is_some()));
        assert_eq!(object.value(), expected);
    }

    #[test]
    fn metadata_of_a_wrong_type_are_kept() {
        let object = Object::new(Key::default(), 7, json!({"metadata": 5, "spec": []}));
        assert_eq!(object.value(), json!({"metadata": 5, "spec": []}));
    }
}
