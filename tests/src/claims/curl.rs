//! Requests by curl, and the corresponding queries for `sluice explain`.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::cast::{CLIENT, ROUTER};
use super::explained::Question;
use super::outcome::Got;
use crate::netns::Netns;

/// A running curl.
pub struct Asked {
    child: Child,
    folder: TempDir,
}

/// Starts curl. It resolves every host to the router, and trusts one CA; `folder` holds its files.
///
/// # Errors
/// When it cannot be started.
pub fn start(netns: &Netns, arguments: &[String], ca: &Path, folder: &Path) -> Result<Asked> {
    let files = TempDir::new()?;
    let mut command: Command = netns.command("curl")?;
    command.args(["--silent", "--show-error", "--max-time", "25", "--noproxy", "*"]);
    command.args(["--connect-to", &format!("::{ROUTER}:")]).arg("--cacert").arg(ca);
    if !arguments.iter().any(|argument| argument == "--interface") {
        command.args(["--interface", CLIENT]);
    }
    command.arg("--dump-header").arg(files.path().join("head")).arg("--output").arg(files.path().join("body"));
    command.args(arguments).current_dir(folder);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    Ok(Asked { child: child.context("curl cannot be run")?, folder: files })
}

impl Asked {
    /// Its result.
    ///
    /// # Errors
    /// curl cannot be awaited, or rejects its arguments.
    pub fn got(self) -> Result<Got> {
        let output = self.child.wait_with_output()?;
        let read = |name| fs::read(self.folder.path().join(name)).unwrap_or_default();
        let head = String::from_utf8_lossy(&read("head")).into_owned();
        let response = last_response(&head);
        let code = output.status.code().unwrap_or(-1);
        let said = String::from_utf8_lossy(&output.stderr);
        Ok(match (code, response) {
            (0, Some((line, fields))) => Got::response(line, fields, content(&read("body"))),
            // A response that was cut off is not a response.
            (18 | 56 | 92, Some((line, _))) => Got::Nothing(format!("{line}, cut off before its end")),
            _ => Got::Nothing(no_response(code, &said)?),
        })
    }
}

/// The content as text; for gRPC, that of the message.
fn content(body: &[u8]) -> String {
    let text = match body {
        [0, 0, _, _, _, message @ ..] => message,
        other => other,
    };
    String::from_utf8_lossy(text).into_owned()
}

/// First line and fields of the last head; trailers are among the fields.
fn last_response(head: &str) -> Option<(&str, Vec<(String, String)>)> {
    let start = head.rfind("\nHTTP/").map_or(0, |at| at + 1);
    let mut lines = head.get(start..)?.lines();
    let line = lines.next().filter(|line| line.starts_with("HTTP/"))?;
    let fields = lines.filter_map(|line| line.split_once(':'));
    Some((line, fields.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()))
}

/// Describes curl's exit codes.
fn no_response(code: i32, said: &str) -> Result<String> {
    Ok(match code {
        7 => "no connection".to_owned(),
        28 => "no answer in time".to_owned(),
        35 if said.contains("alert") => {
            let alert = said.split("alert ").nth(1).unwrap_or_default().trim();
            format!("no TLS: alert {}", alert.split(" (").next().unwrap_or_default())
        }
        35 => "no TLS: the connection ends in the handshake".to_owned(),
        16 | 52 | 55 | 56 => "the connection ends without an answer".to_owned(),
        60 => format!("the client refuses the certificate: {}", reason(said)),
        92 => "the stream ends without an answer".to_owned(),
        _ => anyhow::bail!("curl failed ({code}): {said}"),
    })
}

/// OpenSSL's error for a certificate, without the parts that differ from run to run.
fn reason(said: &str) -> &str {
    let line = said.lines().next().unwrap_or_default();
    line.rsplit_once(": ").map_or(line, |(_, reason)| reason)
}

/// The query for `sluice explain`; `None` if no argument is a URL.
pub fn question(arguments: &[String]) -> Option<Question> {
    let mut question = Question::default();
    let mut rest = arguments.iter();
    let (mut has_data, mut is_get) = (false, false);
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().cloned().unwrap_or_default();
        match argument.as_str() {
            "-X" | "--request" => question.method = Some(value()),
            "-I" | "--head" => question.method = Some("HEAD".to_owned()),
            "-G" | "--get" => is_get = true,
            "-H" | "--header" => question.add_field(&value()),
            "-A" | "--user-agent" => question.add_field(&format!("User-Agent: {}", value())),
            "-b" | "--cookie" => {
                let cookie = value();
                if cookie.contains('=') {
                    question.add_field(&format!("Cookie: {cookie}"));
                }
            }
            "-d" | "--data" | "--data-binary" | "--data-raw" | "--json" => {
                value();
                has_data = true;
            }
            "--interface" => question.from = Some(value()),
            "-c" | "--cookie-jar" | "--cert" | "--key" | "--tls-max" | "--ciphers" | "--cacert" | "--curves"
            | "--tls13-ciphers" | "--max-time" | "-T" | "--upload-file" => drop(value()),
            url if url.starts_with("http://") || url.starts_with("https://") => question.url = url.to_owned(),
            _ => {}
        }
    }
    if has_data && !is_get && question.method.is_none() {
        question.method = Some("POST".to_owned());
    }
    question.take_host();
    (!question.url.is_empty()).then_some(question)
}
