//! Map keys and values as plain bytes for the kernel.

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A type that may be read from and written to kernel memory: it has no padding, and every bit pattern is a value of it.
pub trait Plain: FromBytes + IntoBytes + Immutable + Copy + 'static {}

impl<T: FromBytes + IntoBytes + Immutable + Copy + 'static> Plain for T {}

/// A value in the form that aya takes. A wrapper, because neither the trait nor the types are of this crate.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Raw<T>(pub T);

// SAFETY: `repr(transparent)` over a type of which zerocopy's derives have checked what `Pod` asks for.
unsafe impl<T: Plain> aya::Pod for Raw<T> {}

/// Reads a value from the bytes that the kernel handed over; `None` if they are too few.
pub fn read<T: Plain>(bytes: &[u8]) -> Option<T> {
    T::read_from_prefix(bytes).ok().map(|(value, _)| value)
}
