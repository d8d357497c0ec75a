//! Content and tunnels are never parsed, whatever their bytes look like; after content, parsing resumes. Each script is
//! played over the kernel's path and the relay, with IPv4 and IPv6, and must show the same to clients and endpoints. A
//! client whose connection is reset retries on another one, as clients do.

mod origin;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, bail, ensure};
use router_common::maps::names;
use router_common::verdict::{DialCounter, Reason};
use tempfile::TempDir;
use tests::folder;
use tests::netns::Netns;
use tests::pinned;
use tests::sluice::{DataPath, Options, Sluice};
use tests::stream;

use super::{NEVER, post, request};
use origin::Origin;

/// Bytes of a write; most writes become one segment.
const PIECE: usize = 1_400;

struct Played {
    sluice: Sluice,
    client: Netns,
    address: SocketAddr,
    one: Origin,
    two: Origin,
    path: DataPath,
    _machines: [Netns; 2],
    _manifests: TempDir,
}

impl Played {
    fn new(path: DataPath, v6: bool) -> Result<Played> {
        let (client, router, backend) = (Netns::new("client")?, Netns::new("router")?, Netns::new("backend")?);
        let at = |link: u8, host: u8| if v6 { format!("fd84:{link}::{host}") } else { format!("10.84.{link}.{host}") };
        let network = |link, host| format!("{}/{}", at(link, host), if v6 { 64 } else { 24 });
        client.link(("eth0", &[&network(1, 2)]), &router, ("front", &[&network(1, 1)]))?;
        router.link(("back", &[&network(2, 1)]), &backend, ("eth0", &[&network(2, 2), &network(2, 3)]))?;
        let (one, two) = (Origin::start(&backend, &at(2, 2))?, Origin::start(&backend, &at(2, 3))?);
        let never = format!("metadata: {{annotations: {{{NEVER}}}, ");
        let mut text = folder::router();
        for (name, origin) in [("one", &one), ("two", &two)] {
            text += &folder::service(name, origin.address);
            text += &folder::route(name, &format!("{name}.apps.test"), name, "").replace("metadata: {", &never);
        }
        let manifests = TempDir::new()?;
        folder::replace(&manifests.path().join("all.yaml"), &text)?;
        let sluice = Sluice::start(&router, manifests.path(), &Options::network(path))?;
        let address = SocketAddr::new(at(1, 1).parse()?, super::HTTP_PORT);
        Ok(Played { sluice, client, address, one, two, path, _machines: [router, backend], _manifests: manifests })
    }

    fn client(&self) -> Result<Client<'_>> {
        Ok(Client { stage: self, stream: stream::open(&self.client, self.address)? })
    }

    /// The requests received by both endpoints.
    fn seen(&self) -> [Vec<String>; 2] {
        [self.one.seen(), self.two.seen()]
    }

    /// Checks a counter of the kernel; on the relay there is nothing to check.
    fn counted(&self, counter: DialCounter, times: u64) -> Result<()> {
        if self.path == DataPath::Kernel {
            let counted = pinned::dial_counter(&self.sluice, counter)?;
            ensure!(counted == times, "{counter:?}: {counted} instead of {times}");
        }
        Ok(())
    }
}

struct Client<'s> {
    stage: &'s Played,
    stream: TcpStream,
}

impl Client<'_> {
    /// Sends requests, piece by piece, and reads this many responses: status and body.
    fn once(&mut self, pieces: &[&[u8]], answers: usize) -> Result<Vec<String>> {
        pieces.iter().try_for_each(|piece| self.stream.write_all(piece))?;
        (0..answers).map(|_| answer(&mut self.stream)).collect()
    }

    /// The same; if the connection ends before all responses arrive, repeats everything once on another connection, in
    /// one write.
    fn ask(&mut self, pieces: &[&[u8]], answers: usize) -> Result<Vec<String>> {
        self.once(pieces, answers).or_else(|_| {
            self.stream = stream::open(&self.stage.client, self.stage.address)?;
            self.once(&[&pieces.concat()], answers)
        })
    }
}

