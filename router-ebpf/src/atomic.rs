//! Atomic steps on words of map values.

/// Increments atomically; returns the previous value. (The prebuilt `core` of this target has no atomics; the kernel
/// has had this instruction since 5.12.)
#[inline(always)]
pub fn next_step(cursor: &mut u32) -> u32 {
    let mut step: u64 = 1;
    // SAFETY: an aligned integer, which the reference proves writable.
    unsafe {
        core::arch::asm!(
            "w0 = atomic_fetch_add((u32 *)(r1 + 0), w0)",
            inout("r0") step,
            in("r1") &raw mut *cursor,
        );
    }
    step as u32
}

/// Sets bits of a word atomically, with a full barrier; returns the previous word.
///
/// # Safety
/// `word` points to the first of four bytes in a map's value, aligned to four.
#[inline(always)]
pub unsafe fn fetch_or(word: *mut u8, bits: u32) -> u32 {
    let mut before = u64::from(bits);
    // SAFETY: the caller's promise.
    unsafe {
        core::arch::asm!(
            "w0 = atomic_fetch_or((u32 *)(r1 + 0), w0)",
            inout("r0") before,
            in("r1") word,
        );
    }
    before as u32
}
