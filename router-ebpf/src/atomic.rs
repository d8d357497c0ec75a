//! Atomic steps on words of map values.

use router_common::gate::Word;

/// A word of a map's value, aligned to eight.
pub struct KernelWord(pub *mut u64);

impl Word for KernelWord {
    #[inline(always)]
    fn load(&self) -> u64 {
        // SAFETY: `maps` gives pointers to live values; the kernel keeps them until the program ends.
        unsafe { self.0.read_volatile() }
    }

    #[inline(always)]
    fn exchange(&self, old: u64, new: u64) -> u64 {
        // SAFETY: as above; the word is aligned.
        unsafe { exchange(self.0, old, new) }
    }
}

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

/// Replaces a word by `new` if it is `old`, atomically, with a full barrier; returns what it was.
///
/// # Safety
/// `word` points to eight bytes in a map's value, aligned to eight.
#[inline(always)]
unsafe fn exchange(word: *mut u64, old: u64, new: u64) -> u64 {
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
