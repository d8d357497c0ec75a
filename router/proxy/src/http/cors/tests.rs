//! Origins that match, and the fields of CORS responses.

use super::*;

fn texts(texts: &[&str]) -> Vec<Arc<str>> {
    texts.iter().map(|text| (*text).into()).collect()
}

fn of(headers: &[(&'static str, &'static str)]) -> HeaderMap {
    headers.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
}

fn written(headers: &HeaderMap) -> Vec<String> {
    let mut lines: Vec<_> =
        headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
    lines.sort();
    lines
}

#[test]
fn origins_are_compared_by_scheme_host_and_port() {
    let cases = [
        ("*", "https://a.test", true),
        ("*", "null", true),
        ("https://a.test", "https://a.test", true),
        ("https://a.test", "HTTPS://A.test", true),
        ("https://a.test", "https://a.test:443", true),
        ("https://a.test:443", "https://a.test", true),
        ("http://a.test:80", "http://a.test", true),
        ("https://a.test", "http://a.test", false),
        ("https://a.test", "https://a.test:8443", false),
        ("https://a.test:8443", "https://a.test:8443", true),
        ("https://a.test", "https://b.a.test", false),
        ("https://a.test", "https://a.test.evil.test", false),
        ("https://a.test", "null", false),
        ("https://*.a.test", "https://b.a.test", true),
        ("https://*.a.test", "https://c.b.a.test", true),
        ("https://*.a.test", "https://a.test", false),
        ("https://*.a.test", "https://.a.test", false),
        ("https://*.a.test", "https://evila.test", false),
        ("https://*.a.test", "https://b.a.test:8443", false),
        ("https://*.a.test:8443", "https://b.a.test:8443", true),
        ("https://*", "https://whatever.test", true),
        ("https://*", "http://whatever.test", false),
        ("https://[2001:db8::1]", "https://[2001:db8::1]", true),
        ("https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443", true),
        ("https://a.test", "https://a.test:x", false),
        ("https://a.test", "", false),
    ];
    for (pattern, origin, expected) in cases {
        assert_eq!(allows(pattern, origin), expected, "{pattern} {origin}");
    }
}

/// Fields of preflight and actual response to a request.
fn say(cors: Cors, request: &[(&'static str, &'static str)]) -> (Vec<String>, Vec<String>) {
    let sharing = CorsGrant::with(&Arc::new(cors), &of(request));
    let preflight = sharing.preflight(&of(request));
    assert_eq!(preflight.status(), StatusCode::NO_CONTENT);
    let mut actual = of(&[("access-control-allow-origin", "https://endpoint.test"), ("x", "1")]);
    sharing.set_fields(&mut actual);
    actual.remove("x");
    (written(preflight.headers()), written(&actual))
}

const ASKED: [(&str, &str); 3] = [
    ("origin", "https://a.test"),
    ("access-control-request-method", "PUT"),
    ("access-control-request-headers", "x-one,authorization"),
];
const VARIES: &str = "vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers";

#[test]
fn lists_are_sent_to_allowed_origins() {
    let cors = Cors {
        origins: texts(&["https://b.test", "https://a.test"]),
        credentials: true,
        methods: texts(&["GET", "PUT"]),
        headers: texts(&["X-One", "X-Two"]),
        expose: texts(&["X-Three", "*"]),
        max_age: 3600,
        ..Cors::default()
    };
    let (preflight, actual) = say(cors.clone(), &ASKED);
    assert_eq!(
        preflight,
        [
            "access-control-allow-credentials: true",
            "access-control-allow-headers: X-One, X-Two",
            "access-control-allow-methods: GET, PUT",
            "access-control-allow-origin: https://a.test",
            "access-control-max-age: 3600",
            VARIES,
        ]
    );
    assert_eq!(
        actual,
        [
            "access-control-allow-credentials: true",
            "access-control-allow-origin: https://a.test",
            "access-control-expose-headers: X-Three",
            "vary: Origin",
        ]
    );
    for origin in [&[("origin", "https://c.test")][..], &[]] {
        assert_eq!(say(cors.clone(), origin), (vec![VARIES.to_owned()], vec!["vary: Origin".to_owned()]));
    }
    let nothing = Cors { origins: texts(&["https://a.test"]), max_age: 5, ..Cors::default() };
    let (preflight, actual) = say(nothing, &ASKED);
    assert_eq!(preflight, ["access-control-allow-origin: https://a.test", "access-control-max-age: 5", VARIES]);
    assert_eq!(actual, ["access-control-allow-origin: https://a.test", "vary: Origin"]);
}

#[test]
fn everything_is_not_sent_as_a_star_where_cookies_are_allowed() {
    let all = |credentials| Cors {
        origins: texts(&["*"]),
        credentials,
        methods: texts(&["*"]),
        headers: texts(&["*"]),
        expose: texts(&["*"]),
        max_age: 5,
        ..Cors::default()
    };
    let (preflight, actual) = say(all(true), &ASKED);
    assert_eq!(
        preflight,
        [
            "access-control-allow-credentials: true",
            "access-control-allow-headers: x-one,authorization",
            "access-control-allow-methods: PUT",
            "access-control-allow-origin: https://a.test",
            "access-control-max-age: 5",
            VARIES,
        ]
    );
    let expected =
        ["access-control-allow-credentials: true", "access-control-allow-origin: https://a.test", "vary: Origin"];
    assert_eq!(actual, expected);
    // The request asks for nothing.
    let (preflight, _) = say(all(true), &ASKED[..1]);
    assert!(!preflight.iter().any(|line| line.contains("headers:") || line.contains("methods:")), "{preflight:?}");

    let (preflight, actual) = say(all(false), &ASKED[..2]);
    assert_eq!(
        preflight,
        [
            "access-control-allow-headers: *",
            "access-control-allow-methods: PUT",
            "access-control-allow-origin: *",
            "access-control-max-age: 5",
            VARIES,
        ]
    );
    let all_see = ["access-control-allow-origin: *", "access-control-expose-headers: *"];
    assert_eq!(actual, all_see);
    // A cache may serve the response to a request without Origin to others.
    assert_eq!(say(all(false), &[]).1, all_see);
}