/// Status and body of the next response.
fn answer(stream: &mut TcpStream) -> Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.extend(byte);
    }
    let head = String::from_utf8(head)?.to_ascii_lowercase();
    let status = head.split(' ').nth(1).context("a status")?.to_owned();
    let Some(length) = head.split("content-length: ").nth(1) else { return Ok(status) };
    let mut body = vec![0; length.split('\r').next().context("a length")?.parse()?];
    stream.read_exact(&mut body)?;
    // The router's own pages are equal on both data paths, and not part of this story.
    Ok(if status == "200" { format!("{status} {}", String::from_utf8(body)?) } else { status })
}

/// Content of this length, each piece of which begins like a request for the other host.
fn tempting(len: usize) -> Vec<u8> {
    let mut piece = request("/smuggled", "two", "");
    piece.resize(PIECE, b'x');
    piece.into_iter().cycle().take(len).collect()
}

/// Chunked content; each chunk is a piece.
fn chunked(content: &[u8]) -> Vec<Vec<u8>> {
    let chunk = |data: &[u8]| [format!("{:x};x=y\r\n", data.len()).as_bytes(), data, b"\r\n"].concat();
    content.chunks(PIECE).map(chunk).chain([b"0\r\nX: y\r\n\r\n".to_vec()]).collect()
}

/// Runs a script on every data path, and checks that the results are equal.
fn alike<T: PartialEq + std::fmt::Debug>(script: impl Fn(&Played) -> Result<T>) -> Result<()> {
    let mut first = None;
    for (path, v6) in
        [(DataPath::UserSpace, false), (DataPath::Kernel, false), (DataPath::UserSpace, true), (DataPath::Kernel, true)]
    {
        let story = || format!("{path:?}, IPv{}", if v6 { 6 } else { 4 });
        let stage = Played::new(path, v6).with_context(story)?;
        let shown = (script(&stage).with_context(story)?, stage.seen());
        let foreign = stage.one.seen().iter().find(|line| !line.starts_with("one.apps.test ")).cloned();
        ensure!(foreign.is_none(), "{}: the endpoint has got {foreign:?}", story());
        match &first {
            None => first = Some(shown),
            Some(first) => ensure!(*first == shown, "{}: {shown:?} instead of {first:?}", story()),
        }
    }
    Ok(())
}

#[test]
fn uploads_arrive_whatever_they_look_like() -> Result<()> {
    alike(|stage| {
        let content = tempting(200_000);
        let sized = post("/sized", "one", &format!("Content-Length: {}\r\n", content.len()));
        let in_chunks = post("/chunked", "one", "Transfer-Encoding: chunked\r\n");
        let chunks = chunked(&content);
        let chunks = || chunks.iter().map(Vec::as_slice);
        let mut shown = Vec::new();
        // Each as the first request of a connection, and as the next one, followed by another one.
        for order in [[&sized, &in_chunks], [&in_chunks, &sized]] {
            let mut client = stage.client()?;
            for head in order {
                let mut pieces = vec![head.as_slice()];
                if std::ptr::eq(head, &sized) {
                    pieces.extend(content.chunks(PIECE))
                } else {
                    pieces.extend(chunks())
                }
                // The first head is sent alone: bytes that follow it at once would make the relay carry it.
                shown.push(client.once_after_head(&pieces)?);
            }
            shown.extend(client.once(&[&request("/last", "one", "")], 1)?);
        }
        stage.counted(DialCounter::Dialed, 2)?;
        stage.counted(DialCounter::OtherHost, 0)?;
        stage.counted(DialCounter::Unfollowed, 0)?;
        ensure!(stage.one.seen().len() == 6 && stage.two.seen().is_empty(), "{:?}", stage.seen());
        ensure!(shown.iter().all(|answer| answer.starts_with("200 ")), "{shown:?}");
        Ok(shown)
    })
}

