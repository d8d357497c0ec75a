//! Look-ups in tables with host rules: tables of cases, and a naive model.

use std::borrow::Cow;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, subsequence};
use router_model::kind::Kind;
use router_model::names::{HostMatch, PathMatch, RouteId, RouterName};
use router_model::object::{ObjectKey, ObjectRef};
use router_model::one_or_many::OneOrMany;
use router_model::persistent::KeyedMap;

use super::request::is_under;
use super::*;
use crate::matchers::{PathMatcher, RequestMatcher, ValueMatcher};
use crate::path_form::PathForm;
use crate::pattern::{Flags, Pattern};
use crate::policy::forwarded::ForwardedHeaders;
use crate::rule::{HostRules, HostRulesTls};
use crate::table::{Cluster, HostIndex};

fn name(text: &str) -> Hostname {
    Hostname::parse(text).unwrap()
}

fn host(text: &str) -> HostMatch {
    match (text, text.strip_prefix("*."), text.strip_prefix("**.")) {
        ("*", ..) => HostMatch::Any,
        (_, Some(domain), _) => HostMatch::Wildcard(name(domain)),
        (_, _, Some(domain)) => HostMatch::Suffix(name(domain)),
        _ => HostMatch::Exact(name(text)),
    }
}

fn resolved(kind: Kind, called: &str, host: HostMatch, serves: RouteKind) -> Arc<ResolvedRoute> {
    Arc::new(ResolvedRoute {
        id: RouteId { namespace: "ns".into(), name: called.into(), kind, part: 0 },
        host,
        is_plain: ResolvedRoute::is_plain(&serves, None),
        kind: serves,
        cluster: Cluster::default(),
        rare: None,
        proxy_protocol: false,
        forwarded: ForwardedHeaders::default(),
        request_work: false,
        relay_only: false,
        policy: Arc::default(),
        rule: None,
        derived: Default::default(),
    })
}

fn rule(called: &str, matcher: RequestMatcher) -> Arc<Rule> {
    let serves = RouteKind::Http { path: PathMatch::any(), tls: None };
    let route = resolved(Kind::HttpRoute, called, HostMatch::Any, serves);
    Arc::new(Rule { matcher, path_form: PathForm::AsSent, prefix: "/".into(), route, origin: called.into() })
}

fn prefix(path: &str) -> RequestMatcher {
    RequestMatcher { path: PathMatcher::Prefix(path.into()), ..RequestMatcher::default() }
}

type Rules = Option<Vec<Arc<Rule>>>;

fn with_rules(host_text: &str, cleartext: Rules, tls: Rules) -> Arc<VirtualHost> {
    let shown_by = ObjectRef { kind: Kind::Gateway, key: ObjectKey::new("shop", "g") };
    let tls = tls.map(|rules| HostRulesTls {
        shown_by,
        certificates: Vec::new(),
        minimum: None,
        rules: rules.into(),
        tcp: None,
    });
    let owner = ObjectRef { kind: Kind::HttpRoute, key: ObjectKey::new("ns", "owner") };
    let host_rules = HostRules {
        owner,
        listener: "Gateway ns/g#l".into(),
        cleartext_listener: None,
        cleartext: cleartext.map(Arc::from),
        tls,
    };
    Arc::new(VirtualHost { rules: Some(Box::new(host_rules)), ..empty(host_text) })
}

fn empty(host_text: &str) -> VirtualHost {
    VirtualHost {
        host: host(host_text),
        passthrough: None,
        terminated: OneOrMany::default(),
        cleartext: OneOrMany::default(),
        certificate: None,
        rules: None,
    }
}

/// A host of one Route, in clear text and over TLS.
fn of_route(host_text: &str, path: &str) -> Arc<VirtualHost> {
    let serves = RouteKind::Http { path: PathMatch::parse(path).unwrap(), tls: None };
    let route = resolved(Kind::Route, host_text, host(host_text), serves);
    let routes = || OneOrMany::from(vec![Arc::clone(&route)]);
    Arc::new(VirtualHost { terminated: routes(), cleartext: routes(), ..empty(host_text) })
}

