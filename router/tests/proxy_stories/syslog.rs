//! `logging.access`: lines sent to a syslog server, in the router's format.

use std::time::Duration;

use router_access_log::AccessLogForm;
use router_proxy::ProxyConfig;
use router_table::policy::access_log::Syslog;
use router_table::policy::log_format::LogFormat;
use router_table::policy::{AccessLogPolicy, RouterPolicy, Timeouts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::tables::{PATIENCE, Rig, Route, table, under};
use crate::{backends, client, log};

async fn received(server: &UdpSocket) -> String {
    let mut buffer = [0; 2048];
    let length = timeout(PATIENCE, server.recv(&mut buffer)).await.expect("a message").unwrap();
    String::from_utf8(buffer[..length].to_vec()).unwrap()
}

fn policy(server: &UdpSocket, format: Option<&str>) -> RouterPolicy {
    let syslog = Some(Syslog { address: server.local_addr().unwrap(), facility: 16, max_length: 480 });
    let format = format.map(|format| LogFormat::read(format).unwrap());
    RouterPolicy { log: AccessLogPolicy { syslog, format, ..AccessLogPolicy::default() }, ..RouterPolicy::default() }
}

#[tokio::test]
async fn lines_of_a_router_go_to_its_server_whatever_the_agents_own_log_is() {
    let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let routes = [
        Route::new("away.syslog.test", "").to(backends::http("app").await),
        Route::new("through.syslog.test", "").passthrough().to(backends::named_echo("echo").await),
    ];
    for access_log in [AccessLogForm::Off, AccessLogForm::Log] {
        let config = ProxyConfig { access_log, ..ProxyConfig::default() };
        let rig = Rig::start(config, under(policy(&server, None), table(&routes, None))).await;
        assert_eq!(client::get(rig.http, "away.syslog.test", "/path?query").await.status, 200);
        let line = received(&server).await;
        assert!(line.starts_with("<134>") && line.ends_with("\"GET /path HTTP/1.1\"\n"), "{line}");
        assert!(line.contains(" be_http:shop:away.syslog.test/127.0.0.1:") && line.contains(" 200 "), "{line}");

        // The next table has a format; relayed connections lack the values that it names.
        rig.tables.send_replace(under(policy(&server, Some("%{+Q}r %ST %ft")), table(&routes, None)));
        crate::tables::eventually("the format", async || {
            client::get(rig.http, "away.syslog.test", "/formatted").await;
            received(&server).await.ends_with("]: \"GET /formatted HTTP/1.1\" 200 default\n")
        })
        .await;
        let mut stream = tokio::net::TcpStream::connect(rig.https).await.unwrap();
        let hello = client::hello("through.syslog.test");
        tokio::io::AsyncWriteExt::write_all(&mut stream, &hello).await.unwrap();
        drop(stream);
        let line = received(&server).await;
        assert!(line.contains(" be_tcp:shop:through.syslog.test/") && line.starts_with("<134>"), "{line}");
    }
    // The agent's own log has none of these lines: this is the first line of the router there.
    let rig = Rig::start(ProxyConfig::default(), table(&routes, None)).await;
    client::get(rig.http, "away.syslog.test", "/home").await;
    let home = log::line_where("a line of the host", |line| line["host"] == "away.syslog.test").await;
    assert_eq!(home["path"], "/home");
}

#[tokio::test]
async fn a_format_is_that_of_the_agents_own_log_too() {
    let format = Some(LogFormat::read("in a form of its own: %HM %HU %ST").unwrap());
    let policy =
        RouterPolicy { log: AccessLogPolicy { format, ..AccessLogPolicy::default() }, ..RouterPolicy::default() };
    let routes = [Route::new("form.syslog.test", "").to(backends::http("app").await)];
    let rig = Rig::start(ProxyConfig::default(), under(policy, table(&routes, None))).await;
    client::get(rig.http, "form.syslog.test", "/form").await;
    log::line("line", "in a form of its own: GET /form 200").await;
}

#[tokio::test]
async fn lines_that_cannot_be_sent_are_counted_and_delay_no_request() {
    let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut policy = policy(&server, None);
    // A port that cannot be sent to.
    policy.log.syslog = policy.log.syslog.map(|server| Syslog { address: ([127, 0, 0, 1], 0).into(), ..server });
    let routes = [Route::new("lost.syslog.test", "").to(backends::http("app").await)];
    let rig = Rig::start(ProxyConfig::default(), under(policy, table(&routes, None))).await;
    for _ in 0..3 {
        assert_eq!(client::get(rig.http, "lost.syslog.test", "/").await.status, 200);
    }
    let log = rig.proxy.access_log();
    crate::tables::eventually("three lost lines", async || log.dropped() == 3).await;
}

#[tokio::test]
async fn a_line_says_at_which_step_an_endpoint_failed() {
    async fn after(begin: &'static [u8], hangs: bool) -> std::net::SocketAddr {
        backends::serve(move |mut stream| async move {
            let _ = stream.read(&mut [0; 1024]).await;
            let _ = stream.write_all(begin).await;
            if hangs {
                let _ = stream.read_to_end(&mut Vec::new()).await;
            }
        })
        .await
    }
    const BEGIN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegin";
    let (_hole, hole) = backends::black_hole();
    let cases = [
        ("sC", 504, hole),
        ("SC", 503, backends::refusing()),
        ("sH", 504, after(b"", true).await),
        ("SH", 502, after(b"", false).await),
        ("sD", 200, after(BEGIN, true).await),
        ("SD", 200, after(BEGIN, false).await),
    ];
    let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let short = Duration::from_millis(300);
    let timeouts = Timeouts { connect: short, server: short, ..Timeouts::default() };
    let policy = RouterPolicy { timeouts, ..policy(&server, Some("%ST %ts")) };
    let routes: Vec<Route> =
        cases.iter().map(|(_, _, to)| Route::new(&format!("p{}.steps.test", to.port()), "").to(*to)).collect();
    let rig = Rig::start(ProxyConfig::default(), under(policy, table(&routes, None))).await;
    for (state, status, to) in cases {
        let mut stream = tokio::net::TcpStream::connect(rig.http).await.unwrap();
        let request = format!("GET / HTTP/1.1\r\nHost: p{}.steps.test\r\nConnection: close\r\n\r\n", to.port());
        stream.write_all(request.as_bytes()).await.unwrap();
        // An incomplete response may end with a reset.
        let _ = stream.read_to_end(&mut Vec::new()).await;
        let line = received(&server).await;
        assert!(line.ends_with(&format!("]: {status} {state}\n")), "{line} instead of {state}");
    }
}