impl Client<'_> {
    /// A request whose head arrives before its content; returns its response.
    fn once_after_head(&mut self, pieces: &[&[u8]]) -> Result<String> {
        let (head, content) = pieces.split_first().context("a head")?;
        let heads = self.stage.one.heads();
        self.stream.write_all(head)?;
        if self.stage.path == DataPath::Kernel {
            self.stage.one.wait_for_heads(heads + 1)?;
        }
        content.iter().try_for_each(|piece| self.stream.write_all(piece))?;
        answer(&mut self.stream)
    }
}

#[test]
fn a_tunnel_carries_anything() -> Result<()> {
    alike(|stage| {
        let mut client = stage.client()?;
        let head = request("/tunnel", "one", "Connection: Upgrade\r\nUpgrade: websocket\r\n");
        let mut shown = client.once(&[&head], 1)?;
        ensure!(shown == ["101"], "{shown:?}");
        let content = tempting(100_000);
        let mut echoed = vec![0; PIECE];
        for piece in content.chunks_exact(PIECE) {
            client.stream.write_all(piece)?;
            client.stream.read_exact(&mut echoed)?;
            ensure!(echoed == piece, "the tunnel has changed something");
        }
        // On another connection, and with a segment that is not a request at all.
        let mut client = stage.client()?;
        shown.extend(client.once(&[&head], 1)?);
        client.stream.write_all(b"\x81\x05\0\xff\r\n")?;
        client.stream.read_exact(&mut echoed[..6])?;
        stage.counted(DialCounter::Dialed, 2)?;
        stage.counted(DialCounter::OtherHost, 0)?;
        Ok(shown)
    })
}

#[test]
fn an_endpoint_that_does_not_switch_goes_on_with_requests() -> Result<()> {
    alike(|stage| {
        let mut client = stage.client()?;
        let upgrade = "Connection: Upgrade\r\nUpgrade: refused\r\n";
        let mut shown = client.once(&[&request("/refused", "one", upgrade)], 1)?;
        shown.extend(client.once(&[&request("/own", "one", "")], 1)?);
        // Some clients send this with every request.
        let h2c = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n";
        shown.extend(client.once(&[&request("/h2c", "one", h2c)], 1)?);
        stage.counted(DialCounter::Dialed, 1)?;
        shown.extend(client.ask(&[&request("/other", "two", "")], 1)?);
        stage.counted(DialCounter::OtherHost, 1)?;
        // A later request for another protocol gets a connection on which it is the first.
        let mut client = stage.client()?;
        shown.extend(client.once(&[&request("/first", "one", "")], 1)?);
        shown.extend(client.ask(&[&request("/tunnel", "one", "Connection: Upgrade\r\nUpgrade: websocket\r\n")], 1)?);
        client.stream.write_all(&tempting(PIECE))?;
        let mut echoed = vec![0; PIECE];
        client.stream.read_exact(&mut echoed)?;
        stage.counted(DialCounter::Unfollowed, 1)?;
        ensure!(shown.last().is_some_and(|last| last == "101"), "{shown:?}");
        Ok(shown)
    })
}

#[test]
fn behind_content_stands_a_request_again() -> Result<()> {
    alike(|stage| {
        let mut shown = Vec::new();
        let other = request("/other", "two", "");
        let (sized, in_chunks) = ("Content-Length: 3000\r\n", "Transfer-Encoding: chunked\r\n");
        let content = tempting(3000);
        let chunks = chunked(&content).concat();
        for (framing, content) in [(sized, &content), (in_chunks, &chunks)] {
            let head = post("/upload", "one", framing);
            // After it in a segment of its own, in the content's last segment, and all at once.
            let last = content.len() - 10;
            for pieces in [
                vec![head.clone(), content.clone(), other.clone()],
                vec![head.clone(), content[..last].to_vec(), [&content[last..], &other].concat()],
                vec![[&head[..], content, &other].concat()],
            ] {
                let mut client = stage.client()?;
                shown.extend(client.once(&[&request("/first", "one", "")], 1)?);
                let pieces: Vec<_> = pieces.iter().map(Vec::as_slice).collect();
                let answers = client.ask(&pieces, 2)?;
                ensure!(answers.len() == 2 && answers[1].contains("two.apps.test /other"), "{answers:?}");
                shown.extend(answers);
            }
        }
        // A repeated upload may have arrived before: the number is up to the client.
        let others = stage.two.seen();
        ensure!(others.len() == 6 && others.iter().all(|line| line.starts_with("two.apps.test /other")), "{others:?}");
        stage.counted(DialCounter::OtherHost, 6)?;
        stage.one.forget();
        Ok(shown)
    })
}

