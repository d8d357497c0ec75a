//! Intersection of the gRPC calls that a slot and its child match.

use router_table::pattern::{Flags, Pattern};

use super::*;

fn regex(text: &str) -> PathMatcher {
    PathMatcher::Regex(Pattern::new(text, Flags::default(), 1 << 18).unwrap())
}

#[test]
fn an_expression_intersects_only_itself() {
    let one = regex("/a\\.B/.*");
    let found = intersect_calls(&one, &one.clone()).unwrap();
    assert!(matches!(&found, PathMatcher::Regex(found) if found.as_str() == "^(?:/a\\.B/.*)$"), "{found:?}");
    assert!(matches!(intersect_calls(&one, &regex("/a\\.B/C")), Err(Mismatch::Unsupported(_))));
}

#[test]
fn an_exact_call_intersects_an_expression_that_matches_it() {
    let (service, call) = (regex("/a\\.B/.*"), PathMatcher::Exact("/a.B/C".into()));
    for (parent, child) in [(&service, &call), (&call, &service)] {
        assert!(matches!(intersect_calls(parent, child), Ok(PathMatcher::Exact(found)) if &*found == "/a.B/C"));
    }
    let other = PathMatcher::Exact("/a.X/C".into());
    assert!(matches!(intersect_calls(&service, &other), Err(Mismatch::Empty(_))));
}
