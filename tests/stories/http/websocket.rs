//! WebSocket (RFC 6455) by Debian's `websockets` at both ends.

use anyhow::Result;
use serde_json::{Value, json};
use tests::python;

use super::stage::{HTTP, HTTPS, Stage, Tls, at};

#[test]
fn messages_pings_and_close_codes_pass_in_clear_text_over_edge_and_over_reencrypt() -> Result<()> {
    let stage = Stage::new("websocket", "")?;
    let [certificate, key] = stage.certificate("secret.test.svc")?;
    let _clear = python::server(&stage.netns, "websocket_server", &["9001"])?;
    let _secret = python::server(&stage.netns, "websocket_server", &["9002", &certificate, &key])?;
    stage.service("clear", &[at(9001)])?;
    stage.service("secret", &[at(9002)])?;
    let stories = [
        ("ws", HTTP, stage.route("plain", "clear", Tls::Without, &[])?, false),
        ("wss", HTTPS, stage.route("edge", "clear", Tls::Edge, &[])?, false),
        ("wss", HTTPS, stage.route("reencrypt", "secret", Tls::Reencrypt, &[])?, true),
    ];
    let _sluice = stage.serve()?;
    for (scheme, port, host, tls) in stories {
        let url = format!("{scheme}://{host}:{port}/chat?room=1");
        let seen = python::client(&stage.netns, "websocket_client", &[&url, &port.to_string(), &stage.ca()?])?;
        let greeting = json!({
            "path": "/chat?room=1",
            "host": format!("{host}:{port}"),
            "proto": if scheme == "ws" { "http" } else { "https" },
            "subprotocol": "stories",
            "tls": tls,
        });
        assert_eq!(seen["greeting"], greeting, "{url}");
        assert_eq!(seen["text"], "zwölf", "{url}");
        for what in ["large", "fragments", "in order", "pong"] {
            assert_eq!(seen[what], Value::Bool(true), "{url}: {what}: {seen}");
        }
        assert_eq!(seen["client closed"], json!([4001, "enough"]), "{url}");
        assert_eq!(seen["server closed"], json!([4321, "it is late"]), "{url}");
    }
    Ok(())
}

#[test]
fn what_is_sent_together_with_the_handshake_arrives() -> Result<()> {
    let stage = Stage::new("early", "")?;
    let _server = python::server(&stage.netns, "websocket_early", &["server", "9001"])?;
    stage.service("early", &[at(9001)])?;
    let host = stage.route("early", "early", Tls::Without, &[])?;
    let _sluice = stage.serve()?;
    for _ in 0..20 {
        let url = format!("ws://{host}:{HTTP}/");
        let seen = python::client(&stage.netns, "websocket_early", &["client", &url, &HTTP.to_string()])?;
        let messages = json!(["back: first word of the client", "first word of the server"]);
        assert_eq!((&seen["status"], &seen["messages"]), (&json!(101), &messages));
    }
    Ok(())
}
