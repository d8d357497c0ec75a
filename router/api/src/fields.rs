//! Reads the members of a mapping, and reports invalid and unknown ones with their paths.

use std::collections::BTreeMap;

use router_model::field::{FieldPath, Findings};
use serde_json::{Map, Value};

/// Warning about a field that is read and has no effect.
pub const NO_EFFECT: &str = "has no effect: Sluice does not act on this field yet";

/// A mapping that is being read. `null` members count as absent, as for the API server.
pub struct Fields<'v> {
    map: Option<&'v Map<String, Value>>,
    /// Its path: member `name`, if any, of `above`. Composed only when an error or warning needs it; most mappings have
    /// neither.
    above: FieldPath,
    name: Option<&'static str>,
    known: Vec<&'static str>,
}

/// Members that most mappings have at most.
const USUAL_MEMBERS: usize = 16;

impl<'v> Fields<'v> {
    /// Reads the value at `path`. A value that is not a mapping is an error, and counts as an empty mapping.
    pub fn of(value: Option<&'v Value>, path: FieldPath, findings: &mut Findings) -> Self {
        Self::at(value, path, None, findings)
    }

    fn at(value: Option<&'v Value>, above: FieldPath, name: Option<&'static str>, findings: &mut Findings) -> Self {
        let mut fields = Fields { map: None, above, name, known: Vec::new() };
        match value {
            None | Some(Value::Null) => {}
            Some(Value::Object(map)) => {
                fields.map = Some(map);
                fields.known.reserve(USUAL_MEMBERS);
            }
            Some(other) => {
                findings.error(fields.own_path(), format!("is {}; write a mapping here", describe(other)));
            }
        }
        fields
    }

    fn own_path(&self) -> FieldPath {
        self.name.map_or_else(|| self.above.clone(), |name| self.above.field(name))
    }

    /// Path of a member.
    pub fn path(&self, name: &str) -> FieldPath {
        self.own_path().key(name)
    }

    /// Whether the mapping is present.
    pub fn is_present(&self) -> bool {
        self.map.is_some()
    }