/// Heads with two framings of their content, or with one that parsers interpret differently.
const UNCLEAR: [&str; 14] = [
    "Content-Length: 5\r\nContent-Length: 5\r\n",
    "Content-Length: 5\r\nContent-Length: 6\r\n",
    "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    "Content-Length: +5\r\n",
    "Content-Length: 5, 5\r\n",
    "Content-Length: 0x5\r\n",
    "Content-Length: 18446744073709551621\r\n",
    "Content_Length: 5\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Transfer-Encoding: xchunked\r\n",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "X: y\r\n Content-Length: 5\r\n",
    "X: y\nContent-Length: 5\r\n",
    "Content-Length : 5\r\n",
];
/// Chunks that parsers interpret differently.
const BROKEN: [&str; 6] =
    ["5\nhello\r\n0\r\n\r\n", "5;a\nb\r\nhello", "0x5\r\nhello", "5\r\nhelloXX0\r\n\r\n", "-5\r\n", "0\r\n\n"];

#[test]
fn what_readers_may_differ_on_is_answered_by_the_router() -> Result<()> {
    alike(|stage| {
        let mut shown = Vec::new();
        let hidden = request("/hidden", "two", "");
        for fields in UNCLEAR {
            let head = post("/odd", "one", fields);
            // As the first request of a connection, and as a later one, with a request after its presumed content.
            let mut client = stage.client()?;
            shown.extend(client.once(&[&head], 1).with_context(|| format!("{fields:?} first"))?);
            let mut client = stage.client()?;
            client.once(&[&request("/first", "one", "")], 1)?;
            let whole = [&head[..], b"0\r\n\r\n", &hidden].concat();
            shown.extend(client.ask(&[&whole], 1).with_context(|| format!("{fields:?} later"))?);
        }
        ensure!(shown.iter().all(|answer| answer == "400" || answer == "501"), "{shown:?}");
        for chunks in BROKEN {
            let mut client = stage.client()?;
            client.once(&[&request("/first", "one", "")], 1)?;
            let head = post("/broken", "one", "Transfer-Encoding: chunked\r\n");
            client.stream.write_all(&[&head[..], chunks.as_bytes(), &hidden].concat())?;
            // A response of the router, or a reset: the request is aborted, and none after it is served.
            match answer(&mut client.stream) {
                Ok(answer) if answer == "400" => {}
                Ok(answer) => bail!("{chunks:?} is answered by {answer}"),
                Err(_) => {}
            }
        }
        ensure!(stage.two.seen().is_empty(), "{:?}", stage.two.seen());
        // The kernel passed the first requests to the relay, and ended the connections of the later ones.
        stage.counted(DialCounter::Unfollowed, (UNCLEAR.len() + BROKEN.len()) as u64)?;
        if stage.path == DataPath::Kernel {
            // All except those that are not heads.
            let stats = stage.sluice.dump(names::REASON_STATS)?;
            let mut reasons = stats.as_array().context("a list")?.iter();
            let relayed = reasons.find(|row| row["reason"] == Reason::UnclearContent.text()).context("the reason")?;
            ensure!(relayed["connections"] == UNCLEAR.len() - 3, "{relayed}");
        }
        Ok(shown)
    })
}
