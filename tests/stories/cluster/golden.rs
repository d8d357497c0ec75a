//! A folder and an API server with the same objects give the same statuses.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::cluster::Definitions;
use tests::cluster::mock::{MockApiServer, Options};
use tests::command;
use tests::folder::documents;
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

/// The output of `sluice translate -o json`, without times, and without places of files, which an API server's objects lack.
fn translated(source: &[&str]) -> Result<Value> {
    let mut command = std::process::Command::new(binary()?);
    command.args(["translate", "-o", "json", "--endpoint-addresses", "any"]).args(source);
    let text = String::from_utf8(command::output(&mut command)?.stdout)?;
    let mut value = serde_json::from_str(&regex::Regex::new(r"\d+\.json:\d+: ")?.replace_all(&text, ""))?;
    without_times(&mut value);
    Ok(value)
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
fn golden_folders_have_the_same_statuses_from_an_api_server() -> Result<()> {
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
        let kubeconfig = server.kubeconfig("token")?;
        let kubeconfig = kubeconfig.to_str().context("a path is text")?;
        let of_server = translated(&["--kubernetes", "--kubeconfig", kubeconfig])?;
        let of_folder = translated(&[stored.path().to_str().context("a path is text")?])?;
        let statuses = |value: &Value| value["objects"].as_array().map_or(0, Vec::len);
        ensure!(statuses(&of_folder) > 0, "{}: no statuses", folder.display());
        let differing = |one: &Value, other: &Value| -> Vec<Value> {
            let others = other["objects"].as_array().cloned().unwrap_or_default();
            let all = one["objects"].as_array().into_iter().flatten();
            all.filter(|object| !others.contains(object)).cloned().collect()
        };
        let (only_server, only_folder) = (differing(&of_server, &of_folder), differing(&of_folder, &of_server));
        ensure!(
            only_server.is_empty() && only_folder.is_empty(),
            "{}:\nfrom the API server: {:#}\nfrom the folder: {:#}",
            folder.display(),
            json!(only_server),
            json!(only_folder)
        );
        compared += 1;
    }
    ensure!(compared >= 15, "only {compared} folders could be compared");
    Ok(())
}
