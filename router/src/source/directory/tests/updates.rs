//! A folder whose objects change: it rejects updates that the API server would reject.

use super::*;
use crate::source::document::tests::PARSED_PARTS;

/// Number of objects in the tests that count how often a text is parsed.
const OBJECTS: usize = 40;

/// A Route or an IngressController with this `spec`, in lines of two spaces.
fn object(kind: &str, uid: &str, spec: &str) -> String {
    let (api, namespace) = match kind {
        "Route" => ("route.openshift.io/v1", "shop"),
        _ => ("operator.openshift.io/v1", "openshift-ingress-operator"),
    };
    let uid = if uid.is_empty() { String::new() } else { format!(", uid: {uid}") };
    format!("apiVersion: {api}\nkind: {kind}\nmetadata: {{namespace: {namespace}, name: a{uid}}}\nspec:\n{spec}")
}

fn a_route(spec: &str) -> String {
    object("Route", "", &format!("  to: {{name: web}}\n{spec}"))
}

/// `host`, `wildcardPolicy` and rejection of the route, or the domain of the controller.
fn in_force(snapshot: &SourceSnapshot) -> String {
    let route = snapshot.resources.routes.versions().map(|(_, versions)| {
        let route = versions.accepted.as_ref().unwrap();
        let mark = if versions.rejected.is_some() { "!" } else { "" };
        format!("{} {}{mark}", route.host, route.wildcard_policy.as_str())
    });
    let controller = snapshot.resources.ingress_controllers.versions().map(|(_, versions)| {
        let mark = if versions.rejected.is_some() { "!" } else { "" };
        format!("{}{mark}", versions.accepted.as_ref().unwrap().domain.as_deref().unwrap_or("-"))
    });
    route.chain(controller).collect()
}

struct Case {
    what: &'static str,
    old: String,
    new: String,
    in_force: &'static str,
    /// Prefix of the only diagnostic; empty if there is none.
    problem: &'static str,
}

