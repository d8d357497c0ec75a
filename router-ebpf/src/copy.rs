//! Copying map memory in words of eight bytes.
//!
//! For memory that it does not know to be aligned, the compiler calls a byte-by-byte `memcpy`: a loop that runs for
//! every connection, and that the verifier follows at every load. Map values and their fields here are aligned to
//! eight, and their sizes are multiples of it; both are asserted.

use core::mem::offset_of;

use router_common::hostname::{HostBuilder, NAME_FIELD};
use router_common::http::HeadParser;
use router_common::maps::{DecisionEvent, FirstFlight, LaterHead, ListenerKey};

const NAME_WORDS: usize = NAME_FIELD / 8;
/// Words before and behind the bytes of a first flight.
const BEFORE_WORDS: usize = offset_of!(FirstFlight, bytes) / 8;
const BEHIND_WORDS: usize = (size_of::<FirstFlight>() - offset_of!(FirstFlight, hello)) / 8;

const _: () = {
    assert!(NAME_FIELD.is_multiple_of(8) && align_of::<FirstFlight>() == 8);
    assert!(offset_of!(FirstFlight, bytes) % 8 == 0 && offset_of!(FirstFlight, hello) % 8 == 0);
    assert!(offset_of!(FirstFlight, bytes) < offset_of!(FirstFlight, hello));
    assert!(offset_of!(DecisionEvent, host) % 8 == 0 && align_of::<DecisionEvent>() == 8);
};

/// Resets a first flight: zeroes everything except `bytes`, which is valid only up to `received`.
#[inline(always)]
pub fn zero_parsers(flight: &mut FirstFlight) {
    // SAFETY: the words before `bytes` and those behind it, aligned to 8; integers only, so every bit pattern is valid.
    unsafe {
        zero_words::<BEFORE_WORDS>((&raw mut *flight).cast());
        zero_words::<BEHIND_WORDS>((&raw mut flight.hello).cast());
    }
}

/// The words of an address, in memory order.
#[inline(always)]
pub fn words(address: &[u8; 16]) -> [u32; 4] {
    [word(address, 0), word(address, 1), word(address, 2), word(address, 3)]
}

/// True if it is an IPv4 address, in its IPv4-mapped form.
#[inline(always)]
pub fn is_v4(address: &[u8; 16]) -> bool {
    let [a, b, c, _] = words(address);
    a | b == 0 && c == u32::from_be(0xffff)
}

/// Word `at` of an address, in memory order; `at` is 0 to 3.
#[inline(always)]
pub fn word(address: &[u8; 16], at: usize) -> u32 {
    let address: *const u32 = (&raw const *address).cast();
    // SAFETY: `at` is below 4. Every address passed here is a field of a `FlowKey` or an `Endpoint`, at an offset that
    // is a multiple of four, in a value aligned to four. Reading bytes would take four loads.
    unsafe { address.add(at).read() }
}

/// A key of the maps of listeners, written in the words that the kernel hashes: a word that was written in parts is not
/// forwarded from the processor's store buffer.
pub struct ListenerWords([u32; size_of::<ListenerKey>() / 4]);

/// Word by word: a derived comparison calls `memcmp`, which compares bytes.
impl PartialEq for ListenerWords {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        let ([a, b, c, d, e], [v, w, x, y, z]) = (self.0, other.0);
        (a ^ v) | (b ^ w) | (c ^ x) | (d ^ y) | (e ^ z) == 0
    }
}

impl ListenerWords {
    /// That of an address and a port.
    #[inline(always)]
    pub fn new(address: &[u8; 16], port: u16) -> Self {
        const { assert!(offset_of!(ListenerKey, address) == 0 && offset_of!(ListenerKey, port) == 16) };
        let [a, b, c, d] = words(address);
        let [first, second] = port.to_ne_bytes();
        ListenerWords([a, b, c, d, u32::from_ne_bytes([first, second, 0, 0])])
    }

    /// As the maps have it.
    #[inline(always)]
    pub fn key(&self) -> &ListenerKey {
        // SAFETY: as large, aligned, and of integers without a gap, so that every bit pattern is valid.
        unsafe { &*(&raw const self.0).cast() }
    }
}

/// Copies a name between map values.
#[inline(always)]
pub fn copy_name(to: &mut [u8; NAME_FIELD], from: &[u8; NAME_FIELD]) {
    // SAFETY: both are NAME_FIELD bytes. The kernel aligns map values to 8, and in each of the values that have names
    // (HostKey in Scratch, HostBuilder) their offset is a multiple of 8.
    unsafe { copy_words::<NAME_WORDS>((&raw mut *to).cast(), (&raw const *from).cast()) }
}

/// Copies a head parser, and the name that it reads, between map values.
#[inline(always)]
pub fn copy_head(head: &mut HeadParser, host: &mut HostBuilder, from_head: &HeadParser, from_host: &HostBuilder) {
    const HEAD_WORDS: usize = size_of::<HeadParser>() / 8;
    const HOST_WORDS: usize = size_of::<HostBuilder>() / 8;
    const {
        assert!(size_of::<HeadParser>().is_multiple_of(8) && size_of::<HostBuilder>().is_multiple_of(8));
        assert!(offset_of!(FirstFlight, head) % 8 == 0 && offset_of!(FirstFlight, host) % 8 == 0);
        assert!(offset_of!(LaterHead, head) % 8 == 0 && offset_of!(LaterHead, host) % 8 == 0);
    }
    // SAFETY: both are in FirstFlights or LaterHeads in map values, at multiples of 8; integers only.
    unsafe {
        copy_words::<HEAD_WORDS>((&raw mut *head).cast(), (&raw const *from_head).cast());
        copy_words::<HOST_WORDS>((&raw mut *host).cast(), (&raw const *from_host).cast());
    }
}

/// Writes a name, or zeros for none, to an event's field.
///
/// # Safety
/// `to` is valid for writing NAME_FIELD bytes and aligned to 8.
#[inline(always)]
pub unsafe fn write_name(to: *mut [u8; NAME_FIELD], from: Option<&[u8; NAME_FIELD]>) {
    match from {
        // SAFETY: the caller's promise for `to`; `from` as in `copy_name`.
        Some(from) => unsafe { copy_words::<NAME_WORDS>(to.cast(), (&raw const *from).cast()) },
        // SAFETY: the caller's promise.
        None => unsafe { zero_words::<NAME_WORDS>(to.cast()) },
    }
}

/// # Safety
/// Both are valid for N words and aligned.
#[inline(always)]
unsafe fn copy_words<const N: usize>(to: *mut u64, from: *const u64) {
    for i in 0..N {
        // SAFETY: the caller's promise. Volatile, because the compiler would turn the loop into a call of `memmove`
        // again.
        unsafe { to.add(i).write_volatile(from.add(i).read()) }
    }
}

/// # Safety
/// As for [`copy_words`].
#[inline(always)]
unsafe fn zero_words<const N: usize>(to: *mut u64) {
    for i in 0..N {
        // SAFETY: as in `copy_words`.
        unsafe { to.add(i).write_volatile(0) }
    }
}
