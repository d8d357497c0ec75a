//! Forwarding fields that endpoints receive, by the route's policy, and fields that pass unchanged.

use router_table::policy::forwarded::ForwardedHeaders;
use router_table::table::InsecurePolicy;

use crate::tables::{Rig, Route};
use crate::{backends, client, pki};

/// The request's fields as the endpoint received them, sorted.
fn fields(answer: &client::Answer) -> Vec<&str> {
    assert_eq!(answer.status, 200, "{answer:?}");
    let mut fields: Vec<&str> = answer.body.lines().skip(1).take_while(|line| !line.is_empty()).collect();
    fields.sort_unstable();
    fields
}

#[tokio::test]
async fn four_policies_send_four_values() {
    let app = backends::http("app").await;
    // A path, so that no request is steered by the kernel.
    let route = |host, policy| Route::new(host, "/x").to(app).forwarded(policy);
    let rig = Rig::serve(&[
        route("told-append.test", ForwardedHeaders::Append),
        route("told-replace.test", ForwardedHeaders::Replace),
        route("told-if-none.test", ForwardedHeaders::IfNone),
        route("told-never.test", ForwardedHeaders::Never),
    ])
    .await;
    let ask = async |host: &str, sent: &str| {
        client::request(rig.http, &format!("GET /x HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{sent}\r\n")).await
    };
    let port = format!("x-forwarded-port: {}", rig.http.port());
    let sent = "X-Forwarded-For: 198.51.100.1\r\nProxy: http://evil.test\r\nX-SSL-Client-CN: admin\r\n";

    let answer = ask("told-append.test", sent).await;
    let expected = [
        "forwarded: for=127.0.0.1;host=told-append.test;proto=http",
        "host: told-append.test",
        "x-forwarded-for: 127.0.0.1",
        "x-forwarded-for: 198.51.100.1",
        "x-forwarded-host: told-append.test",
        &port,
        "x-forwarded-proto: http",
    ];
    assert_eq!(fields(&answer), expected);

    let answer = ask("told-replace.test", sent).await;
    let expected = [
        "forwarded: for=127.0.0.1;host=told-replace.test;proto=http",
        "host: told-replace.test",
        "x-forwarded-for: 127.0.0.1",
        "x-forwarded-host: told-replace.test",
        &port,
        "x-forwarded-proto: http",
    ];
    assert_eq!(fields(&answer), expected);

    let answer = ask("told-if-none.test", sent).await;
    let expected = [
        "forwarded: for=127.0.0.1;host=told-if-none.test;proto=http",
        "host: told-if-none.test",
        "x-forwarded-for: 198.51.100.1",
        "x-forwarded-host: told-if-none.test",
        &port,
        "x-forwarded-proto: http",
    ];
    assert_eq!(fields(&answer), expected);

    assert_eq!(fields(&ask("told-never.test", sent).await), ["host: told-never.test", "x-forwarded-for: 198.51.100.1"]);
    assert_eq!(fields(&ask("told-never.test", "").await), ["host: told-never.test"]);
}

#[tokio::test]
async fn what_the_kernel_may_carry_arrives_as_it_was_sent() {
    let app = backends::http("app").await;
    let key = pki::ca().leaf(&["steered.test"]);
    let steered = Route::new("steered.test", "").edge(Some(&key)).insecure(InsecurePolicy::Allow);
    let rig = Rig::serve(&[steered.to(app).forwarded(ForwardedHeaders::Never)]).await;
    let request = "GET /x?y=1 HTTP/1.1\r\nHost: Steered.test\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\n\
                   Proxy: http://inner.test\r\nX-SSL-Client-CN: app\r\nx_forwarded_for: a\r\nX-Forwarded-For: b\r\n\
                   Accept: x\r\naccept: y\r\n\r\n";
    let answer = client::request(rig.http, request).await;
    assert!(answer.body.starts_with("app GET /x?y=1\n"), "{answer:?}");
    let expected = [
        "accept: x",
        "accept: y",
        "host: Steered.test",
        "proxy: http://inner.test",
        "x-forwarded-for: b",
        "x-ssl-client-cn: app",
        "x_forwarded_for: a",
    ];
    assert_eq!(fields(&answer), expected);

    // Over TLS the router parses the request, and removes fields that only it may set.
    let stream = client::tls(rig.https, Some("steered.test"), &["http/1.1"]).await;
    let answer = client::exchange(stream, request).await;
    assert_eq!(fields(&answer), ["accept: x", "accept: y", "host: Steered.test", "x-forwarded-for: b"]);
}