#[test]
fn a_change_is_read_as_an_update() {
    let wildcard = "  host: h.test\n  wildcardPolicy: Subdomain\n";
    let long = "a".repeat(64);
    let annotated = a_route(&format!("  host: {long}.test\n"))
        .replace("name: a}", "name: a, annotations: {route.openshift.io/allow-non-dns-compliant-host: \"true\"}}");
    let controller = |domain: &str| object("IngressController", "", &format!("  replicas: 1\n{domain}"));
    let with_uid = |uid: &str, spec: &str| object("Route", uid, &format!("  to: {{name: web}}\n{spec}"));
    let cases = [
        Case {
            what: "another wildcardPolicy",
            old: a_route("  host: h.test\n"),
            new: a_route(wildcard),
            in_force: "h.test None!",
            problem: "a.yaml:7:19: Route shop/a: spec.wildcardPolicy: Invalid value: \"Subdomain\": field is immutable; \
                      write None again, or delete the route and create it anew",
        },
        Case {
            what: "a wildcardPolicy that is removed",
            old: a_route(wildcard),
            new: a_route("  host: i.test\n"),
            in_force: "h.test Subdomain!",
            problem: "a.yaml:4:1: Route shop/a: spec.wildcardPolicy: Invalid value: \"None\": field is immutable; write \
                      Subdomain again",
        },
        Case {
            what: "a host that is cleared",
            old: a_route("  host: h.test\n"),
            new: a_route("  path: /x\n"),
            in_force: "h.test None",
            problem: "a.yaml:4:1: warning: Route shop/a: spec.host: is cleared, and an update cannot do that: \"h.test\" \
                      stays; write it, or another host",
        },
        Case {
            what: "a wildcard's host that is cleared",
            old: a_route(wildcard),
            new: a_route("  host: \"\"\n  wildcardPolicy: Subdomain\n"),
            in_force: "h.test Subdomain",
            problem: "a.yaml:6:9: warning: Route shop/a: spec.host: is cleared",
        },
        Case {
            what: "a generated host that stays",
            old: a_route(""),
            new: a_route("  path: /x\n"),
            in_force: "a-shop.apps.localhost None",
            problem: "",
        },
        Case {
            what: "another host",
            old: a_route("  host: h.test\n"),
            new: a_route("  host: i.test\n"),
            in_force: "i.test None",
            problem: "",
        },
        Case {
            what: "a bad label that was there before",
            old: annotated,
            new: a_route(&format!("  host: {long}.test\n  path: /x\n")),
            in_force: "",
            problem: "",
        },
        Case {
            what: "another domain",
            old: controller("  domain: a.test\n"),
            new: controller("  domain: b.test\n"),
            in_force: "a.test!",
            problem: "a.yaml:6:11: IngressController openshift-ingress-operator/a: spec.domain: Invalid value: \"b.test\": \
                      field is immutable; write \"a.test\" again",
        },
        Case {
            what: "a domain that is cleared",
            old: controller("  domain: a.test\n"),
            new: controller(""),
            in_force: "a.test",
            problem: "a.yaml:4:1: warning: IngressController openshift-ingress-operator/a: spec.domain: is cleared",
        },
        Case {
            what: "the same uid",
            old: with_uid("one", "  host: h.test\n"),
            new: with_uid("one", wildcard),
            in_force: "h.test None!",
            problem: "a.yaml:7:19: Route shop/a: spec.wildcardPolicy",
        },
        Case {
            what: "another uid",
            old: with_uid("one", "  host: h.test\n"),
            new: with_uid("two", wildcard),
            in_force: "h.test Subdomain",
            problem: "",
        },
    ];
    for Case { what, old, new, in_force: expected, problem } in cases {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        fs::write(&path, old).unwrap();
        let (mut directory, before) = open(folder.path());
        assert_eq!(problems(&before), Vec::<String>::new(), "{what}");
        fs::write(&path, &new).unwrap();
        let snapshot = directory.rescan(&Scope::Everything).unwrap();
        if expected.is_empty() {
            assert_eq!(in_force(&snapshot), format!("{long}.test None"), "{what}");
        } else {
            assert_eq!(in_force(&snapshot), expected, "{what}");
        }
        match problems(&snapshot).as_slice() {
            [] => assert_eq!(problem, "", "{what}"),
            [only] => assert!(!problem.is_empty() && only.starts_with(problem), "{what}: {only}"),
            more => panic!("{what}: {more:?}"),
        }
        let refused = snapshot.resources.routes.versions().find_map(|(_, versions)| versions.rejected.clone());
        if expected == "h.test None!" {
            let text = &refused.as_ref().unwrap().problem;
            assert!(text.starts_with("a.yaml:7: spec.wildcardPolicy: Invalid value"), "{text}");
        }
        assert!(directory.rescan(&Scope::Everything).is_none(), "{what}: nothing has changed since");
    }
}

#[test]
fn what_was_refused_may_be_taken_back_or_created_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    let (plain, wildcard) = (a_route("  host: h.test\n"), a_route("  host: h.test\n  wildcardPolicy: Subdomain\n"));
    fs::write(&path, &plain).unwrap();
    let (mut directory, _) = open(folder.path());
    let mut look = |text: Option<&str>| {
        match text {
            Some(text) => fs::write(&path, text).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let snapshot = directory.rescan(&Scope::Everything).unwrap();
        (in_force(&snapshot), problems(&snapshot).len())
    };
    assert_eq!(look(Some(&wildcard)), ("h.test None!".to_owned(), 1));
    assert_eq!(look(Some(&plain)), ("h.test None".to_owned(), 0));
    assert_eq!(look(Some(&wildcard)), ("h.test None!".to_owned(), 1));
    // Rejected while its text is broken, and afterwards.
    assert_eq!(look(Some(&format!("{wildcard}  path: [\n"))), ("h.test None!".to_owned(), 1));
    assert_eq!(look(Some(&wildcard)), ("h.test None!".to_owned(), 1));
    assert_eq!(look(None), (String::new(), 0));
    assert_eq!(look(Some(&wildcard)), ("h.test Subdomain".to_owned(), 0));
}

#[test]
fn an_object_that_moves_to_another_file_stays_itself() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), a_route("  host: h.test\n")).unwrap();
    let (mut directory, _) = open(folder.path());
    fs::remove_file(folder.path().join("a.yaml")).unwrap();
    fs::write(folder.path().join("b.yaml"), a_route("  host: h.test\n  wildcardPolicy: Subdomain\n")).unwrap();
    let snapshot = directory.rescan(&Scope::Everything).unwrap();
    assert_eq!(in_force(&snapshot), "h.test None!");
    assert!(problems(&snapshot)[0].starts_with("b.yaml:7:19: Route shop/a: spec.wildcardPolicy"));
}

