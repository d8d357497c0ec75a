//! A keyed hash of a connection: the unpredictable part of sequence numbers and timestamps (RFC 6528 §3).

use crate::maps::FlowKey;

/// SipHash-2-4 (Aumasson, Bernstein 2012) of addresses and ports. Implemented here, because the one in `core` hashes
/// byte by byte through a buffer, which takes the kernel's verifier too long.
#[inline(always)]
pub fn hash(secret: [u64; 2], flow: &FlowKey) -> u64 {
    let mut state = [
        secret[0] ^ 0x736f_6d65_7073_6575,
        secret[1] ^ 0x646f_7261_6e64_6f6d,
        secret[0] ^ 0x6c79_6765_6e65_7261,
        secret[1] ^ 0x7465_6462_7974_6573,
    ];
    let [s0, s1] = halves(&flow.source);
    let [d0, d1] = halves(&flow.destination);
    let ports = (flow.source_port as u64) | (flow.destination_port as u64) << 16;
    // The highest byte of the last word is the length in bytes.
    for word in [s0, s1, d0, d1, ports | (36 << 56)] {
        state[3] ^= word;
        round(&mut state);
        round(&mut state);
        state[0] ^= word;
    }
    state[2] ^= 0xff;
    for _ in 0..4 {
        round(&mut state);
    }
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

#[inline(always)]
fn halves(address: &[u8; 16]) -> [u64; 2] {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *address;
    [u64::from_le_bytes([a, b, c, d, e, f, g, h]), u64::from_le_bytes([i, j, k, l, m, n, o, p])]
}

#[inline(always)]
fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use core::hash::Hasher;

    use super::*;

    #[test]
    #[expect(deprecated, reason = "the standard library's SipHash-2-4 with a key is the reference here")]
    fn it_is_siphash_2_4() {
        let flow =
            FlowKey { source: [7; 16], destination: *b"0123456789abcdef", source_port: 0x1234, destination_port: 443 };
        let mut reference = core::hash::SipHasher::new_with_keys(3, 0xffff_ffff_0000_0001);
        reference.write(&flow.source);
        reference.write(&flow.destination);
        reference.write(&flow.source_port.to_le_bytes());
        reference.write(&flow.destination_port.to_le_bytes());
        assert_eq!(hash([3, 0xffff_ffff_0000_0001], &flow), reference.finish());
    }
}
