//! Fields of requests and responses, before and after preparation.

use super::*;

fn map(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    headers
}

/// A connection to port 443 from this address. Leaked, so that it lives as long as its view.
fn connected(client: &str) -> &'static ForwardedValues {
    Box::leak(Box::new(ForwardedValues::of(client.parse().unwrap(), ([127, 0, 0, 1], 443).into())))
}

fn view(authority: &str) -> ClientView<'static> {
    ClientView {
        forwarded: connected("192.0.2.7"),
        tls: true,
        version: Version::HTTP_11,
        authority: Box::leak(Box::new(HeaderValue::from_str(authority).unwrap())),
        policy: ForwardedHeaders::Append,
        certificate: None,
        as_sent: false,
    }
}

fn all<'h>(headers: &'h HeaderMap, name: &str) -> Vec<&'h str> {
    headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
}

#[test]
fn hop_by_hop_fields_go_and_protected_ones_stay() {
    let mut headers = map(&[
        ("connection", "close, X-Mine, host, X-Forwarded-For, content-length"),
        ("connection", "keep-alive"),
        ("keep-alive", "5"),
        ("te", "gzip, trailers"),
        ("proxy-connection", "keep-alive"),
        ("x-mine", "1"),
        ("x-other", "2"),
        ("content-length", "3"),
        ("x-forwarded-for", "198.51.100.1"),
    ]);
    assert_eq!(prepare_request(&mut headers, &view("a.test")), None);
    for gone in ["connection", "keep-alive", "proxy-connection", "x-mine"] {
        assert!(!headers.contains_key(gone), "{gone}");
    }
    assert_eq!(all(&headers, "te"), ["trailers"]);
    assert_eq!(all(&headers, "x-other"), ["2"]);
    assert_eq!(all(&headers, "content-length"), ["3"]);
    assert_eq!(all(&headers, "host"), ["a.test"]);
    assert_eq!(all(&headers, "x-forwarded-for"), ["198.51.100.1", "192.0.2.7"]);
}

#[test]
fn a_length_beside_a_coding_goes_with_it() {
    let mut headers = map(&[("transfer-encoding", "chunked"), ("content-length", "3"), ("x-mine", "1")]);
    prepare_response(&mut headers);
    assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["x-mine"]);
    let mut headers = map(&[("content-length", "3")]);
    prepare_response(&mut headers);
    assert_eq!(all(&headers, "content-length"), ["3"]);
}

#[test]
fn forged_fields_go() {
    let mut headers = map(&[
        ("proxy", "http://evil.test"),
        ("x-ssl", "1"),
        ("x-ssl-client-cn", "admin"),
        ("x_ssl_client_cn", "admin"),
        ("x_forwarded_for", "198.51.100.1"),
        ("x_real_name", "kept"),
    ]);
    prepare_request(&mut headers, &view("a.test"));
    for gone in ["proxy", "x-ssl", "x-ssl-client-cn", "x_ssl_client_cn", "x_forwarded_for"] {
        assert!(!headers.contains_key(gone), "{gone}");
    }
    assert_eq!(all(&headers, "x_real_name"), ["kept"]);
}

#[test]
fn forwarded_is_appended_and_quoted() {
    let mut headers = map(&[("forwarded", "for=198.51.100.1"), ("x-forwarded-proto", "http")]);
    let six = ClientView { forwarded: connected("2001:db8::1"), version: Version::HTTP_2, ..view("a.test:8443") };
    prepare_request(&mut headers, &six);
    let forwarded = "for=\"[2001:db8::1]\";host=\"a.test:8443\";proto=https";
    assert_eq!(all(&headers, "forwarded"), ["for=198.51.100.1", forwarded]);
    assert_eq!(all(&headers, "x-forwarded-proto"), ["http", "https"]);
    assert_eq!(all(&headers, "x-forwarded-host"), ["a.test:8443"]);
    assert_eq!(all(&headers, "x-forwarded-port"), ["443"]);
    assert_eq!(all(&headers, "x-forwarded-proto-version"), ["h2"]);
}

