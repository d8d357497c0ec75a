//! Replaced prefixes, and the `Location` of redirects.

use router_model::names::Hostname;

use super::*;

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
        // Cases that are not in its table.
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

fn to() -> RedirectTo {
    RedirectTo { scheme: None, hostname: None, port: None, path: None, status: 302 }
}

#[test]
fn locations_have_the_rules_values_and_otherwise_the_requests() {
    let prefix = |text: &str| Some(PathChange::Prefix(text.into()));
    let https = || Some("https".into());
    let http = || Some("http".into());
    let to_router = || RedirectTo { scheme: https(), port: Some(RedirectPort::RouterHttps), ..to() };
    let hostname = || Some(Hostname::parse("new.test").unwrap());
    let cases = [
        (to(), (false, 80), "a.test", "/p/x?q=1", "http://a.test/p/x?q=1"),
        (to(), (false, 8080), "a.test", "/", "http://a.test:8080/"),
        (to(), (false, 8080), "a.test:9999", "/", "http://a.test:8080/"),
        (to(), (true, 443), "a.test:8443", "/", "https://a.test/"),
        (to(), (true, 8443), "a.test", "/", "https://a.test:8443/"),
        (RedirectTo { hostname: hostname(), ..to() }, (false, 80), "a.test", "/p", "http://new.test/p"),
        (RedirectTo { scheme: https(), ..to() }, (false, 8080), "a.test", "/", "https://a.test/"),
        (RedirectTo { scheme: https(), ..to() }, (false, 8080), "a.test:8080", "/", "https://a.test/"),
        (RedirectTo { scheme: http(), ..to() }, (true, 8443), "a.test", "/", "http://a.test/"),
        (
            RedirectTo { scheme: https(), port: Some(RedirectPort::Number(8443)), ..to() },
            (false, 80),
            "a.test",
            "/",
            "https://a.test:8443/",
        ),
        (
            RedirectTo { scheme: https(), port: Some(RedirectPort::Number(443)), ..to() },
            (false, 80),
            "a.test",
            "/",
            "https://a.test/",
        ),
        (
            RedirectTo { port: Some(RedirectPort::Number(443)), ..to() },
            (false, 8080),
            "a.test",
            "/",
            "http://a.test:443/",
        ),
        (RedirectTo { port: Some(RedirectPort::Number(80)), ..to() }, (false, 8080), "a.test", "/", "http://a.test/"),
        (RedirectTo { path: prefix("/new"), ..to() }, (false, 80), "a.test", "/p/x?q", "http://a.test/new/x?q"),
        (
            RedirectTo { path: Some(PathChange::Full("/f".into())), ..to() },
            (false, 80),
            "a.test",
            "/p/x?q",
            "http://a.test/f?q",
        ),
        (to_router(), (false, 8080), "a.test:8080", "/p?q", "https://a.test:8443/p?q"),
        (to_router(), (false, 8080), "a.test", "/", "https://a.test/"),
        // A load balancer in between maps ports.
        (to_router(), (false, 8080), "a.test:80", "/", "https://a.test/"),
        (to_router(), (false, 8080), "[2001:db8::1]:8080", "/", "https://[2001:db8::1]:8443/"),
        (to(), (false, 80), "192.0.2.1:8080", "/", "http://192.0.2.1/"),
        (to(), (false, 80), "[2001:db8::1]:8080", "/", "http://[2001:db8::1]/"),
        (to(), (false, 80), "[2001:db8::1]", "/", "http://[2001:db8::1]/"),
        (to(), (false, 80), "A.test.:80", "/", "http://A.test./"),
    ];
    for (to, (tls, port), authority, target, expected) in cases {
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let from = RedirectFrom { tls, port, https_port: Some(8443), authority, path, query };
        assert_eq!(of_rule(&to, "/p", &from), expected, "{to:?} {authority:?}");
    }
}

#[test]
fn only_an_unusual_https_port_is_named() {
    let location = |port| to_https("a.test", port, "/x?y=z");
    assert_eq!(location(None), "https://a.test/x?y=z");
    assert_eq!(location(Some(443)), "https://a.test/x?y=z");
    assert_eq!(location(Some(8443)), "https://a.test:8443/x?y=z");
}
