//! Bounds in a form that the kernel's verifier sees.
//!
//! A length or position that is not constant is masked behind inline assembly ([`opaque`]), because compilers otherwise
//! check a copy of the register and pass the unchecked one.

/// `len` for 1 ..= 4,096, in a form whose bound the verifier sees.
#[inline(always)]
pub fn at_most_4096(len: u32) -> u32 {
    (opaque(len.wrapping_sub(1)) & 4095) + 1
}

/// The value, with its history hidden from the optimiser: a mask applied to it is kept, though the value is within it
/// already.
#[inline(always)]
pub fn opaque(mut value: u32) -> u32 {
    // SAFETY: a move of a register to itself. (An empty template would give two lines of BTF line info to one
    // instruction, which the kernel rejects.)
    unsafe { core::arch::asm!("{0} = {0}", inout(reg) value) };
    value
}
