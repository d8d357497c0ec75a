//! Later requests with lost, reordered or re-segmented segments, and those whose heads exceed a map. The client is raw:
//! it retransmits only explicitly.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use router_common::maps::names;
use router_common::verdict::DialCounter;
use tests::pinned::LaterHeads;
use tests::raw::{self, End, Nature, Place};
use tests::stream;
use tests::wait;
use tests::wire::{Frame, FrameAction, fragmenting};

use super::{BACKEND_PORT, Stage, answer, post, request, serve, until_reset};

/// Payload of the raw client's segments.
const SEGMENT: usize = 1000;
/// Length of the response to a request.
const ANSWER: usize = 27;

/// A raw client, and the connection at the backend; the first `over` bytes of the stream are done and answered.
struct Raw {
    client: End,
    origin: TcpStream,
    over: usize,
}

impl Raw {
    /// A connection that the kernel carries, on which a request was served.
    fn carried(stage: &Stage) -> Result<Raw> {
        stage.client.without_offloads("eth0")?;
        stage.router.without_offloads("front")?;
        let address = SocketAddr::new(raw::address_on(IpAddr::from([10, 82, 1, 2])), 20_000);
        let place = Place { at: (&stage.client, "eth0"), gateway: (&stage.router, "front"), address };
        let mut client = End::connect(&place, stage.address, Nature::COMMON)?;
        let first = request("/first", "one", "");
        client.send(&first)?;
        let mut origin = stream::accept(&stage.one)?;
        serve(&mut origin)?;
        client.receive(ANSWER)?;
        client.all_acknowledged()?;
        ensure!(stage.counted(DialCounter::Dialed)? == 1, "the kernel did not dial");
        Ok(Raw { client, origin, over: first.len() })
    }

    /// Counts these bytes as sent, without sending them.
    fn begin(&mut self, text: &[u8]) -> Result<()> {
        self.client.sent(text.len())
    }

    /// Sends a range of the counted bytes.
    fn send(&mut self, text: &[u8], from: usize, to: usize) -> Result<()> {
        self.client.send_again(self.over + from, text.get(from..to).context("so many bytes")?)
    }

    /// Checks that the connection ends, and that the backend has not received all of this.
    fn refused(mut self, stage: &Stage, text: &[u8]) -> Result<()> {
        self.client.resets()?;
        let seen = until_reset(&mut self.origin)?;
        ensure!(!seen.windows(text.len()).any(|seen| seen == text), "the backend got a request that is not its own");
        ensure!(stage.counted(DialCounter::OtherHost)? == 1, "the reset was not counted");
        Ok(())
    }

    /// Checks that the backend has received exactly this.
    fn received(&mut self, text: &[u8]) -> Result<()> {
        let mut received = vec![0; text.len()];
        self.origin.read_exact(&mut received)?;
        ensure!(received == text, "something else arrived: {:?}", String::from_utf8_lossy(&received));
        Ok(())
    }
}

/// A request with this much content, none of whose segments looks like a request.
fn upload(host: &str, length: usize) -> Vec<u8> {
    let mut text = post("/upload", host, &format!("Content-Length: {length}\r\n"));
    text.extend((0..length).map(|at| b'a' + (at % 23) as u8));
    text
}

#[test]
fn a_lost_request_for_another_host_is_detected_behind_its_content() -> Result<()> {
    let stage = Stage::new()?;
    let mut raw = Raw::carried(&stage)?;
    let text = upload("two", 8000);
    raw.begin(&text)?;
    // Its first segments are lost, much later ones arrive.
    raw.send(&text, 6 * SEGMENT, 7 * SEGMENT)?;
    raw.send(&text, 7 * SEGMENT, text.len())?;
    raw.send(&text, 0, SEGMENT)?;
    raw.refused(&stage, &text[..SEGMENT])
}

#[test]
fn a_head_for_another_host_is_detected_in_reordered_segments() -> Result<()> {
    let stage = Stage::new()?;
    let mut raw = Raw::carried(&stage)?;
    let text = request("/late", "two", &format!("Cookie: {}\r\n", "c".repeat(1500)));
    raw.begin(&text)?;
    for (from, to) in [(SEGMENT, text.len()), (0, SEGMENT), (SEGMENT, text.len())] {
        raw.send(&text, from, to)?;
    }
    raw.refused(&stage, &text)
}

