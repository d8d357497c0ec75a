//! Documents that say which kinds there are, and the definitions that make kinds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::kind::Kind;
use super::object::Object;
use super::store::Store;

/// The document of a path; `None` if it is no path of discovery, or nothing is served there.
pub fn document(store: &Store, path: &str) -> Option<Value> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match parts[..] {
        ["version"] => Some(json!({"major": "1", "minor": "36", "gitVersion": "v1.36.3", "platform": "linux/amd64"})),
        ["api"] => Some(json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})),
        ["apis"] => {
            let groups: Vec<_> = groups(store).into_iter().map(|(name, versions)| group(name, &versions)).collect();
            Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        ["apis", name] => {
            let mut document = group(name, groups(store).get(name)?);
            document["kind"] = json!("APIGroup");
            document["apiVersion"] = json!("v1");
            Some(document)
        }
        ["api", version] => resources(store, "", version),
        ["apis", group, version] => resources(store, group, version),
        _ => None,
    }
}

/// Whether a path is one of a version of a group that is served.
pub fn is_served(store: &Store, path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let of_group = match parts[..] {
        ["api", version, ..] => resources(store, "", version),
        ["apis", group, version, ..] => resources(store, group, version),
        _ => None,
    };
    of_group.is_some()
}

/// Versions of each group but the core.
fn groups(store: &Store) -> BTreeMap<&str, Vec<&str>> {
    let mut groups = BTreeMap::<&str, Vec<&str>>::new();
    for kind in store.kinds().filter(|kind| !kind.group.is_empty()) {
        let versions = groups.entry(&kind.group).or_default();
        for version in &kind.versions {
            if !versions.contains(&version.as_str()) {
                versions.push(version);
            }
        }
    }
    groups
}

fn group(name: &str, versions: &[&str]) -> Value {
    let version = |version: &&str| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let versions: Vec<_> = versions.iter().map(version).collect();
    json!({"name": name, "versions": versions, "preferredVersion": versions.first()})
}

fn resources(store: &Store, group: &str, version: &str) -> Option<Value> {
    let served = |kind: &Kind| kind.group == group && kind.versions.iter().any(|served| served == version);
    let mut resources = Vec::new();
    for kind in store.kinds().filter(|kind| served(kind)) {
        let verbs = json!(["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]);
        let resource = |name: String, verbs: Value| {
            let singular = kind.name.to_lowercase();
            let singular = if name == kind.plural { singular.as_str() } else { "" };
            json!({
                "name": name, "singularName": singular, "namespaced": kind.is_namespaced, "kind": kind.name, "verbs": verbs,
            })
        };
        resources.push(resource(kind.plural.clone(), verbs));
        if kind.has_status {
            resources.push(resource(format!("{}/status", kind.plural), json!(["get", "patch", "update"])));
        }
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let found = !resources.is_empty();
    found.then(|| {
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources})
    })
}

/// Serves the kind of a definition that was written, and says so in its status.
pub fn defined(store: &mut Store, of: &Kind, object: &Object) {
    if !is_definition(of) {
        return;
    }
    let mut definition = object.value();
    if definition["status"]["acceptedNames"] == definition["spec"]["names"] {
        return;
    }
    // One that is malformed serves nothing.
    let Ok(kind) = Kind::defined(&definition) else { return };
    let condition = |name: &str, reason: &str| {
        let time = &definition["metadata"]["creationTimestamp"];
        json!({"type": name, "status": "True", "reason": reason, "message": "", "lastTransitionTime": time})
    };
    let conditions = [condition("NamesAccepted", "NoConflicts"), condition("Established", "InitialNamesAccepted")];
    definition["status"] = json!({
        "acceptedNames": definition["spec"]["names"], "conditions": conditions, "storedVersions": [kind.version()],
    });
    store.install(kind);
    store.put(of, object.key.clone(), definition);
}

/// Serves the kind of a definition no longer that was deleted.
pub fn undefined(store: &mut Store, of: &Kind, object: &Object) {
    if is_definition(of)
        && let Ok(kind) = Kind::defined(&object.value())
    {
        store.uninstall(&kind);
    }
}

fn is_definition(kind: &Kind) -> bool {
    kind.plural == "customresourcedefinitions"
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anyhow::{Context, Result};

    use super::super::write;
    use super::*;

    #[test]
    fn a_kind_is_served_as_long_as_its_definition_is_there() -> Result<()> {
        let mut store = Store::new(10);
        let of = store.kind("apiextensions.k8s.io", "v1", "customresourcedefinitions").context("it is built in")?;
        let of = Arc::clone(of);
        let version = json!({"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}});
        let names = json!({"kind": "Thing", "plural": "things"});
        let spec = json!({"group": "example.test", "scope": "Namespaced", "names": names, "versions": [version]});
        let definition = json!({"metadata": {"name": "things.example.test"}, "spec": spec});
        let made = write::create(&mut store, &of, "", definition)?;
        assert!(document(&store, "/apis/example.test").is_none());
        defined(&mut store, &of, &made);
        let resources = document(&store, "/apis/example.test/v1").context("it is served")?;
        let named: Vec<_> = resources["resources"].as_array().into_iter().flatten().map(|it| &it["name"]).collect();
        assert_eq!(named, ["things", "things/status"]);
        let group = document(&store, "/apis/example.test").context("it is served")?;
        assert_eq!(group["preferredVersion"]["groupVersion"], "example.test/v1");
        let now = store.get(&of, &made.key).context("it is there")?.clone();
        assert_eq!(now.value()["status"]["conditions"][1]["type"], "Established");
        defined(&mut store, &of, &now);
        assert_eq!(store.version(), now.version, "it was accepted before");
        undefined(&mut store, &of, &now);
        assert!(document(&store, "/apis/example.test/v1").is_none());
        Ok(())
    }

    #[test]
    fn built_in_kinds_are_discovered() -> Result<()> {
        let store = Store::new(1);
        let core = document(&store, "/api/v1").context("the core is served")?;
        let named: Vec<_> = core["resources"].as_array().into_iter().flatten().map(|it| &it["name"]).collect();
        assert!(named.contains(&&json!("services/status")) && named.contains(&&json!("secrets")));
        let groups = document(&store, "/apis").context("groups are served")?;
        let named: Vec<_> = groups["groups"].as_array().into_iter().flatten().map(|it| &it["name"]).collect();
        assert!(named.contains(&&json!("discovery.k8s.io")));
        assert!(is_served(&store, "/api/v1/nothing") && !is_served(&store, "/apis/nothing.test/v1/things"));
        assert!(document(&store, "/api/v2").is_none() && document(&store, "/other").is_none());
        Ok(())
    }
}
