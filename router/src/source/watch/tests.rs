//! Watched folders under all operations of editors, deployments and mounts.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use router_api::defaults::Defaults;
use tokio::task::JoinHandle;

use super::*;

/// Time-out for a change on a loaded machine. Sluice promises one second; a test must not fail because of a slow disk.
const DEADLINE: Duration = Duration::from_secs(20);

struct Followed {
    receiver: watch::Receiver<SourceSnapshot>,
    task: JoinHandle<()>,
}

fn follow_folder(folder: &Path) -> Followed {
    let (directory, _) = Directory::open(folder, Defaults::default()).unwrap();
    let (receiver, future) = directory.watch();
    Followed { receiver, task: tokio::spawn(future) }
}

impl Followed {
    /// Waits until the routes in force have exactly these hosts; `!` marks a rejected newer version.
    async fn until(&mut self, expected: &[&str]) -> SourceSnapshot {
        let hosts = |snapshot: &SourceSnapshot| -> Vec<String> {
            let all = snapshot.resources.routes.versions();
            all.map(|(_, versions)| {
                let host = versions.accepted.as_ref().map_or("-", |route| &route.host);
                format!("{host}{}", if versions.rejected.is_some() { "!" } else { "" })
            })
            .collect()
        };
        let mut receiver = self.receiver.clone();
        let found = receiver.wait_for(|snapshot| hosts(snapshot) == expected);
        match tokio::time::timeout(DEADLINE, found).await {
            Ok(snapshot) => snapshot.expect("still followed").clone(),
            Err(_) => panic!("{expected:?} did not come; there is {:?}", hosts(&self.receiver.borrow())),
        }
    }
}

