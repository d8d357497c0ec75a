//! Lines as they are written.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use http::{Method, StatusCode, Version};
use router_table::policy::log_format::LogFormat;

use super::*;

fn line() -> Line {
    Line {
        began: UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
        router: RouterName("default".into()),
        client: "192.0.2.7:1000".parse().unwrap(),
        listener: "192.0.2.1:443".parse().unwrap(),
        tls: true,
        host: Some("shop.test".to_owned()),
        method: Some((Method::GET, Version::HTTP_2)),
        path: Some("/a\"b".to_owned()),
        status: Some(StatusCode::OK),
        route: Some(LineRoute::Named(RouteId::of_route("shop", "cart"))),
        endpoint: Some("10.0.0.1:8080".parse().unwrap()),
        bytes_in: 5,
        bytes_out: 1234,
        answered: Some(Duration::from_millis(30)),
        duration: Duration::from_millis(40),
        interim_dropped: 0,
        retries: 0,
        flag: Flag::Fine,
        data_path: ServedBy::Proxy,
        captured: None,
    }
}

fn captured() -> Box<Captured> {
    let field = |name: &str, value: Option<&str>| (Arc::from(name), value.map(str::to_owned));
    Box::new(Captured {
        request: vec![field("Host", Some("shop|test")), field("Referer", None)],
        response: vec![field("Location", Some("/x"))],
        request_cookie: Some("id=1".to_owned()),
        response_cookie: None,
    })
}

#[test]
fn requests_are_written_in_the_order_of_httplog() {
    let plain = "192.0.2.7:1000 [14/Nov/2023:22:13:20.123] default~ be_tcp:shop:cart/10.0.0.1:8080 -1/-1/-1/30/40 200 \
                 1234 - - ---- 0/0/0/0/0 0/0 \"GET /a#22b HTTP/2.0\"";
    assert_eq!(line().httplog(), plain);
    let with = Line { captured: Some(captured()), ..line() };
    assert!(with.httplog().ends_with(" 1234 id=1 - ---- 0/0/0/0/0 0/0 {shop#7Ctest|} {/x} \"GET /a#22b HTTP/2.0\""));
    let refused = Line {
        tls: false,
        route: None,
        endpoint: None,
        status: None,
        answered: None,
        path: None,
        flag: Flag::ClientTimeout,
        ..line()
    };
    let expected = "192.0.2.7:1000 [14/Nov/2023:22:13:20.123] default default/<NOSRV> -1/-1/-1/-1/40 -1 1234 - - cR-- \
                    0/0/0/0/0 0/0 \"<BADREQ>\"";
    assert_eq!(refused.httplog(), expected);
}

#[test]
fn connections_are_written_in_the_order_of_tcplog() {
    let relayed = Line { method: None, tls: false, flag: Flag::Idle, ..line() };
    let expected = "192.0.2.7:1000 [14/Nov/2023:22:13:20.123] default be_tcp:shop:cart/10.0.0.1:8080 -1/-1/40 1234 cD \
                    0/0/0/0/0 0/0";
    assert_eq!(relayed.httplog(), expected);
}

#[test]
fn a_format_says_what_a_line_has() {
    let with = Line { captured: Some(captured()), ..line() };
    let written = |line: &Line, format: &str| line.formatted(&LogFormat::read(format).unwrap());
    // The format that HAProxy's manual gives for `option httplog` produces the same lines as `httplog`.
    let httplog = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs \
                   %{+Q}r";
    for line in [&with, &Line { retries: 2, ..line() }, &Line { status: None, route: None, endpoint: None, ..line() }] {
        assert_eq!(written(line, httplog), line.httplog());
    }
    let cases = [
        ("%fi:%fp|%f|%si:%sp|%U", "192.0.2.1:443|default|10.0.0.1:8080|5"),
        ("%T|%Tl|%Ts.%ms", "14/Nov/2023:22:13:20 +0000|14/Nov/2023:22:13:20 +0000|1700000000.123"),
        ("%Tt %Tr %Td %Tq", "40 30 10 -1"),
        ("%HM %HU %HV %HP", "GET /a#22b HTTP/2.0 /a#22b"),
        ("%{+Q}o%ci %cp %ST %CS %hr %ts", "\"192.0.2.7\" 1000 200 \"\" \"{shop#7Ctest|}\" --"),
        ("%CS %hs", "- {/x}"),
    ];
    for (format, expected) in cases {
        assert_eq!(written(&with, format), expected, "{format}");
    }
    let refused = Line { path: None, endpoint: None, status: None, answered: None, captured: None, ..line() };
    let expected = "\"<BADREQ>\" <BADREQ> <NOSRV> - - -1 -1 -1 0";
    assert_eq!(written(&refused, "%{+Q}r %HU %s %si %sp %ST %Tr %Td %hr %hs %sq"), expected);
}

#[test]
fn json_has_what_is_known() {
    let with = Line { captured: Some(captured()), ..line() };
    let expected = r#"{"time":"2023-11-14T22:13:20.123Z","router":"default","client":"192.0.2.7:1000","listener":"192.0.2.1:443","bytes_in":5,"bytes_out":1234,"duration_ms":40,"flags":"-","datapath":"proxy","host":"shop.test","method":"GET","path":"/a\"b","status":200,"route":"shop/cart","endpoint":"10.0.0.1:8080","answered_ms":30,"captured":{"request":{"Host":"shop|test"},"response":{"Location":"/x"},"cookie":"id=1"}}"#;
    assert_eq!(with.json(), expected);
    let bare = Line { host: None, method: None, path: None, status: None, route: None, endpoint: None, ..with };
    let bare = Line { answered: None, captured: None, ..bare };
    assert!(bare.json().ends_with(r#""flags":"-","datapath":"proxy"}"#), "{}", bare.json());
    let dropped = Line { interim_dropped: 3, ..bare };
    assert!(dropped.json().ends_with(r#""datapath":"proxy","interim_dropped":3}"#), "{}", dropped.json());
    let again = Line { retries: 2, interim_dropped: 0, ..dropped };
    assert!(again.json().ends_with(r#""datapath":"proxy","retries":2}"#), "{}", again.json());
    assert!(again.httplog().contains(" 0/0/0/0/2 0/0"), "{}", again.httplog());
}

#[test]
fn a_line_that_finds_no_room_is_counted_and_not_waited_for() {
    // No thread receives lines from this queue.
    let (log, queue) = AccessLog::with_queue(2);
    for _ in 0..5 {
        log.write(line());
    }
    assert_eq!((log.dropped(), queue.len()), (3, 2));
    let off = AccessLog::start(AccessLogForm::Off, Arc::new(Counters::default()));
    off.write(line());
    assert!(!off.is_wanted());
    assert_eq!(off.dropped(), 0);
}

#[tokio::test]
async fn flushing_waits_for_the_lines_before_it() {
    let log = AccessLog::start(AccessLogForm::Json, Arc::new(Counters::default()));
    log.write(line());
    log.flush().await;
    assert_eq!(log.dropped(), 0);
}
