//! TCP options (RFC 9293 §3.1): reads those that a dial needs, and writes those of generated segments.

use crate::maps::{OPTION_SACK, OPTION_SCALE, OPTION_TIMESTAMPS};
use crate::packet::{Packet, Segment};

/// Values of a segment's options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TcpOptions {
    /// Timestamp value; 0 if absent.
    pub tsval: u32,
    /// Timestamp echo reply; 0 if absent.
    pub tsecr: u32,
    /// Maximum segment size; 0 if absent.
    pub mss: u16,
    /// Offset of the MSS value in the packet; 0 if absent.
    pub mss_at: u16,
    /// Window shift; 0 if absent.
    pub shift: u8,
    /// `OPTION_*` bits of the present options.
    pub present: u8,
    /// Zero.
    pub pad: [u8; 2],
}

// Kinds (RFC 9293 §3.1, RFC 7323, RFC 2018).
pub(crate) const END: u8 = 0;
pub(crate) const NOP: u8 = 1;
const MSS: u8 = 2;
const SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
pub(crate) const SACK: u8 = 5;
pub(crate) const TIMESTAMPS: u8 = 8;
/// Largest effective shift (RFC 7323 §2.3).
const MAX_SHIFT: u8 = 14;
/// Most bytes of options (RFC 9293 §3.1: the data offset has four bits and counts words of four bytes).
pub const MAX_OPTIONS: u32 = 40;
/// Size of a buffer for options, a power of two.
pub const OPTIONS_ROOM: usize = 64;

/// Reads one option per step, so that the kernel can call it in a loop that the verifier does not unroll.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct OptionReader {
    /// The options.
    pub bytes: [u8; OPTIONS_ROOM],
    /// Number of bytes, at most [`MAX_OPTIONS`].
    pub len: u32,
    /// Position of the next option.
    pub at: u32,
    /// Offset of the options in the packet.
    pub begin: u32,
    /// The values found so far.
    pub found: TcpOptions,
}

impl OptionReader {
    /// Reads one option. `false`: all are read. A malformed option ends the reading, as in Linux.
    #[inline(always)]
    pub fn step(&mut self) -> bool {
        let at = self.at;
        if at >= self.len {
            return false;
        }
        let kind = self.byte(at);
        if kind == END {
            return false;
        }
        if kind == NOP {
            self.at = at + 1;
            return true;
        }
        let length = self.byte(at + 1);
        // If the length byte itself is past the end, the option is at least two bytes past it.
        if length < 2 || at + length as u32 > self.len {
            return false;
        }
        self.at = at + length as u32;
        if kind == MSS && length == 4 {
            self.found.mss = u16::from_be_bytes([self.byte(at + 2), self.byte(at + 3)]);
            self.found.mss_at = (self.begin + at + 2) as u16;
        } else if kind == SCALE && length == 3 {
            let shift = self.byte(at + 2);
            self.found.shift = if shift > MAX_SHIFT { MAX_SHIFT } else { shift };
            self.found.present |= OPTION_SCALE;
        } else if kind == SACK_PERMITTED && length == 2 {
            self.found.present |= OPTION_SACK;
        } else if kind == TIMESTAMPS && length == 10 {
            self.found.tsval = self.number(at + 2);
            self.found.tsecr = self.number(at + 6);
            self.found.present |= OPTION_TIMESTAMPS;
        }
        true
    }

    /// The mask is the bound that the verifier checks.
    #[inline(always)]
    fn byte(&self, at: u32) -> u8 {
        self.bytes[at as usize & (OPTIONS_ROOM - 1)]
    }

    #[inline(always)]
    fn number(&self, at: u32) -> u32 {
        u32::from_be_bytes([self.byte(at), self.byte(at + 1), self.byte(at + 2), self.byte(at + 3)])
    }
}

/// The timestamps of a segment whose options are two NOPs and timestamps (RFC 7323 appendix A), as in nearly every data
/// segment; `None` for any other layout.
#[inline(always)]
pub fn only_timestamps(packet: &impl Packet, segment: &Segment) -> Option<TcpOptions> {
    let at = segment.tcp + 20;
    if segment.payload != at + 12 {
        return None;
    }
    let [NOP, NOP, TIMESTAMPS, 10, a, b, c, d, e, f, g, h] = packet.load::<12>(at)? else { return None };
    Some(TcpOptions {
        tsval: u32::from_be_bytes([a, b, c, d]),
        tsecr: u32::from_be_bytes([e, f, g, h]),
        present: OPTION_TIMESTAMPS,
        ..TcpOptions::default()
    })
}

/// The options of a segment that has all of those read here in the order of Linux (`tcp_options_write`) and [`of_syn`],
/// as nearly every SYN and SYN-ACK; `None` for any other layout.
#[inline(always)]
pub fn all_of_syn(packet: &impl Packet, segment: &Segment) -> Option<TcpOptions> {
    let at = segment.tcp + 20;
    if segment.payload != at + 20 {
        return None;
    }
    let [MSS, 4, m0, m1, SACK_PERMITTED, 2, TIMESTAMPS, 10, a, b, c, d, e, f, g, h, NOP, SCALE, 3, shift] =
        packet.load::<20>(at)?
    else {
        return None;
    };
    Some(TcpOptions {
        tsval: u32::from_be_bytes([a, b, c, d]),
        tsecr: u32::from_be_bytes([e, f, g, h]),
        mss: u16::from_be_bytes([m0, m1]),
        mss_at: (at + 2) as u16,
        shift: if shift > MAX_SHIFT { MAX_SHIFT } else { shift },
        present: OPTION_TIMESTAMPS | OPTION_SACK | OPTION_SCALE,
        pad: [0; 2],
    })
}

/// The 20 bytes of a SYN's options: MSS always, the others as in `present`, with NOPs for those that are not offered.
#[inline(always)]
pub fn of_syn(mss: u16, present: u8, tsval: u32, shift: u8) -> [u8; 20] {
    let [m0, m1] = mss.to_be_bytes();
    let [s0, s1] = if present & OPTION_SACK != 0 { [SACK_PERMITTED, 2] } else { [NOP, NOP] };
    let [w0, w1, w2] = if present & OPTION_SCALE != 0 { [SCALE, 3, shift] } else { [NOP, NOP, NOP] };
    let [a, b, c, d] = tsval.to_be_bytes();
    if present & OPTION_TIMESTAMPS != 0 {
        [MSS, 4, m0, m1, s0, s1, TIMESTAMPS, 10, a, b, c, d, 0, 0, 0, 0, NOP, w0, w1, w2]
    } else {
        [MSS, 4, m0, m1, s0, s1, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, w0, w1, w2]
    }
}

/// The 12 bytes of a data segment's options: timestamps (RFC 7323 appendix A).
#[inline(always)]
pub fn of_timestamps(tsval: u32, tsecr: u32) -> [u8; 12] {
    let [a, b, c, d] = tsval.to_be_bytes();
    let [e, f, g, h] = tsecr.to_be_bytes();
    [NOP, NOP, TIMESTAMPS, 10, a, b, c, d, e, f, g, h]
}

#[cfg(test)]
mod tests;
