//! The characters of methods and field names.

/// `tchar` (RFC 9110 §5.6.2), as two bit masks: a table would be a memory access that the verifier has to track.
#[inline(always)]
pub const fn is_token(byte: u8) -> bool {
    const LOW: u64 = mask(b"!#$%&'*+-.0123456789", 0);
    const HIGH: u64 = mask(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ^_`abcdefghijklmnopqrstuvwxyz|~", 64);
    if byte < 64 {
        LOW >> byte & 1 != 0
    } else if byte < 128 {
        HIGH >> (byte - 64) & 1 != 0
    } else {
        false
    }
}

const fn mask(bytes: &[u8], base: u8) -> u64 {
    let mut mask = 0;
    let mut i = 0;
    while i < bytes.len() {
        mask |= 1 << (bytes[i] - base);
        i += 1;
    }
    mask
}
