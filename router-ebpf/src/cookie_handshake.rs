//! Handshakes by SYN cookies at TC: answering SYNs that XDP does not, and recognising acknowledgements of cookies.

use aya_ebpf::EbpfContext;
use aya_ebpf::bindings::{TC_ACT_OK, TC_ACT_SHOT};
use aya_ebpf::helpers::bpf_ktime_get_ns;
use aya_ebpf::helpers::generated::bpf_redirect;
use router_common::gate::syn_cookie::WINDOW;
use router_common::maps::{HANDSHAKE_COMPLETE, Handshake, ListenerOwner};
use router_common::packet::{ACK, FIN, Packet, RST, SYN, Segment};
use router_common::verdict::DialCounter;

use crate::cookies::{self, Answer, KernelPressure};
use crate::craft::compose;
use crate::maps;
use crate::options::read as read_options;
use crate::reject::swapped;
use crate::skb::{OURS, Skb};
use crate::socket_lookup::Sockets;

/// Counts a SYN, and answers it if the stack would answer with a cookie, so that its options are those that the kernel can carry.
/// `None`: it goes up, and its handshake is to be recorded. Of the few that find room in the queue of a flooded listener it is not:
/// they are relayed.
#[inline(never)]
pub fn answered(skb: &Skb, segment: &Segment, listener: &ListenerOwner) -> Option<i32> {
    let pressure = KernelPressure::of(listener)?;
    // SAFETY: the helper has no precondition.
    let now = unsafe { bpf_ktime_get_ns() };
    if !pressure.count_late(now) || skb.is_looped() {
        return None;
    }
    let announced = read_options(skb, segment).mss;
    let memory = maps::cookie_memory()?;
    let flow = &segment.flow;
    // SAFETY: the context is the one that the kernel gave.
    let answer = unsafe { cookies::make(skb.0.as_ptr().cast(), memory, flow, segment.seq, announced, Sockets::All) };
    let cookie = match answer {
        Answer::Cookie(cookie) => cookie,
        Answer::Stack => return pressure.has_answered(now).then_some(TC_ACT_OK),
        Answer::Socket => return None,
    };
    // SAFETY: as above.
    let max_segment = unsafe { cookies::announced_here(skb.0.as_ptr().cast(), flow, listener) };
    let macs = skb.load::<12>(0)?;
    let wanted = &mut maps::scratch_memory()?.wanted;
    wanted.begin(skb, &flow.reversed());
    wanted.seq = cookie;
    wanted.ack = segment.seq.wrapping_add(1);
    wanted.flags = SYN | ACK;
    wanted.window = WINDOW;
    wanted.options_len = 4;
    wanted.options[0] = (0x0204_0000 | max_segment as u32).to_be();
    if !compose(skb) || !skb.put_ethernet(0, &swapped(&macs)) {
        return Some(TC_ACT_SHOT);
    }
    pressure.answers(now);
    maps::count(DialCounter::SynCookies);
    skb.set_mark(OURS);
    // SAFETY: no pointer is passed.
    Some(unsafe { bpf_redirect(skb.interface(), 0) as i32 })
}

/// Whether an entry is of the connection that a segment belongs to, and the segment precedes all data of the listener.
#[inline(always)]
fn is_of(handshake: &Handshake, segment: &Segment) -> bool {
    handshake.state & HANDSHAKE_COMPLETE != 0 && handshake.listener_isn.wrapping_add(1) == segment.ack
}

/// Whether a segment has no options, as one that acknowledges a cookie.
#[inline(always)]
pub fn is_bare(segment: &Segment) -> bool {
    segment.flags & (SYN | FIN | RST | ACK) == ACK && segment.payload == segment.tcp + 20
}

/// Whether a segment without options acknowledges a cookie.
#[inline(never)]
pub fn acknowledges_one(skb: &Skb, segment: &Segment) -> bool {
    let Some(memory) = maps::cookie_memory() else { return false };
    // SAFETY: the context is the one that the kernel gave.
    let checked = unsafe { cookies::check(skb.0.as_ptr().cast(), memory, &segment.flow, segment.seq, segment.ack) };
    checked.is_some()
}

/// Records the handshake that a segment completes if it acknowledges a cookie. A segment with options acknowledges one of the
/// stack's own, whose options only the stack knows.
#[inline(never)]
pub fn completed(skb: &Skb, segment: &Segment, listener: &ListenerOwner) {
    if !is_bare(segment) {
        return;
    }
    let Some(pressure) = KernelPressure::of(listener) else { return };
    // SAFETY: the helper has no precondition.
    let now = unsafe { bpf_ktime_get_ns() };
    let flow = &segment.flow;
    if !pressure.was_on(now) || maps::handshake(flow).is_some_and(|handshake| is_of(handshake, segment)) {
        return;
    }
    let Some(memory) = maps::cookie_memory() else { return };
    // SAFETY: the context is the one that the kernel gave.
    let checked = unsafe { cookies::check(skb.0.as_ptr().cast(), memory, flow, segment.seq, segment.ack) };
    let Some(client_mss) = checked else { return };
    let handshake = Handshake {
        answered_ns: now,
        client_isn: segment.seq.wrapping_sub(1),
        listener_isn: segment.ack.wrapping_sub(1),
        client_mss,
        state: HANDSHAKE_COMPLETE,
        ..Handshake::default()
    };
    maps::set_handshake(flow, &handshake);
    maps::count(DialCounter::CookiesConfirmed);
}
