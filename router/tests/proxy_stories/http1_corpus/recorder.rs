//! A backend that writes down what it is asked, by the strictest reading: what it cannot read is recorded as such.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use router_common::hostname::{HostBuilder, field_text};
use router_common::http::{HeadParser, Progress};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::backends;

/// One message as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// `GET /path`.
    pub request: String,
    /// Normalised.
    pub host: String,
    /// Head as it stood.
    pub head: String,
    /// Content without framing; `None`: the connection ended within it.
    pub content: Option<String>,
}

/// The backend.
#[derive(Clone)]
pub struct Recorder {
    pub address: SocketAddr,
    messages: Arc<Mutex<Vec<Message>>>,
}

impl Recorder {
    /// Answers every message with `name`.
    pub async fn start(name: &'static str) -> Recorder {
        let messages = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&messages);
        let address = backends::serve(move |stream| record(name, stream, Arc::clone(&list))).await;
        Recorder { address, messages }
    }

    /// What has come since the last call.
    pub fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.messages.lock().unwrap())
    }
}

async fn record(name: &'static str, mut stream: TcpStream, list: Arc<Mutex<Vec<Message>>>) {
    let mut input = Vec::new();
    while let Some((mut message, length)) = head(&mut stream, &mut input).await {
        input.drain(..length);
        // Before the content is complete: a message that breaks off has been seen all the same.
        let at = {
            let mut list = list.lock().unwrap();
            list.push(message.clone());
            list.len() - 1
        };
        message.content = content(&mut stream, &mut input, &message.head).await;
        let complete = message.content.is_some();
        if let Some(seen) = list.lock().unwrap().get_mut(at) {
            *seen = message;
        }
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}", name.len());
        if !complete || stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn head(stream: &mut TcpStream, input: &mut Vec<u8>) -> Option<(Message, usize)> {
    loop {
        let (mut parser, mut host) = (HeadParser::new(), HostBuilder::new());
        let progress = parser.feed(&mut host, input);
        let length = match progress {
            Progress::Complete => parser.head().len as usize,
            Progress::Invalid(_) => input.len(),
            Progress::Incomplete if more(stream, input).await => continue,
            Progress::Incomplete => return None,
        };
        let head = String::from_utf8_lossy(&input[..length]).into_owned();
        let request = match progress {
            Progress::Complete => head.split(' ').take(2).collect::<Vec<_>>().join(" "),
            _ => "unreadable".to_owned(),
        };
        let host = field_text(&host.exact).to_owned();
        return Some((Message { request, host, head, content: None }, length));
    }
}

async fn content(stream: &mut TcpStream, input: &mut Vec<u8>, head: &str) -> Option<String> {
    let field = |name: &str| {
        head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    if field("transfer-encoding").is_some() {
        let mut content = String::new();
        loop {
            let line = line(stream, input).await?;
            let size = usize::from_str_radix(&line, 16).ok()?;
            let data = exactly(stream, input, size + 2).await?;
            content.push_str(data.strip_suffix("\r\n")?);
            if size == 0 {
                return Some(content);
            }
        }
    }
    let length = field("content-length").map_or(Some(0), |length| length.parse().ok())?;
    exactly(stream, input, length).await
}

async fn line(stream: &mut TcpStream, input: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(at) = input.windows(2).position(|pair| pair == b"\r\n") {
            let line = String::from_utf8(input.drain(..at + 2).collect()).ok()?;
            return Some(line.trim_end().to_owned());
        }
        if !more(stream, input).await {
            return None;
        }
    }
}

async fn exactly(stream: &mut TcpStream, input: &mut Vec<u8>, length: usize) -> Option<String> {
    while input.len() < length {
        if !more(stream, input).await {
            return None;
        }
    }
    String::from_utf8(input.drain(..length).collect()).ok()
}

async fn more(stream: &mut TcpStream, input: &mut Vec<u8>) -> bool {
    let mut part = [0; 8192];
    match stream.read(&mut part).await {
        Ok(read @ 1..) => {
            input.extend_from_slice(&part[..read]);
            true
        }
        _ => false,
    }
}
