//! Bounds in a form that the kernel's verifier sees.
//!
//! A length or position that is not constant is masked behind inline assembly ([`opaque`]), because compilers otherwise
//! check a copy of the register and pass the unchecked one.

/// `len` for 1 ..= N, a power of two, in a form whose bound the verifier sees.
#[inline(always)]
pub fn at_most<const N: usize>(len: u32) -> u32 {
    const { assert!(N.is_power_of_two()) };
    (opaque(len.wrapping_sub(1)) & (N as u32 - 1)) + 1
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
