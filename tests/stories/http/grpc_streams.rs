//! Streams of many small gRPC messages, by grpc-go, grpc-java, tonic and grpcio: they respond to messages with frames
//! of their own (WINDOW_UPDATE, and a PING to measure the path), which must not count as a flood.
//! `STREAM_MESSAGES=60000` runs for ten minutes.

use std::fmt::Write;
use std::thread;

use anyhow::Result;
use serde_json::{Value, json};
use tests::folder;
use tests::process::Process;
use tests::program::Program;
use tests::python;
use tests::stream::joined;

use super::stage::{HTTP, HTTPS, Stage, Tls, at};

/// Messages of each stream, unless set by the environment, and their rate per second.
const MESSAGES: &str = "2000";
const RATE: &str = "100";

/// A Gateway on the router's port for clear text, and a GRPCRoute for `SERVICE.grpc.test` to each of these services.
fn grpc_routes(services: &[&str]) -> Result<String> {
    let mut text = folder::gateway_class().to_owned();
    write!(
        text,
        "---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: calls, namespace: test}}
spec:
  gatewayClassName: sluice
  listeners: [{{name: calls, port: {HTTP}, protocol: HTTP, hostname: \"*.grpc.test\"}}]
"
    )?;
    for service in services {
        writeln!(
            text,
            "---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {{name: {service}, namespace: test}}
spec:
  parentRefs: [{{name: calls}}]
  hostnames: [\"{service}.grpc.test\"]
  rules: [{{backendRefs: [{{name: {service}, port: 80}}]}}]"
        )?;
    }
    Ok(text)
}

fn all(messages: &str) -> Value {
    let each = format!("{messages} messages");
    json!({"Chat": each, "Download": each, "Upload": each})
}

/// Starts a program's servers, in clear text and over TLS, each with a Service and a route; returns the hosts of the
/// routes.
fn serve(stage: &Stage, name: &str, program: &Program, port: u16) -> Result<(Vec<Process>, [String; 2])> {
    let tls = format!("{name}-tls");
    let [certificate, key] = stage.certificate(&format!("{tls}.test.svc"))?;
    let servers = vec![
        program.server(&stage.netns, &[&port.to_string()])?,
        program.server(&stage.netns, &[&(port + 1).to_string(), &certificate, &key])?,
    ];
    stage.h2c_service(name, &[at(port)])?;
    stage.service(&tls, &[at(port + 1)])?;
    let edge = stage.route(&format!("{name}-edge"), name, Tls::Edge, &[])?;
    let reencrypt = stage.route(&format!("{name}-reencrypt"), &tls, Tls::Reencrypt, &[])?;
    Ok((servers, [edge, reencrypt]))
}

#[test]
fn streams_of_small_messages_are_no_flood() -> Result<()> {
    let stage = Stage::new("grpc-streams", "")?;
    let tonic = Program::built(env!("CARGO_BIN_EXE_grpc-streams"));
    let programs = [("go", Program::grpc_go()?), ("java", Program::grpc_java()?), ("tonic", tonic)];
    stage.write("calls", &grpc_routes(&programs.each_ref().map(|(name, _)| *name))?)?;
    let (mut servers, mut calls) = (Vec::new(), Vec::new());
    let [https, http] = [HTTPS, HTTP].map(|port| port.to_string());
    let ca = stage.ca()?;
    for ((name, program), port) in programs.iter().zip((9001..).step_by(2)) {
        let (started, [edge, reencrypt]) = serve(&stage, name, program, port)?;
        servers.extend(started);
        calls.push((program, edge, &https, &*ca));
        calls.push((program, reencrypt, &https, &*ca));
        calls.push((program, format!("{name}.grpc.test"), &http, "-"));
    }
    let sluice = stage.serve()?;
    let messages = std::env::var("STREAM_MESSAGES").unwrap_or_else(|_| MESSAGES.to_owned());
    let python_client = || {
        let arguments = ["go-edge.apps.test", &https, &ca, &messages, RATE];
        python::client(&stage.netns, "grpc_streams", &arguments).map(|seen| ("grpcio".to_owned(), seen))
    };
    let outcomes: Vec<_> = thread::scope(|scope| {
        let (netns, messages) = (&stage.netns, &*messages);
        let clients = calls.iter().map(|(program, host, port, ca)| {
            let run = move || program.client(netns, &[host, port, ca, messages, RATE]);
            scope.spawn(move || run().map(|seen| (host.clone(), seen)))
        });
        let clients: Vec<_> = clients.chain([scope.spawn(python_client)]).collect();
        clients.into_iter().map(joined).collect()
    });
    for outcome in outcomes {
        let (who, seen) = outcome?;
        assert_eq!(seen, all(&messages), "{who}; the router:\n{}", sluice.output().join("\n"));
    }
    Ok(())
}
