//! A backend that records the requests that it receives, parsed as strictly as possible; unreadable ones are recorded
//! as such.

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
    /// Host, normalized.
    pub host: String,
    /// The head, verbatim.
    pub head: String,
    /// Its content.
    pub content: Content,
    /// The lines after the content.
    pub trailers: Vec<String>,
    /// Number of its connection.
    pub connection: usize,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Incomplete; the recorder waits for more.
    Coming,
    /// Complete, without framing.
    Whole(String),
    /// The connection ended before it was complete.
    BrokenOff,
    /// Its framing is invalid.
    Malformed,
}

/// The backend.
#[derive(Clone)]
pub struct Recorder {
    pub address: SocketAddr,
    messages: Arc<Mutex<Vec<Message>>>,
    /// For each connection, whether it has ended.
    connections: Arc<Mutex<Vec<bool>>>,
}

impl Recorder {
    /// Starts a backend that responds to every message with `name`.
    pub async fn start(name: &'static str) -> Recorder {
        let (messages, connections) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
        let (list, ends) = (Arc::clone(&messages), Arc::clone(&connections));
        let address = backends::serve(move |stream| {
            let (list, ends) = (Arc::clone(&list), Arc::clone(&ends));
            async move {
                let connection = {
                    let mut ends = ends.lock().unwrap();
                    ends.push(false);
                    ends.len() - 1
                };
                record(name, stream, connection, list).await;
                ends.lock().unwrap()[connection] = true;
            }
        })
        .await;
        Recorder { address, messages, connections }
    }

    /// True if a connection has ended.
    pub fn has_ended(&self, connection: usize) -> bool {
        self.connections.lock().unwrap()[connection]
    }

    /// True if a message is incomplete on an open connection.
    pub fn waits(&self) -> bool {
        self.messages.lock().unwrap().iter().any(|message| message.content == Content::Coming)
    }

    /// The messages since the last call.
    pub fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.messages.lock().unwrap())
    }
}

async fn record(name: &'static str, mut stream: TcpStream, connection: usize, list: Arc<Mutex<Vec<Message>>>) {
    let mut input = Vec::new();
    while let Some((mut message, length)) = head(&mut stream, &mut input).await {
        input.drain(..length);
        message.connection = connection;
        // Before the content is complete: an incomplete message is recorded as well.
        let at = {
            let mut list = list.lock().unwrap();
            list.push(message.clone());
            list.len() - 1
        };
        message.content = match content(&mut stream, &mut input, &mut message).await {
            Ok(content) => Content::Whole(content),
            Err(why) => why,
        };
        let complete = matches!(message.content, Content::Whole(_));
        let answer = if message.request.starts_with("HEAD ") { "" } else { name };
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{answer}", answer.len());
        if let Some(seen) = list.lock().unwrap().get_mut(at) {
            *seen = message;
        }
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
            Progress::Incomplete if input.is_empty() => return None,
            // Bytes after a message that are no message themselves.
            Progress::Incomplete => input.len(),
        };
        let head = String::from_utf8_lossy(&input[..length]).into_owned();
        let request = match progress {
            Progress::Complete => head.split(' ').take(2).collect::<Vec<_>>().join(" "),
            _ => "unreadable".to_owned(),
        };
        let host = field_text(&host.exact).to_owned();
        let (content, trailers) = (Content::Coming, Vec::new());
        return Some((Message { request, host, head, content, trailers, connection: 0 }, length));
    }
}

async fn content(stream: &mut TcpStream, input: &mut Vec<u8>, message: &mut Message) -> Result<String, Content> {
    let field = |name: &str| {
        message.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    if field("transfer-encoding").is_some() {
        let mut content = String::new();
        loop {
            let line = line(stream, input).await?;
            let size = usize::from_str_radix(&line, 16).map_err(|_| Content::Malformed)?;
            if size == 0 {
                break;
            }
            let data = exactly(stream, input, size + 2).await?;
            content.push_str(data.strip_suffix("\r\n").ok_or(Content::Malformed)?);
        }
        loop {
            let line = line(stream, input).await?;
            if line.is_empty() {
                return Ok(content);
            }
            message.trailers.push(line);
        }
    }
    let length = field("content-length").map_or(Ok(0), |length| length.parse().map_err(|_| Content::Malformed))?;
    exactly(stream, input, length).await
}

async fn line(stream: &mut TcpStream, input: &mut Vec<u8>) -> Result<String, Content> {
    loop {
        if let Some(at) = input.windows(2).position(|pair| pair == b"\r\n") {
            return text(input.drain(..at + 2).collect()).map(|line| line.trim_end().to_owned());
        }
        if !more(stream, input).await {
            return Err(Content::BrokenOff);
        }
    }
}

async fn exactly(stream: &mut TcpStream, input: &mut Vec<u8>, length: usize) -> Result<String, Content> {
    while input.len() < length {
        if !more(stream, input).await {
            return Err(Content::BrokenOff);
        }
    }
    text(input.drain(..length).collect())
}

fn text(bytes: Vec<u8>) -> Result<String, Content> {
    String::from_utf8(bytes).map_err(|_| Content::Malformed)
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
