//! Map keys and values as plain bytes for the kernel: the one place that promises that they are.

use router_common::maps::{
    AllowNet, Config, ConnVerdict, Decided, Endpoint, EndpointState, Event, FirstFlight, Flow, FlowEnd, FlowKey,
    FragmentKey, Fragmented, Handshake, HostKey, HostRoute, LaterHead, Listener, ListenerKey, Meta, Pool, Repeated,
    RouteName, RouteStats, ShortFlight, Slot, SlotKey,
};

/// A type that may be read from and written to kernel memory.
///
/// # Safety
/// The type is `repr(C)`, has no padding, and every bit pattern is a value of it.
pub unsafe trait Plain: Copy + 'static {}

/// A value in the form that aya takes. A wrapper, because neither the trait nor the types are of this crate.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Raw<T>(pub T);

// SAFETY: `repr(transparent)` over a type whose `Plain` makes the promise that `Pod` asks for.
unsafe impl<T: Plain> aya::Pod for Raw<T> {}

macro_rules! plain {
    ($($type:ty),*) => {$(
        // SAFETY: defined in `router_common::maps` with `repr(C)`, integers only, and an assertion that its size is
        // the sum of its fields', so without padding.
        unsafe impl Plain for $type {}
    )*};
}
plain!(
    AllowNet,
    Config,
    ConnVerdict,
    Decided,
    Endpoint,
    EndpointState,
    Event,
    FirstFlight,
    Flow,
    FlowEnd,
    FlowKey,
    FragmentKey,
    Fragmented,
    Handshake,
    HostKey,
    HostRoute,
    LaterHead,
    Listener,
    ListenerKey,
    Meta,
    Pool,
    Repeated,
    RouteName,
    RouteStats,
    ShortFlight,
    Slot,
    SlotKey
);

// SAFETY: bytes, as an address is a key.
unsafe impl Plain for [u8; 16] {}

// SAFETY: an integer.
unsafe impl Plain for u32 {}

// SAFETY: an integer.
unsafe impl Plain for u64 {}

/// Reads a value from the bytes that the kernel handed over; `None` if they are too few.
pub fn read<T: Plain>(bytes: &[u8]) -> Option<T> {
    let bytes = bytes.get(..size_of::<T>())?;
    // SAFETY: `bytes` has the size of T, alignment is not asked for, and any bytes are a T.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}
