//! The hash FNV-1a of 32 bits, for numbers that must not depend on the version of a library.

/// The hash of these bytes (draft-eastlake-fnv).
pub fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
