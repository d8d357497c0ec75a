//! Sockets of counted connections, of the cgroup that the listeners' sockets were made in: a program that the kernel calls when
//! one of them is established or closed.

use aya_ebpf::bindings::{
    BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB, BPF_SOCK_OPS_STATE_CB, BPF_SOCK_OPS_STATE_CB_FLAG, BPF_TCP_CLOSE, bpf_sock_ops,
};
use aya_ebpf::helpers::generated::{bpf_get_netns_cookie, bpf_sock_ops_cb_flags_set};
use aya_ebpf::macros::sock_ops;
use aya_ebpf::programs::SockOpsContext;
use router_common::gate::connection::SOCKET;
use router_common::maps::{FlowKey, mapped};

use crate::connections::{self, Outcome};
use crate::maps;

/// Cookie of the agent's network namespace; the cgroup may have sockets of others.
#[unsafe(no_mangle)]
static NETWORK: u64 = 0;

const AF_INET: u32 = 2;

/// Of a cgroup.
#[sock_ops]
pub fn sluice_sockets(ctx: SockOpsContext) -> u32 {
    let ops = ctx.ops;
    // SAFETY: the context is the one that the kernel gave.
    unsafe {
        match read(&raw const (*ops).op) {
            BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB => established(ops),
            BPF_SOCK_OPS_STATE_CB if read(&raw const (*ops).__bindgen_anon_1.args[1]) == BPF_TCP_CLOSE => closed(ops),
            _ => {}
        }
    }
    1
}

/// A client's connection has a socket.
///
/// # Safety
/// `ops` is the program's context.
#[inline(always)]
unsafe fn established(ops: *mut bpf_sock_ops) {
    // SAFETY: the caller's promise; a constant that the loader sets.
    let (client, network) = unsafe { (key(ops), (&raw const NETWORK).read_volatile()) };
    // SAFETY: the caller's promise.
    if unsafe { bpf_get_netns_cookie(ops.cast()) } != network
        || maps::listener(&client.destination, client.destination_port).is_none_or(|to| to.is_limited == 0)
    {
        return;
    }
    // The handshake of a connection that is not counted was not seen: it is, whatever the limit.
    if connections::count(&client, SOCKET, true) == Outcome::Counted {
        // SAFETY: the caller's promise. On failure the agent finds that the socket is gone.
        unsafe { bpf_sock_ops_cb_flags_set(ops, BPF_SOCK_OPS_STATE_CB_FLAG as i32) };
    }
}

/// A socket is closed for which [`established`] enabled this callback.
///
/// # Safety
/// `ops` is the program's context.
#[inline(always)]
unsafe fn closed(ops: *mut bpf_sock_ops) {
    // SAFETY: the caller's promise; a constant that the loader sets.
    let (client, network) = unsafe { (key(ops), (&raw const NETWORK).read_volatile()) };
    // SAFETY: the caller's promise.
    if unsafe { bpf_get_netns_cookie(ops.cast()) } == network {
        connections::let_go(&client, SOCKET);
    }
}

/// The key of the connection, as its client's packets have it.
///
/// # Safety
/// `ops` is the program's context.
#[inline(always)]
unsafe fn key(ops: *mut bpf_sock_ops) -> FlowKey {
    // SAFETY: the caller's promise.
    unsafe {
        let (source, destination) = if read(&raw const (*ops).family) == AF_INET {
            let [source, destination] = [read(&raw const (*ops).remote_ip4), read(&raw const (*ops).local_ip4)];
            (mapped(source.to_ne_bytes()), mapped(destination.to_ne_bytes()))
        } else {
            (address(&raw const (*ops).remote_ip6), address(&raw const (*ops).local_ip6))
        };
        FlowKey {
            source,
            destination,
            // In network byte order, as the first half of the word (linux/bpf.h).
            source_port: u32::from_be(read(&raw const (*ops).remote_port)) as u16,
            destination_port: read(&raw const (*ops).local_port) as u16,
        }
    }
}

/// Four words of the context as an address.
///
/// # Safety
/// They are of the program's context.
#[inline(always)]
unsafe fn address(words: *const [u32; 4]) -> [u8; 16] {
    let words = words.cast::<u32>();
    // SAFETY: the caller's promise.
    let [a, b, c, d] = unsafe { [read(words), read(words.add(1)), read(words.add(2)), read(words.add(3))] };
    let half = |first: u32, second: u32| u64::from(first) | u64::from(second) << 32;
    (u128::from(half(a, b)) | u128::from(half(c, d)) << 64).to_le_bytes()
}

/// A word of the context. Volatile: the kernel permits loads of four bytes only, which the compiler would join.
///
/// # Safety
/// It is of the program's context.
#[inline(always)]
unsafe fn read(word: *const u32) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { word.read_volatile() }
}
