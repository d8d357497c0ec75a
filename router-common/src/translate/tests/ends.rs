//! A minimal TCP end that asserts what it receives from the other end: sliding window, zero-window probes, selective
//! acknowledgements, timestamps and FIN. Stream offsets count from 0; the FIN is one past the data.

use std::collections::{BTreeMap, BTreeSet};
use std::vec;
use std::vec::Vec;

use super::frame::{Frame, Headers, Sums};
use super::options::{Opt, Options};
use crate::maps::FlowKey;
use crate::packet::{ACK, FIN, segment};

/// Largest payload of a segment.
const SEGMENT: u64 = 200;

/// An end's values from the handshake, and its data to send.
#[derive(Clone, Debug)]
pub struct Start {
    /// This end → its peer.
    pub flow: FlowKey,
    pub isn: u32,
    /// Its peer's initial sequence number.
    pub peer_isn: u32,
    /// Shift of the windows that it announces.
    pub shift: u8,
    /// Shift of the windows that it receives, as it assumes.
    pub peer_shift: u8,
    /// Its timestamp clock at time 0, and its peer's.
    pub clocks: Option<[u32; 2]>,
    pub sack: bool,
    /// Receive buffer, in bytes.
    pub capacity: u64,
    pub data: Vec<u8>,
}

#[derive(Debug)]
pub struct End {
    start: Start,
    acked: u64,
    sent: u64,
    /// Offset up to which it may send.
    edge: u64,
    pub got: Vec<u8>,
    /// Bytes of `got` that the application has read.
    taken: u64,
    ahead: BTreeMap<u64, u8>,
    fin_at: Option<u64>,
    fin_got: bool,
    recent: u32,
    values: BTreeSet<u32>,
    layout: usize,
}

impl End {
    pub fn new(start: Start) -> Self {
        let recent = start.clocks.map_or(0, |[_, peer]| peer);
        // State after a handshake: the first timestamp value may be echoed, and nothing may be sent before a window is
        // announced.
        let values = start.clocks.iter().map(|[own, _]| *own).collect();
        let (ahead, got) = (BTreeMap::new(), Vec::new());
        End {
            start,
            acked: 0,
            sent: 0,
            edge: 0,
            got,
            taken: 0,
            ahead,
            fin_at: None,
            fin_got: false,
            recent,
            values,
            layout: 0,
        }
    }

    pub fn all_sent_and_got(&self) -> bool {
        self.acked == self.total() && self.fin_got
    }

    fn total(&self) -> u64 {
        self.start.data.len() as u64 + 1
    }

    fn expected(&self) -> u64 {
        self.got.len() as u64 + u64::from(self.fin_got)
    }

    /// The application reads some of the received data.
    pub fn take(&mut self, bytes: u64) {
        self.taken = (self.taken + bytes).min(self.got.len() as u64);
    }

    /// The next segment that may be sent, if any.
    pub fn next(&mut self, now: u32, sums: Sums) -> Option<Frame> {
        let to = self.edge.min(self.sent + SEGMENT).min(self.total());
        (to > self.sent).then(|| self.emit(self.sent, to, now, sums))
    }

    /// The segment that a timer sends: the first unacknowledged one, or a zero-window probe of one byte.
    pub fn repeat(&mut self, now: u32, sums: Sums) -> Option<Frame> {
        let most = if self.edge > self.acked { self.edge.min(self.acked + SEGMENT) } else { self.acked + 1 };
        let to = most.min(self.total());
        (to > self.acked).then(|| self.emit(self.acked, to, now, sums))
    }

    /// An acknowledgement without data.
    pub fn acknowledge(&mut self, now: u32, sums: Sums) -> Frame {
        self.emit(self.sent, self.sent, now, sums)
    }

