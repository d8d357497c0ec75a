//! Which objects others reference, and what to ask the API server for when that changes.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use router_api::object::Object;
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use router_translate::references::{ca_secrets, references};

use super::scope::Scope;

/// What to ask the API server for, after updates were applied.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Objects that are referenced now and were not: Services, whose EndpointSlices to list, and Secrets to read.
    pub referenced: BTreeSet<ObjectRef>,
    /// Objects to watch by name: those whose kind is not watched as a whole.
    pub watch: BTreeSet<ObjectRef>,
    /// Objects to watch no longer.
    pub unwatch: BTreeSet<ObjectRef>,
    /// Watches to begin anew after a while: their last list lacks most objects.
    pub relist: BTreeSet<Scope>,
}

/// The objects that others reference.
#[derive(Debug, Default)]
pub struct Referenced {
    /// Number of objects that reference one.
    objects: HashMap<ObjectRef, usize>,
    /// Number of objects that use a Secret for its `ca.crt`.
    authorities: HashMap<ObjectKey, usize>,
}

impl Referenced {
    /// True if an object is referenced.
    pub fn contains(&self, object: &ObjectRef) -> bool {
        self.objects.contains_key(object)
    }

    /// True if a Secret is used for its `ca.crt`.
    pub fn is_authority(&self, secret: &ObjectKey) -> bool {
        self.authorities.contains_key(secret)
    }

    /// Replaces what the old version of an object references by what the new one does. Returns what is referenced no more.
    pub fn replace(&mut self, old: Option<&Object>, new: Option<&Object>, requests: &mut Requests) -> Vec<ObjectRef> {
        let (before, after) = (old.map(references).unwrap_or_default(), new.map(references).unwrap_or_default());
        for object in after.difference(&before) {
            let count = self.objects.entry(object.clone()).or_default();
            *count += 1;
            match object.kind {
                _ if *count > 1 => {}
                Kind::ConfigMap => watch(object, requests),
                _ => drop(requests.referenced.insert(object.clone())),
            }
        }
        let (ca_before, ca_after) = (old.map(ca_secrets).unwrap_or_default(), new.map(ca_secrets).unwrap_or_default());
        for key in ca_after.difference(&ca_before) {
            let count = self.authorities.entry(key.clone()).or_default();
            *count += 1;
            if *count == 1 {
                watch(&ObjectRef { kind: Kind::Secret, key: key.clone() }, requests);
            }
        }
        for key in ca_before.difference(&ca_after) {
            if drop_one(&mut self.authorities, key) {
                unwatch(&ObjectRef { kind: Kind::Secret, key: key.clone() }, requests);
            }
        }
        let mut released = Vec::new();
        for object in before.difference(&after) {
            if drop_one(&mut self.objects, object) {
                requests.referenced.remove(object);
                if object.kind == Kind::ConfigMap {
                    unwatch(object, requests);
                }
                released.push(object.clone());
            }
        }
        released
    }
}

fn watch(object: &ObjectRef, requests: &mut Requests) {
    requests.unwatch.remove(object);
    requests.watch.insert(object.clone());
}

fn unwatch(object: &ObjectRef, requests: &mut Requests) {
    if !requests.watch.remove(object) {
        requests.unwatch.insert(object.clone());
    }
}

/// Subtracts one. Returns true if nothing is left.
fn drop_one<K: Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) -> bool {
    let Some(count) = counts.get_mut(key) else { return false };
    *count -= 1;
    let is_last = *count == 0;
    if is_last {
        counts.remove(key);
    }
    is_last
}
