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

/// Subtracts one atomically.
///
/// # Safety
/// `word` points to eight bytes in a map's value, aligned to eight.
#[inline(always)]
pub unsafe fn subtract_one(word: *mut u64) {
    // SAFETY: the caller's promise.
    unsafe {
        core::arch::asm!("lock *(u64 *)(r1 + 0) += r2", in("r1") word, in("r2") u64::MAX);
    }
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

/// Keeps only these bits of a word, atomically.
///
/// # Safety
/// `word` points to the first of four bytes in a map's value, aligned to four.
#[inline(always)]
pub unsafe fn fetch_and(word: *mut u8, bits: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        core::arch::asm!(
            "w0 = atomic_fetch_and((u32 *)(r1 + 0), w0)",
            inout("r0") u64::from(bits) => _,
            in("r1") word,
        );
    }
}

/// Replaces a word by `new` if it is `old`, atomically, with a full barrier; returns what it was.
///
/// # Safety
/// `word` points to eight bytes in a map's value, aligned to eight.
#[inline(always)]
pub unsafe fn exchange(word: *mut u64, old: u64, new: u64) -> u64 {
    let mut was = old;
    // SAFETY: the caller's promise.
    unsafe {
        core::arch::asm!(
            "r0 = cmpxchg_64(r1 + 0, r0, r2)",
            inout("r0") was,
            in("r1") word,
            in("r2") new,
        );
    }
    was
}