fn passed(kind: Kind, host_text: &str) -> Arc<VirtualHost> {
    let route = resolved(kind, host_text, host(host_text), RouteKind::Passthrough { redirect: false });
    Arc::new(VirtualHost { passthrough: Some(route), ..empty(host_text) })
}

fn router(hosts: Vec<Arc<VirtualHost>>) -> RouterTable {
    let mut router = RouterTable {
        name: RouterName("default".into()),
        id: 1,
        domain: "apps.test".to_owned(),
        http_port: Some(80),
        https_port: Some(443),
        default_certificate: None,
        policy: Arc::default(),
        hosts: HostIndex::default(),
        routes: KeyedMap::default(),
        common_allow: None,
    };
    router.hosts.extend(hosts);
    router
}

fn outcome(found: &RequestMatch<'_>) -> String {
    match found {
        RequestMatch::Forward(route) => format!("route {}", route.id.name),
        RequestMatch::RedirectToHttps(route) => format!("redirect {}", route.id.name),
        RequestMatch::Rule(rule) => rule.origin.to_string(),
        RequestMatch::PassedThrough => "421".to_owned(),
        RequestMatch::Closed => "404".to_owned(),
        RequestMatch::NoRoute => "503".to_owned(),
    }
}

/// The entry stored with a host's hash belongs to the newest version of the host.
#[test]
fn a_hosts_only_route_is_found_without_the_host_as_long_as_it_is_the_only_one() {
    let serves = |path| RouteKind::Http { path: PathMatch::parse(path).unwrap(), tls: None };
    let route = |called, path| resolved(Kind::Route, called, host("a.test"), serves(path));
    let of = |routes: Vec<_>| Arc::new(VirtualHost { cleartext: OneOrMany::from(routes), ..empty("a.test") });
    let mut router = router(vec![of(vec![route("first", "")]), of_route("b.test", "/only")]);
    let plain =
        |router: &RouterTable, host| router.hosts.exact.get_with_plain(host)?.1.map(|route| route.id.name.to_string());
    let asked = |router: &RouterTable, path: &str| outcome(&router.match_cleartext_request(&name("a.test"), path));
    assert_eq!(plain(&router, "a.test").as_deref(), Some("first"));
    assert_eq!(asked(&router, "/deep"), "route first");
    assert_eq!((plain(&router, "b.test"), plain(&router, "c.test")), (None, None));

    router.hosts.extend(vec![of(vec![route("deep", "/deep"), route("first", "")])]);
    assert_eq!(plain(&router, "a.test"), None);
    assert_eq!((asked(&router, "/deep"), asked(&router, "/")), ("route deep".into(), "route first".into()));

    router.hosts.extend(vec![of(vec![route("second", "")])]);
    assert_eq!((plain(&router, "a.test").as_deref(), asked(&router, "/deep")), (Some("second"), "route second".into()));

    let deep = || Some(vec![rule("rule", prefix("/deep"))]);
    let kept = VirtualHost { cleartext: OneOrMany::from(vec![route("second", "")]), ..empty("a.test") };
    let rules = Arc::into_inner(with_rules("a.test", deep(), None)).unwrap().rules;
    router.hosts.extend(vec![Arc::new(VirtualHost { rules, ..kept })]);
    assert_eq!((plain(&router, "a.test"), asked(&router, "/")), (None, "404".into()));

    router.hosts.exact.remove(&name("a.test"));
    assert_eq!((plain(&router, "a.test"), asked(&router, "/deep")), (None, "503".into()));
}

