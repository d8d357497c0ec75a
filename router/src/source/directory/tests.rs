//! Folders scanned once and again, without notifications.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::SystemTime;

use router_model::kind::Kind;
use router_model::object::ObjectKey;

use super::*;

mod threads;
mod updates;

fn route(name: &str, host: &str) -> String {
    format!(
        "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata:\n  namespace: shop\n  name: {name}\n\
         spec:\n  host: {host}\n  to:\n    name: web\n"
    )
}

fn open(folder: &Path) -> (Directory, SourceSnapshot) {
    Directory::open(folder, Defaults::default()).unwrap()
}

/// Hosts of the routes in force, by name; `!` marks routes whose newest version is rejected.
fn hosts(snapshot: &SourceSnapshot) -> Vec<String> {
    let versions = snapshot.resources.routes.versions();
    versions
        .map(|(key, versions)| {
            let host = versions.accepted.as_ref().map_or("-", |route| &route.host);
            format!("{}={host}{}", key.name, if versions.rejected.is_some() { "!" } else { "" })
        })
        .collect()
}

fn problems(snapshot: &SourceSnapshot) -> Vec<String> {
    snapshot.diagnostics.iter().map(ToString::to_string).collect()
}

/// Writes a file so that it looks old and settled.
fn write_old(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    let old = SystemTime::now() - Duration::from_secs(3600);
    File::options().write(true).open(path).unwrap().set_modified(old).unwrap();
}

#[test]
fn a_folder_is_read_with_subfolders_and_several_documents() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    fs::write(folder.path().join("a.yaml"), format!("{}---\n{}", route("a", "a.test"), route("b", "b.test"))).unwrap();
    let json = r#"{"apiVersion":"v1","kind":"List","items":[
        {"apiVersion":"route.openshift.io/v1","kind":"Route","metadata":{"name":"c","namespace":"shop"},
         "spec":{"host":"c.test","to":{"name":"web"}}}]}"#;
    fs::write(folder.path().join("sub/c.json"), json).unwrap();
    let typed = "apiVersion: route.openshift.io/v1\nkind: RouteList\nitems:\n- metadata: {name: d, namespace: shop}\n  \
                 spec: {host: d.test, to: {name: web}}\n";
    fs::write(folder.path().join("sub/d.yml"), typed).unwrap();
    for ignored in [".hidden.yaml", "readme.md", "e.yaml~"] {
        fs::write(folder.path().join(ignored), route("x", "x.test")).unwrap();
    }
    let (_, snapshot) = open(folder.path());
    assert_eq!(hosts(&snapshot), ["a=a.test", "b=b.test", "c=c.test", "d=d.test"]);
    assert_eq!(problems(&snapshot), Vec::<String>::new());
    let key = ObjectKey::new("shop", "b");
    let origin = snapshot.resources.routes.get(&key).unwrap().meta.origin.to_string();
    assert_eq!(origin, "a.yaml:11:1");
}

#[test]
fn unknown_kinds_are_reported_once_each() {
    let folder = tempfile::tempdir().unwrap();
    let unknown = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n";
    fs::write(folder.path().join("a.yaml"), format!("{unknown}---\n{unknown}")).unwrap();
    fs::write(folder.path().join("b.yaml"), unknown).unwrap();
    let (_, snapshot) = open(folder.path());
    let expected = "a.yaml:1:1: warning: kind Deployment of apps/v1 is not read, ignored, and 2 more of it";
    assert_eq!(problems(&snapshot), [expected]);
}

#[test]
fn a_single_file_is_read_whatever_its_name_and_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("routes.txt");
    fs::write(&path, route("a", "a.test")).unwrap();
    fs::write(folder.path().join("b.yaml"), route("b", "b.test")).unwrap();
    let (mut directory, snapshot) = open(&path);
    assert_eq!((hosts(&snapshot), problems(&snapshot)), (vec!["a=a.test".to_owned()], vec![]));
    let origin = snapshot.resources.routes.get(&ObjectKey::new("shop", "a")).unwrap().meta.origin.to_string();
    assert_eq!(origin, "routes.txt:1:1");
    fs::write(&path, route("a", "a2.test")).unwrap();
    assert_eq!(hosts(&directory.rescan(&Scope::Everything).unwrap()), ["a=a2.test"]);
}

