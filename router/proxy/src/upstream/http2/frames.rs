//! Parses the frames of an HTTP/2 connection (RFC 9113 §4.1).

/// Size of a frame header in bytes.
pub const HEADER: usize = 9;
/// Offsets of type and flags in a frame header.
pub const KIND: usize = 3;
pub const FLAGS: usize = 4;
pub const DATA: u8 = 0;
pub const SETTINGS: u8 = 4;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const END_STREAM: u8 = 1;
pub const PADDED: u8 = 8;
pub const ACK: u8 = 1;
/// An unassigned frame type, which receivers ignore (RFC 9113 §5.5).
pub const UNKNOWN: u8 = 0xfe;
/// Longest payload that is read, in bytes: more than all known settings.
const MAX_KEPT: usize = 1024;

/// A frame header.
#[derive(Clone, Copy, Debug)]
pub struct FrameHeader {
    /// Length of the payload in bytes.
    pub length: usize,
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
}

impl FrameHeader {
    /// Parses a frame header.
    pub fn of([a, b, c, kind, flags, stream @ ..]: [u8; HEADER]) -> Self {
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        FrameHeader { length, kind, flags, stream: u32::from_be_bytes(stream) & (u32::MAX >> 1) }
    }

    /// Whether the frame is empty: no content, and no end of the stream.
    pub fn is_nothing(&self) -> bool {
        self.kind == DATA && self.length == 0 && self.flags & END_STREAM == 0
    }

    /// Whether its payload is read, unless it is too long.
    fn is_read(&self) -> bool {
        matches!(self.kind, SETTINGS | WINDOW_UPDATE) && self.stream == 0 && (1..=MAX_KEPT).contains(&self.length)
    }
}

/// Finds the frames in one direction.
#[derive(Debug, Default)]
pub struct Walker {
    /// The received part of a header, and its length.
    pub header: [u8; HEADER],
    pub read: usize,
    /// Payload bytes to skip.
    skip: usize,
    /// A frame whose payload is read, and the received part of it.
    kept: Option<(FrameHeader, Vec<u8>)>,
}

impl Walker {
    /// Expects the first frame after `skip` bytes.
    pub fn behind(skip: usize) -> Self {
        Walker { skip, ..Walker::default() }
    }

    /// The next frame in these bytes from `at` on. Sets `at` to the end of its header, or of its payload if that [is
    /// read](FrameHeader::is_read).
    pub fn next(&mut self, bytes: &[u8], at: &mut usize) -> Option<(FrameHeader, Vec<u8>)> {
        while let Some(rest) = bytes.get(*at..).filter(|rest| !rest.is_empty()) {
            let up_to = |most: usize| rest.get(..most).unwrap_or(rest);
            if let Some((frame, payload)) = &mut self.kept {
                let part = up_to(frame.length - payload.len());
                payload.extend_from_slice(part);
                *at += part.len();
                if payload.len() == frame.length {
                    return self.kept.take();
                }
            } else if self.skip > 0 {
                let skipped = up_to(self.skip).len();
                self.skip -= skipped;
                *at += skipped;
            } else {
                let part = up_to(HEADER - self.read);
                if let Some(room) = self.header.get_mut(self.read..self.read + part.len()) {
                    room.copy_from_slice(part);
                }
                self.read += part.len();
                *at += part.len();
                if self.read == HEADER {
                    self.read = 0;
                    let frame = FrameHeader::of(self.header);
                    if !frame.is_read() {
                        self.skip = frame.length;
                        return Some((frame, Vec::new()));
                    }
                    self.kept = Some((frame, Vec::with_capacity(frame.length)));
                }
            }
        }
        None
    }
}
