//! The 32-bit FNV-1a hash, for numbers that must not depend on a library's version.

/// The hash of these bytes (draft-eastlake-fnv).
pub fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
