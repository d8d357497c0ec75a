//! A folder and an API server with the same objects give the same statuses.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::cluster::mock::{MockApiServer, Options};
use tests::cluster::{ControlPlane, Definitions, kubectl};
use tests::command;
use tests::folder::documents;
use tests::netns::Netns;
use tests::sluice::binary;
use tests::workspace;

/// The golden folders of all APIs.
fn folders() -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for api in fs::read_dir(workspace().join("router/tests/manifests"))? {
        for folder in fs::read_dir(api?.path())? {
            folders.push(folder?.path());
        }
    }
    folders.sort();
    Ok(folders)
}

/// The objects of a folder's manifests; `None` if an API server could not have them: texts that are no YAML, objects
/// without a name, two objects of one name.
fn objects(folder: &Path) -> Result<Option<Vec<Value>>> {
    let mut objects = Vec::new();
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    for file in files {
        if !file.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
            continue;
        }
        let text = fs::read_to_string(file)?;
        for document in documents(&text) {
            match serde_saphyr::from_str::<Value>(document) {
                Ok(object) if object["metadata"]["name"].is_string() => objects.push(object),
                _ => return Ok(None),
            }
        }
    }
    let name = |object: &Value| {
        let text = |pointer| object.pointer(pointer).cloned().unwrap_or_default().to_string();
        [text("/kind"), text("/metadata/namespace"), text("/metadata/name")]
    };
    let mut names: Vec<_> = objects.iter().map(name).collect();
    names.sort();
    names.dedup();
    Ok((names.len() == objects.len()).then_some(objects))
}

/// The output of `sluice translate -o json` in a namespace, without times, and without places of files, which an API
/// server's objects lack.
fn translated(netns: Option<&Netns>, source: &[&str]) -> Result<Value> {
    let mut command = netns.map_or_else(|| Ok(Command::new(binary()?)), |netns| netns.command(binary()?))?;
    command.args(["translate", "-o", "json", "--endpoint-addresses", "any"]).args(source);
    let text = String::from_utf8(command::output(&mut command)?.stdout)?;
    let mut value = serde_json::from_str(&regex::Regex::new(r"\d+\.json:\d+: ")?.replace_all(&text, ""))?;
    without_times(&mut value);
    Ok(value)
}

/// Compares the statuses of an API server's objects with those of a folder that has the same; returns their number.
fn compare(netns: Option<&Netns>, kubeconfig: &Path, stored: &TempDir) -> Result<usize> {
    let text = |path: &Path| path.to_str().map(str::to_owned).context("a path is text");
    let of_server = translated(netns, &["--kubernetes", "--kubeconfig", &text(kubeconfig)?])?;
    let of_folder = translated(None, &[&text(stored.path())?])?;
    let differing = |one: &Value, other: &Value| -> Vec<Value> {
        let others = other["objects"].as_array().cloned().unwrap_or_default();
        let all = one["objects"].as_array().into_iter().flatten();
        all.filter(|object| !others.contains(object)).cloned().collect()
    };
    let (only_server, only_folder) = (differing(&of_server, &of_folder), differing(&of_folder, &of_server));
    ensure!(
        only_server.is_empty() && only_folder.is_empty(),
        "from the API server: {:#}\nfrom the folder: {:#}",
        json!(only_server),
        json!(only_folder)
    );
    Ok(of_folder["objects"].as_array().map_or(0, Vec::len))
}

fn without_times(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("lastTransitionTime");
            members.values_mut().for_each(without_times);
        }
        Value::Array(items) => items.iter_mut().for_each(without_times),
        _ => {}
    }
}

#[test]
fn golden_folders_have_the_same_statuses_from_the_mock() -> Result<()> {
    let mut compared = 0;
    for folder in folders()? {
        let Some(objects) = objects(&folder)? else { continue };
        let server = MockApiServer::start(None, Options::default())?;
        for definitions in [Definitions::Sluice, Definitions::GatewayExperimental, Definitions::Contour] {
            server.install(definitions)?;
        }
        let stored = TempDir::new()?;
        for (i, object) in objects.iter().enumerate() {
            server.apply(object).with_context(|| format!("{}: {}", folder.display(), object["metadata"]["name"]))?;
            let mut as_stored = server.get(object)?;
            for name in ["apiVersion", "kind"] {
                as_stored[name] = object[name].clone();
            }
            fs::write(stored.path().join(format!("{i}.json")), as_stored.to_string())?;
        }
        let statuses = compare(None, &server.kubeconfig("token")?, &stored);
        let statuses = statuses.with_context(|| folder.display().to_string())?;
        ensure!(statuses > 0, "{}: no statuses", folder.display());
        compared += 1;
    }
    ensure!(compared >= FOLDERS, "only {compared} folders could be compared");
    Ok(())
}

/// Minimum number of folders whose objects an API server can have.
const FOLDERS: usize = 15;

/// Objects of the golden folders that a real API server rejects, with a part of the reason.
const REJECTED: [(&str, &str, &str); 10] = [
    ("openshift/contested-host", "Service a/web", "spec.ports: Required value"),
    ("openshift/contested-host", "Service b/web", "spec.ports: Required value"),
    (
        "openshift/refused-controllers",
        "IngressController openshift-ingress-operator/one",
        "Unsupported value: \"Shared\"",
    ),
    ("openshift/refused-controllers", "IngressController openshift-ingress-operator/two", "Invalid value: 123456"),
    ("openshift/refused-controllers", "IngressController openshift-ingress-operator/timeout", "expected string, got"),
    (
        "openshift/refused-controllers",
        "IngressController openshift-ingress-operator/profile",
        "Unsupported value: \"TLSv1.2\"",
    ),
    ("openshift/shards", "Service blog/web", "spec.ports: Required value"),
    ("openshift/shards", "Service shop/web", "spec.ports: Required value"),
    ("openshift/wildcards", "Service a/web", "spec.ports: Required value"),
    ("openshift/wildcards", "Service b/web", "spec.ports: Required value"),
];

