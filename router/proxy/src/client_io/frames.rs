//! Limits HTTP/2 frames that are unrelated to requests. h2 bounds the memory that frames take, but not how many PING,
//! SETTINGS, PRIORITY and WINDOW_UPDATE frames it processes and answers (CVE-2019-9512, -9513, -9515). Frames are
//! counted here as they arrive; h2 alone parses them.
//!
//! A client answers response data with a WINDOW_UPDATE for the stream and one for the connection (RFC 9113 §5.2), and
//! often with a PING that measures the round trip. So each part of a response earns credit for some frames. A part is
//! what was received from the endpoint, not a DATA frame: the client's window determines how many DATA frames a part
//! becomes, and a client that opens it byte by byte would earn more credit than it spends.

use std::time::Instant;

/// Size of a frame header in bytes (RFC 9113 §4.1).
const HEADER: usize = 9;
/// Length of the client connection preface in bytes.
const PREFACE: u64 = 24;
/// Most frames in a row that are unrelated to requests: with the credit for their answers, less than a thousand. Also
/// the largest credit.
const MOST: u64 = 900;
/// Credit for a frame with a request's fields or content.
const FOR_REQUESTS: u64 = 8;
/// Credit for a part of a response: two WINDOW_UPDATE, a PING, and one to spare.
const FOR_PARTS: u64 = 4;
/// Bytes to the client for a credit of one: the client may read in smaller steps than were sent.
const BYTES_SENT: u64 = 1024;
/// Credit per second.
const EACH_SECOND: u64 = 10;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
/// DATA flag: the content begins with the length of its padding (RFC 9113 §6.1).
const PADDED: u8 = 8;
/// Flag of SETTINGS and PING (RFC 9113 §6.5, §6.7).
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

/// The client floods the connection with frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many frames unrelated to requests")]
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
    /// Parses bytes from the client. `parts`: parts of responses passed to h2 since the last call.
    ///
    /// # Errors
    /// When the credit is used up.
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

    /// Parses bytes to the client.
    pub fn send(&mut self, mut bytes: &[u8]) {
        self.bytes_sent += bytes.len() as u64;
        self.earn(self.bytes_sent / BYTES_SENT);
        self.bytes_sent %= BYTES_SENT;
        while let Some(frame) = self.sent.next(&mut bytes) {
            // Frames that answer a client's frame.
            if matches!(frame.kind, SETTINGS | PING) && frame.flags & ACK == 0 {
                self.earn(1);
            }
        }
    }

    /// How many of the next `bytes` to be sent belong to a frame in progress.
    pub fn of_begun_frame(&self, bytes: usize) -> usize {
        self.sent.of_begun(bytes)
    }

    /// The last stream that the client opened before the flood was detected.
    pub fn last_stream(&self) -> u32 {
        self.last_stream
    }

    fn take(&mut self, frame: &FrameInfo) -> Result<(), TooManyFrames> {
        // DATA, HEADERS and CONTINUATION that carry data or end the stream.
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
    /// The header, and for padded DATA the length of its padding.
    head: [u8; HEADER + 1],
    read: usize,
    /// Bytes to skip.
    rest: u64,
}

/// A frame whose header is complete.
struct FrameInfo {
    kind: u8,
    flags: u8,
    stream: u32,
    /// Length of its content in bytes, without padding.
    content: u64,
}

impl Frames {
    /// The next frame with a complete header; advances `bytes`.
    fn next(&mut self, bytes: &mut &[u8]) -> Option<FrameInfo> {
        let skipped = self.rest.min(bytes.len() as u64);
        self.rest -= skipped;
        // At most the length of `bytes`.
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
            return Some(FrameInfo { kind, flags, stream, content: self.rest.saturating_sub(padding) });
        }
        None
    }

    /// How many of the next `bytes` belong to a frame in progress; within a header, as many as it lacks.
    fn of_begun(&self, bytes: usize) -> usize {
        let missing = if self.read > 0 { HEADER.saturating_sub(self.read).max(1) as u64 } else { self.rest };
        missing.min(bytes as u64) as usize
    }
}

#[cfg(test)]
mod tests;
