//! Folders of manifests, and what `sluice validate` and `sluice translate` say about them.
//!
//! Each folder of `tests/manifests` is a story: its `*.yaml` files go in, `validate.txt` and `translate.txt` are what
//! must come out. After a wanted change, `UPDATE_GOLDENS=1 cargo test -p router --test manifest_stories` writes them
//! anew; read the difference.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::{Path, PathBuf};

use router_proxy::UpstreamTls;

use jiff::Timestamp;
use router::cli::translate::{objects, text};
use router::cli::validate::validate;
use router::source::Directory;
use router_core::parse::Defaults;
use router_core::translate::{Settings, translate};

/// When certificates are judged.
fn now() -> Timestamp {
    "2026-06-01T00:00:00Z".parse().unwrap()
}

fn stories() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/manifests");
    let mut stories: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    stories.sort();
    assert!(stories.len() >= 5, "stories are missing: {stories:?}");
    stories
}

/// Compares with the file, or writes it when asked to.
fn expect(path: &Path, found: &str) {
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(path, found).unwrap();
        return;
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    let difference = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
    assert!(
        expected == found,
        "{} differs, first at {difference:?} (expected, found); all that was found:\n{found}",
        path.display()
    );
}

#[test]
fn validate_says_where_what_and_what_to_write() {
    for story in stories() {
        let findings = validate(&story, &Settings::default(), &UpstreamTls::new(None, None), now()).unwrap();
        let mut found: String = findings.problems.iter().map(|problem| format!("{problem}\n")).collect();
        found.push_str(&format!("{}\n", findings.summary()));
        expect(&story.join("validate.txt"), &found);
    }
}

#[test]
fn translate_says_what_becomes_of_every_object() {
    for story in stories() {
        let (_, snapshot) = Directory::open(&story, Defaults::default()).unwrap();
        let translation = translate(&snapshot.resources, &Settings::default());
        expect(&story.join("translate.txt"), &text(&translation));
    }
}

#[test]
fn one_object_in_full_is_what_the_api_server_would_store() {
    let story = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/manifests/shards");
    let (_, snapshot) = Directory::open(story, Defaults::default()).unwrap();
    let report = translate(&snapshot.resources, &Settings::default()).report;
    let now: Timestamp = "2024-05-01T12:00:00Z".parse().unwrap();
    let all = objects(&snapshot.resources, &report, now);
    let cart = all["objects"].as_array().unwrap().iter().find(|object| object["metadata"]["name"] == "cart").unwrap();
    let entry = |router: &str, domain: &str| {
        serde_json::json!({
            "conditions": [{ "lastTransitionTime": "2024-05-01T12:00:00Z", "status": "True", "type": "Admitted" }],
            "host": format!("cart.{domain}"),
            "routerCanonicalHostname": format!("router-{router}.{domain}"),
            "routerName": router,
            "wildcardPolicy": "None",
        })
    };
    let expected = serde_json::json!({
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": { "name": "cart", "namespace": "shop" },
        "spec": {
            "subdomain": "cart",
            "to": { "kind": "Service", "name": "web", "weight": 100 },
            "wildcardPolicy": "None",
        },
        "status": {
            "ingress": [entry("default", "apps.example.test"), entry("internal", "internal.example.test")],
        },
    });
    assert_eq!(*cart, expected);
}

#[test]
fn the_refused_folder_has_an_error_for_every_file_and_no_secret() {
    let story = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/manifests/refused");
    let findings = validate(&story, &Settings::default(), &UpstreamTls::new(None, None), now()).unwrap();
    let mut files: Vec<_> = findings.problems.iter().map(|problem| problem.file.to_string()).collect();
    files.dedup();
    let written = fs::read_dir(&story).unwrap().flatten().filter(|entry| {
        let name = entry.file_name().into_string().unwrap();
        name.ends_with(".yaml") && name != "service.yaml"
    });
    assert_eq!(files.len(), written.count());
}
