//! Memory that mimalloc keeps after it was freed.

// The library that the program's allocator is, linked by this crate.
use libmimalloc_sys as _;

unsafe extern "C" {
    /// `mi_collect` of mimalloc.
    fn mi_collect(force: bool);
}

/// Returns to the system what this thread and ended threads have freed: for after much work whose memory is not needed
/// soon. Takes some 20 ms for 100 MiB.
pub fn trim() {
    // Twice: mimalloc purges a segment before it frees the segment's empty pages, whose memory the next call purges.
    for _ in 0..2 {
        // SAFETY: it may be called at any time from any thread; it touches the calling thread's heap, and those that no
        // thread has any more.
        unsafe { mi_collect(true) };
    }
}
