//! The normal form, and paths that are unchanged.

use proptest::prelude::*;

use super::*;

const MERGED: PathForm = PathForm::Normal { merge_slashes: true };
const KEPT: PathForm = PathForm::Normal { merge_slashes: false };

#[test]
fn paths_become_what_envoy_makes_of_them() {
    // Envoy's own examples first (path_utility_test.cc), then ways around a prefix.
    for (sent, normal) in [
        ("/a/b/../c", "/a/c"),
        ("/a/b/./c", "/a/b/c"),
        ("/a/b/../../../../c", "/c"),
        ("/a/..\\c", "/c"),
        ("/%c0%af", "/%c0%af"),
        ("/%5c%25", "/%5c%25"),
        ("/a/b/%2E%2E/c", "/a/c"),
        ("/a/b/%2E./c", "/a/c"),
        ("/a/b/%2E/c", "/a/b/c"),
        ("/../a/b", "/a/b"),
        ("/./a/b", "/a/b"),
        ("/A/B/C", "/A/B/C"),
        ("/a/%2F%2f/c", "/a/%2F%2f/c"),
        ("/a//b/c/", "/a/b/c/"),
        ("//a/b/c", "/a/b/c"),
        ("/a////b/c", "/a/b/c"),
        ("/a/b/c//", "/a/b/c/"),
        ("/", "/"),
        ("//", "/"),
        ("/.", "/"),
        ("/..", "/"),
        ("/a/..", "/"),
        ("/a/b/..", "/a/"),
        ("/a/.", "/a/"),
        ("/x/../admin", "/admin"),
        ("/x/%2e%2e/admin", "/admin"),
        ("/x\\..\\admin", "/admin"),
        ("\\admin", "\\admin"),
        ("/\\admin", "/admin"),
        ("/%61dm%69n", "/admin"),
        ("/%7Euser/%2D%5f%2e", "/~user/-_."),
        // Dots within a segment.
        ("/...", "/..."),
        ("/.a/..b/c../d.", "/.a/..b/c../d."),
        ("/%2ea/..%2e", "/.a/..."),
        // `..` removes one segment as sent, which may be empty.
        ("/a//../b", "/a/b"),
        // Parameters, encoded slashes and double escapes are unchanged.
        ("/x/..;/admin", "/x/..;/admin"),
        ("/x;v=1/../admin", "/admin"),
        ("/x/..%2Fadmin", "/x/..%2Fadmin"),
        ("/x/..%5cadmin", "/x/..%5cadmin"),
        ("/%252e%252e/a", "/%252e%252e/a"),
        ("/a%20b%3f%23", "/a%20b%3f%23"),
        // Characters that are not allowed in a path.
        ("/\"<>^`{|}", "/%22%3C%3E%5E%60%7B%7C%7D"),
        ("/caf\u{e9}", "/caf%C3%A9"),
        // A `%` that begins no escape, and must not begin one afterwards.
        ("/100%", "/100%"),
        ("/%zz/%4", "/%zz/%4"),
        ("/%%300", "/%2500"),
        ("/%%30%30", "/%2500"),
        ("/%3%30", "/%2530"),
        ("/%%2e/", "/%./"),
        ("/a%/../%34%31", "/41"),
        ("*", "*"),
        ("", ""),
    ] {
        assert_eq!(MERGED.of(sent), normal, "{sent}");
        assert_eq!(PathForm::AsSent.of(sent), sent);
    }
    for (sent, normal) in [("//a//b/", "//a//b/"), ("/a//../b", "/a/b"), ("/a/..//b", "//b"), ("/a/./b", "/a/b")] {
        assert_eq!(KEPT.of(sent), normal, "{sent}");
    }
}

#[test]
fn what_is_normal_is_not_copied() {
    for path in ["/", "/a/b.c/..d/%20%2F/e;f=g", "/100%", "*"] {
        assert!(matches!(MERGED.of(path), Cow::Borrowed(_)), "{path}");
    }
}

#[test]
fn long_paths_cost_what_they_are_long() {
    let started = std::time::Instant::now();
    for part in ["%%30%30", "%/../", "a/", "/", "\\..", "%2e%2e/x/"] {
        let path = format!("/{}", part.repeat(200_000));
        let normal = MERGED.of(&path);
        assert_eq!(MERGED.of(&normal), normal);
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
}

/// Segments of a path as RFC 3986 §5.2.4 resolves them, the plainest way that there is.
fn resolved(path: &str) -> String {
    let decoded = ["%2e", "%2E"].iter().fold(path.replace('\\', "/"), |path, dot| path.replace(dot, "."));
    let decoded = decoded.replace("%61", "a");
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = decoded.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." => {}
            ".." => drop(kept.pop()),
            other => {
                kept.push(other);
                continue;
            }
        }
        if is_last {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}

fn has_dot_segment(path: &str) -> bool {
    path.split('/').any(|segment| segment == "." || segment == "..")
}

proptest! {
    #[test]
    fn every_path_is_normal_after_one_step(path in "/([a-c2e5%/.;\\\\]|%2e|%2E|%61|%2f|\\.\\.|[!-~])*", merge_slashes: bool) {
        let form = PathForm::Normal { merge_slashes };
        let normal = form.of(&path);
        prop_assert_eq!(form.of(&normal), normal.clone());
        prop_assert!(is_normal(normal.as_bytes(), merge_slashes));
        prop_assert!(normal.starts_with('/') && normal.is_ascii());
        prop_assert!(!has_dot_segment(&normal), "{}", normal);
        prop_assert!(!(merge_slashes && normal.contains("//")), "{}", normal);
        // The scan and the normalisation agree.
        prop_assert_eq!(is_normal(path.as_bytes(), merge_slashes), normal == path);
        // A normalised path is also normal in the form that keeps slashes.
        prop_assert_eq!(&KEPT.of(&normal), &normal);
    }

    #[test]
    fn a_path_that_has_nothing_to_resolve_stays(path in "(/[a-z0-9_~!$&'()*+,;=:@-]+(\\.[a-z]+)?|/%2[0-9a-d])+/?") {
        // `%2d` is a `-`.
        prop_assume!(!path.contains("%2d"));
        prop_assert_eq!(MERGED.of(&path), path.as_str());
    }

    #[test]
    fn dot_segments_are_resolved_as_the_rfc_says(path in "(/|\\\\)?(/|\\\\|\\.|%2e|%2E|a|b|;|%61|%2F)*") {
        let path = format!("/{path}");
        prop_assert_eq!(KEPT.of(&path), resolved(&path));
    }
}
