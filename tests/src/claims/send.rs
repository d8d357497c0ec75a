//! Requests that curl cannot send: verbatim bytes, and handshakes by `openssl s_client`.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};

use super::cast::ROUTER;
use super::explained::Question;
use super::outcome::Got;
use crate::netns::Netns;

/// The responses on a connection, split by their lengths; bytes that are no response become one without a status.
pub(super) fn responses(text: &str) -> Vec<Got> {
    let mut answers = Vec::new();
    let mut rest = text;
    while let Some((head, after)) = rest.split_once("\r\n\r\n") {
        let mut lines = head.lines();
        let line = lines.next().unwrap_or_default();
        let fields: Vec<_> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect();
        let length = fields
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .and_then(|(_, value)| value.parse().ok());
        let at = length.unwrap_or_else(|| after.find("HTTP/1.").unwrap_or(after.len())).min(after.len());
        let (body, after) = after.split_at_checked(at).unwrap_or((after, ""));
        answers.push(Got::response(line, fields, body.to_owned()));
        rest = after;
    }
    if !rest.is_empty() {
        answers.push(Got::response(rest.trim_end(), Vec::new(), String::new()));
    }
    answers
}

/// The query for these lines, if they are a request with a host.
pub fn question(port: u16, name: Option<&str>, lines: &[String]) -> Option<Question> {
    // A PROXY header precedes the request.
    let lines = if lines.first()?.starts_with("PROXY ") { &lines[1..] } else { lines };
    let mut words = lines.first()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let host = lines.iter().find_map(|line| line.strip_prefix("Host: "))?;
    let (scheme, usual) = if name.is_some() { ("https", 443) } else { ("http", 80) };
    let port = if port == usual || host.contains(':') { String::new() } else { format!(":{port}") };
    let is_request = target.starts_with('/') && version.starts_with("HTTP/1.");
    is_request.then(|| {
        let mut question = Question {
            url: format!("{scheme}://{host}{port}{target}"),
            method: (method != "GET").then(|| method.to_owned()),
            ..Question::default()
        };
        let fields = lines.iter().skip(1).take_while(|line| !line.is_empty());
        fields.filter(|line| !line.starts_with("Host: ")).for_each(|line| question.add_field(line));
        question
    })
}

/// Result of a handshake.
pub struct Handshake {
    /// openssl's output about it.
    pub lines: Vec<String>,
    /// The query for its server name and port.
    pub question: Option<Question>,
    /// True if it was completed.
    pub is_done: bool,
}

/// A handshake by `openssl s_client -brief` with further arguments: its output as lines, and the query for its server
/// name.
///
/// # Errors
/// When it cannot be run.
pub fn handshake(netns: &Netns, arguments: &[String], ca: &Path) -> Result<Handshake> {
    const SHOWN: [&str; 5] =
        ["Protocol version: ", "Ciphersuite: ", "Peer certificate: ", "Verification", "Server Temp Key: "];
    let mut command = netns.command("openssl")?;
    command.args(arguments).arg("-brief").arg("-CAfile").arg(ca);
    if !arguments.iter().any(|argument| argument == "-connect") {
        command.arg("-connect").arg(SocketAddr::new(ROUTER, 443).to_string());
    }
    let output = command.stdin(Stdio::null()).output().context("openssl cannot be run")?;
    let said = format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    let is_done = said.contains("CONNECTION ESTABLISHED");
    let mut lines: Vec<String> =
        said.lines().filter(|line| SHOWN.iter().any(|shown| line.starts_with(shown))).map(str::to_owned).collect();
    if !is_done {
        let alert = said.lines().find_map(|line| line.split_once("SSL alert number ").map(|(_, number)| number.trim()));
        lines = vec![alert.map_or("no TLS: the connection ends".to_owned(), |alert| format!("no TLS: alert {alert}"))];
    }
    let value = |of: &str| arguments.iter().position(|argument| argument == of).and_then(|at| arguments.get(at + 1));
    let port = value("-connect").and_then(|place| place.rsplit_once(':')).map_or("443", |(_, port)| port);
    let question = value("-servername").map(|name| Question { url: format!("{name}:{port}"), ..Question::default() });
    Ok(Handshake { lines, question, is_done })
}