#[test]
fn a_request_for_another_host_is_detected_behind_retransmitted_bytes() -> Result<()> {
    let stage = Stage::new()?;
    let mut raw = Raw::carried(&stage)?;
    let (own, other) = (request("/own", "one", ""), request("/other", "two", ""));
    let text = [own.clone(), other.clone()].concat();
    raw.begin(&own)?;
    raw.send(&text, 0, own.len())?;
    serve(&mut raw.origin)?;
    raw.client.receive(2 * ANSWER)?;
    raw.begin(&other)?;
    // As if the response's acknowledgement were lost: the client sends the end of the request with the next one.
    raw.send(&text, own.len() - 10, text.len())?;
    raw.refused(&stage, &other)
}

#[test]
fn what_comes_in_another_order_reaches_its_backend_in_the_right_one() -> Result<()> {
    let stage = Stage::new()?;
    let mut raw = Raw::carried(&stage)?;
    let text = upload("one", 20_000);
    raw.begin(&text)?;
    let ends = |from: usize| (from, (from + SEGMENT).min(text.len()));
    // The first segment is lost, all others arrive; then all arrive once more, since none was acknowledged.
    for (from, to) in (SEGMENT..text.len()).step_by(SEGMENT).map(ends) {
        raw.send(&text, from, to)?;
    }
    for (from, to) in (0..text.len()).step_by(SEGMENT).map(ends) {
        raw.send(&text, from, to)?;
    }
    raw.received(&text)?;
    raw.client.all_acknowledged()?;
    raw.over += text.len();
    // The gap is closed: the next requests are inspected again.
    let own = request("/own", "one", "");
    raw.client.send(&own)?;
    raw.received(&own)?;
    raw.over += own.len();
    let other = request("/other", "two", "");
    raw.begin(&other)?;
    raw.send(&other, 0, other.len())?;
    raw.refused(&stage, &other)
}

#[test]
fn a_full_map_of_later_requests_ends_no_connection() -> Result<()> {
    let stage = Stage::new()?;
    let (mut client, mut origin) = stage.carried()?;
    let own = request("/own", "one", &format!("Cookie: {}\r\n", "c".repeat(100)));
    let (begin, rest) = own.split_at(60);
    let mut heads = LaterHeads::of(&stage.sluice)?;
    let filled = heads.fill()?;
    // There is no room for the first segment's state; the client retransmits it until there is.
    client.write_all(begin)?;
    client.write_all(rest)?;
    filled.iter().try_for_each(|key| heads.delete(key))?;
    ensure!(serve(&mut origin)?.as_bytes() == own, "the request was changed");
    answer(&mut client)?;
    ensure!(heads.count()? == 0, "what was read stays");
    client.write_all(&request("/other", "two", ""))?;
    until_reset(&mut client)?;
    Ok(())
}

/// The program reads only requests without fragments. The relay's host reassembles them.
#[test]
fn a_request_in_fragments_ends_its_connection_and_the_next_ones_are_relayed() -> Result<()> {
    let stage = Stage::new()?;
    let mut raw = Raw::carried(&stage)?;
    let text = upload("one", SEGMENT);
    raw.client.send_in_fragments(&text, 400)?;
    raw.client.resets()?;
    until_reset(&mut raw.origin)?;
    ensure!(stage.counted(DialCounter::Fragmented)? == 1, "the connection was not counted");

    let address = SocketAddr::new(raw::address_on(IpAddr::from([10, 82, 1, 2])), 20_001);
    let place = Place { at: (&stage.client, "eth0"), gateway: (&stage.router, "front"), address };
    let mut client = End::connect(&place, stage.address, Nature::COMMON)?;
    client.send(&request("/next", "one", ""))?;
    let mut origin = stream::accept(&stage.one)?;
    serve(&mut origin)?;
    client.until("an answer", |end| end.received().starts_with(b"HTTP/1.1 204"))?;
    client.send_in_fragments(&text, 400)?;
    let mut upload = Vec::new();
    while !upload.ends_with(&text[text.len() - SEGMENT..]) {
        let mut part = [0; 4096];
        let read = stream::read_some(&mut origin, &mut part)?;
        ensure!(read > 0, "the backend has got no more than {:?}", String::from_utf8_lossy(&upload));
        upload.extend_from_slice(&part[..read]);
    }
    ensure!(stage.counted(DialCounter::Dialed)? == 1, "the kernel has dialed for a client that fragments");
    Ok(())
}