#[test]
fn templates_are_reported_with_the_way_to_render_them() {
    let folder = tempfile::tempdir().unwrap();
    let told = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let (_, snapshot) = open(&path);
        problems(&snapshot)
    };
    let chart = "Chart.yaml: belongs to a Helm chart; render the chart and give the result instead: `helm template CHART > \
                 rendered.yaml`";
    assert_eq!(told("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"), [chart]);
    let values = chart.replace("Chart.yaml:", "values.yaml:");
    assert_eq!(told("values.yaml", "host: a.test\n"), [values]);
    let kustomize = "kustomization.yaml: belongs to kustomize; build it and give the result instead: `kubectl kustomize DIR > \
                     rendered.yaml`";
    assert_eq!(told("kustomization.yaml", "resources: [a.yaml]\n"), [kustomize]);
    let template = "is a template ({{ … }}); render it first: `helm template CHART > rendered.yaml`";
    for host in ["{{ .Values.host }}", "\"{{ .Values.host }}\"", "{{ include \"host\" . }}.test"] {
        let told = told("route.yaml", &route("a", host));
        assert!(told.iter().any(|told| *told == format!("route.yaml:7:{}: {template}", if host.starts_with('"') { 10 } else { 9 })), "{told:?}");
    }
    // A manifest may contain text in braces, and is then no template.
    let annotated = route("a", "a.test").replace("metadata:\n", "metadata:\n  annotations: {x: \"{{ y }}\"}\n");
    assert_eq!(told("route.yaml", &annotated), Vec::<String>::new());
    let old = "apiVersion: v1\nkind: Route\nmetadata: {name: x}\n";
    let expected = "old.yaml:1:1: warning: kind Route of v1 is not read, ignored; write apiVersion: route.openshift.io/v1, and \
                    the fields as that version has them";
    assert_eq!(told("old.yaml", old), [expected]);
}

#[test]
fn of_two_definitions_the_first_counts_and_the_second_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("b.yaml"), route("r", "second.test")).unwrap();
    fs::write(folder.path().join("a.yaml"), format!("# one\n---\n{}", route("r", "first.test"))).unwrap();
    let (mut directory, snapshot) = open(folder.path());
    assert_eq!(hosts(&snapshot), ["r=first.test"]);
    let expected =
        "b.yaml:1:1: Route shop/r: is defined in a.yaml:3 already, and that one counts; remove one of the two";
    assert_eq!(problems(&snapshot), [expected]);

    fs::remove_file(folder.path().join("a.yaml")).unwrap();
    let snapshot = directory.rescan(&Scope::Everything).unwrap();
    assert_eq!(hosts(&snapshot), ["r=second.test"]);
    assert_eq!(problems(&snapshot), Vec::<String>::new());
}

#[test]
fn a_bad_object_rejects_itself_and_its_last_good_version_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    fs::write(&path, format!("{}---\n{}", route("a", "a.test"), route("b", "b.test"))).unwrap();
    let (mut directory, _) = open(folder.path());
    fs::write(&path, format!("{}---\n{}", route("a", "A.test"), route("b", "b2.test"))).unwrap();
    let snapshot = directory.rescan(&Scope::Everything).unwrap();
    assert_eq!(hosts(&snapshot), ["a=a.test!", "b=b2.test"]);
    let refused =
        snapshot.resources.routes.versions_of(&ObjectKey::new("shop", "a")).unwrap().rejected.clone().unwrap();
    assert!(refused.problem.starts_with("a.yaml:7: spec.host: Invalid value: \"A.test\""), "{}", refused.problem);
    assert_eq!(problems(&snapshot).len(), 1);

    fs::write(&path, format!("{}---\n{}", route("a", "a3.test"), route("b", "b2.test"))).unwrap();
    let snapshot = directory.rescan(&Scope::Everything).unwrap();
    assert_eq!(hosts(&snapshot), ["a=a3.test", "b=b2.test"]);
}

