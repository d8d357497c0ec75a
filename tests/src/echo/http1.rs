//! HTTP/1.1 as received, without a library that would normalize it.

use std::fmt::Write as _;
use std::io::{self, ErrorKind};
use std::mem;

use bytes::{Buf, BytesMut};
use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::backend::{Instead, NUMBER, Stage, Stream};
use super::log::Seen;

/// Maximum number of parsed fields of a request.
const MAX_FIELDS: usize = 256;

/// Serves a connection until its end.
pub async fn serve(mut stream: Box<dyn Stream>, about: &[String], stage: &Stage) -> io::Result<()> {
    let mut bytes = BytesMut::new();
    while let Some(mut seen) = head(&mut stream, &mut bytes).await? {
        seen.about = about.to_vec();
        if field(&seen, "expect").is_some() {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        content(&mut stream, &mut bytes, &mut seen).await?;
        let is_last = field(&seen, "connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
            || seen.request.ends_with("/1.0");
        let upgrade = field(&seen, "upgrade").map(str::to_owned);
        let (answer, before) = (&stage.backend.answer, stage.log.count_of(&stage.backend.name));
        let number = stage.log.add(&stage.backend.name, seen.clone());
        stage.pause().await;
        match &answer.instead {
            Some(Instead::Close) => return Ok(()),
            Some(Instead::Send(raw)) => {
                stream.write_all(raw).await?;
                return stream.shutdown().await;
            }
            Some(Instead::Hold) | None => {}
        }
        if let Some(protocol) = upgrade {
            let name = &stage.backend.name;
            let head = format!(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n{NUMBER}: {name}/{number}\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(&bytes).await?;
            let (mut from, mut to) = tokio::io::split(stream);
            return tokio::io::copy(&mut from, &mut to).await.map(drop);
        }
        let status = answer.status(before);
        let own = Seen { backend: stage.backend.name.clone(), ..seen };
        stream.write_all(response(&own, status, number, stage).as_bytes()).await?;
        if is_last {
            return stream.shutdown().await;
        }
    }
    Ok(())
}

/// A complete response.
fn response(seen: &Seen, status: u16, number: usize, stage: &Stage) -> String {
    let answer = &stage.backend.answer;
    let usual = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let reason = answer.reason.as_deref().or(usual).unwrap_or_default();
    let mut text = format!("HTTP/1.1 {status} {reason}\r\n{NUMBER}: {}/{number}\r\n", stage.backend.name);
    for (name, value) in &answer.fields {
        // Writing to a String cannot fail.
        let _ = write!(text, "{name}: {value}\r\n");
    }
    if !answer.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        text.push_str("Content-Type: text/plain\r\n");
    }
    let body = answer.body.clone().unwrap_or_else(|| seen.lines());
    let has_none = [204, 304].contains(&status);
    if !has_none {
        let _ = write!(text, "Content-Length: {}\r\n", body.len());
    }
    text.push_str("\r\n");
    if !has_none && !seen.request.starts_with("HEAD ") {
        text.push_str(&body);
    }
    text
}

/// Reads a head; `None` at the end of the connection.
async fn head(stream: &mut Box<dyn Stream>, bytes: &mut BytesMut) -> io::Result<Option<Seen>> {
    loop {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        let parsed = request.parse(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        if let httparse::Status::Complete(length) = parsed {
            let seen = Seen {
                request: format!(
                    "{} {} HTTP/1.{}",
                    request.method.unwrap_or_default(),
                    request.path.unwrap_or_default(),
                    request.version.unwrap_or_default()
                ),
                fields: texts(request.headers),
                ..Seen::default()
            };
            bytes.advance(length);
            return Ok(Some(seen));
        }
        if stream.read_buf(bytes).await? == 0 {
            return Ok(None);
        }
    }
}

fn texts(fields: &[httparse::Header<'_>]) -> Vec<(String, String)> {
    let text =
        |field: &httparse::Header<'_>| (field.name.to_owned(), String::from_utf8_lossy(field.value).into_owned());
    fields.iter().map(text).collect()
}

/// The first field of a name.
fn field<'s>(seen: &'s Seen, name: &str) -> Option<&'s str> {
    seen.fields.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// Reads the content after a head.
async fn content(stream: &mut Box<dyn Stream>, bytes: &mut BytesMut, seen: &mut Seen) -> io::Result<()> {
    let invalid = || io::Error::from(ErrorKind::InvalidData);
    if field(seen, "transfer-encoding").is_none() {
        let length = field(seen, "content-length").map_or(Ok(0), str::parse).map_err(|_| invalid())?;
        seen.body = exactly(stream, bytes, length).await?;
        return Ok(());
    }
    loop {
        let line = line(stream, bytes).await?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(digits, 16).map_err(|_| invalid())?;
        if size == 0 {
            break;
        }
        seen.body.extend(exactly(stream, bytes, size).await?);
        exactly(stream, bytes, 2).await?;
    }
    loop {
        let line = line(stream, bytes).await?;
        let Some((name, value)) = line.split_once(':') else { return Ok(()) };
        seen.trailers.push((name.to_owned(), value.trim().to_owned()));
    }
}

async fn exactly(stream: &mut Box<dyn Stream>, bytes: &mut BytesMut, length: usize) -> io::Result<Vec<u8>> {
    while bytes.len() < length {
        if stream.read_buf(bytes).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(bytes.split_to(length).to_vec())
}

async fn line(stream: &mut Box<dyn Stream>, bytes: &mut BytesMut) -> io::Result<String> {
    let mut line = Vec::new();
    loop {
        match exactly(stream, bytes, 1).await?.as_slice() {
            b"\n" => return Ok(String::from_utf8_lossy(&mem::take(&mut line)).trim_end().to_owned()),
            byte => line.extend_from_slice(byte),
        }
    }
}
