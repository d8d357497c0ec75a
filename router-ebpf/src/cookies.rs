//! SYN cookies of the stack, made and checked by the kernel's helpers, from XDP and TC.
//!
//! A cookie is made for a listening socket, which then accepts acknowledgements of cookies for two minutes. The kernel makes one
//! only where the stack itself would send one: while the socket's queue of incomplete connections is full, or always, with
//! `net.ipv4.tcp_syncookies=2`. Soon afterwards more are made without the socket: to look it up would take a seventh of an answer's
//! time.

use core::ffi::c_void;

use aya_ebpf::bindings::{BPF_TCP_LISTEN, bpf_sock, tcphdr};
use aya_ebpf::helpers::generated::{
    bpf_check_mtu, bpf_sk_release, bpf_tcp_check_syncookie, bpf_tcp_gen_syncookie, bpf_tcp_raw_gen_syncookie_ipv4,
    bpf_tcp_raw_gen_syncookie_ipv6,
};
use router_common::gate::pressure;
use router_common::gate::syn_cookie::{Headers, TCP_BYTES, WORDS, announced, size_of, sizes};
use router_common::maps::{FlowKey, ListenerOwner, PROTOCOL_TLS, pressure_id};
use router_common::packet::{ACK, SYN};

use crate::copy::{is_v4, words};
use crate::gate_words::KernelWord;
use crate::maps;
use crate::scratch::CookieMemory;
use crate::socket_lookup::{Sockets, look_up};

/// Unit of the time of the last answer: 2²⁸ ns.
const ANSWERED_UNIT: u32 = 28;

/// The pressure on a listener, in a map's value.
pub struct KernelPressure {
    above: u32,
    early: *mut u64,
    late: *mut u64,
    answered: *mut u64,
}

impl KernelPressure {
    /// That of a listener; `None` if its SYNs are never answered with cookies.
    #[inline(always)]
    pub fn of(listener: &ListenerOwner) -> Option<Self> {
        Self::at(pressure_id(listener.router, listener.protocol == PROTOCOL_TLS))
    }

    /// That of an id; `None` as for [`Self::of`].
    #[inline(always)]
    pub fn at(id: u32) -> Option<Self> {
        let entry = maps::gate_pressure(id)?;
        // SAFETY: a live value of the map; the kernel keeps it until the program ends.
        let above = unsafe { (&raw const (*entry).above).read_volatile() };
        // SAFETY: as above; only pointers to the fields are made.
        let (early, late, answered) =
            unsafe { (&raw mut (*entry).early, &raw mut (*entry).late, &raw mut (*entry).answered_ns) };
        Some(KernelPressure { above, early: early.cast(), late: late.cast(), answered })
    }

    /// Counts SYNs that XDP sees; whether the listener is under pressure.
    #[inline(always)]
    pub fn count_early(&self, now_ns: u64, syns: u32) -> bool {
        count(self.early, now_ns, self.above, syns)
    }

    /// Counts a SYN that TC sees; whether the listener is under pressure by those of XDP or TC.
    #[inline(always)]
    pub fn count_late(&self, now_ns: u64) -> bool {
        count(self.late, now_ns, self.above, 1) || pressure::is_on(until(self.early), now_ns)
    }

    /// Whether a SYN was answered in the last second: the stack's queue is full.
    #[inline(always)]
    pub fn has_answered(&self, now_ns: u64) -> bool {
        // SAFETY: a field of a live value of a map, a single aligned word.
        let answered = unsafe { self.answered.read_volatile() };
        answered != 0 && now_ns.wrapping_sub(answered) < 1_000_000_000
    }

    /// Records that a SYN is answered.
    #[inline(always)]
    pub fn answers(&self, now_ns: u64) {
        // Rarely, as several processors write it.
        // SAFETY: a field of a live value of a map, a single aligned word.
        if unsafe { self.answered.read_volatile() } >> ANSWERED_UNIT != now_ns >> ANSWERED_UNIT {
            // SAFETY: as above.
            unsafe { self.answered.write_volatile(now_ns) };
        }
    }

    /// Whether it was under pressure lately.
    #[inline(always)]
    pub fn was_on(&self, now_ns: u64) -> bool {
        pressure::was_on(until(self.early), now_ns) || pressure::was_on(until(self.late), now_ns)
    }
}

#[inline(always)]
fn count(words: *mut u64, now_ns: u64, above: u32, syns: u32) -> bool {
    // SAFETY: a field of two words.
    let until = KernelWord(unsafe { words.add(1) });
    pressure::count(&KernelWord(words), &until, now_ns, above, syns)
}

#[inline(always)]
fn until(words: *mut u64) -> u64 {
    // SAFETY: a field of two words in a live value of a map.
    unsafe { words.add(1).read_volatile() }
}

/// What answers a SYN.
pub enum Answer {
    /// This cookie.
    Cookie(u32),
    /// The stack, if it is a listener's.
    Stack,
    /// The stack, by a socket of an older connection: without a cookie, however full the queue is (Linux,
    /// `tcp_timewait_state_process`).
    Socket,
}