#[test]
fn a_syntax_error_keeps_what_the_document_held_and_lets_the_others_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    fs::write(&path, format!("{}---\n{}", route("a", "a.test"), route("b", "b.test"))).unwrap();
    let (mut directory, _) = open(folder.path());
    fs::write(&path, format!("{}---\n{}", route("a", "[broken"), route("b", "b2.test"))).unwrap();
    let snapshot = directory.rescan(&Scope::Everything).unwrap();
    assert_eq!(hosts(&snapshot), ["a=a.test!", "b=b2.test"]);
    let problems = problems(&snapshot);
    assert!(problems[0].starts_with("a.yaml:") && problems[0].contains("is not valid YAML"), "{problems:?}");

    fs::remove_file(&path).unwrap();
    let snapshot = directory.rescan(&Scope::Everything).unwrap();
    assert_eq!(hosts(&snapshot), Vec::<String>::new());
}

#[test]
fn a_file_that_is_empty_right_after_a_change_is_being_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    fs::write(&path, route("a", "a.test")).unwrap();
    let (mut directory, _) = open(folder.path());
    fs::write(&path, "").unwrap();
    assert!(directory.rescan(&Scope::Everything).is_none());
    assert_eq!(hosts(&directory.snapshot()), ["a=a.test"]);
    fs::write(&path, route("a", "a2.test")).unwrap();
    assert_eq!(hosts(&directory.rescan(&Scope::Everything).unwrap()), ["a=a2.test"]);
}

#[test]
fn a_change_within_the_clocks_grain_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    fs::write(&path, route("a", "one.test")).unwrap();
    let (mut directory, _) = open(folder.path());
    assert!(directory.files["a.yaml"].unsettled, "a file that was written just now must be read again");
    fs::write(&path, route("a", "two.test")).unwrap();
    // As if the second write had changed neither size nor times.
    let stamp = directory.hasher.hash_one(walk::Stamp::of(&fs::metadata(&path).unwrap()));
    directory.files.get_mut("a.yaml").unwrap().stamp = stamp;
    assert_eq!(hosts(&directory.rescan(&Scope::Everything).unwrap()), ["a=two.test"]);
}

#[test]
fn nothing_is_read_twice_without_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    write_old(&path, &format!("{}---\n{}", route("a", "a.test"), route("b", "b.test")));
    let (mut directory, before) = open(folder.path());
    assert!(directory.rescan(&Scope::Everything).is_none());
    fs::write(&path, format!("{}---\n{}", route("a", "a.test"), route("b", "b2.test"))).unwrap();
    let after = directory.rescan(&Scope::Files(BTreeSet::from(["a.yaml".into()]))).unwrap();
    let object =
        |snapshot: &SourceSnapshot, name| snapshot.resources.routes.get(&ObjectKey::new("shop", name)).unwrap().clone();
    assert!(Arc::ptr_eq(&object(&before, "a"), &object(&after, "a")), "an unchanged document is not parsed again");
    assert!(!Arc::ptr_eq(&object(&before, "b"), &object(&after, "b")));
}

#[test]
fn files_in_memory_at_a_time_are_few() {
    let half = MAX_BATCH_BYTES / 2;
    let files = [("a", half), ("b", half), ("c", 1), ("d", 4 * half), ("e", 1)];
    let files = files.map(|(name, bytes)| (Arc::from(name), bytes));
    let rest = |from: usize| batch(&files[from..]);
    assert_eq!([rest(0), rest(2), rest(3), rest(4)], [2, 1, 1, 1]);
}

#[test]
fn a_mounted_config_map_is_read_once_and_swaps_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let version = |name: &str, host: &str| {
        let data = folder.path().join(name);
        fs::create_dir(&data).unwrap();
        fs::write(data.join("a.yaml"), route("a", host)).unwrap();
        symlink(name, folder.path().join("..new")).unwrap();
        fs::rename(folder.path().join("..new"), folder.path().join("..data")).unwrap();
    };
    version("..2024_01", "one.test");
    symlink("..data/a.yaml", folder.path().join("a.yaml")).unwrap();
    let (mut directory, snapshot) = open(folder.path());
    assert_eq!((hosts(&snapshot), problems(&snapshot).len()), (vec!["a=one.test".to_owned()], 0));
    version("..2024_02", "two.test");
    assert_eq!(hosts(&directory.rescan(&Scope::Everything).unwrap()), ["a=two.test"]);
}