/// The program reads in the response whether an endpoint switches protocols; a fragmented response hides that. The
/// relay's host reassembles it.
#[test]
fn an_awaited_answer_in_fragments_ends_its_connection_and_the_next_one_is_relayed() -> Result<()> {
    let stage = Stage::behind(Some(fragmenting(400, false)))?;
    let upgrade = request("/chat", "one", "Connection: upgrade\r\nUpgrade: websocket\r\n");
    let more = format!("X-More: {}\r\n", "m".repeat(SEGMENT));
    let switched =
        format!("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n{more}\r\n");
    let ask = || {
        let mut client = stage.open()?;
        client.write_all(&upgrade)?;
        let mut origin = stream::accept(&stage.one)?;
        stream::read_until(&mut origin, b"\r\n\r\n")?;
        origin.write_all(switched.as_bytes())?;
        Ok::<_, anyhow::Error>((client, origin))
    };
    let (mut client, mut origin) = ask()?;
    ensure!(until_reset(&mut client)?.is_empty(), "a part of the answer has come");
    until_reset(&mut origin)?;
    ensure!(stage.counted(DialCounter::Fragmented)? == 1, "the connection was not counted");

    let (mut client, mut origin) = ask()?;
    let head = stream::read_until(&mut client, b"\r\n\r\n")?;
    ensure!(head.starts_with(b"HTTP/1.1 101 "), "{:?}", String::from_utf8_lossy(&head));
    origin.write_all(b"tunneled")?;
    ensure!(stream::read_until(&mut client, b"tunneled")? == b"tunneled", "something else has come");
    ensure!(stage.counted(DialCounter::Dialed)? == 1, "the kernel has dialed for a client with fragments");
    Ok(())
}

/// The first head is long, so that it waits in `hellos` for its acknowledgement; that is delayed, and bytes that look
/// like the beginning of a request arrive before it.
#[test]
fn content_that_comes_before_the_endpoint_has_acknowledged_the_head_ends_no_connection() -> Result<()> {
    let late = |frame: &Frame| {
        // The SYN-ACK has index 0.
        if !frame.forward && frame.index == 1 { FrameAction::Late(Duration::from_secs(1)) } else { FrameAction::Pass }
    };
    let stage = Stage::behind(Some(Box::new(late)))?;
    let mut client = stage.open()?;
    let cookie = format!("Content-Length: 5\r\nCookie: {}\r\n", "c".repeat(1200));
    let head = post("/long", "one", &cookie);
    client.write_all(&head)?;
    let mut origin = stream::accept(&stage.one)?;
    ensure!(serve(&mut origin)?.as_bytes() == head, "the head was changed");
    client.write_all(b"HELLO")?;
    let mut content = [0; 5];
    origin.read_exact(&mut content)?;
    ensure!(&content == b"HELLO", "the content was changed");
    answer(&mut client)?;
    let mut states = Vec::new();
    wait::wait_until("the kernel has seen that the head has arrived", wait::PATIENCE, || {
        let flows = stage.sluice.dump(names::FLOWS).ok().and_then(|dump| dump.as_array().cloned()).unwrap_or_default();
        states = flows.iter().map(|flow| flow["state"].as_str().unwrap_or_default().to_owned()).collect();
        states == ["established", "established"]
    })
    .with_context(|| format!("they are {states:?}"))?;
    client.write_all(&request("/own", "one", ""))?;
    serve(&mut origin)?;
    answer(&mut client)?;
    ensure!(origin.local_addr()?.port() == BACKEND_PORT, "another backend");
    Ok(())
}
