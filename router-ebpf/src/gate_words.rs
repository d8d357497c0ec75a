//! Words of the gate's maps, which several processors change.

use router_common::gate::Word;
use router_common::gate::set::Set;
use router_common::gate::source_count::Counts;
use router_common::maps::GateSet;

use crate::atomic::{exchange, subtract_one};
use crate::verifier::opaque;

/// A word of a map's value.
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

/// A set of words in a map's value.
pub struct KernelSet(pub *mut GateSet);

impl KernelSet {
    #[inline(always)]
    fn word(&self, index: u32) -> KernelWord {
        // SAFETY: a set has eight words, and `index` is masked below that.
        KernelWord(unsafe { self.0.cast::<u64>().add((opaque(index) & 7) as usize) })
    }
}

impl Set for KernelSet {
    #[inline(always)]
    fn load(&self, index: u32) -> u64 {
        self.word(index).load()
    }

    #[inline(always)]
    fn exchange(&self, index: u32, old: u64, new: u64) -> bool {
        self.word(index).exchange(old, new) == old
    }
}

impl Counts for KernelSet {
    #[inline(always)]
    fn subtract_one(&self, index: u32) {
        // SAFETY: `word` gives a pointer to an aligned word of the set.
        unsafe { subtract_one(self.word(index).0) };
    }
}
