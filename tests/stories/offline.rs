//! `sluice validate` and `translate` without a router: the same results as with a running one.

use std::ffi::OsStr;
use std::fs;

use anyhow::Result;
use serde_json::Value;
use tempfile::TempDir;
use tests::{folder, sluice, workspace};

#[test]
fn the_quickstart_is_valid_and_translates_to_statuses() -> Result<()> {
    let quickstart = workspace().join("examples/quickstart");
    let validated = sluice::run(&[OsStr::new("validate"), quickstart.as_os_str()])?;
    assert_eq!(validated.status.code(), Some(0), "{}", String::from_utf8_lossy(&validated.stderr));

    let translated =
        sluice::run(&[&["translate", "-o", "json"].map(OsStr::new)[..], &[quickstart.as_os_str()]].concat())?;
    assert_eq!(translated.status.code(), Some(0), "{}", String::from_utf8_lossy(&translated.stderr));
    let printed: Value = serde_json::from_slice(&translated.stdout)?;
    let mut hosts = Vec::new();
    for object in printed["objects"].as_array().into_iter().flatten().filter(|object| object["kind"] == "Route") {
        let entry = &object["status"]["ingress"][0];
        assert_eq!(entry["routerName"], "default", "{object}");
        let admitted = &entry["conditions"][0];
        assert_eq!((&admitted["type"], &admitted["status"]), (&"Admitted".into(), &"True".into()), "{object}");
        hosts.push(entry["host"].as_str().unwrap_or_default().to_owned());
    }
    hosts.sort();
    let names = ["edge", "hello", "passthrough", "reencrypt"];
    assert_eq!(hosts, names.map(|name| format!("{name}.apps.localhost")), "hello's is from spec.subdomain");
    // Private keys in the manifests must not appear in the output.
    assert!(!String::from_utf8_lossy(&translated.stdout).contains("PRIVATE KEY"), "translate prints no keys");
    Ok(())
}

#[test]
fn a_mistake_is_named_with_its_place_and_the_way_out() -> Result<()> {
    let manifests = TempDir::new()?;
    let file = manifests.path().join("mistake.yaml");
    let spec = "  path: /no\n  tls: {termination: passthrough}\n";
    fs::write(&file, route_without_separator(spec))?;
    let validated = sluice::run(&[OsStr::new("validate"), manifests.path().as_os_str()])?;
    assert_eq!(validated.status.code(), Some(3), "invalid input");
    let printed =
        [validated.stdout, validated.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    // The line of `path:` in the file, and the column of its value.
    assert!(printed.contains("mistake.yaml:7:9: "), "{printed}");
    assert!(printed.contains("spec.path") && printed.contains("remove it"), "{printed}");
    Ok(())
}

fn route_without_separator(spec: &str) -> String {
    folder::route("mistake", "mistake.apps.test", "nobody", spec).trim_start_matches("---\n").to_owned()
}