#[test]
fn the_most_specific_host_has_the_request() {
    let all = |called: &str| Some(vec![rule(called, prefix("/"))]);
    let of = |host: &str| with_rules(host, all(host), all(host));
    let closed = with_rules("closed.a.test", Some(vec![rule("deep", prefix("/deep"))]), None);
    let router = router(vec![
        of("www.a.test"),
        of("**.a.test"),
        of("**.b.a.test"),
        of_route("*.a.test", "/only"),
        of_route("x.c.test", "/only"),
        of("**.c.test"),
        closed,
    ]);
    let cases = [
        ("www.a.test", "/", "www.a.test"),
        // A Route's wildcard is narrower than a suffix of the same domain, and falls through for other paths.
        ("x.a.test", "/only/this", "route *.a.test"),
        ("x.a.test", "/", "**.a.test"),
        ("x.y.a.test", "/only", "**.a.test"),
        ("b.a.test", "/", "**.a.test"),
        ("x.b.a.test", "/", "**.b.a.test"),
        ("z.y.x.b.a.test", "/", "**.b.a.test"),
        // A Route's exact host falls through, too.
        ("x.c.test", "/", "**.c.test"),
        ("x.c.test", "/only", "route x.c.test"),
        // A host with rules does not.
        ("closed.a.test", "/deep/er", "deep"),
        ("closed.a.test", "/", "404"),
        ("closed.a.test", "/only", "404"),
        // A suffix does not match its own domain, and these hosts are unclaimed.
        ("a.test", "/", "503"),
        ("xa.test", "/", "503"),
        ("test", "/", "503"),
    ];
    for (host, path, expected) in cases {
        assert_eq!(outcome(&router.match_cleartext_request(&name(host), path)), expected, "{host}{path}");
    }
    // A host without rules for TLS is closed for TLS as well, and its certificate is the default.
    assert_eq!(outcome(&router.match_tls_request(&name("closed.a.test"), "/deep")), "404");
    assert!(matches!(router.match_sni(Some(&name("closed.a.test"))), SniMatch::Default));
    let SniMatch::Terminate(found) = router.match_sni(Some(&name("x.y.b.a.test"))) else { panic!("a site") };
    assert_eq!(found.host, host("**.b.a.test"));
}

#[test]
fn an_unclaimed_name_in_a_domain_is_not_found() {
    let mut router = router(vec![
        with_rules("a.d.test", Some(vec![rule("a", prefix("/"))]), None),
        of_route("r.d.test", "/only"),
        of_route("r.test", ""),
    ]);
    let cases = [
        ("a.d.test", "/", "a", "a"),
        ("b.d.test", "/", "503", "404"),
        ("c.b.d.test", "/", "503", "404"),
        // Neither the domain itself nor a name that only ends with its text is in the domain.
        ("d.test", "/", "503", "503"),
        ("bd.test", "/", "503", "503"),
        ("other.test", "/", "503", "503"),
        // A Route's host gets the response of Routes.
        ("r.d.test", "/only", "route r.d.test", "route r.d.test"),
        ("r.d.test", "/", "503", "503"),
    ];
    for (at, is_delegated) in [(0, false), (1, true)] {
        router.hosts.domains = Arc::new(is_delegated.then(|| name("d.test")).into_iter().collect());
        for (host, path, without, with) in cases {
            let expected = [without, with][at];
            assert_eq!(outcome(&router.match_cleartext_request(&name(host), path)), expected, "{host}{path}");
            let expected = if host == "a.d.test" { "404" } else { expected };
            assert_eq!(outcome(&router.match_tls_request(&name(host), path)), expected, "{host}{path} over TLS");
        }
    }
    assert_eq!(outcome(&router.match_cleartext_request(None, "/")), "503");
}

#[test]
fn what_has_no_name_is_for_the_host_of_every_name() {
    let all = || Some(vec![rule("any", prefix("/"))]);
    let with_any = router(vec![with_rules("*", all(), all()), of_route("r.test", "")]);
    for host in [Some(name("whatever.test")), Some(name("r")), None] {
        assert_eq!(outcome(&with_any.match_cleartext_request(host.as_ref(), "/")), "any", "{host:?}");
        assert_eq!(outcome(&with_any.match_tls_request(host.as_ref(), "/")), "any", "{host:?}");
        assert!(matches!(with_any.match_sni(host.as_ref()), SniMatch::Terminate(_)), "{host:?}");
    }
    assert_eq!(outcome(&with_any.match_tls_request(&name("r.test"), "/")), "route r.test");
    let without = router(vec![of_route("r.test", "")]);
    assert_eq!(outcome(&without.match_cleartext_request(None, "/")), "503");
    assert!(matches!(without.match_sni(None), SniMatch::Default));
}