/// The folder after `change`, and the number of parts of files that were parsed for it.
fn parsed_after(folder: &Path, change: impl FnOnce()) -> (Vec<String>, usize) {
    // One thread, because parts are counted for each thread.
    let (mut directory, _) = Directory::open_with(folder, Defaults::default(), 1).unwrap();
    change();
    let before = PARSED_PARTS.get();
    let snapshot = directory.rescan(&Scope::Everything).unwrap();
    assert_eq!(hosts(&snapshot).iter().filter(|host| host.ends_with('!')).count(), OBJECTS);
    (problems(&snapshot), PARSED_PARTS.get() - before)
}

/// Routes that are rejected as updates of [`route`], each with its place.
fn wildcards(indent: &str) -> impl Iterator<Item = String> {
    (0..OBJECTS).map(move |i| {
        let text = format!("{}  wildcardPolicy: Subdomain\n", route(&format!("r{i:02}"), "h.test"));
        text.lines().map(|line| format!("{indent}{line}\n")).collect()
    })
}

fn plain() -> impl Iterator<Item = String> {
    (0..OBJECTS).map(|i| route(&format!("r{i:02}"), "h.test"))
}

#[test]
fn rejected_updates_parse_each_part_of_a_file_once_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    fs::write(&path, plain().collect::<Vec<_>>().join("---\n")).unwrap();
    let (problems, parsed) =
        parsed_after(folder.path(), || fs::write(&path, wildcards("").collect::<Vec<_>>().join("---\n")).unwrap());
    assert_eq!(parsed, 2 * OBJECTS, "each part is read, and then its fields are located");
    for (i, problem) in problems.iter().enumerate() {
        let place = format!("a.yaml:{}:19: Route shop/r{i:02}: spec.wildcardPolicy: ", 11 * i + 10);
        assert!(problem.starts_with(&place), "{problem}");
    }
}

#[test]
fn rejected_updates_of_a_list_parse_it_once_more() {
    let folder = tempfile::tempdir().unwrap();
    // In a list, and in the order of the objects' names as little as in that of the files.
    let mut items: Vec<_> = wildcards("  ").map(|item| item.replacen("  apiVersion", "- apiVersion", 1)).collect();
    items.reverse();
    let list = format!("apiVersion: v1\nkind: List\nitems:\n{}", items.concat());
    for (i, text) in plain().enumerate() {
        fs::write(folder.path().join(format!("a{i:02}.yaml")), text).unwrap();
    }
    fs::write(folder.path().join("list.yaml"), list).unwrap();
    let (problems, parsed) = parsed_after(folder.path(), || {
        for i in 0..OBJECTS {
            fs::remove_file(folder.path().join(format!("a{i:02}.yaml"))).unwrap();
        }
    });
    // The list is read again as well, since it was written just now, but not parsed.
    assert_eq!(parsed, 1);
    for (i, problem) in problems.iter().enumerate() {
        let place = format!("list.yaml:{}:21: Route shop/r{:02}: spec.wildcardPolicy: ", 10 * i + 13, OBJECTS - 1 - i);
        assert!(problem.starts_with(&place), "{problem}");
    }
}

#[test]
fn a_file_that_has_changed_since_it_was_read_gives_no_places() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    fs::write(&path, a_route("  host: h.test\n")).unwrap();
    let (directory, _) = open(folder.path());
    let route = ObjectRef { kind: Kind::Route, key: ObjectKey::new("shop", "a") };
    let host = FieldPath::of(&["spec", "host"]);
    let place = |directory: &Directory| directory.locate(&[(&route, &host)]);
    assert_eq!(place(&directory), [Some(("a.yaml".into(), Mark { line: 6, column: 9 }))]);
    fs::write(&path, a_route("  path: /x\n  host: h.test\n")).unwrap();
    assert_eq!(place(&directory), [Some(("a.yaml".into(), Mark { line: 1, column: 1 }))]);
}
