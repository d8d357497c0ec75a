//! WebSockets (RFC 6455), as far as an echo of short messages needs them: the opening handshake and single frames. The
//! backend also accepts uploads: nginx responds to those that it does not proxy before it has read them.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::thread;

use anyhow::{Context, Result, bail, ensure};

use super::super::rows::BODY;
use super::client::{Client, in_threads, open};
use super::outcome::Outcome;

/// The backend's output once it listens.
pub const LISTENING: &str = "load: listening";
/// The key of RFC 6455 1.3, and the accept value for it. All clients here send this one.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
/// Bytes of a message: short enough for a frame with the shortest length field (RFC 6455 5.2).
const MESSAGE: usize = 64;
/// Final frame, binary.
const BINARY: u8 = 0x82;
/// In the second byte: the payload is masked.
const MASKED: u8 = 0x80;
const MASK: [u8; 4] = *b"mask";
/// Longest head of a request or answer.
const LONGEST_HEAD: usize = 8 * 1024;

/// Messages one after the other on each of some connections.
pub fn run(client: Client, name: &str) -> Result<Outcome> {
    let sent = frame_of_client();
    in_threads(client, |_| {
        let mut stream = open(client.to)?;
        let request = format!(
            "GET /own/echo HTTP/1.1\r\nHost: {name}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n\r\n"
        );
        stream.write_all(request.as_bytes())?;
        let (head, _) = head(&mut stream).context("waiting for the answer to the handshake")?;
        ensure!(head.starts_with("HTTP/1.1 101 ") && head.contains(ACCEPT), "the handshake was answered:\n{head}");
        Ok(move || {
            stream.write_all(&sent).context("sending a message")?;
            let mut answer = [0; 2 + MESSAGE];
            stream.read_exact(&mut answer).context("waiting for a message to come back")?;
            ensure!(answer[..2] == [BINARY, MESSAGE as u8], "another frame came back: {:?}", &answer[..2]);
            ensure!(answer[2..] == [b'm'; MESSAGE], "another message came back");
            Ok(())
        })
    })
}

/// Answers every connection from a thread of its own.
pub fn serve(listen: SocketAddrV4) -> Result<()> {
    let listener = TcpListener::bind(listen).with_context(|| format!("listening on {listen}"))?;
    eprintln!("{LISTENING}");
    for stream in listener.incoming() {
        let stream = stream?;
        thread::spawn(move || {
            if let Err(error) = answer(stream) {
                eprintln!("load: a WebSocket: {error:#}");
            }
        });
    }
    Ok(())
}

fn answer(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut body = vec![0; BODY];
    loop {
        let (head, begun) = match head(&mut stream) {
            Ok(read) => read,
            // The client has closed the connection.
            Err(_) => return Ok(()),
        };
        if head.contains(KEY) {
            return echo(stream);
        }
        let length = length(&head).with_context(|| format!("no upload of this tool's:\n{head}"))?;
        ensure!(length == BODY, "an upload of {length} bytes");
        stream.read_exact(&mut body[begun..]).context("reading an upload")?;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")?;
    }
}

/// Of the body of a request.
fn length(head: &str) -> Option<usize> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = fields.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    value.trim().parse().ok()
}

fn echo(mut stream: TcpStream) -> Result<()> {
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {ACCEPT}\r\n\r\n"
    );
    stream.write_all(answer.as_bytes())?;
    let mut frame = frame_of_client();
    loop {
        match stream.read_exact(&mut frame) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
                return Ok(());
            }
            Err(error) => return Err(error).context("waiting for a message"),
        }
        stream.write_all(&frame_of_server(&frame)?)?;
    }
}

fn frame_of_client() -> [u8; 6 + MESSAGE] {
    let mut frame = [b'm'; 6 + MESSAGE];
    frame[..2].copy_from_slice(&[BINARY, MASKED | MESSAGE as u8]);
    frame[2..6].copy_from_slice(&MASK);
    for (at, byte) in frame[6..].iter_mut().enumerate() {
        *byte ^= MASK[at % 4];
    }
    frame
}

/// The same message, unmasked (RFC 6455 5.1).
fn frame_of_server(frame: &[u8; 6 + MESSAGE]) -> Result<[u8; 2 + MESSAGE]> {
    ensure!(frame[..2] == [BINARY, MASKED | MESSAGE as u8], "a client sent another frame: {:?}", &frame[..2]);
    let mut answer = [0; 2 + MESSAGE];
    answer[..2].copy_from_slice(&[BINARY, MESSAGE as u8]);
    for at in 0..MESSAGE {
        answer[2 + at] = frame[6 + at] ^ frame[2 + at % 4];
    }
    Ok(answer)
}

/// Up to the empty line, and how many bytes of a body came with it.
fn head(stream: &mut TcpStream) -> Result<(String, usize)> {
    let mut head = Vec::new();
    let mut block = [0; 1024];
    loop {
        let more = stream.read(&mut block)?;
        head.extend_from_slice(&block[..more]);
        if let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") {
            let body = head.split_off(end + 4);
            return Ok((String::from_utf8(head)?, body.len()));
        }
        if more == 0 || head.len() > LONGEST_HEAD {
            bail!("no head, but `{}`", String::from_utf8_lossy(&head));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_from_the_echo() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let std::net::SocketAddr::V4(to) = listener.local_addr().unwrap() else { unreachable!() };
        let server = thread::spawn(move || answer(listener.accept().unwrap().0));
        let outcome = run(Client { to, connections: 1, milliseconds: 1 }, "app.bench.test").unwrap();
        assert!(outcome.units >= 1 && outcome.errors == 0, "{outcome:?}");
        server.join().unwrap().unwrap();
    }

    #[test]
    fn uploads_are_read_before_they_are_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let server = thread::spawn(move || answer(listener.accept().unwrap().0));
        let mut stream = TcpStream::connect(to).unwrap();
        for _ in 0..2 {
            write!(stream, "POST /own/upload HTTP/1.1\r\ncontent-length: {BODY}\r\n\r\n").unwrap();
            stream.write_all(&[b'u'; BODY]).unwrap();
            assert!(head(&mut stream).unwrap().0.starts_with("HTTP/1.1 200 "));
        }
        drop(stream);
        server.join().unwrap().unwrap();
    }

    #[test]
    fn a_client_masks_and_a_server_does_not() {
        let sent = frame_of_client();
        assert_ne!(sent[6..], [b'm'; MESSAGE]);
        assert_eq!(frame_of_server(&sent).unwrap()[2..], [b'm'; MESSAGE]);
        assert!(frame_of_server(&[0; 6 + MESSAGE]).is_err());
    }
}