#[test]
fn passthrough_is_found_by_every_kind_of_host() {
    let cleartext = VirtualHost {
        passthrough: passed(Kind::TlsRoute, "both.test").passthrough.clone(),
        ..Arc::into_inner(with_rules("both.test", Some(vec![rule("clear", prefix("/"))]), None)).unwrap()
    };
    let router = router(vec![
        passed(Kind::TlsRoute, "**.s.test"),
        passed(Kind::TlsRoute, "e.s.test"),
        with_rules("t.s.test", None, Some(Vec::new())),
        Arc::new(cleartext),
    ]);
    let sni = |host: &str| match router.match_sni(Some(&name(host))) {
        SniMatch::Passthrough(route) => route.id.name.to_string(),
        SniMatch::Terminate(host) => format!("terminated {}", host.host),
        SniMatch::Default => "default".to_owned(),
    };
    let cases = [
        ("e.s.test", "e.s.test"),
        ("x.e.s.test", "**.s.test"),
        ("x.s.test", "**.s.test"),
        ("t.s.test", "terminated t.s.test"),
        ("both.test", "both.test"),
        ("s.test", "default"),
    ];
    for (host, expected) in cases {
        assert_eq!(sni(host), expected, "{host}");
    }
    assert_eq!(outcome(&router.match_cleartext_request(&name("both.test"), "/")), "clear");
    assert_eq!(outcome(&router.match_tls_request(&name("x.s.test"), "/")), "421");
    assert_eq!(outcome(&router.match_tls_request(&name("both.test"), "/")), "421");
    // There are no Routes, so unclaimed hosts are not found.
    assert_eq!(outcome(&router.match_cleartext_request(&name("other.test"), "/")), "404");
}

#[test]
fn a_request_is_misdirected_where_its_name_would_have_been_passed_through() {
    let router = router(vec![passed(Kind::Route, "*.p.test"), of_route("tls.p.test", "/only")]);
    let cases = [
        ("x.p.test", "/", "421"),
        ("tls.p.test", "/only", "route tls.p.test"),
        // Its connections are terminated here, whatever the path.
        ("tls.p.test", "/", "503"),
    ];
    for (host, path, expected) in cases {
        assert_eq!(outcome(&router.match_tls_request(&name(host), path)), expected, "{host}{path}");
        let is_passed = matches!(router.match_sni(Some(&name(host))), SniMatch::Passthrough(_));
        assert_eq!(is_passed, expected == "421", "{host}");
    }
}

#[test]
fn a_router_without_routes_finds_nothing_and_one_with_routes_has_nothing() {
    let miss = |router: &RouterTable| outcome(&router.match_cleartext_request(&name("miss.test"), "/"));
    let mut router = router(vec![]);
    assert_eq!(miss(&router), "503");
    router.hosts.extend(vec![with_rules("a.test", None, None)]);
    assert_eq!(miss(&router), "404");
    router.hosts.extend(vec![of_route("a.test", ""), passed(Kind::Route, "p.test"), passed(Kind::TlsRoute, "t.test")]);
    assert_eq!(miss(&router), "503");
    router.hosts.extend(vec![with_rules("a.test", None, None), with_rules("a.test", None, None)]);
    router.hosts.remove(&host("p.test"));
    router.hosts.remove(&host("p.test"));
    assert_eq!(miss(&router), "404");
    router.hosts.remove(&host("a.test"));
    router.hosts.remove(&host("t.test"));
    assert_eq!(miss(&router), "503");
}

