//! Server-sent events: each arrives as soon as it is sent, without waiting for more.

use anyhow::Result;
use tests::process::Process;
use tests::python;
use tests::wait::{PATIENCE, wait_until};

use super::stage::{HTTP, HTTPS, Stage, Tls, at};

#[test]
fn every_event_arrives_before_the_next_one_is_sent() -> Result<()> {
    let stage = Stage::new("events", "")?;
    let folder = stage.folder("none")?;
    let _origin = python::server(&stage.netns, "origin", &["9001", &folder])?;
    stage.service("events", &[at(9001)])?;
    let plain = stage.route("plain", "events", Tls::Without, &[])?;
    let edge = stage.route("edge", "events", Tls::Edge, &[])?;
    let _sluice = stage.serve()?;
    let next = format!("http://{plain}:{HTTP}/next");
    let open = format!("http://{plain}:{HTTP}/open");
    for (url, version) in [
        (format!("http://{plain}:{HTTP}/events"), "--http1.1"),
        (format!("https://{edge}:{HTTPS}/events"), "--http1.1"),
        (format!("https://{edge}:{HTTPS}/events"), "--http2"),
    ] {
        let mut curl = stage.client().command(&url)?;
        // A client that accepts compressed responses gets its events as soon.
        curl.args(["--no-buffer", "--compressed", version, "--cacert", &stage.ca()?]);
        let mut curl = Process::start("curl", &mut curl)?;
        for number in 1..=20 {
            curl.wait_for_line(&format!("data: event {number}"), PATIENCE)?;
            assert_eq!(stage.curl(&next, &["--request", "POST"])?.status, 200);
        }
        assert_eq!(stage.curl(&open, &[])?.body, "1");
        // The server sees the client's disconnect.
        drop(curl);
        wait_until("the server sees the client go", PATIENCE, || {
            stage.curl(&open, &[]).is_ok_and(|answer| answer.body == "0")
        })?;
    }
    Ok(())
}
