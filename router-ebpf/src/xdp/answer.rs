//! Answering SYNs with cookies: the frame goes back to where it came from as a SYN-ACK, with its VLAN tags.

use core::ffi::c_void;
use core::ptr::null_mut;

use aya_ebpf::EbpfContext;
use aya_ebpf::bindings::xdp_action::{XDP_DROP, XDP_PASS, XDP_TX};
use aya_ebpf::helpers::generated::{bpf_loop, bpf_xdp_adjust_tail};
use aya_ebpf::programs::XdpContext;
use router_common::gate::arrival::Arrival;
use router_common::gate::syn_cookie::Headers;
use router_common::options::{MAX_OPTIONS, TcpOptions};
use router_common::packet::{ACK, ETHERNET, Packet, SYN};
use router_common::verdict::DialCounter;

use crate::cookies::{self, Answer};
use crate::copy::is_v4;
use crate::known_sockets;
use crate::maps;
use crate::options::OptionBytes;
use crate::scratch::Flooded;
use crate::socket_lookup::Sockets;

use super::packet::XdpPacket;
use super::packet_mut::{swap_addresses, write_words};

/// Bytes of the headers behind Ethernet's.
const V4_BYTES: u32 = 44;
const V6_BYTES: u32 = 64;

/// Counts a SYN, and answers it if its listener is under pressure and the stack would answer with a cookie. Its data and options
/// are ignored, those of IP too; if it is a fragment, so are the others. What the maps have of older connections with the same
/// addresses and ports is replaced once the cookie is acknowledged: a flood's SYNs would miss the processor's caches in each of
/// those maps. A function of its own: see `read`.
#[inline(never)]
pub fn syn(ctx: &XdpContext, now_ns: u64) -> u32 {
    let Some(arrival) = maps::gate_arrival() else { return XDP_PASS };
    let arrival = &*arrival;
    let flow = &arrival.flow;
    let flooded = match Flooded::known(ctx, arrival, now_ns) {
        Some(flooded) => {
            flooded.syns += 1;
            flooded
        }
        None => match Flooded::look_up(ctx, arrival, now_ns) {
            Some(flooded) => flooded,
            None => return XDP_PASS,
        },
    };
    // Of SYNs without a tag, the driver may have taken it out.
    if flooded.only_tagged != 0 && arrival.ip == ETHERNET {
        return XDP_PASS;
    }
    let packet = XdpPacket::of(ctx, arrival);
    // A group address, at which more than this host receive, is no sender of an answer.
    if packet.load::<2>(0).is_none_or(|[first, _]| first & 1 != 0) {
        return XDP_PASS;
    }
    let client_mss = client_mss(&packet, arrival);
    let Some(memory) = maps::cookie_memory() else { return XDP_PASS };
    let sockets = known_sockets::to_look_for(flooded.sockets, flow);
    let cookie = if flooded.has_made != 0 && matches!(sockets, Sockets::Listeners) {
        cookies::make_again(&mut memory.words, flow, arrival.seq, client_mss)
    } else {
        // SAFETY: the context is the one that the kernel gave.
        let answer = unsafe { cookies::make(ctx.as_ptr().cast(), memory, flow, arrival.seq, client_mss, sockets) };
        let Answer::Cookie(cookie) = answer else { return XDP_PASS };
        flooded.has_made = 1;
        cookie
    };
    let max_segment = flooded.max_segment as u16;
    let of_syn = cookies::headers(flow, cookie, arrival.seq.wrapping_add(1), SYN | ACK, max_segment);
    let (source, destination) = (of_syn.destination, of_syn.source);
    let (source_port, destination_port) = (of_syn.destination_port, of_syn.source_port);
    Headers { source, destination, source_port, destination_port, ..of_syn }.write(&mut memory.words);
    let v4 = is_v4(&flow.destination);
    let length = arrival.ip + if v4 { V4_BYTES } else { V6_BYTES };
    // A buffer that others follow does not grow.
    if !packet.is_linear() && ctx.data() + length as usize > ctx.data_end() {
        return XDP_PASS;
    }
    // SAFETY: as above.
    if unsafe { bpf_xdp_adjust_tail(ctx.as_ptr().cast(), length as i32 - packet.len() as i32) } != 0 {
        return XDP_PASS;
    }
    let is_written = swap_addresses(ctx)
        && if v4 {
            write_words::<{ V4_BYTES as usize / 4 }>(ctx, arrival.ip, &memory.words)
        } else {
            write_words::<{ V6_BYTES as usize / 4 }>(ctx, arrival.ip, &memory.words)
        };
    if !is_written {
        return XDP_DROP;
    }
    flooded.answers();
    maps::count(DialCounter::SynCookies);
    XDP_TX
}

/// The maximum segment size that a SYN announces; 0: none.
#[inline(always)]
fn client_mss(packet: &XdpPacket, arrival: &Arrival) -> u16 {
    let (at, len) = (arrival.tcp + 20, arrival.tcp_len.wrapping_sub(20));
    if len == 0 || len > MAX_OPTIONS {
        return 0;
    }
    // Nearly every host begins with it.
    if let [2, 4, high, low] = packet.load::<4>(at).unwrap_or_default() {
        return u16::from_be_bytes([high, low]);
    }
    let Some(memory) = maps::cookie_memory() else { return 0 };
    let reader = &mut memory.options;
    reader.begin = at;
    reader.len = len;
    reader.at = 0;
    reader.found = TcpOptions::default();
    if !packet.load_options(at, &mut reader.bytes, len) {
        return 0;
    }
    // SAFETY: the callback has the signature that the helper expects and does not use its context.
    unsafe {
        bpf_loop(MAX_OPTIONS, step as unsafe extern "C" fn(u32, *mut c_void) -> i64 as *mut c_void, null_mut(), 0);
        (&raw const memory.options.found.mss).read_volatile()
    }
}

/// Callback of `bpf_loop`: reads one option. 1 ends the loop.
unsafe extern "C" fn step(_: u32, _: *mut c_void) -> i64 {
    let Some(memory) = maps::cookie_memory() else { return 1 };
    i64::from(!memory.options.step())
}