/// A request, written out.
#[derive(Debug, Default)]
struct Asked {
    method: &'static str,
    path: &'static str,
    query: Option<&'static str>,
    headers: Vec<(&'static str, &'static str)>,
}

impl Request for Asked {
    fn method(&self) -> &str {
        if self.method.is_empty() { "GET" } else { self.method }
    }

    fn path(&self) -> &str {
        self.path
    }

    fn query(&self) -> Option<&str> {
        self.query
    }

    fn header(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        joined(name, self.headers.iter().filter(|(own, _)| *own == name).map(|(_, value)| value.as_bytes()))
    }
}

fn whole(text: &str) -> Pattern {
    Pattern::new(text, Flags::default(), 1 << 18).unwrap()
}

fn exact(entries: &[(&str, &str)]) -> Vec<(Arc<str>, ValueMatcher)> {
    entries.iter().map(|(name, value)| ((*name).into(), ValueMatcher::Exact((*value).into()))).collect()
}

#[test]
fn paths_match_by_element() {
    let prefix = |path: &str| PathMatcher::Prefix(path.into());
    let cases = [
        (prefix("/"), "/", true),
        (prefix("/"), "/x/", true),
        (prefix("/a"), "/a", true),
        (prefix("/a"), "/a/", true),
        (prefix("/a"), "/a/b", true),
        (prefix("/a"), "/ab", false),
        (prefix("/a/"), "/a", true),
        (prefix("/a"), "/A", false),
        (prefix("/a"), "//a", false),
        (prefix("/a/b"), "/a", false),
        // Nothing is decoded or resolved: these are other elements.
        (prefix("/a"), "/%61", false),
        (prefix("/a"), "/x/../a", false),
        (prefix("/a"), "/a/../x", true),
        (PathMatcher::Exact("/a".into()), "/a", true),
        (PathMatcher::Exact("/a".into()), "/a/", false),
        (PathMatcher::Exact("/a".into()), "/a/b", false),
        (PathMatcher::Regex(whole("/[a-z]+|/a/.*")), "/abc", true),
        (PathMatcher::Regex(whole("/[a-z]+|/a/.*")), "/abc/d", false),
        (PathMatcher::Regex(whole("/[a-z]+|/a/.*")), "/a/1", true),
    ];
    for (matcher, path, expected) in cases {
        assert_eq!(matcher.matches(path), expected, "{matcher:?} {path}");
    }
}

