//! No block is handed out twice, blocks keep their contents, and all are freed in the end.

use std::alloc::System;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::*;

/// The system's allocator, with a count of allocated blocks.
#[derive(Default)]
struct Counted(AtomicUsize);

// SAFETY: the system's allocator.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.0.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.0.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(block, layout) }
    }
}

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

#[test]
fn every_size_is_of_the_smallest_class_that_has_room_for_it() {
    let all: Vec<Layout> = layouts().collect();
    assert_eq!(all.len(), CLASSES);
    assert!(all.is_sorted_by_key(|layout| layout.size()));
    for size in 1..=LARGEST {
        let (class, found) = class_of(layout(size, 1)).unwrap();
        assert_eq!(all[class], found, "{size}");
        assert!(found.size() >= size && class.checked_sub(1).is_none_or(|less| all[less].size() < size), "{size}");
        // At most a quarter of the size is unused, or less than a grain.
        assert!(found.size() - size <= (size / 4).max(GRAIN - 1), "{size}");
    }
    assert!(class_of(layout(LARGEST + 1, 1)).is_none());
    assert!(class_of(layout(64, 2 * GRAIN)).is_none());
    assert!(class_of(layout(0, 1)).is_none());
}

#[test]
fn what_was_freed_last_comes_first_and_only_while_the_thread_keeps() {
    let allocator = ThreadCache(Counted::default());
    let out = || allocator.0.0.load(Ordering::Relaxed);
    let (small, other) = (layout(100, 8), layout(110, 1));
    // SAFETY: every block is freed once, with a layout of its class.
    unsafe {
        allocator.dealloc(allocator.alloc(small), small);
        assert_eq!(out(), 0, "nobody keeps yet");
        let _keeping = CacheGuard::new();
        let blocks: Vec<_> = (0..=MOST).map(|_| allocator.alloc(small)).collect();
        blocks.iter().for_each(|block| allocator.dealloc(*block, small));
        assert_eq!(out(), MOST as usize, "the last one is one too many");
        // A layout of the same class.
        assert_eq!(allocator.alloc(other), blocks[MOST as usize - 1]);
        assert_eq!(allocator.realloc(blocks[MOST as usize - 1], other, 100), blocks[MOST as usize - 1]);
        assert_eq!(allocator.alloc(small), blocks[MOST as usize - 2]);
        assert_eq!(out(), MOST as usize);
        for block in [blocks[MOST as usize - 1], blocks[MOST as usize - 2]] {
            allocator.dealloc(block, small);
        }
        give_back(|block, layout| allocator.dealloc(block.as_ptr(), layout));
        assert_eq!(out(), 0);
        allocator.dealloc(allocator.alloc(small), small);
        assert_eq!(out(), 0, "nobody keeps any more");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Alloc { size: usize, align: usize, zeroed: bool },
    Free(usize),
    Resize(usize, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = || prop_oneof![1..80_usize, 1..2 * LARGEST];
    let alloc = (size(), 0..7_u32, any::<bool>());
    let step = prop_oneof![
        3 => alloc.prop_map(|(size, align, zeroed)| Step::Alloc { size, align: 1 << align, zeroed }),
        2 => any::<usize>().prop_map(Step::Free),
        1 => (any::<usize>(), size()).prop_map(|(which, size)| Step::Resize(which, size)),
    ];
    prop::collection::vec(step, 0..400)
}

proptest! {
    /// Every block has a pattern of its own, which must be intact until it is freed.
    #[test]
    fn blocks_are_nobodys_twice(steps in steps()) {
        let allocator = ThreadCache(Counted::default());
        let _keeping = CacheGuard::new();
        let mut live: Vec<(*mut u8, Layout, u8)> = Vec::new();
        let is = |block: *mut u8, bytes: usize, pattern: u8| {
            // SAFETY: this many bytes were written.
            unsafe { std::slice::from_raw_parts(block, bytes) }.iter().all(|byte| *byte == pattern)
        };
        for (number, step) in steps.into_iter().enumerate() {
            let pattern = number as u8;
            // SAFETY: blocks are freed once, with their layouts, and writes stay within their sizes.
            unsafe {
                match step {
                    Step::Alloc { size, align, zeroed } => {
                        let layout = layout(size, align);
                        let block = if zeroed { allocator.alloc_zeroed(layout) } else { allocator.alloc(layout) };
                        prop_assert!(!block.is_null() && block.addr() % align == 0);
                        prop_assert!(!zeroed || is(block, size, 0));
                        block.write_bytes(pattern, size);
                        live.push((block, layout, pattern));
                    }
                    Step::Free(which) if !live.is_empty() => {
                        let (block, layout, pattern) = live.swap_remove(which % live.len());
                        prop_assert!(is(block, layout.size(), pattern));
                        allocator.dealloc(block, layout);
                    }
                    Step::Resize(which, size) if !live.is_empty() => {
                        let (block, old, pattern) = live.swap_remove(which % live.len());
                        let block = allocator.realloc(block, old, size);
                        prop_assert!(block.addr() % old.align() == 0);
                        prop_assert!(is(block, size.min(old.size()), pattern));
                        block.write_bytes(pattern, size);
                        live.push((block, layout(size, old.align()), pattern));
                    }
                    Step::Free(_) | Step::Resize(..) => {}
                }
            }
        }
        for (block, layout, pattern) in live {
            prop_assert!(is(block, layout.size(), pattern));
            // SAFETY: as above.
            unsafe { allocator.dealloc(block, layout) };
        }
        // SAFETY: as above.
        give_back(|block, layout| unsafe { allocator.dealloc(block.as_ptr(), layout) });
        prop_assert_eq!(allocator.0.0.load(Ordering::Relaxed), 0);
    }
}