/// Kind, namespace and name.
fn name_of(object: &Value) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (kind, namespace, name) = (text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
    if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
}

/// The namespaces that objects are in or are, with the labels that they are to have.
fn namespaces(objects: &[Value]) -> BTreeMap<String, Value> {
    let of = |object: &Value| Some((object["metadata"]["namespace"].as_str()?.to_owned(), json!({})));
    let mut found: BTreeMap<String, Value> = objects.iter().filter_map(of).collect();
    for object in objects.iter().filter(|object| object["kind"] == "Namespace") {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        found.insert(name, object["metadata"]["labels"].clone());
    }
    found
}

/// A control plane to which the objects of one folder after another are applied.
struct Stage {
    plane: ControlPlane,
    made: BTreeSet<String>,
}

impl Stage {
    fn start() -> Result<Stage> {
        let plane = ControlPlane::start()?;
        for definitions in [Definitions::Sluice, Definitions::GatewayExperimental, Definitions::Contour] {
            plane.define(definitions)?;
        }
        Ok(Stage { plane, made: BTreeSet::new() })
    }

    /// `kubectl` on objects; it fails if one of them is rejected.
    fn kubectl(&self, arguments: &[&str], objects: &[Value]) -> Result<Output> {
        let folder = TempDir::new()?;
        let file = folder.path().join("objects.json");
        fs::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string())?;
        let mut kubectl = kubectl::command(self.plane.netns(), self.plane.kubeconfig())?;
        Ok(kubectl.args(arguments).arg("-f").arg(file).output()?)
    }

    /// Creates namespaces, or gives them other labels.
    fn prepare(&mut self, namespaces: &BTreeMap<String, Value>) -> Result<()> {
        let all = "/api/v1/namespaces";
        for (name, labels) in namespaces {
            let object = json!({"metadata": {"name": name, "labels": labels}});
            if self.made.insert(name.clone()) && name != "default" {
                self.plane.api().create(all, &object)?;
            } else {
                let path = format!("{all}/{name}");
                let mut object = self.plane.api().get(&path)?;
                object["metadata"]["labels"] = labels.clone();
                self.plane.api().replace(&path, &object)?;
            }
        }
        Ok(())
    }

    /// Compares the statuses of a folder's objects, and deletes the objects; returns the number of statuses, the names of
    /// objects that were rejected, and why.
    fn try_folder(&mut self, objects: &[Value]) -> Result<(usize, Vec<String>, String)> {
        let namespaces = namespaces(objects);
        self.prepare(&namespaces)?;
        let errors = String::from_utf8(self.kubectl(&["apply", "--server-side"], objects)?.stderr)?;
        let stored = self.kubectl(&["get", "--ignore-not-found", "-o", "json"], objects)?.stdout;
        let stored: Value = serde_json::from_slice(&stored).with_context(|| errors.clone())?;
        let items = stored["items"].as_array().cloned().unwrap_or_else(|| vec![stored]);
        let folder = TempDir::new()?;
        for (i, object) in items.iter().enumerate() {
            fs::write(folder.path().join(format!("{i}.json")), object.to_string())?;
        }
        for (i, name) in namespaces.keys().enumerate() {
            let namespace = self.plane.api().get(&format!("/api/v1/namespaces/{name}"))?;
            fs::write(folder.path().join(format!("n{i}.json")), namespace.to_string())?;
        }
        let statuses = compare(Some(self.plane.netns()), self.plane.kubeconfig(), &folder)?;
        let others: Vec<Value> = items.iter().filter(|object| object["kind"] != "Namespace").cloned().collect();
        let deleted = self.kubectl(&["delete", "--wait=false"], &others)?;
        ensure!(deleted.status.success(), "{}", String::from_utf8_lossy(&deleted.stderr));
        let names: BTreeSet<String> = items.iter().map(name_of).collect();
        Ok((statuses, objects.iter().map(name_of).filter(|name| !names.contains(name)).collect(), errors))
    }
}

#[test]
fn golden_folders_have_the_same_statuses_from_the_real_api_server() -> Result<()> {
    let mut stage = Stage::start()?;
    let (mut compared, mut met, mut unexpected) = (0, 0, Vec::new());
    for folder in folders()? {
        let Some(mut objects) = objects(&folder)? else { continue };
        // What an API server sets itself.
        for object in &mut objects {
            let members = object["metadata"].as_object_mut().context("an object has metadata")?;
            for name in ["creationTimestamp", "generation", "resourceVersion", "uid"] {
                members.remove(name);
            }
        }
        let name = folder.strip_prefix(workspace().join("router/tests/manifests"))?.display().to_string();
        let (statuses, rejected, errors) = stage.try_folder(&objects).with_context(|| name.clone())?;
        ensure!(statuses > 0, "{name}: no statuses");
        compared += 1;
        let expected: Vec<_> = REJECTED.iter().filter(|(folder, ..)| *folder == name).collect();
        let is_as_expected = rejected.len() == expected.len()
            && expected.iter().all(|(_, object, why)| rejected.iter().any(|it| it == object) && errors.contains(why));
        met += expected.len();
        if !is_as_expected {
            unexpected.push(format!("{name}: {rejected:?} are rejected, and not as expected: {expected:?}\n{errors}"));
        }
    }
    ensure!(unexpected.is_empty(), "{}", unexpected.join("\n"));
    ensure!(compared >= FOLDERS, "only {compared} folders could be compared");
    ensure!(met == REJECTED.len(), "{met} of {} objects to be rejected are in the folders", REJECTED.len());
    Ok(())
}
