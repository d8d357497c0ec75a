//! `Expect: 100-continue` (RFC 9110 §10.1.1): the endpoint decides whether it accepts the body.

use anyhow::{Result, ensure};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tests::python;
use tests::stream::Content;

use super::stage::{HTTP, HTTPS, Stage, Tls, at};

const LENGTH: u64 = 1 << 20;

#[test]
fn a_body_is_sent_after_a_100_and_not_after_an_error() -> Result<()> {
    let stage = Stage::new("expect", "")?;
    let folder = stage.folder("uploads")?;
    let _origin = python::server(&stage.netns, "origin", &["9001", &folder])?;
    stage.service("origin", &[at(9001)])?;
    let plain = stage.route("plain", "origin", Tls::Without, &[])?;
    let edge = stage.route("edge", "origin", Tls::Edge, &[])?;
    let _sluice = stage.serve()?;
    let mut body = Vec::new();
    Content::of(1, LENGTH).send(&mut body, LENGTH, |_| ())?;
    let file = format!("{folder}/body");
    std::fs::write(&file, &body)?;
    // A client that waits forever: it sends nothing without a 100.
    let upload = ["--upload-file", &file, "--header", "Expect: 100-continue", "--expect100-timeout", "50"];
    let upload = [&upload[..], &["--http1.1", "--write-out", "\n%{size_upload}"]].concat();
    for base in [format!("http://{plain}:{HTTP}"), format!("https://{edge}:{HTTPS}")] {
        let answer = stage.curl(&format!("{base}/sum"), &upload)?;
        assert_eq!(answer.status, 100, "{answer:?}");
        let (head, rest) = answer.body.split_once("\r\n\r\n").unwrap_or_default();
        ensure!(head.starts_with("HTTP/1.1 200 "), "{answer:?}");
        let (sum, sent) = rest.split_once('\n').unwrap_or_default();
        let sum: Value = serde_json::from_str(sum)?;
        assert_eq!((sum["bytes"].as_u64(), sent), (Some(LENGTH), LENGTH.to_string().as_str()), "{answer:?}");
        assert_eq!(sum["sha256"], hex(&Sha256::digest(&body)), "{base}");
        for status in [417, 413] {
            let answer = stage.curl(&format!("{base}/refuse/{status}"), &upload)?;
            assert_eq!(answer.status, status, "{base}: {answer:?}");
            ensure!(answer.body.ends_with("\n0"), "{base}: the client sent a body that was refused: {answer:?}");
        }
        // A rejected upload does not affect the next request.
        assert_eq!(stage.curl(&format!("{base}/name"), &[])?.body, "9001");
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