    fn emit(&mut self, from: u64, to: u64, now: u32, sums: Sums) -> Frame {
        self.sent = self.sent.max(to);
        let fin = to == self.total() && to > from;
        let data = |offset: u64| offset.min(self.total() - 1) as usize;
        let payload = self.start.data[data(from)..data(to)].to_vec();
        let free = self.start.capacity - (self.got.len() as u64 - self.taken);
        let headers = Headers {
            v6: !self.start.flow.source.starts_with(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]),
            flow: self.start.flow,
            seq: self.start.isn.wrapping_add(1).wrapping_add(from as u32),
            ack: self.start.peer_isn.wrapping_add(1).wrapping_add(self.expected() as u32),
            flags: ACK | if fin { FIN } else { 0 },
            window: (free >> self.start.shift).min(0xffff) as u16,
            ..Headers::default()
        };
        let options = self.options(now);
        headers.frame(&options.bytes(), &payload, sums)
    }

    /// Timestamps and SACK, in an order and alignment that changes with each packet.
    fn options(&mut self, now: u32) -> Options {
        let timestamps = self.start.clocks.map(|[own, _]| own.wrapping_add(now));
        self.values.extend(timestamps);
        let timestamps = timestamps.map(|value| Opt::Timestamps(value, self.recent));
        let edges = self.edges(if timestamps.is_some() { 3 } else { 4 });
        let sack = (self.start.sack && !edges.is_empty()).then_some(Opt::Sack(edges));
        self.layout += 1;
        let pad =
            |count: usize, option: Option<Opt>| option.map(|option| [vec![Opt::Nop; count], vec![option]].concat());
        let parts = match self.layout % 4 {
            0 | 1 => [pad(2, timestamps), pad(2, sack)],
            2 => [pad(1, sack), pad(0, timestamps)],
            _ => [pad(0, timestamps), pad(1, sack)],
        };
        Options::new(parts.into_iter().flatten().flatten().collect(), Vec::new())
    }

    /// SACK edges of the data received out of order, in the peer's numbering.
    fn edges(&self, most: usize) -> Vec<u32> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for at in self.ahead.keys() {
            match runs.last_mut() {
                Some((_, end)) if *end == *at => *end += 1,
                _ => runs.push((*at, at + 1)),
            }
        }
        let number = |offset: u64| self.start.peer_isn.wrapping_add(1).wrapping_add(offset as u32);
        runs.iter().take(most).flat_map(|(from, to)| [number(*from), number(*to)]).collect()
    }

    /// Receives a packet. Returns whether it is to be acknowledged.
    pub fn receive(&mut self, frame: &Frame, now: u32) -> bool {
        let packet = &&frame.bytes[..];
        let segment = segment(packet).expect("a TCP segment");
        assert_eq!(segment.flow, self.start.flow.reversed());
        let ack = offset(segment.ack, self.start.isn, self.acked);
        assert!(ack <= self.sent, "{ack} is acknowledged, {} is sent", self.sent);
        self.check_options(&frame.bytes[segment.tcp as usize + 20..segment.payload as usize], now);
        if ack >= self.acked {
            self.acked = ack;
            self.edge = ack + (u64::from(segment.window) << self.start.peer_shift);
        }
        let from = offset(segment.seq, self.start.peer_isn, self.expected());
        let payload = &frame.bytes[segment.payload as usize..][..segment.payload_len as usize];
        // A correct peer stays within the window, except for a probe, if no window is announced too large.
        let room = self.taken + self.start.capacity;
        let to = from + payload.len() as u64;
        assert!(to <= room || payload.len() <= 1, "{from} to {to} is sent, there is room to {room}");
        if segment.flags & FIN != 0 {
            self.fin_at = Some(to);
        }
        let fresh = (from..).zip(payload).filter(|(at, _)| *at >= self.got.len() as u64 && *at < room);
        self.ahead.extend(fresh.map(|(at, byte)| (at, *byte)));
        while let Some(byte) = self.ahead.remove(&(self.got.len() as u64)) {
            self.got.push(byte);
        }
        self.fin_got = self.fin_at == Some(self.got.len() as u64);
        !payload.is_empty() || segment.flags & FIN != 0
    }

    /// The options are well-formed; timestamps and selective acknowledgements are those of a correct peer.
    fn check_options(&mut self, mut options: &[u8], now: u32) {
        let mut seen = false;
        while let [kind, behind @ ..] = options {
            let len = if *kind < 2 { 1 } else { usize::from(behind[0]) };
            let numbers = |value: &[u8]| -> Vec<u32> {
                value.chunks(4).map(|four| four.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte))).collect()
            };
            match kind {
                5 => numbers(&options[2..len]).chunks(2).for_each(|edges| self.check_block(edges)),
                8 => {
                    self.check_timestamps(&numbers(&options[2..len]), now);
                    seen = true;
                }
                _ => {}
            }
            options = &options[len..];
        }
        assert_eq!(seen, self.start.clocks.is_some(), "timestamps");
    }

    /// The value is one of the peer's clock, the echo is one of ours.
    fn check_timestamps(&mut self, numbers: &[u32], now: u32) {
        let Some([_, peer]) = self.start.clocks else { return };
        let age = numbers[0].wrapping_sub(peer);
        assert!(age <= now, "a timestamp of {age} at {now}");
        assert!(self.values.contains(&numbers[1]), "{} is echoed, and was never sent", numbers[1]);
        if age > self.recent.wrapping_sub(peer) {
            self.recent = numbers[0];
        }
    }

    /// Selectively acknowledged data was sent.
    fn check_block(&self, edges: &[u32]) {
        let (from, to) = (offset(edges[0], self.start.isn, self.acked), offset(edges[1], self.start.isn, self.acked));
        assert!(from < to && to <= self.sent, "{from} to {to} is acknowledged, {} is sent", self.sent);
    }
}

/// Stream offset of a sequence number close to `near`.
fn offset(number: u32, isn: u32, near: u64) -> u64 {
    let away = number.wrapping_sub(isn.wrapping_add(1).wrapping_add(near as u32)) as i32;
    near.checked_add_signed(i64::from(away)).expect("a number from before the stream's beginning")
}
