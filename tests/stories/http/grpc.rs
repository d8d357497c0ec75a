//! gRPC by Debian's `grpcio` at both ends: HTTP/2 over TLS to the router, and to the endpoint in clear text
//! (`appProtocol: h2c`) or over TLS.
//! (`appProtocol: h2c`) or over TLS.

use std::net::TcpListener;

use anyhow::Result;
use serde_json::{Value, json};
use tests::python;

use super::stage::{HTTPS, Stage, Tls, at};

fn call(stage: &Stage, host: &str) -> Result<Value> {
    python::client(&stage.netns, "grpc_client", &[host, &HTTPS.to_string(), &stage.ca()?])
}

fn check(seen: &Value) {
    for (what, expected) in [
        ("unary", json!(["cba", "initial", "trailing"])),
        ("binary metadata", json!(true)),
        ("large", json!(true)),
        ("empty", json!("")),
        ("saw", json!("value https True")),
        ("upload", json!("200 messages, 14000000 bytes")),
        ("download", json!([300, true])),
        ("chat", json!(["back: one", "back: two", "back: three"])),
        ("chat's end", json!("OK")),
        ("refused", json!(["FAILED_PRECONDITION", "not now: 100 % busy\nreally", "because"])),
        ("unknown method", json!("UNIMPLEMENTED")),
        ("half", json!(["DATA_LOSS", "the rest is gone", null])),
        ("half's parts", json!(["one"])),
        ("deadline", json!("DEADLINE_EXCEEDED")),
        ("deadline seen", json!("yes")),
        ("cancel seen", json!("yes")),
        ("many", json!(true)),
    ] {
        assert_eq!(seen[what], expected, "{what}");
    }
}

#[test]
fn calls_of_all_kinds_pass_over_edge_to_clear_text() -> Result<()> {
    let stage = Stage::new("grpc", "")?;
    let _server = python::server(&stage.netns, "grpc_server", &["9001"])?;
    stage.h2c_service("calls", &[at(9001)])?;
    let host = stage.route("calls", "calls", Tls::Edge, &[])?;
    let _sluice = stage.serve()?;
    check(&call(&stage, &host)?);
    Ok(())
}

#[test]
fn calls_of_all_kinds_pass_over_reencrypt() -> Result<()> {
    let stage = Stage::new("grpc-tls", "")?;
    let [certificate, key] = stage.certificate("calls.test.svc")?;
    let _server = python::server(&stage.netns, "grpc_server", &["9001", &certificate, &key])?;
    stage.service("calls", &[at(9001)])?;
    let host = stage.route("calls", "calls", Tls::Reencrypt, &[])?;
    let _sluice = stage.serve()?;
    check(&call(&stage, &host)?);
    Ok(())
}

/// The status that a client library gets without an endpoint, or after the router's time-out.
#[test]
fn what_the_router_answers_itself_is_a_status_of_grpc() -> Result<()> {
    let stage = Stage::new("grpc-nobody", "")?;
    let silent = stage.netns.run(|| Ok(TcpListener::bind(at(9002))?))?;
    stage.h2c_service("nobody", &[at(9001)])?;
    stage.h2c_service("silent", &[silent.local_addr()?])?;
    let nobody = stage.route("nobody", "nobody", Tls::Edge, &[])?;
    let timeout = ("haproxy.router.openshift.io/timeout", "1s");
    let silent = stage.route("silent", "silent", Tls::Edge, &[timeout])?;
    let _sluice = stage.serve()?;
    for (host, code) in [(&nobody, "UNAVAILABLE"), (&silent, "DEADLINE_EXCEEDED")] {
        let arguments = [host, &HTTPS.to_string(), &stage.ca()?, "status"];
        let seen = python::client(&stage.netns, "grpc_client", &arguments)?;
        assert_eq!(seen["status"], code, "{host}: {seen}");
        let answer = stage.curl(
            &format!("https://{host}:{HTTPS}/stories.Calls/Unary"),
            &["--http2", "--header", "content-type: application/grpc", "--header", "te: trailers", "--data", ""],
        )?;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/grpc")), "{answer:?}");
    }
    Ok(())
}
