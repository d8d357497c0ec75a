//! Merges our part of a status into the stored one (docs/openshift.md#status; Gateway API: a controller writes only its
//! own entries and conditions).

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The keys that identify an entry of a list, in any kind's status.
const KEYS: &[&str] = &[
    "parentRef",
    "routeRef",
    "ancestorRef",
    "controllerName",
    "routerName",
    "name",
    "sectionName",
    "path",
    "subdomain",
    "root",
    "type",
];

const CONDITIONS: &str = "conditions";
const TIME: &str = "lastTransitionTime";

/// The entries of a status's lists that are ours. Other entries do not change.
#[derive(Clone, Copy)]
pub struct Ownership<'o> {
    /// Lists that we share with other controllers, at the top of the status.
    pub lists: &'static [&'static str],
    /// The member of their entries that names the owner.
    pub owner: &'static str,
    /// True if the owner is this controller. An entry without an owner is not ours.
    pub is_ours: &'o dyn Fn(&str) -> bool,
    /// Types of our conditions, in every list of conditions.
    pub conditions: &'static [&'static str],
}

/// Merges `ours`, a status without times, into a status. `current` is the status with the entries of other controllers;
/// `written` is the last status that we wrote, with the times of our conditions; both may be the same value. Entries of
/// other controllers keep content and order. Each of our entries replaces the one with the same keys, or is appended;
/// entries of ours that are missing from `ours` are removed. A condition of ours keeps the `lastTransitionTime` of
/// `written` unless its status changes; then it is `now`.
pub fn merge(
    ours: &Value,
    owned: &Ownership<'_>,
    current: Option<&Value>,
    written: Option<&Value>,
    now: Timestamp,
) -> Value {
    let status = current.and_then(Value::as_object).cloned().unwrap_or_default();
    let lists: Vec<&str> = owned.lists.iter().copied().chain([CONDITIONS]).collect();
    Merge { owned, now }.object(status, &lists, ours, current, written)
}

/// True if two statuses differ in `lastTransitionTime` only.
pub fn same_but_times(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let members = |all: &Map<String, Value>| all.keys().filter(|name| *name != TIME).count();
            let mut timeless = a.iter().filter(|(name, _)| *name != TIME);
            members(a) == members(b) && timeless.all(|(name, a)| b.get(name).is_some_and(|b| same_but_times(a, b)))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_but_times(a, b)),
        (a, b) => a == b,
    }
}

struct Merge<'m> {
    owned: &'m Ownership<'m>,
    now: Timestamp,
}

impl Merge<'_> {
    /// `merged` with our members; `lists` keep the entries of other controllers.
    fn object(
        &self,
        mut merged: Map<String, Value>,
        lists: &[&str],
        ours: &Value,
        current: Option<&Value>,
        written: Option<&Value>,
    ) -> Value {
        for (name, ours) in ours.as_object().into_iter().flatten() {
            let (current, written) = (member(current, name), member(written, name));
            let value = match ours {
                Value::Array(ours) if lists.contains(&&**name) => self.list(name, ours, current, written),
                ours => self.value(ours, current, written),
            };
            merged.insert(name.clone(), value);
        }
        for name in lists.iter().filter(|name| ours.get(name).is_none()) {
            match self.list(name, &[], member(current, name), None) {
                Value::Array(left) if left.is_empty() => drop(merged.shift_remove(*name)),
                left => drop(merged.insert((*name).to_owned(), left)),
            }
        }
        Value::Object(merged)
    }

    /// A value of ours; it keeps conditions that other controllers have added.
    fn value(&self, ours: &Value, current: Option<&Value>, written: Option<&Value>) -> Value {
        match ours {
            Value::Array(entries) => {
                entries.iter().map(|ours| self.value(ours, find(current, ours), find(written, ours))).collect()
            }
            Value::Object(_) => self.object(Map::new(), &[CONDITIONS], ours, current, written),
            other => other.clone(),
        }
    }

    /// A list that may have entries of other controllers.
    fn list(&self, name: &str, ours: &[Value], current: Option<&Value>, written: Option<&Value>) -> Value {
        let entry = |ours: &Value| match name {
            CONDITIONS => self.condition(ours, find(written, ours)),
            _ => self.value(ours, find(current, ours), find(written, ours)),
        };
        let mut new: Vec<Option<&Value>> = ours.iter().map(Some).collect();
        let mut merged = Vec::new();
        for old in items(current) {
            if self.is_ours(name, old) {
                let again = new.iter_mut().find(|new| new.is_some_and(|new| is_same(new, old)));
                merged.extend(again.and_then(Option::take).map(entry));
            } else {
                merged.push(old.clone());
            }
        }
        merged.extend(new.into_iter().flatten().map(entry));
        Value::Array(merged)
    }

    fn is_ours(&self, list: &str, entry: &Value) -> bool {
        let text = |name: &str| entry.get(name).and_then(Value::as_str);
        match list {
            CONDITIONS => text("type").is_some_and(|kind| self.owned.conditions.contains(&kind)),
            _ => text(self.owned.owner).is_some_and(self.owned.is_ours),
        }
    }

    /// A condition with the time of its last transition.
    fn condition(&self, ours: &Value, written: Option<&Value>) -> Value {
        let since = written
            .filter(|written| written.get("status") == ours.get("status"))
            .and_then(|written| written.get(TIME))
            .filter(|time| time.is_string())
            .cloned()
            .unwrap_or_else(|| json!(self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()));
        let members = ours.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone()));
        Value::Object([(TIME.to_owned(), since)].into_iter().chain(members).collect())
    }
}

fn member<'v>(value: Option<&'v Value>, name: &str) -> Option<&'v Value> {
    value.and_then(|value| value.get(name))
}

fn items(list: Option<&Value>) -> impl Iterator<Item = &Value> {
    list.and_then(Value::as_array).into_iter().flatten()
}

/// The entry of a list with the same keys.
fn find<'v>(list: Option<&'v Value>, entry: &Value) -> Option<&'v Value> {
    items(list).find(|other| is_same(other, entry))
}

fn is_same(one: &Value, other: &Value) -> bool {
    one.is_object() && KEYS.iter().all(|key| one.get(key) == other.get(key))
}
