//! The result does not depend on the number of threads.

use std::fmt::Write as _;

use super::*;

const FILES: usize = 90;
/// Number of documents in the file that is split into parts.
const DOCUMENTS: usize = 200;

/// A folder with valid and invalid objects, some of them in several places, and one file with many documents.
fn write_folder(folder: &Path, version: &str) {
    for number in 0..FILES {
        let name = format!("route-{number}");
        let text = match number % 9 {
            0 => route("shared", &format!("{name}.{version}.test")),
            1 => format!("{}---\na: [\n", route(&name, &format!("{name}.{version}.test"))),
            2 => route(&name, "no host"),
            3 => route(&name, "a.test").replace("spec:", "spec:\n  odd: 1\n  host: twice.test"),
            4 => format!("apiVersion: apps/v1\nkind: Kind{}\nmetadata: {{name: x}}\n", number % 2),
            5 => route(&name, "a.test").replace("spec:", "spec:\n  odd: 1"),
            6 => "kind: Route\nmetadata: {name: x}\n".to_owned(),
            7 => format!("host: {{{{ .Values.{version} }}}}\n"),
            _ => route(&name, &format!("{name}.{version}.test")),
        };
        write_old(&folder.join(format!("{number:03}.yaml")), &text);
    }
    let mut text = String::new();
    for number in 0..DOCUMENTS {
        let host = if number % 7 == 0 { "no host".to_owned() } else { format!("many-{number}.{version}.test") };
        let broken = if number % 31 == 0 { "  to: [\n" } else { "" };
        write!(text, "---\n{}{broken}", route(&format!("many-{}", number % 190), &host)).unwrap();
    }
    write_old(&folder.join("050-many.yaml"), &text);
}

/// Everything that a snapshot contains.
fn shown(snapshot: &SourceSnapshot) -> (Vec<String>, Vec<String>, Vec<String>) {
    let manifests = snapshot.resources.routes.versions().map(|(key, versions)| {
        let good = versions.accepted.as_ref().map(|route| (route.meta.origin.to_string(), route.manifest.value()));
        let refused = versions.rejected.as_ref().map(|refused| (refused.problem.clone(), refused.manifest.value()));
        format!("{key}: {good:?} {refused:?}")
    });
    (hosts(snapshot), problems(snapshot), manifests.collect())
}

#[test]
fn one_thread_and_many_read_the_same_at_first_and_again() {
    let folder = tempfile::tempdir().unwrap();
    write_folder(folder.path(), "old");
    let open = |threads| Directory::open_with(folder.path(), Defaults::default(), threads).unwrap();
    let (mut alone, first) = open(1);
    let mut others = [2, 5].map(open);
    let first = shown(&first);
    assert!(
        first.0.len() > DOCUMENTS && first.1.len() > FILES,
        "{} objects, {} problems",
        first.0.len(),
        first.1.len()
    );
    for (_, snapshot) in &others {
        assert_eq!(shown(snapshot), first);
    }

    write_folder(folder.path(), "new");
    fs::remove_file(folder.path().join("008.yaml")).unwrap();
    // Valid before, broken now: the last valid version stays in force.
    fs::write(folder.path().join("017.yaml"), "a: [\n").unwrap();
    let again = shown(&alone.rescan(&Scope::Everything).unwrap());
    assert_ne!(again, first);
    for (directory, _) in &mut others {
        assert_eq!(shown(&directory.rescan(&Scope::Everything).unwrap()), again);
    }
}