#[test]
fn every_condition_must_match() {
    let headers = |entries: &[(&str, &str)]| RequestMatcher { headers: exact(entries), ..RequestMatcher::default() };
    let query = |entries: &[(&str, &str)]| RequestMatcher { query: exact(entries), ..RequestMatcher::default() };
    let sent = |headers: &[(&'static str, &'static str)]| Asked { headers: headers.to_vec(), ..Asked::default() };
    let asked = |query: &'static str| Asked { query: Some(query), ..Asked::default() };
    let method = || RequestMatcher { method: Some("POST".into()), ..RequestMatcher::default() };
    let some = |pattern: &str| {
        let entries = || vec![("v".into(), ValueMatcher::Regex(whole(pattern)))];
        RequestMatcher { headers: entries(), query: entries(), ..RequestMatcher::default() }
    };
    let both = |header: &'static str, query: &'static str| Asked { query: Some(query), ..sent(&[("v", header)]) };
    let cases = [
        (method(), Asked { method: "POST", ..Asked::default() }, true),
        (method(), Asked { method: "post", ..Asked::default() }, false),
        (method(), Asked::default(), false),
        (headers(&[("v", "1")]), sent(&[("v", "1")]), true),
        (headers(&[("v", "1")]), sent(&[("w", "1")]), false),
        (headers(&[("v", "1")]), sent(&[("v", "11")]), false),
        (headers(&[("v", "1")]), sent(&[]), false),
        (headers(&[("v", "")]), sent(&[("v", "")]), true),
        (headers(&[("v", "1"), ("w", "2")]), sent(&[("w", "2"), ("v", "1")]), true),
        (headers(&[("v", "1"), ("w", "2")]), sent(&[("v", "1")]), false),
        // The rule's first entry of a name applies; repeated fields of the request are one value.
        (headers(&[("v", "1"), ("v", "2")]), sent(&[("v", "1")]), true),
        (headers(&[("v", "1"), ("v", "2")]), sent(&[("v", "2")]), false),
        (headers(&[("v", "2")]), sent(&[("v", "1"), ("v", "2")]), false),
        (headers(&[("v", "1")]), sent(&[("v", "1"), ("v", "2")]), false),
        (headers(&[("v", "1,2,")]), sent(&[("v", "1"), ("w", "3"), ("v", "2"), ("v", "")]), true),
        (headers(&[("cookie", "a=1; b=2")]), sent(&[("cookie", "a=1"), ("cookie", "b=2")]), true),
        (query(&[("a", "1")]), asked("a=1"), true),
        (query(&[("a", "1")]), asked("b=2&a=1&a=3"), true),
        (query(&[("a", "3")]), asked("b=2&a=1&a=3"), false),
        (query(&[("a", "1"), ("a", "3")]), asked("a=1"), true),
        (query(&[("a", "1")]), asked("A=1"), false),
        (query(&[("a", "1")]), asked("a=1;b=2"), false),
        (query(&[("a", "1")]), Asked::default(), false),
        (query(&[("a", "")]), asked("a"), true),
        (query(&[("a", "")]), asked("a=&b"), true),
        (query(&[("a", "b=c")]), asked("a=b=c"), true),
        (query(&[("a b", "c&d")]), asked("%61%20b=c%26d"), true),
        (query(&[("a", "c d")]), asked("a=c+d"), false),
        (query(&[("a", "é")]), asked("a=%C3%a9"), true),
        (query(&[("a", "100%")]), asked("a=100%"), true),
        (query(&[("a", "%zz%4")]), asked("a=%zz%4"), true),
        (some("[0-9]+"), both("12", "v=12"), true),
        (some("[0-9]+"), both("12", "v=%31"), true),
        (some("[0-9]+"), both("12", "v=1x"), false),
        (some("[0-9]+"), both("x12", "v=1"), false),
        // Bytes that are not UTF-8 match no expression.
        (some(".*"), both("1", "v=%ff"), false),
    ];
    for (matcher, request, expected) in cases {
        assert_eq!(matcher.matches(PathForm::AsSent, &Asked { path: "/", ..request }), expected, "{matcher:?}");
    }
    let not_text = RequestMatcher { headers: vec![("v".into(), ValueMatcher::Regex(whole(".*")))], ..prefix("/") };
    struct Raw;
    impl Request for Raw {
        fn method(&self) -> &str {
            "GET"
        }
        fn path(&self) -> &str {
            "/"
        }
        fn query(&self) -> Option<&str> {
            None
        }
        fn header(&self, _: &str) -> Option<Cow<'_, [u8]>> {
            Some(Cow::Borrowed(b"\xff"))
        }
    }
    assert!(!not_text.matches(PathForm::AsSent, &Raw));
}

#[test]
fn a_path_alone_is_a_get_without_query_and_fields() {
    assert_eq!(("/a".method(), "/a".path(), "/a".query(), "/a".header("host")), ("GET", "/a", None, None));
}

#[test]
fn of_rules_the_first_that_matches_has_the_request() {
    let get = RequestMatcher { method: Some("GET".into()), ..prefix("/a") };
    let rules = vec![rule("first", get), rule("second", prefix("/a")), rule("third", prefix("/a/b"))];
    let router = router(vec![with_rules("r.test", Some(rules), None)]);
    let ask = |method, path| {
        outcome(&router.match_cleartext_request(&name("r.test"), &Asked { method, path, ..Asked::default() }))
    };
    assert_eq!(ask("GET", "/a/b"), "first");
    assert_eq!(ask("PUT", "/a/b"), "second");
    assert_eq!(ask("GET", "/b"), "404");
}

