//! Large bodies in both directions, over every HTTP version on either side: they arrive completely, and are not
//! buffered.

use std::fs::File;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::python;
use tests::stream::{self, Checksum, Content};

use super::stage::{HTTP, HTTPS, Stage, Tls, at};

const LENGTH: u64 = 200 << 20;
/// Maximum memory of the router for a transfer, in bytes, beyond that at its start.
const MEMORY: u64 = 24 << 20;

/// A file of this length in the folder, and its checksum.
fn file(folder: &str, length: u64) -> Result<Checksum> {
    let mut file = File::create(format!("{folder}/large"))?;
    Content::new(3).send(&mut file, length, |_| ())
}

fn download(stage: &Stage, url: &str, arguments: &[&str]) -> Result<(u64, Checksum)> {
    let mut curl = stage.client().command(url)?;
    curl.args(["--fail", "--cacert", &stage.ca()?]).args(arguments);
    let mut child = curl.stdout(Stdio::piped()).spawn()?;
    let received = stream::receive(&mut child.stdout.take().context("stdout is piped")?)?;
    let status = child.wait()?;
    ensure!(status.success(), "{url}: curl ended with {status} after {} bytes", received.0);
    Ok(received)
}

/// Checks a response to `/sum`.
fn summed(stage: &Stage, url: &str, arguments: &[&str], expected: (u64, Checksum)) -> Result<Value> {
    let answer = stage.curl(url, arguments)?;
    let sum: Value = serde_json::from_str(&answer.body).with_context(|| format!("{url}: {answer:?}"))?;
    let hex: String = expected.1.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!((sum["bytes"].as_u64(), sum["sha256"].as_str()), (Some(expected.0), Some(hex.as_str())), "{url}");
    Ok(sum)
}

#[test]
fn large_bodies_arrive_as_they_were_sent() -> Result<()> {
    let stage = Stage::new("transfers", "")?;
    let folder = stage.folder("files")?;
    let checksum = file(&folder, LENGTH)?;
    let [certificate, key] = stage.certificate("origin.test.svc")?;
    let _clear = python::server(&stage.netns, "origin", &["9001", &folder])?;
    let _secret = python::server(&stage.netns, "origin", &["9002", &folder, &certificate, &key])?;
    stage.service("clear", &[at(9001)])?;
    stage.service("secret", &[at(9002)])?;
    let plain = stage.route("plain", "clear", Tls::Without, &[])?;
    let edge = stage.route("edge", "clear", Tls::Edge, &[])?;
    let reencrypt = stage.route("reencrypt", "secret", Tls::Reencrypt, &[])?;
    let sluice = stage.serve()?;
    let before = sluice.resident()?;
    let file = format!("{folder}/large");
    for (base, version) in [
        (format!("http://{plain}:{HTTP}"), "--http1.1"),
        (format!("https://{edge}:{HTTPS}"), "--http1.1"),
        (format!("https://{edge}:{HTTPS}"), "--http2"),
        (format!("https://{reencrypt}:{HTTPS}"), "--http2"),
    ] {
        let received = download(&stage, &format!("{base}/file/large"), &[version])?;
        ensure!(received == (LENGTH, checksum), "{base} {version}: {} bytes arrived, or not the same ones", received.0);
        let upload = [version, "--upload-file", &file, "--header", "Expect:"];
        let sum = summed(&stage, &format!("{base}/sum"), &upload, (LENGTH, checksum))?;
        assert_eq!(sum["encoding"], Value::Null, "{base}: a body of known length stays one");
    }
    let peak = sluice.peak()?;
    ensure!(peak <= before + MEMORY, "memory rose from {before} to {peak} bytes");
    Ok(())
}

/// `curl` sends input from a pipe without a length: in chunks, or in DATA frames.
#[test]
fn bodies_of_unknown_length_arrive_as_they_were_sent() -> Result<()> {
    const LENGTH: u64 = 20 << 20;
    let stage = Stage::new("chunks", "")?;
    let folder = stage.folder("files")?;
    let checksum = file(&folder, LENGTH)?;
    let _origin = python::server(&stage.netns, "origin", &["9001", &folder])?;
    stage.service("origin", &[at(9001)])?;
    let edge = stage.route("edge", "origin", Tls::Edge, &[])?;
    let _sluice = stage.serve()?;
    for version in ["--http1.1", "--http2"] {
        let url = format!("https://{edge}:{HTTPS}/sum");
        let mut curl = stage.client().command(&url)?;
        curl.args([version, "--cacert", &stage.ca()?, "--upload-file", "-", "--header", "Expect:"]);
        curl.stdin(File::open(format!("{folder}/large"))?);
        let output = tests::command::output(&mut curl)?;
        let sum: Value = serde_json::from_slice(&output.stdout)?;
        let hex: String = checksum.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((sum["bytes"].as_u64(), sum["sha256"].as_str()), (Some(LENGTH), Some(hex.as_str())), "{version}");
        assert_eq!(sum["encoding"], "chunked", "{version}");
    }
    Ok(())
}

/// nghttpd sends every upload back.
#[test]
fn large_bodies_go_both_ways_over_http2_in_clear_text() -> Result<()> {
    let stage = Stage::new("h2c", "")?;
    let folder = stage.folder("files")?;
    let checksum = file(&folder, LENGTH)?;
    let _nghttpd = stage.nghttpd(9001, &["--echo-upload", "--htdocs", &folder])?;
    stage.h2c_service("h2c", &[at(9001)])?;
    let edge = stage.route("edge", "h2c", Tls::Edge, &[])?;
    let sluice = stage.serve()?;
    let before = sluice.resident()?;
    let url = format!("https://{edge}:{HTTPS}/large");
    let file = format!("{folder}/large");
    for version in ["--http1.1", "--http2"] {
        for arguments in [&[version][..], &[version, "--upload-file", &file, "--header", "Expect:"]] {
            let received = download(&stage, &url, arguments)?;
            ensure!(
                received == (LENGTH, checksum),
                "{arguments:?}: {} bytes arrived, or not the same ones",
                received.0
            );
        }
    }
    let peak = sluice.peak()?;
    ensure!(peak <= before + MEMORY, "memory rose from {before} to {peak} bytes");
    Ok(())
}
