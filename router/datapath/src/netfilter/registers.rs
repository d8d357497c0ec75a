//! The registers of a rule's expressions.

use crate::netfilter::known_bits::{Bits, KnownBits};
use crate::netfilter::rule::{REGISTERS, RegisterSpan};

/// Register contents, with a mask of the known bits.
pub struct Registers {
    pub(super) value: [u8; REGISTERS],
    pub(super) known: [u8; REGISTERS],
}

impl Registers {
    /// Unknown contents.
    pub fn new() -> Registers {
        Registers { value: [0; REGISTERS], known: [0; REGISTERS] }
    }

    /// The contents of a span.
    pub fn get(&self, span: RegisterSpan) -> Bits<'_> {
        Bits { value: &self.value, known: &self.known }.part(span.at, span.len)
    }

    /// Stores bytes in a span; bytes beyond them become unknown. The kernel fills the last 4-byte word with zeros.
    pub(super) fn put(&mut self, span: RegisterSpan, bits: Bits<'_>) {
        let end = span.at + span.len;
        let filled = end..end.next_multiple_of(4);
        self.value[filled.clone()].fill(0);
        self.known[filled].fill(0xff);
        let range = span.at..span.at + span.len;
        let (value, known) = (&mut self.value[range.clone()], &mut self.known[range]);
        value.fill(0);
        known.fill(0);
        value.iter_mut().zip(bits.value).for_each(|(to, from)| *to = *from);
        known.iter_mut().zip(bits.known).for_each(|(to, from)| *to = *from);
    }

    pub(super) fn put_known(&mut self, span: RegisterSpan, bytes: &[u8]) {
        self.put(span, Bits { value: bytes, known: &[0xff; REGISTERS][..bytes.len().min(REGISTERS)] });
    }

    pub(super) fn forget(&mut self, span: RegisterSpan) {
        self.put(span, Bits { value: &[], known: &[] });
    }

    /// A 32-bit number in host byte order.
    pub fn word(&self, span: RegisterSpan) -> KnownBits {
        let bits = self.get(RegisterSpan { at: span.at, len: 4 });
        let number = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
        let known = number(bits.known);
        KnownBits { value: number(bits.value) & known, known }
    }
}
