//! Trailers (RFC 9110 §6.5) in both directions, over HTTP/2 and HTTP/1.1.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use anyhow::{Result, ensure};
use tests::command;
use tests::nginx::Nginx;
use tests::stream::{self, joined};
use tests::wait::{PATIENCE, wait_for};

use super::stage::{HTTP, HTTPS, Stage, Tls, at};

#[test]
fn trailers_pass_both_ways_over_http2() -> Result<()> {
    let stage = Stage::new("trailers", "")?;
    let folder = stage.folder("files")?;
    std::fs::write(format!("{folder}/body"), "a body\n")?;
    let nghttpd = stage.nghttpd(9001, &["--verbose", "--trailer=x-of-server: yes", "--htdocs", &folder])?;
    stage.h2c_service("h2c", &[at(9001)])?;
    let host = stage.route("trailers", "h2c", Tls::Edge, &[])?;
    let _sluice = stage.serve()?;
    let mut nghttp = stage.netns.command("nghttp")?;
    nghttp.args(["--verbose", "--trailer=x-of-client: yes", "--data", &format!("{folder}/body")]);
    nghttp.args(["--header", &format!(":authority: {host}"), &format!("https://127.0.0.1:{HTTPS}/body")]);
    let output = command::output(&mut nghttp)?;
    let client = String::from_utf8_lossy(&output.stdout).into_owned();
    // The response's fields, its content, then its trailers.
    let (_, trailers) = client.split_once("a body\n").unwrap_or_default();
    ensure!(trailers.contains("x-of-server: yes"), "the client got no trailers:\n{client}");
    let seen = || nghttpd.output().into_iter().find(|line| line.contains("x-of-client: yes"));
    wait_for("the server gets the client's trailers", PATIENCE, seen)?;
    Ok(())
}

#[test]
fn trailers_of_a_response_pass_to_http1_clients_that_take_them() -> Result<()> {
    let stage = Stage::new("trailers1", "")?;
    let block = format!(
        "server {{ listen {}; location / {{ default_type text/plain; add_trailer X-Of-Server yes; \
         add_header Trailer X-Of-Server; return 200 body; }} }}",
        at(9001)
    );
    let _nginx = Nginx::with(&stage.netns, &[at(9001)], &block)?;
    stage.service("nginx", &[at(9001)])?;
    let plain = stage.route("plain", "nginx", Tls::Without, &[])?;
    let edge = stage.route("edge", "nginx", Tls::Edge, &[])?;
    let _sluice = stage.serve()?;
    for (url, version) in [
        (format!("http://{plain}:{HTTP}/"), "--http1.1"),
        (format!("https://{edge}:{HTTPS}/"), "--http1.1"),
        (format!("https://{edge}:{HTTPS}/"), "--http2"),
    ] {
        let answer = stage.curl(&url, &[version, "--header", "TE: trailers"])?;
        assert_eq!(answer.status, 200, "{url} {version}");
        let rest = answer.body.to_ascii_lowercase();
        ensure!(rest.starts_with("body") && rest.contains("x-of-server: yes"), "{url} {version}: {answer:?}");
    }
    Ok(())
}

#[test]
fn trailers_of_a_chunked_request_reach_an_http1_endpoint() -> Result<()> {
    let stage = Stage::new("trailers2", "")?;
    let origin = stage.netns.run(|| Ok(TcpListener::bind(at(9001))?))?;
    stage.service("origin", &[at(9001)])?;
    let host = stage.route("plain", "origin", Tls::Without, &[])?;
    let _sluice = stage.serve()?;
    let mut client = stream::open(&stage.netns, at(HTTP))?;
    let head = format!("POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n");
    let received = thread::scope(|scope| -> Result<String> {
        let server = scope.spawn(|| -> Result<String> {
            let mut stream = stream::accept(&origin)?;
            let mut received = Vec::new();
            while !received.ends_with(b"0\r\nx-sum: 42\r\n\r\n") && !received.ends_with(b"0\r\n\r\n") {
                let mut byte = [0];
                ensure!(stream::read_some(&mut stream, &mut byte)? == 1, "{:?}", String::from_utf8_lossy(&received));
                received.push(byte[0].to_ascii_lowercase());
            }
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?;
            Ok(String::from_utf8(received)?)
        });
        client.write_all(head.as_bytes())?;
        client.write_all(b"5\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n")?;
        joined(server)
    })?;
    ensure!(received.ends_with("\r\n0\r\nx-sum: 42\r\n\r\n"), "{received:?}");
    let mut answer = [0; 12];
    client.read_exact(&mut answer)?;
    assert_eq!(&answer, b"HTTP/1.1 204");
    Ok(())
}
