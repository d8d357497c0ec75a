//! Addresses and ports of a connection, and the translation of its packets.

/// The 16-byte form of an IPv4 address (RFC 4291 §2.5.5.2).
#[inline(always)]
pub const fn mapped(v4: [u8; 4]) -> [u8; 16] {
    // Built as one number, not from bytes: the kernel program then writes whole words.
    const PREFIX: u128 = u128::from_ne_bytes([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0]);
    let address = u32::from_ne_bytes(v4) as u128;
    let place = if cfg!(target_endian = "little") { 96 } else { 0 };
    (PREFIX | address << place).to_ne_bytes()
}

/// Whether an address is IPv4-mapped. Without a loop, which the compiler would replace by a call of `memcmp`.
#[inline(always)]
pub const fn is_mapped(address: &[u8; 16]) -> bool {
    let [a, b, c, d, e, f, g, h, i, j, k, l, ..] = *address;
    (a | b | c | d | e | f | g | h | i | j) == 0 && (k & l) == 0xff
}

/// One direction of a TCP connection, as in its packets. Aligned, so that the kernel program copies words instead of
/// bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C, align(4))]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct FlowKey {
    /// Source address.
    pub source: [u8; 16],
    /// Destination address.
    pub destination: [u8; 16],
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
}

impl FlowKey {
    /// The other direction.
    #[inline(always)]
    pub const fn reversed(&self) -> FlowKey {
        FlowKey {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
        }
    }
}

/// Translation of the packets of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct FlowTranslation {
    /// Source and destination of the translated packet, of the same IP version as the original.
    pub to: FlowKey,
    /// Added to the sequence number, modulo 2³².
    pub delta_seq: u32,
    /// Added to the acknowledgement number and to SACK blocks.
    pub delta_ack: u32,
    /// Added to the timestamp value.
    pub delta_tsval: u32,
    /// Added to the timestamp echo reply.
    pub delta_tsecr: u32,
    /// The sender's window shift, if it differs from the one announced to the receiver: `(window << up) >> down`.
    pub shift_up: u8,
    /// The window shift announced to the receiver.
    pub shift_down: u8,
    /// Zero.
    pub pad: [u8; 2],
}

const _: () = {
    assert!(size_of::<FlowKey>() == 16 + 16 + 2 + 2);
    assert!(size_of::<FlowTranslation>() == size_of::<FlowKey>() + 4 * 4 + 4);
};
