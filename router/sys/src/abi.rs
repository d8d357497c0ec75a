//! Map keys and values as plain bytes for the kernel.

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A type that may be copied from and to kernel memory: it has no padding, and every bit pattern is a valid value.
pub trait Plain: FromBytes + IntoBytes + Immutable + Copy + 'static {}

impl<T: FromBytes + IntoBytes + Immutable + Copy + 'static> Plain for T {}

/// A wrapper that implements `aya::Pod`, because neither the trait nor the types belong to this crate.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Raw<T>(pub T);

// SAFETY: `repr(transparent)` over a type for which zerocopy's derives have checked the requirements of `Pod`.
unsafe impl<T: Plain> aya::Pod for Raw<T> {}

/// A value as bytes for the kernel.
pub fn bytes<T: Plain>(value: &T) -> &[u8] {
    value.as_bytes()
}

/// Reads a value from the beginning of bytes from the kernel; `None` if there are too few.
pub fn read<T: Plain>(bytes: &[u8]) -> Option<T> {
    T::read_from_prefix(bytes).ok().map(|(value, _)| value)
}
