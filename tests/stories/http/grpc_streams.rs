//! Streams of many small gRPC messages, by grpc-go and grpcio: both answer each message with frames of their own
//! (WINDOW_UPDATE, and a PING to measure the path), which are no flood. `STREAM_MESSAGES=60000` makes ten minutes of it.

use std::thread;

use anyhow::Result;
use serde_json::{Value, json};
use tests::go::Program;
use tests::python;
use tests::stream::joined;

use super::stage::{HTTP, HTTPS, Stage, Tls, at};

/// Messages of each stream, if the environment says nothing else, and how many a second.
const MESSAGES: &str = "2000";
const RATE: &str = "100";

/// A Gateway on the router's port for clear text, and a GRPCRoute for a host of the domain `grpc.test`.
fn grpc_route(host: &str, service: &str) -> String {
    format!(
        "---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: sluice}}
spec: {{controllerName: sluice.dev/gateway-controller}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: calls, namespace: test}}
spec:
  gatewayClassName: sluice
  listeners: [{{name: calls, port: {HTTP}, protocol: HTTP, hostname: \"*.grpc.test\"}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {{name: calls, namespace: test}}
spec:
  parentRefs: [{{name: calls}}]
  hostnames: [\"{host}\"]
  rules: [{{backendRefs: [{{name: {service}, port: 80}}]}}]
"
    )
}

fn all(messages: &str) -> Value {
    let each = format!("{messages} messages");
    json!({"Chat": each, "Download": each, "Upload": each})
}

#[test]
fn streams_of_small_messages_are_no_flood() -> Result<()> {
    let stage = Stage::new("grpc-streams", "")?;
    let go = Program::grpc_streams()?;
    let [certificate, key] = stage.certificate("streams-tls.test.svc")?;
    let _clear = go.server(&stage.netns, &["9001"])?;
    let _tls = go.server(&stage.netns, &["9002", &certificate, &key])?;
    stage.h2c_service("streams", &[at(9001)])?;
    stage.service("streams-tls", &[at(9002)])?;
    let edge = stage.route("edge", "streams", Tls::Edge, &[])?;
    let reencrypt = stage.route("reencrypt", "streams-tls", Tls::Reencrypt, &[])?;
    stage.write("calls", &grpc_route("streams.grpc.test", "streams"))?;
    let sluice = stage.serve()?;
    let ca = stage.ca()?;
    let messages = std::env::var("STREAM_MESSAGES").unwrap_or_else(|_| MESSAGES.to_owned());
    let [https, http] = [HTTPS, HTTP].map(|port| port.to_string());
    let go_client = |host: &str, port: &str, ca: &str| {
        go.client(&stage.netns, &[host, port, ca, &messages, RATE]).map(|seen| (format!("grpc-go, {host}"), seen))
    };
    let python_client = || {
        let arguments = [&edge, &https, &ca, &messages, RATE];
        python::client(&stage.netns, "grpc_streams", &arguments).map(|seen| ("grpcio".to_owned(), seen))
    };
    let outcomes = thread::scope(|scope| {
        let clients = [
            scope.spawn(|| go_client(&edge, &https, &ca)),
            scope.spawn(|| go_client(&reencrypt, &https, &ca)),
            scope.spawn(|| go_client("streams.grpc.test", &http, "-")),
            scope.spawn(python_client),
        ];
        clients.map(joined)
    });
    for outcome in outcomes {
        let (who, seen) = outcome?;
        assert_eq!(seen, all(&messages), "{who}; the router:\n{}", sluice.output().join("\n"));
    }
    Ok(())
}