    fn know(&mut self, names: &[&'static str]) {
        // Without a mapping there is nothing unknown.
        if self.is_present() {
            self.known.extend_from_slice(names);
        }
    }

    /// A member as it is.
    pub fn value(&mut self, name: &'static str) -> Option<&'v Value> {
        #[cfg(test)]
        read_members::note(&self.own_path(), name);
        self.know(&[name]);
        self.map.and_then(|map| map.get(name)).filter(|value| !value.is_null())
    }

    /// A string; empty counts as absent, as for the API's `omitempty`.
    pub fn text(&mut self, name: &'static str, findings: &mut Findings) -> Option<&'v str> {
        match self.value(name)? {
            Value::String(text) => Some(text.as_str()).filter(|text| !text.is_empty()),
            other => {
                findings.error(self.path(name), no_text(other));
                None
            }
        }
    }

    /// A required string; `what` says what to write.
    pub fn required(&mut self, name: &'static str, what: &str, findings: &mut Findings) -> Option<&'v str> {
        let before = findings.errors.len();
        let text = self.text(name, findings);
        if text.is_none() && findings.errors.len() == before {
            findings.error(self.path(name), format!("Required value: write {what}"));
        }
        text
    }

    /// A whole number in a range.
    pub fn number(&mut self, name: &'static str, least: i64, most: i64, findings: &mut Findings) -> Option<i64> {
        let value = self.value(name)?;
        match value.as_i64().filter(|number| (least..=most).contains(number)) {
            Some(number) => Some(number),
            None => {
                let message = match value {
                    Value::Number(number) => format!("Invalid value: {number}; write a number from {least} to {most}"),
                    other => format!("is {}; write a number from {least} to {most}", describe(other)),
                };
                findings.error(self.path(name), message);
                None
            }
        }
    }

    /// A boolean.
    pub fn truth(&mut self, name: &'static str, findings: &mut Findings) -> Option<bool> {
        match self.value(name)? {
            Value::Bool(truth) => Some(*truth),
            other => {
                findings.error(self.path(name), format!("is {}; write true or false", describe(other)));
                None
            }
        }
    }

    /// A mapping.
    pub fn mapping(&mut self, name: &'static str, findings: &mut Findings) -> Fields<'v> {
        let value = self.value(name);
        Fields::at(value, self.own_path(), Some(name), findings)
    }

    /// A list, each item with its path.
    pub fn list(&mut self, name: &'static str, findings: &mut Findings) -> Vec<(FieldPath, &'v Value)> {
        match self.value(name) {
            None => Vec::new(),
            Some(Value::Array(items)) => {
                let path = self.path(name);
                items.iter().enumerate().map(|(i, item)| (path.index(i), item)).collect()
            }
            Some(other) => {
                findings.error(self.path(name), format!("is {}; write a list here", describe(other)));
                Vec::new()
            }
        }
    }

    /// A list of strings.
    pub fn texts(&mut self, name: &'static str, findings: &mut Findings) -> Vec<(FieldPath, &'v str)> {
        let mut texts = Vec::new();
        for (path, item) in self.list(name, findings) {
            match item {
                Value::String(text) => texts.push((path, text.as_str())),
                other => findings.error(path, no_text(other)),
            }
        }
        texts
    }

    /// A mapping of strings.
    pub fn text_map(&mut self, name: &'static str, findings: &mut Findings) -> BTreeMap<String, String> {
        let mut texts = BTreeMap::new();
        let fields = self.mapping(name, findings);
        for (key, value) in fields.map.into_iter().flatten() {
            match value {
                Value::String(text) => drop(texts.insert(key.clone(), text.clone())),
                Value::Null => drop(texts.insert(key.clone(), String::new())),
                other => findings.error(fields.path(key), no_text(other)),
            }
        }
        texts
    }

    /// Marks members as known that have no meaning for a router.
    pub fn ignore(&mut self, names: &[&'static str]) {
        #[cfg(test)]
        names.iter().for_each(|name| read_members::note(&self.own_path(), name));
        self.know(names);
    }

    /// Ends the reading with a warning about each member that was not read.
    pub fn finish(self, findings: &mut Findings) {
        for name in self.unknown() {
            let near = self.known.iter().find(|known| known.eq_ignore_ascii_case(name));
            let advice = near.map_or("remove it, or check its spelling".to_owned(), |near| format!("write {near}"));
            findings.warn(self.path(name), format!("unknown field, ignored; {advice}"));
        }
    }

    /// Ends the reading with an error for each member that was not read: for mappings that match more if a member is
    /// missing.
    pub fn finish_strictly(self, findings: &mut Findings) {
        for name in self.unknown() {
            let message =
                format!("unknown field, without which more would be selected; write {}", self.known.join(" or "));
            findings.error(self.path(name), message);
        }
    }

    fn unknown(&self) -> impl Iterator<Item = &'v String> {
        self.map.into_iter().flat_map(Map::keys).filter(|name| !self.known.contains(&name.as_str()))
    }
}

/// Message for a value that is not a string.
pub fn no_text(value: &Value) -> String {
    let hint = if value.is_object() || value.is_array() { "" } else { " in quotes" };
    format!("is {}; write a text{hint}", describe(value))
}

/// The type of a value, in words. Never its content, which may be secret.
pub fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "empty",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

/// The members that this thread has read, for the test that compares them with the documentation.
#[cfg(test)]
pub(crate) mod read_members {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    use router_model::field::FieldPath;

    thread_local! {
        static NAMES: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
    }

    pub(crate) fn note(path: &FieldPath, name: &str) {
        NAMES.with_borrow_mut(|names| names.insert(path.key(name).to_string()));
    }

    /// The members read since the last call.
    pub(crate) fn take() -> BTreeSet<String> {
        NAMES.take()
    }
}