fn route(name: &str, host: &str) -> String {
    format!(
        "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {{name: {name}, namespace: shop}}\n\
         spec: {{host: {host}, to: {{name: web}}}}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_in_place_by_rename_and_deletions_take_effect() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    fs::write(&path, route("a", "one.test")).unwrap();
    let mut followed = follow_folder(folder.path());
    followed.until(&["one.test"]).await;

    fs::write(&path, route("a", "two.test")).unwrap();
    followed.until(&["two.test"]).await;

    let temporary = folder.path().join(".a.yaml.swp");
    fs::write(&temporary, route("a", "three.test")).unwrap();
    fs::rename(&temporary, &path).unwrap();
    followed.until(&["three.test"]).await;

    fs::create_dir(folder.path().join("sub")).unwrap();
    fs::write(folder.path().join("sub/b.yaml"), route("b", "b.test")).unwrap();
    followed.until(&["three.test", "b.test"]).await;
    fs::write(folder.path().join("sub/b.yaml"), route("b", "b2.test")).unwrap();
    followed.until(&["three.test", "b2.test"]).await;

    fs::rename(&path, folder.path().join("renamed.yaml")).unwrap();
    fs::remove_dir_all(folder.path().join("sub")).unwrap();
    followed.until(&["three.test"]).await;

    fs::write(folder.path().join("renamed.yaml"), route("a", "UPPER.test")).unwrap();
    let snapshot = followed.until(&["three.test!"]).await;
    assert_eq!(snapshot.diagnostics.len(), 1);
}

#[test]
fn only_what_may_be_a_manifest_is_scanned() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("sub")).unwrap();
    for name in ["a.yaml", "sub/b.yaml", "a.yaml.tmp", ".a.yaml.swp", "sub.txt"] {
        fs::write(at(name), route("a", "a.test")).unwrap();
    }
    let (directory, _) = Directory::open(folder.path(), Defaults::default()).unwrap();
    fs::write(at("new.yaml"), route("c", "c.test")).unwrap();
    symlink("sub", at("link")).unwrap();
    let scope = |names: &[&str]| {
        let events = Events::default();
        let event = Event { paths: names.iter().map(|name| at(name)).collect(), ..Event::new(EventKind::Any) };
        events.note(Ok(event), directory.root());
        events.take(&directory)
    };
    let files = |names: &[&str]| Scope::Files(names.iter().map(|name| Arc::from(*name)).collect());
    assert_eq!(scope(&["a.yaml"]), files(&["a.yaml"]));
    assert_eq!(scope(&["a.yaml.tmp", "a.yaml"]), files(&["a.yaml"]));
    assert_eq!(scope(&[".a.yaml.swp", "gone.yaml.tmp", "gone", "sub.txt"]), files(&[]));
    for relevant in ["new.yaml", "sub", "link"] {
        assert_eq!(scope(&["a.yaml", relevant]), Scope::Everything, "{relevant}");
    }
    fs::rename(at("sub"), folder.path().join("elsewhere.d")).unwrap();
    assert_eq!(scope(&["sub"]), Scope::Everything, "a folder with manifests is gone");
    assert_eq!(scope(&["elsewhere.d"]), Scope::Everything, "a folder has come");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_emptied_file_loses_its_objects_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    fs::write(&path, route("a", "one.test")).unwrap();
    let mut followed = follow_folder(folder.path());
    followed.until(&["one.test"]).await;
    fs::write(&path, "").unwrap();
    followed.until(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mounted_config_map_swaps() {
    let folder = tempfile::tempdir().unwrap();
    let mount = folder.path().join("mount");
    fs::create_dir(&mount).unwrap();
    let swap = |version: &str, host: &str| {
        fs::create_dir(mount.join(version)).unwrap();
        fs::write(mount.join(version).join("a.yaml"), route("a", host)).unwrap();
        symlink(version, mount.join("..tmp")).unwrap();
        fs::rename(mount.join("..tmp"), mount.join("..data")).unwrap();
    };
    swap("..one", "one.test");
    symlink("..data/a.yaml", mount.join("a.yaml")).unwrap();
    let mut followed = follow_folder(folder.path());
    followed.until(&["one.test"]).await;
    swap("..two", "two.test");
    fs::remove_dir_all(mount.join("..one")).unwrap();
    followed.until(&["two.test"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_folder_may_be_a_link_that_changes() {
    let parent = tempfile::tempdir().unwrap();
    for (version, host) in [("one", "one.test"), ("two", "two.test")] {
        fs::create_dir(parent.path().join(version)).unwrap();
        fs::write(parent.path().join(version).join("a.yaml"), route("a", host)).unwrap();
    }
    let folder = parent.path().join("current");
    symlink("one", &folder).unwrap();
    let mut followed = follow_folder(&folder);
    followed.until(&["one.test"]).await;
    symlink("two", parent.path().join("next")).unwrap();
    fs::rename(parent.path().join("next"), &folder).unwrap();
    followed.until(&["two.test"]).await;
    fs::write(parent.path().join("two/a.yaml"), route("a", "three.test")).unwrap();
    followed.until(&["three.test"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_vanishes_and_returns_is_followed_again() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("manifests");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.yaml"), route("a", "one.test")).unwrap();
    let mut followed = follow_folder(&folder);
    followed.until(&["one.test"]).await;

    // Moved as a whole: a scan during a recursive removal would correctly see the objects as deleted.
    fs::rename(&folder, parent.path().join("elsewhere")).unwrap();
    let told = followed.receiver.wait_for(|snapshot| !snapshot.diagnostics.is_empty());
    let snapshot = tokio::time::timeout(DEADLINE, told).await.expect("told in time").unwrap().clone();
    assert!(snapshot.diagnostics[0].message.contains("stays in force"), "{:?}", snapshot.diagnostics);
    assert_eq!(snapshot.resources.routes.len(), 1);

    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("b.yaml"), route("b", "back.test")).unwrap();
    followed.until(&["back.test"]).await;
    fs::write(folder.join("b.yaml"), route("b", "again.test")).unwrap();
    followed.until(&["again.test"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_to_a_file_elsewhere_is_found_by_polling() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("target.yaml");
    fs::write(&target, route("a", "one.test")).unwrap();
    symlink(&target, folder.path().join("a.yaml")).unwrap();
    let mut followed = follow_folder(folder.path());
    followed.until(&["one.test"]).await;
    fs::write(&target, route("a", "two.test")).unwrap();
    followed.until(&["two.test"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn following_ends_with_its_last_receiver() {
    let folder = tempfile::tempdir().unwrap();
    let Followed { receiver, task } = follow_folder(folder.path());
    drop(receiver);
    tokio::time::timeout(DEADLINE, task).await.expect("ends in time").unwrap();
}