#[test]
fn a_folder_that_vanishes_is_not_an_empty_folder() {
    let parent = tempfile::tempdir().unwrap();
    let (folder, away) = (parent.path().join("manifests"), parent.path().join("away"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.yaml"), route("a", "a.test")).unwrap();
    let (mut directory, _) = open(&folder);
    fs::rename(&folder, &away).unwrap();
    let snapshot = directory.rescan(&Scope::Everything).unwrap();
    assert_eq!(hosts(&snapshot), ["a=a.test"]);
    assert!(problems(&snapshot)[0].contains("what was last read stays in force"), "{:?}", problems(&snapshot));
    fs::rename(&away, &folder).unwrap();
    let snapshot = directory.rescan(&Scope::Everything).unwrap();
    assert_eq!((hosts(&snapshot), problems(&snapshot).len()), (vec!["a=a.test".to_owned()], 0));
    assert!(Directory::open(&away, Defaults::default()).is_err());
}

#[test]
fn links_in_a_circle_end() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    symlink("..", folder.path().join("sub/up")).unwrap();
    symlink("nowhere.yaml", folder.path().join("dangling.yaml")).unwrap();
    fs::write(folder.path().join("sub/a.yaml"), route("a", "a.test")).unwrap();
    let (_, snapshot) = open(folder.path());
    assert_eq!((hosts(&snapshot), problems(&snapshot).len()), (vec!["a=a.test".to_owned()], 0));
}

#[test]
fn a_file_that_cannot_be_read_keeps_what_it_held() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    fs::write(&path, route("a", "a.test")).unwrap();
    let (mut directory, _) = open(folder.path());
    // Permissions would not stop root.
    fs::write(&path, b"\xff\xfe broken").unwrap();
    let snapshot = directory.rescan(&Scope::Everything).unwrap();
    assert_eq!(hosts(&snapshot), ["a=a.test"]);
    assert!(problems(&snapshot)[0].contains("byte 0 is no UTF-8"), "{:?}", problems(&snapshot));
    fs::write(&path, route("a", "a2.test")).unwrap();
    let snapshot = directory.rescan(&Scope::Everything).unwrap();
    assert_eq!((hosts(&snapshot), problems(&snapshot).len()), (vec!["a=a2.test".to_owned()], 0));
}

#[test]
fn a_subfolder_that_cannot_be_read_keeps_what_it_held() {
    let folder = tempfile::tempdir().unwrap();
    let sub = folder.path().join("sub");
    fs::create_dir(&sub).unwrap();
    fs::write(sub.join("a.yaml"), route("a", "a.test")).unwrap();
    let (mut directory, _) = open(folder.path());
    fs::set_permissions(&sub, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read_dir(&sub).is_ok() {
        // Permissions do not stop root; another test covers how the walk reports such a folder.
        directory.listing.unreadable.insert("sub".into(), "Permission denied".to_owned());
        assert!(directory.listing.is_unknown("sub/a.yaml") && !directory.listing.is_unknown("subway.yaml"));
    } else {
        let snapshot = directory.rescan(&Scope::Everything).unwrap();
        assert_eq!(hosts(&snapshot), ["a=a.test"]);
    }
    fs::set_permissions(&sub, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn an_edit_that_breaks_a_certificate_leaves_the_old_one_serving() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    fs::write(&path, format!("{}  tls:\n    termination: edge\n", route("a", "a.test"))).unwrap();
    let (mut directory, _) = open(folder.path());
    let broken = format!("{}  tls:\n    termination: edge\n    certificate: nonsense\n", route("a", "a.test"));
    fs::write(&path, &broken).unwrap();
    let snapshot = directory.rescan(&Scope::Everything).unwrap();
    assert_eq!(hosts(&snapshot), ["a=a.test!"]);
    let (_, fresh) = open(folder.path());
    assert_eq!(hosts(&fresh), ["a=a.test"]);
    let route = fresh.resources.object(Kind::Route, &ObjectKey::new("shop", "a")).unwrap();
    assert_eq!(route.material_errors().len(), 1);
    assert!(
        problems(&fresh)[0].starts_with("a.yaml:12:18: Route shop/a: spec.tls.certificate: "),
        "{:?}",
        problems(&fresh)
    );
}
