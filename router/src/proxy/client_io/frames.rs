//! How much of what an HTTP/2 client sends is not about requests: h2 bounds what frames make it keep, not how many
//! PING, SETTINGS, PRIORITY and WINDOW_UPDATE frames it takes and answers (CVE-2019-9512, -9513, -9515). Frames are
//! counted here as they come in; h2 alone reads what they say.

use std::time::Instant;

/// Bytes of a frame's header (RFC 9113 §4.1).
const HEADER: usize = 9;
/// What the client has before the first frame.
const PREFACE: u64 = 24;
/// Most frames in a row that are about no request: with what the answers to them earn, less than a thousand.
const MOST: u64 = 900;
/// How many are earned by a frame that carries a request's fields or content.
const FOR_REQUESTS: u64 = 8;
/// How many bytes to the client earn one: it tells what it has read by WINDOW_UPDATE, for stream and connection.
const BYTES_SENT: u64 = 1024;
/// How many a second are always good.
const EACH_SECOND: u64 = 10;

/// Counts the frames of one connection.
#[derive(Debug)]
pub struct FrameMeter {
    header: [u8; HEADER],
    read: usize,
    /// Bytes to come of what is not looked at.
    skip: u64,
    left: u64,
    sent: u64,
    since: Option<Instant>,
}

/// The client sends frames without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many frames that are about no request")]
pub struct TooManyFrames;

impl Default for FrameMeter {
    fn default() -> Self {
        FrameMeter { header: [0; HEADER], read: 0, skip: PREFACE, left: MOST, sent: 0, since: None }
    }
}

impl FrameMeter {
    /// Looks at bytes from the client.
    ///
    /// # Errors
    /// When nothing is left for a frame that is about no request.
    pub fn receive(&mut self, mut bytes: &[u8]) -> Result<(), TooManyFrames> {
        while !bytes.is_empty() {
            if self.skip > 0 {
                let skipped = self.skip.min(bytes.len() as u64);
                self.skip -= skipped;
                // Not more than the length of `bytes`.
                bytes = bytes.get(skipped as usize..).unwrap_or_default();
                continue;
            }
            let Some((first, rest)) = bytes.split_first() else { break };
            if let Some(slot) = self.header.get_mut(self.read) {
                *slot = *first;
            }
            self.read += 1;
            bytes = rest;
            if self.read == HEADER {
                self.read = 0;
                self.frame()?;
            }
        }
        Ok(())
    }

    /// Counts bytes to the client.
    pub fn send(&mut self, bytes: usize) {
        self.sent += bytes as u64;
        self.earn(self.sent / BYTES_SENT);
        self.sent %= BYTES_SENT;
    }

    fn frame(&mut self) -> Result<(), TooManyFrames> {
        let [high, middle, low, kind, ..] = self.header;
        let length = u64::from(u32::from_be_bytes([0, high, middle, low]));
        self.skip = length;
        // Of DATA, HEADERS and CONTINUATION those that bring something.
        if matches!(kind, 0 | 1 | 9) && length > 0 {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn frame(kind: u8, length: u8) -> Vec<u8> {
        [&[0, 0, length, kind, 0, 0, 0, 0, 1][..], &vec![0; length.into()]].concat()
    }

    /// How many frames of this kind are taken in a row.
    fn taken(meter: &mut FrameMeter, kind: u8, length: u8) -> usize {
        (0..5000).take_while(|_| meter.receive(&frame(kind, length)).is_ok()).count()
    }

    fn after_preface() -> FrameMeter {
        let mut meter = FrameMeter::default();
        // Byte by byte, with the first SETTINGS.
        let begun = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(4, 6)].concat();
        begun.iter().for_each(|byte| meter.receive(&[*byte]).unwrap());
        meter
    }

    #[test]
    fn frames_about_nothing_are_bounded() {
        for (kind, length) in [(2, 5), (4, 0), (6, 8), (8, 4), (0, 0), (9, 0)] {
            assert_eq!(taken(&mut after_preface(), kind, length) as u64, MOST - 1, "{kind}");
        }
        for (kind, length) in [(0, 5), (1, 5), (9, 1)] {
            assert_eq!(taken(&mut after_preface(), kind, length), 5000, "{kind}");
        }
    }

    #[test]
    fn requests_responses_and_time_earn_more() {
        let drained = || {
            let mut meter = after_preface();
            (1..MOST).for_each(|_| meter.receive(&frame(6, 8)).unwrap());
            meter
        };
        let mut meter = drained();
        meter.receive(&frame(1, 20)).unwrap();
        assert_eq!(taken(&mut meter, 6, 8), 8);
        let mut meter = drained();
        meter.send(3 * 1024);
        assert_eq!(taken(&mut meter, 8, 4), 3);
        let mut meter = drained();
        meter.since = Instant::now().checked_sub(Duration::from_secs(5));
        assert_eq!(taken(&mut meter, 6, 8), 50);
    }
}
