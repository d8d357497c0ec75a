//! Looking up sockets of this host, from XDP and TC.

use core::ffi::c_void;

use aya_ebpf::bindings::{
    BPF_F_CURRENT_NETNS, bpf_sock, bpf_sock_tuple, bpf_sock_tuple__bindgen_ty_1__bindgen_ty_1,
    bpf_sock_tuple__bindgen_ty_1__bindgen_ty_2,
};
use aya_ebpf::helpers::generated::bpf_skc_lookup_tcp;
use router_common::maps::FlowKey;

use crate::copy::{is_v4, words};

/// The sockets that a look-up finds.
#[derive(Clone, Copy)]
pub enum Sockets {
    /// The one of the connection, else a listener.
    All,
    /// A listener.
    Listeners,
}

/// The socket that such a packet would belong to, which the caller releases; null: there is none. `tuple` is memory for the
/// look-up's parameters. A socket bound to another interface than the packet's is not found.
///
/// # Safety
/// `ctx` is the program's context.
#[inline(always)]
pub unsafe fn look_up(
    ctx: *mut c_void,
    packet: &FlowKey,
    tuple: &mut bpf_sock_tuple,
    sockets: Sockets,
) -> *mut bpf_sock {
    let (source, source_port) = match sockets {
        Sockets::All => (words(&packet.source), packet.source_port),
        // No connection has such a source. Its place in the kernel's table stays in the processor's caches. Of listeners that
        // share a port (`SO_REUSEPORT`), which the agent's do not, it is always the same one.
        Sockets::Listeners => ([0; 4], 0),
    };
    let destination = words(&packet.destination);
    let (source_port, destination_port) = (source_port.to_be(), packet.destination_port.to_be());
    // Plain integers, all of which are written.
    let addresses = &mut tuple.__bindgen_anon_1;
    let len = if is_v4(&packet.destination) {
        let v4 = bpf_sock_tuple__bindgen_ty_1__bindgen_ty_1 {
            saddr: source[3],
            daddr: destination[3],
            sport: source_port,
            dport: destination_port,
        };
        addresses.ipv4 = v4;
        size_of_val(&v4)
    } else {
        let v6 = bpf_sock_tuple__bindgen_ty_1__bindgen_ty_2 {
            saddr: source,
            daddr: destination,
            sport: source_port,
            dport: destination_port,
        };
        addresses.ipv6 = v6;
        size_of_val(&v6)
    };
    // SAFETY: the caller's promise; `len` bytes of the tuple were written.
    unsafe { bpf_skc_lookup_tcp(ctx, tuple, len as u32, BPF_F_CURRENT_NETNS as u64, 0) }
}