/// A small set of host patterns, from the narrowest to the widest.
const PATTERNS: [&str; 12] = [
    "c.b.a.test",
    "b.a.test",
    "a.test",
    "*.b.a.test",
    "**.b.a.test",
    "*.a.test",
    "**.a.test",
    "*.test",
    "**.test",
    "x.y.z.b.a.test",
    "test",
    "*",
];
const NAMES: [&str; 10] = [
    "c.b.a.test",
    "b.a.test",
    "a.test",
    "test",
    "d.b.a.test",
    "e.d.b.a.test",
    "x.y.z.b.a.test",
    "d.a.test",
    "d.test",
    "other",
];

/// Rank of a pattern among those that cover one name.
fn narrowness(host: &HostMatch) -> (u8, usize) {
    match host {
        HostMatch::Exact(_) => (3, 0),
        HostMatch::Wildcard(_) => (2, 0),
        HostMatch::Suffix(domain) => (1, domain.as_str().len()),
        HostMatch::Any => (0, 0),
    }
}

proptest! {
    #[test]
    fn hosts_are_looked_up_as_a_naive_search_finds_them(patterns in subsequence(PATTERNS.to_vec(), 0..PATTERNS.len())) {
        let hosts = patterns.iter().map(|host| with_rules(host, Some(vec![rule(host, prefix("/"))]), None)).collect();
        let router = router(hosts);
        for wanted in NAMES {
            let wanted = name(wanted);
            let mut covering: Vec<&&str> = patterns.iter().filter(|pattern| host(pattern).covers(&wanted)).collect();
            covering.sort_by_key(|pattern| std::cmp::Reverse(narrowness(&host(pattern))));
            let found: Vec<String> = router.candidates(&wanted).map(|found| {
                let rules = found.rules.as_ref().unwrap().cleartext.as_ref().unwrap();
                rules[0].origin.to_string()
            }).collect();
            prop_assert_eq!(&found, &covering.iter().map(|pattern| pattern.to_string()).collect::<Vec<_>>());
            let expected = covering.first().map_or(if patterns.is_empty() { "503" } else { "404" }, |pattern| **pattern);
            prop_assert_eq!(outcome(&router.match_cleartext_request(&wanted, "/")), expected);
        }
    }

    #[test]
    fn a_prefix_covers_the_paths_whose_elements_begin_with_its_own(
        path in "(/[ab]{0,2}){1,4}", prefix in "(/[ab]{1,2}){0,3}/?",
    ) {
        let elements = |path: &str| path.split('/').skip(1).map(str::to_owned).collect::<Vec<_>>();
        let wanted = elements(prefix.strip_suffix('/').unwrap_or(&prefix));
        prop_assert_eq!(is_under(&path, &prefix), elements(&path).starts_with(&wanted), "{} {}", path, prefix);
    }

    #[test]
    fn an_encoded_query_matches_as_what_it_says(
        pairs in vec(("[a-c%& =]{0,2}", "[ -~é]{0,4}"), 0..4), at in any::<Index>(), lower in any::<bool>(),
    ) {
        let encode = |text: &str| -> String {
            text.bytes().map(|byte| match byte {
                b'a' | b'b' => char::from(byte).to_string(),
                _ if lower => format!("%{byte:02x}"),
                _ => format!("%{byte:02X}"),
            }).collect()
        };
        let query = pairs.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
        let query: &'static str = Box::leak(query.collect::<Vec<_>>().join("&").into_boxed_str());
        prop_assume!(!pairs.is_empty());
        let (wanted, value) = &pairs[at.index(pairs.len())];
        let first = pairs.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
        let matcher = RequestMatcher { query: exact(&[(wanted, value)]), ..RequestMatcher::default() };
        let request = Asked { path: "/", query: Some(query), ..Asked::default() };
        prop_assert_eq!(matcher.matches(PathForm::AsSent, &request), first == Some(value), "{}", query);
    }
}