#[test]
fn upgrades_pass_only_when_requested_on_http1_and_not_to_http2() {
    let websocket = [("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")];
    let mut headers = map(&websocket);
    assert_eq!(prepare_request(&mut headers, &view("a.test")), Some(HeaderValue::from_static("websocket")));
    assert_eq!(all(&headers, "connection"), ["upgrade"]);
    assert_eq!(all(&headers, "upgrade"), ["websocket"]);

    let mut headers = map(&[("upgrade", "websocket")]);
    assert_eq!(prepare_request(&mut headers, &view("a.test")), None);
    assert!(!headers.contains_key("upgrade"));

    let mut headers = map(&[("connection", "Upgrade, HTTP2-Settings"), ("upgrade", "h2c"), ("http2-settings", "x")]);
    assert_eq!(prepare_request(&mut headers, &view("a.test")), None);
    assert!(!headers.contains_key("http2-settings"));

    let mut headers = map(&websocket);
    let old = ClientView { version: Version::HTTP_10, ..view("a.test") };
    assert_eq!(prepare_request(&mut headers, &old), None);
}

/// Fields of outer proxies.
const OUTER: [(&str, &str); 6] = [
    ("x-forwarded-for", "198.51.100.1"),
    ("x-forwarded-host", "outer.test"),
    ("x-forwarded-port", "80"),
    ("x-forwarded-proto", "http"),
    ("x-forwarded-proto-version", "h2"),
    ("forwarded", "for=198.51.100.1"),
];

fn forwarded(policy: ForwardedHeaders, sent: &[(&str, &str)]) -> HeaderMap {
    let mut headers = map(sent);
    prepare_request(&mut headers, &ClientView { policy, ..view("a.test") });
    headers
}

#[test]
fn replace_leaves_the_routers_own_alone() {
    let headers = forwarded(ForwardedHeaders::Replace, &OUTER);
    let own = [
        ("x-forwarded-for", "192.0.2.7"),
        ("x-forwarded-host", "a.test"),
        ("x-forwarded-port", "443"),
        ("x-forwarded-proto", "https"),
        ("forwarded", "for=192.0.2.7;host=a.test;proto=https"),
    ];
    for (name, value) in own {
        assert_eq!(all(&headers, name), [value], "{name}");
    }
    assert!(!headers.contains_key("x-forwarded-proto-version"));
    assert_eq!(forwarded(ForwardedHeaders::Replace, &[]), headers);
}

#[test]
fn if_none_fills_each_gap_for_itself() {
    let headers = forwarded(ForwardedHeaders::IfNone, &OUTER);
    for (name, value) in OUTER {
        assert_eq!(all(&headers, name), [value], "{name}");
    }
    assert_eq!(
        forwarded(ForwardedHeaders::IfNone, &[]),
        forwarded(ForwardedHeaders::Append, &[]),
        "nothing was sent, so everything is told"
    );
    // `Forwarded` repeats the effective scheme, whichever proxy set it.
    let headers = forwarded(ForwardedHeaders::IfNone, &[("x-forwarded-proto", "ws, http"), ("x-forwarded-for", "::1")]);
    assert_eq!(all(&headers, "x-forwarded-for"), ["::1"]);
    assert_eq!(all(&headers, "x-forwarded-host"), ["a.test"]);
    assert_eq!(all(&headers, "x-forwarded-proto"), ["ws, http"]);
    assert_eq!(all(&headers, "forwarded"), ["for=192.0.2.7;host=a.test;proto=http"]);
    let smuggled = forwarded(ForwardedHeaders::IfNone, &[("x-forwarded-proto", "http;for=10.0.0.1")]);
    assert_eq!(all(&smuggled, "forwarded"), ["for=192.0.2.7;host=a.test;proto=https"]);
}

#[test]
fn never_leaves_what_was_sent() {
    let headers = forwarded(ForwardedHeaders::Never, &OUTER);
    for (name, value) in OUTER {
        assert_eq!(all(&headers, name), [value], "{name}");
    }
    assert_eq!(forwarded(ForwardedHeaders::Never, &[]), map(&[("host", "a.test")]));
    // Forged fields are removed under every policy, unless the kernel may carry the request as well.
    let forged = [("proxy", "http://evil.test"), ("x-ssl-client-cn", "admin"), ("x_forwarded_for", "1")];
    assert_eq!(forwarded(ForwardedHeaders::Never, &forged), map(&[("host", "a.test")]));
    let mut headers = map(&forged);
    let as_sent = ClientView { policy: ForwardedHeaders::Never, as_sent: true, ..view("a.test") };
    prepare_request(&mut headers, &as_sent);
    for (name, value) in forged {
        assert_eq!(all(&headers, name), [value], "{name}");
    }
}

#[test]
fn each_field_of_its_own_has_its_bit() {
    let bits: Vec<u8> = OWN_FIELDS.iter().map(|name| OwnFields::bit(name.as_str())).collect();
    assert_eq!(bits, [1, 2, 4, 8, 16, 32]);
    assert_eq!(["host", "tea", "connections"].map(OwnFields::bit), [0; 3]);
}