/// The cookie that answers a SYN with this sequence number and segment size, if one is due. `sockets`: those that may be found.
///
/// # Safety
/// `ctx` is the program's context.
#[inline(always)]
pub unsafe fn make(
    ctx: *mut c_void,
    memory: &mut CookieMemory,
    flow: &FlowKey,
    seq: u32,
    max_segment: u16,
    sockets: Sockets,
) -> Answer {
    // SAFETY: the caller's promise.
    let socket = unsafe { look_up(ctx, flow, &mut memory.tuple, sockets) };
    if socket.is_null() {
        return Answer::Stack;
    }
    // SAFETY: not null, and referenced until it is released.
    let answer = unsafe {
        if (&raw const (*socket).state).read_volatile() == BPF_TCP_LISTEN {
            generate(socket, &mut memory.words, flow, seq, max_segment).map_or(Answer::Stack, Answer::Cookie)
        } else {
            Answer::Socket
        }
    };
    // SAFETY: found above, and not used afterwards.
    unsafe { bpf_sk_release(socket.cast()) };
    answer
}

/// The cookie of a SYN to a listener that has just made one: the same, without looking the socket up. The listeners of the agent
/// limit no segment size (`TCP_MAXSEG`), which this would ignore.
#[inline(always)]
pub fn make_again(words: &mut [u32; WORDS], flow: &FlowKey, seq: u32, max_segment: u16) -> u32 {
    headers(flow, seq, 0, SYN, max_segment).describe(words);
    let (ip, tcp, _) = parts(words, flow);
    // SAFETY: the headers are in `words`. The length is the one in them, the only condition of both helpers.
    let made = unsafe {
        if is_v4(&flow.destination) {
            bpf_tcp_raw_gen_syncookie_ipv4(ip.cast(), tcp, TCP_BYTES)
        } else {
            bpf_tcp_raw_gen_syncookie_ipv6(ip.cast(), tcp, TCP_BYTES)
        }
    };
    made as u32
}

/// The segment size in the cookie that a segment with these numbers acknowledges, the first of its connection; `None`: it
/// acknowledges none.
///
/// # Safety
/// `ctx` is the program's context.
#[inline(always)]
pub unsafe fn check(ctx: *mut c_void, memory: &mut CookieMemory, flow: &FlowKey, seq: u32, ack: u32) -> Option<u16> {
    // SAFETY: the caller's promise.
    let socket = unsafe { look_up(ctx, flow, &mut memory.tuple, Sockets::All) };
    if socket.is_null() {
        return None;
    }
    let CookieMemory { words, .. } = memory;
    headers(flow, seq, ack, ACK, 0).describe(words);
    let (ip, tcp, ip_bytes) = parts(words, flow);
    // SAFETY: not null, and referenced until it is released; the headers are in `words`.
    let is_valid = unsafe { bpf_tcp_check_syncookie(socket.cast(), ip, ip_bytes, tcp, TCP_BYTES) == 0 };
    let smallest = if is_valid {
        // SAFETY: as above.
        unsafe { generate(socket, words, flow, seq.wrapping_sub(1), sizes(flow)[0]) }
    } else {
        None
    };
    // SAFETY: found above, and not used afterwards.
    unsafe { bpf_sk_release(socket.cast()) };
    let cookie = ack.wrapping_sub(1);
    // Where none is due any more, any other cookie than the smallest is taken for it.
    is_valid.then(|| size_of(flow, cookie, smallest.unwrap_or(cookie)))
}

/// # Safety
/// `socket` is one that was looked up and not released.
#[inline(always)]
unsafe fn generate(
    socket: *mut bpf_sock,
    words: &mut [u32; WORDS],
    flow: &FlowKey,
    seq: u32,
    max_segment: u16,
) -> Option<u32> {
    headers(flow, seq, 0, SYN, max_segment).describe(words);
    let (ip, tcp, ip_bytes) = parts(words, flow);
    // SAFETY: the caller's promise; the headers are in `words`.
    let made = unsafe { bpf_tcp_gen_syncookie(socket.cast(), ip, ip_bytes, tcp, TCP_BYTES) };
    (made >= 0).then_some(made as u32)
}

/// A packet of a flow.
#[inline(always)]
pub fn headers(flow: &FlowKey, seq: u32, ack: u32, flags: u8, max_segment: u16) -> Headers {
    let (source, destination) = (words(&flow.source), words(&flow.destination));
    let (source_port, destination_port) = (flow.source_port, flow.destination_port);
    Headers { source, destination, source_port, destination_port, seq, ack, flags, max_segment }
}

/// The IP header, the TCP header, and the bytes of the former.
#[inline(always)]
fn parts(words: &mut [u32; WORDS], flow: &FlowKey) -> (*mut c_void, *mut tcphdr, u32) {
    let ip = words.as_mut_ptr();
    let bytes = if is_v4(&flow.destination) { 20 } else { 40 };
    // SAFETY: within the words.
    (ip.cast(), unsafe { ip.byte_add(bytes) }.cast(), bytes as u32)
}

/// The segment size to announce on the interface that the packet arrived on.
///
/// # Safety
/// `ctx` is the program's context.
#[inline(always)]
pub unsafe fn announced_here(ctx: *mut c_void, flow: &FlowKey, listener: &ListenerOwner) -> u16 {
    let mut mtu = 0;
    // SAFETY: the caller's promise. The result is that of a comparison which is not needed.
    unsafe { bpf_check_mtu(ctx, 0, &raw mut mtu, 0, 0) };
    announced(flow, mtu, listener.max_segment)
}
