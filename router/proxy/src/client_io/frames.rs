//! How much of what an HTTP/2 client sends is not about requests: h2 bounds what frames make it keep, not how many
//! PING, SETTINGS, PRIORITY and WINDOW_UPDATE frames it takes and answers (CVE-2019-9512, -9513, -9515). Frames are
//! counted here as they come in; h2 alone reads what they say.
//!
//! A client that is sent something answers it: with a WINDOW_UPDATE for the stream and one for the connection (RFC 9113
//! §5.2), and many with a PING that measures the path. So each part of a response earns it some frames. A part is what
//! the endpoint has sent, not a frame of DATA: into how many of these it is cut is for the client's window to say, and a
//! client that opens it byte by byte would earn more than it spends.

use std::time::Instant;

/// Bytes of a frame's header (RFC 9113 §4.1).
const HEADER: usize = 9;
/// What the client has before the first frame.
const PREFACE: u64 = 24;
/// Most frames in a row that are about no request: with what the answers to them earn, less than a thousand. Nor is
/// more ever in hand, whatever was earned.
const MOST: u64 = 900;
/// How many are earned by a frame that carries a request's fields or content.
const FOR_REQUESTS: u64 = 8;
/// How many are earned by a part of a response: two WINDOW_UPDATE, a PING, and one to spare.
const FOR_PARTS: u64 = 4;
/// How many bytes to the client earn one: it may read less at a time than it is sent.
const BYTES_SENT: u64 = 1024;
/// How many a second are always good.
const EACH_SECOND: u64 = 10;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
/// Of DATA: its content begins with the length of its padding (RFC 9113 §6.1).
const PADDED: u8 = 8;
/// Of SETTINGS and PING (RFC 9113 §6.5, §6.7).
const ACK: u8 = 1;

/// Counts the frames of one connection.
#[derive(Debug)]
pub struct FrameMeter {
    received: Frames,
    sent: Frames,
    left: u64,
    bytes_sent: u64,
    since: Option<Instant>,
    last_stream: u32,
}

/// The client sends frames without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many frames that are about no request")]
pub struct TooManyFrames;

impl Default for FrameMeter {
    fn default() -> Self {
        FrameMeter {
            received: Frames { rest: PREFACE, ..Frames::default() },
            sent: Frames::default(),
            left: MOST,
            bytes_sent: 0,
            since: None,
            last_stream: 0,
        }
    }
}

impl FrameMeter {
    /// Looks at bytes from the client, for which h2 has had so many parts of responses since the last ones.
    ///
    /// # Errors
    /// When nothing is left for a frame that is about no request.
    pub fn receive(&mut self, mut bytes: &[u8], parts: u64) -> Result<(), TooManyFrames> {
        self.earn(parts.saturating_mul(FOR_PARTS));
        let mut last_stream = self.last_stream;
        while let Some(frame) = self.received.next(&mut bytes) {
            self.take(&frame)?;
            if frame.kind == HEADERS {
                last_stream = last_stream.max(frame.stream);
            }
        }
        self.last_stream = last_stream;
        Ok(())
    }

    /// Looks at bytes to the client.
    pub fn send(&mut self, mut bytes: &[u8]) {
        self.bytes_sent += bytes.len() as u64;
        self.earn(self.bytes_sent / BYTES_SENT);
        self.bytes_sent %= BYTES_SENT;
        while let Some(frame) = self.sent.next(&mut bytes) {
            // Those that have an answer.
            if matches!(frame.kind, SETTINGS | PING) && frame.flags & ACK == 0 {
                self.earn(1);
            }
        }
    }

    /// Of so many bytes that would be sent next, how many belong to a frame that has begun.
    pub fn of_begun_frame(&self, bytes: usize) -> usize {
        self.sent.of_begun(bytes)
    }

    /// The last stream that the client has opened with bytes that were good.
    pub fn last_stream(&self) -> u32 {
        self.last_stream
    }

    fn take(&mut self, frame: &Frame) -> Result<(), TooManyFrames> {
        // Of DATA, HEADERS and CONTINUATION those that bring something.
        if matches!(frame.kind, DATA | HEADERS | CONTINUATION) && frame.content > 0 {
            self.earn(FOR_REQUESTS);
            return Ok(());
        }
        if self.left == 0 {
            let now = Instant::now();
            let since = *self.since.get_or_insert(now);
            self.earn(now.duration_since(since).as_secs() * EACH_SECOND);
            if self.left > 0 {
                self.since = Some(now);
            }
        } else if self.since.is_none() {
            self.since = Some(Instant::now());
        }
        self.left = self.left.checked_sub(1).ok_or(TooManyFrames)?;
        Ok(())
    }

    fn earn(&mut self, frames: u64) {
        self.left = self.left.saturating_add(frames).min(MOST);
    }
}

/// Finds the frames of one direction.
#[derive(Debug, Default)]
struct Frames {
    /// The header, and of padded DATA the length of its padding.
    head: [u8; HEADER + 1],
    read: usize,
    /// Bytes to come of what is not looked at.
    rest: u64,
}

/// What is known of a frame by its head.
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    /// Bytes of its content, without the padding of DATA.
    content: u64,
}

impl Frames {
    /// The next frame whose head is complete; takes the bytes that it has looked at.
    fn next(&mut self, bytes: &mut &[u8]) -> Option<Frame> {
        let skipped = self.rest.min(bytes.len() as u64);
        self.rest -= skipped;
        // Not more than the length of `bytes`.
        *bytes = bytes.get(skipped as usize..).unwrap_or_default();
        while let Some((first, rest)) = bytes.split_first() {
            *bytes = rest;
            if let Some(slot) = self.head.get_mut(self.read) {
                *slot = *first;
            }
            self.read += 1;
            if self.read < HEADER {
                continue;
            }
            let [high, middle, low, kind, flags, a, b, c, d, padding] = self.head;
            let length = u64::from(u32::from_be_bytes([0, high, middle, low]));
            let is_padded = kind == DATA && flags & PADDED != 0 && length > 0;
            if is_padded && self.read == HEADER {
                continue;
            }
            self.read = 0;
            self.rest = length - u64::from(is_padded);
            let padding = if is_padded { u64::from(padding) } else { 0 };
            let stream = u32::from_be_bytes([a, b, c, d]) & (u32::MAX >> 1);
            return Some(Frame { kind, flags, stream, content: self.rest.saturating_sub(padding) });
        }
        None
    }

    /// Of so many bytes that come next, how many belong to a frame that has begun; of one whose head is not complete, as
    /// many as that lacks.
    fn of_begun(&self, bytes: usize) -> usize {
        let missing = if self.read > 0 { HEADER.saturating_sub(self.read).max(1) as u64 } else { self.rest };
        missing.min(bytes as u64) as usize
    }
}

#[cfg(test)]
mod tests;
