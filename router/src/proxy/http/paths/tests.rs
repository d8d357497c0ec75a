use std::sync::Arc;

use router_core::gateway::spec::RequestMatcher;
use router_core::model::Hostname;

use super::*;
use crate::proxy::testing::route;

#[test]
fn prefixes_are_replaced_as_the_api_says() {
    let cases = [
        // HTTPPathModifier.replacePrefixMatch
        ("/foo/bar", "/foo", "/xyz", "/xyz/bar"),
        ("/foo/bar", "/foo", "/xyz/", "/xyz/bar"),
        ("/foo/bar", "/foo/", "/xyz", "/xyz/bar"),
        ("/foo/bar", "/foo/", "/xyz/", "/xyz/bar"),
        ("/foo", "/foo", "/xyz", "/xyz"),
        ("/foo/", "/foo", "/xyz", "/xyz/"),
        ("/foo/bar", "/foo", "", "/bar"),
        ("/foo/", "/foo", "", "/"),
        ("/foo", "/foo", "", "/"),
        ("/foo/", "/foo", "/", "/"),
        ("/foo", "/foo", "/", "/"),
        // And what it has no line for.
        ("/", "/", "/xyz", "/xyz/"),
        ("/x", "/", "/xyz", "/xyz/x"),
        ("/x", "/", "/", "/x"),
        ("/foo//x", "/foo", "/", "//x"),
        ("/foo/x", "/foo", "xyz", "/xyz/x"),
        ("/foo/%2f", "/foo", "/a%20b", "/a%20b/%2f"),
    ];
    for (path, prefix, replacement, expected) in cases {
        let change = PathChange::Prefix(replacement.into());
        assert_eq!(changed(&change, prefix, path), expected, "{path} {prefix} {replacement}");
    }
    assert_eq!(changed(&PathChange::Full("/all".into()), "/foo", "/foo/bar"), "/all");
    assert_eq!(changed(&PathChange::Full("".into()), "/foo", "/foo/bar"), "/");
}

#[test]
fn a_rewritten_path_keeps_its_query_and_its_host() {
    let cases = [
        ("/old/x?y=/old", "/new/x?y=/old"),
        ("/old?", "/new?"),
        ("https://a.test:8443/old/../x", "https://a.test:8443/new/../x"),
    ];
    for (uri, expected) in cases {
        let uri: Uri = uri.parse().unwrap();
        let path = changed(&PathChange::Prefix("/new".into()), "/old", uri.path());
        assert_eq!(rewritten(&uri, path).unwrap(), expected, "{uri}");
    }
    assert_eq!(rewritten(&"/x".parse().unwrap(), "/a b".to_owned()), None);
}

fn to() -> RedirectTo {
    RedirectTo { scheme: None, hostname: None, port: None, path: None, status: 302 }
}

#[test]
fn locations_name_what_the_rule_says_and_else_what_was_asked_for() {
    let prefix = |text: &str| Some(PathChange::Prefix(text.into()));
    let https = || Some("https".into());
    let http = || Some("http".into());
    let hostname = || Some(Hostname::parse("new.test").unwrap());
    let cases = [
        (to(), (false, 80), "a.test", "/p/x?q=1", "http://a.test/p/x?q=1"),
        (to(), (false, 8080), "a.test", "/", "http://a.test:8080/"),
        (to(), (false, 8080), "a.test:9999", "/", "http://a.test:8080/"),
        (to(), (true, 443), "a.test:8443", "/", "https://a.test/"),
        (to(), (true, 8443), "a.test", "/", "https://a.test:8443/"),
        (RedirectTo { hostname: hostname(), ..to() }, (false, 80), "a.test", "/p", "http://new.test/p"),
        (RedirectTo { scheme: https(), ..to() }, (false, 8080), "a.test", "/", "https://a.test/"),
        (RedirectTo { scheme: http(), ..to() }, (true, 8443), "a.test", "/", "http://a.test/"),
        (RedirectTo { scheme: https(), port: Some(8443), ..to() }, (false, 80), "a.test", "/", "https://a.test:8443/"),
        (RedirectTo { scheme: https(), port: Some(443), ..to() }, (false, 80), "a.test", "/", "https://a.test/"),
        (RedirectTo { port: Some(443), ..to() }, (false, 8080), "a.test", "/", "http://a.test:443/"),
        (RedirectTo { port: Some(80), ..to() }, (false, 8080), "a.test", "/", "http://a.test/"),
        (RedirectTo { path: prefix("/new"), ..to() }, (false, 80), "a.test", "/p/x?q", "http://a.test/new/x?q"),
        (
            RedirectTo { path: Some(PathChange::Full("/f".into())), ..to() },
            (false, 80),
            "a.test",
            "/p/x?q",
            "http://a.test/f?q",
        ),
        (to(), (false, 80), "192.0.2.1:8080", "/", "http://192.0.2.1/"),
        (to(), (false, 80), "[2001:db8::1]:8080", "/", "http://[2001:db8::1]/"),
        (to(), (false, 80), "[2001:db8::1]", "/", "http://[2001:db8::1]/"),
        (to(), (false, 80), "A.test.:80", "/", "http://A.test./"),
    ];
    for (to, (tls, port), authority, target, expected) in cases {
        let rule = Rule {
            matcher: RequestMatcher::default(),
            path_form: Default::default(),
            prefix: "/p".into(),
            route: Arc::new(route(&[], Default::default())),
            origin: "".into(),
        };
        let (authority, uri) = (HeaderValue::from_static(authority), target.parse().unwrap());
        let response = redirect(&rule, &to, &RedirectFrom { tls, port, authority: &authority, uri: &uri }).unwrap();
        assert_eq!(response.headers()[LOCATION], expected, "{to:?} {authority:?}");
        assert_eq!(response.status(), StatusCode::FOUND);
    }
}
