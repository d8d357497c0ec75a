//! Normal form of request paths and of conditions: no spelling of either escapes a delegate's prefix.

use proptest::prelude::*;
use router_table::path_form::PathForm;

use super::*;

/// Path segments: plain ones, no-ops, dot segments, and other spellings of the plain ones.
const PIECES: [&str; 16] =
    ["/a", "/b", "/%61", "/%62", "/", "/.", "/..", "/%2e%2E", "\\", "\\..", "%2f", ";x", "%", "%2", "/.%2e", "//"];

fn path() -> impl Strategy<Value = String> {
    let pieces = prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..6);
    pieces.prop_map(|pieces| format!("/{}", pieces.concat()))
}

/// True if a request path in normal form is below a prefix.
fn is_below(sent: &str, prefix: &str) -> bool {
    let normal = PathForm::Normal { merge_slashes: true }.of(sent).into_owned();
    normal == prefix || normal.starts_with(&format!("{prefix}/"))
}

proptest! {
    /// For any prefix that a delegate writes, and any request path, the delegate only receives paths below its own
    /// prefix.
    #[test]
    fn a_delegate_serves_nothing_outside_of_its_prefix(written in path(), sent in path(), kind in 0..4_u8) {
        let own = |spec: Value| vec![ingress_route("r/root", spec)];
        let mut objects = match kind {
            0 => own(json!({ "virtualhost": { "fqdn": "h.test" }, "routes": [
                { "match": "/", "services": to("root") },
                { "match": "/a", "delegate": { "name": "part", "namespace": "d" } },
            ] })),
            _ => vec![proxy("r/root", json!({
                "virtualhost": { "fqdn": "h.test" },
                "includes": [{ "name": "part", "namespace": "d", "conditions": [{ "prefix": "/a" }] }],
                "routes": [{ "services": to("root") }],
            }))],
        };
        objects.push(match kind {
            0 => ingress_route("d/part", json!({ "routes": [{ "match": written, "services": to("part") }] })),
            1 => proxy("d/part", json!({ "routes": [{ "conditions": [{ "prefix": written }], "services": to("part") }] })),
            2 => proxy("d/part", json!({ "routes": [{ "conditions": [{ "exact": written }], "services": to("part") }] })),
            _ => proxy("d/part", json!({ "routes": [{ "conditions": [{ "regex": format!("{}.*", regex::escape(&written)) }], "services": to("part") }] })),
        });
        objects.extend(backends(&["r/root", "d/part"]));
        let world = World::new(objects);
        let served = world.get(&format!("http://h.test{sent}"));
        prop_assert!(served != "d/part" || is_below(&sent, "/a"), "{} by {}", sent, written);
        // Any other path is served by the root, or answered because the delegate is invalid.
        prop_assert!(is_below(&sent, "/a") || served == "r/root", "{}: {}", sent, served);
    }

    /// A rule for a path matches every spelling of it.
    #[test]
    fn every_spelling_of_a_path_gets_the_same_response(sent in path()) {
        let world = World::new([vec![proxy("r/root", json!({
            "virtualhost": { "fqdn": "h.test" },
            "routes": [
                { "conditions": [{ "prefix": "/a/b" }], "directResponsePolicy": { "statusCode": 403 } },
                { "services": to("root") },
            ],
        }))], backends(&["r/root"])].concat());
        let expected = if is_below(&sent, "/a/b") { "403" } else { "r/root" };
        prop_assert_eq!(world.get(&format!("http://h.test{sent}")), expected, "{}", sent);
    }
}

#[test]
fn conditions_are_normalised() {
    for (written, sent, served) in [
        ("/a/../b", "/b", true),
        ("/%61//c", "/a/c/d", true),
        ("/a%2Fc", "/a%2Fc", true),
        ("/a%2Fc", "/a/c", false),
        ("/a%2Fc", "/a%2fc", false),
        ("/x|y", "/x%7Cy/z", true),
        ("/a/", "/a", true),
    ] {
        let routes = json!([{ "conditions": [{ "prefix": written }], "services": to("web") }]);
        let of_proxy = proxy("a/p", json!({ "virtualhost": { "fqdn": "p.test" }, "routes": routes }));
        let routes = json!([{ "match": written, "services": to("web") }]);
        let of_route = ingress_route("a/r", json!({ "virtualhost": { "fqdn": "r.test" }, "routes": routes }));
        let world = World::new([vec![of_proxy, of_route], backends(&["a/web"])].concat());
        let expected = if served { "a/web" } else { "404" };
        assert_eq!(world.get(&format!("http://p.test{sent}")), expected, "{written} {sent}");
        assert_eq!(world.get(&format!("http://r.test{sent}")), expected, "{written} {sent}");
    }
    // A delegate's prefix is checked in the form in which it is compared.
    let world = World::new(
        [
            vec![
                ingress_route(
                    "a/root",
                    json!({ "virtualhost": { "fqdn": "h.test" }, "routes": [
                        { "match": "/part", "delegate": { "name": "out", "namespace": "b" } },
                    ] }),
                ),
                ingress_route("b/out", json!({ "routes": [{ "match": "/part/../own", "services": to("web") }] })),
            ],
            backends(&["b/web"]),
        ]
        .concat(),
    );
    let rejected = "invalid: the path prefix \"/own\" does not match the parent's path prefix \"/part\"";
    assert_eq!(world.ingress("b/out"), rejected);
    assert_eq!(world.get("http://h.test/part/../own"), "404");
}

#[test]
fn prefixes_are_replaced_in_the_normal_path() {
    let rewrite = json!({ "replacePrefix": [
        { "prefix": "/a/./b", "replacement": "/new" },
        { "replacement": "/other" },
    ] });
    let routes = json!([{ "conditions": [{ "prefix": "/a/b" }], "services": to("web"), "pathRewritePolicy": rewrite }]);
    let spec = json!({ "virtualhost": { "fqdn": "h.test" }, "routes": routes });
    let world = World::new([vec![proxy("a/p", spec)], backends(&["a/web"])].concat());
    assert_eq!(world.get("http://h.test/a/x/../b/c"), "a/web /a/b→/new");
}
