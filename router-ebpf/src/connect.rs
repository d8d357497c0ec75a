//! Dialing an endpoint: chooses it and a source port, makes both flow entries, and turns the client's segment into a
//! SYN.

use aya_ebpf::bindings::{TC_ACT_OK, TC_ACT_SHOT};
use aya_ebpf::helpers::{bpf_get_prandom_u32, bpf_ktime_get_ns};
use router_common::http::{ContentTracker, UpgradeProtocol};
use router_common::keyed_hash;
use router_common::maps::{
    Config, Dial, FLIGHT_HEADROOM, FLOW_ACROSS, FLOW_ASKED, FLOW_CLEARTEXT, FLOW_COUNTED, Flow, FlowKey,
    HANDSHAKE_COMPLETE, HANDSHAKE_COUNTED, Handshake, KernelEndpoint, ListenerOwner, OPTION_ECN, OPTION_TIMESTAMPS,
    POOL_PROXY_V2, POOL_TOLD, PROTOCOL_HTTP, SIDE_BACKEND, SIDE_CLIENT, STATE_CLOSING, STATE_DIALING,
};
use router_common::options;
use router_common::packet::{CWR, ECE, ETHERNET, Packet, RST, SYN, Segment};
use router_common::proxy_v2;
use router_common::requests;
use router_common::verdict::{DialCounter, Reason};

use crate::atomic::next_step;
use crate::copy::is_v4;
use crate::craft::compose;
use crate::maps;
use crate::next_hop;
use crate::options::read as read_options;
use crate::scratch::Scratch;
use crate::skb::{PASS_UP, Skb};
use crate::telemetry;
use crate::verifier;

/// [`begin`]: an endpoint was chosen.
pub const CHOSEN: u32 = 0x1_0000;
/// [`enter`]: the flow entries exist.
pub const ENTERED: u32 = 0x1_0002;
/// [`begin`]: dialing is off (`Config::dial`).
pub const OFF: u32 = 0x1_0001;

/// Most source ports tried for one dial.
const PORT_TRIES: u32 = 16;
/// Step from one port to the next, modulo the number of ports: a larger prime, so that every port is visited. Not 1,
/// because others use adjacent ports, such as connection tracking, which counts up from a port in use.
const STRIDE: u64 = 104_729;
/// Maximum segment size of a host that announces none (RFC 9293 §3.7.1, for IPv4).
const DEFAULT_SEGMENT: u16 = 536;

/// The reason for a result of [`begin`] or [`enter`].
#[inline(always)]
pub fn reason(code: u32) -> Reason {
    const NO_ENDPOINT: u32 = Reason::NoEndpoint as u32;
    const PORTS_TAKEN: u32 = Reason::PortsTaken as u32;
    const FLOWS_FULL: u32 = Reason::FlowsFull as u32;
    const OTHER_WAY_BACK: u32 = Reason::OtherWayBack as u32;
    const FRAGMENTS: u32 = Reason::Fragments as u32;
    const MAP_FULL: u32 = Reason::MapFull as u32;
    const NO_HANDSHAKE: u32 = Reason::NoHandshake as u32;
    match code {
        NO_ENDPOINT => Reason::NoEndpoint,
        FRAGMENTS => Reason::Fragments,
        OTHER_WAY_BACK => Reason::OtherWayBack,
        PORTS_TAKEN => Reason::PortsTaken,
        FLOWS_FULL => Reason::FlowsFull,
        MAP_FULL => Reason::MapFull,
        NO_HANDSHAKE => Reason::NoHandshake,
        _ => Reason::Unreadable,
    }
}

/// Chooses an endpoint for the first flight and the decision in the working memory. Returns [`CHOSEN`], [`OFF`], or the
/// code of the reason why not; no map was changed.
#[inline(never)]
pub fn begin(skb: &Skb, segment: &Segment, listener: ListenerOwner, handshake: &Handshake) -> u32 {
    let Some(settings) = maps::settings() else { return OFF };
    if settings.dial == 0 {
        return OFF;
    }
    let Some(memory) = maps::scratch_memory() else { return OFF };
    if handshake.state & HANDSHAKE_COMPLETE == 0 || segment.ack != handshake.listener_isn.wrapping_add(1) {
        return Reason::NoHandshake as u32;
    }
    if segment.tcp != ETHERNET + if segment.v6 { 40 } else { 20 } {
        return Reason::Unreadable as u32;
    }
    let route = memory.decision.route;
    let Some(pool) = maps::pool(route) else { return Reason::NoEndpoint as u32 };
    let dial = &mut memory.flight.dial;
    dial.handshake = *handshake;
    dial.client_tsval = read_options(skb, segment).tsval;
    dial.pool = pool.id;
    dial.slots = pool.slots;
    dial.window = segment.window;
    dial.prefix = 0;
    dial.attempts = 0;
    dial.moves = 0;
    dial.told = (pool.flags & POOL_TOLD != 0) as u8;
    let head = memory.flight.head.head();
    dial.content = requests::content(&head);
    dial.asks = (head.upgrade as u8 != UpgradeProtocol::No as u8) as u8;
    if !draw(dial) {
        return Reason::NoEndpoint as u32;
    }
    memory.client.route = route;
    memory.client.router = listener.router;
    memory.client.protocol = listener.protocol;
    if pool.flags & POOL_PROXY_V2 != 0 {
        put_proxy_header(memory, &segment.flow);
    }
    CHOSEN
}

/// Draws a slot by weight.
#[inline(always)]
pub fn draw(dial: &mut Dial) -> bool {
    // SAFETY: the helper has no precondition (both calls).
    let (column, coin) = unsafe { (bpf_get_prandom_u32(), bpf_get_prandom_u32()) };
    dial.slot = ((column as u64 * dial.slots as u64) >> 32) as u32;
    let Some(slot) = maps::slot(dial.pool, dial.slot) else { return false };
    dial.endpoint = slot.endpoint;
    if coin < slot.threshold || slot.threshold == u32::MAX {
        return true;
    }
    dial.slot = slot.alias;
    let Some(slot) = maps::slot(dial.pool, dial.slot) else { return false };
    dial.endpoint = slot.endpoint;
    true
}

/// Puts a PROXY v2 header in front of the gathered bytes.
#[inline(never)]
fn put_proxy_header(memory: &mut Scratch, flow: &FlowKey) {
    let (header, len) = proxy_v2::header(flow);
    let Scratch { flight, .. } = memory;
    const SHORT: usize = 28;
    const LONG: usize = 52;
    const END: usize = FLIGHT_HEADROOM as usize;
    if len == SHORT as u32 {
        let mut i = 0;
        while i < SHORT {
            flight.bytes[END - SHORT + i] = header[i];
            i += 1;
        }
    } else {
        let mut i = 0;
        while i < LONG {
            flight.bytes[END - LONG + i] = header[i];
            i += 1;
        }
    }
    flight.dial.prefix = len;
}

/// Makes the entries of a connection to the dial's endpoint: finds a free source port, adds both flow entries and the
/// first flight. Expects the working memory as [`begin`] leaves it, with the client's key and interface; `skb` is any
/// packet.
#[inline(never)]
pub fn enter(skb: &Skb) -> u32 {
    let Some(memory) = maps::scratch_memory() else { return Reason::NoEndpoint as u32 };
    let Some(settings) = maps::settings() else { return Reason::NoEndpoint as u32 };
    let id = memory.flight.dial.endpoint;
    let Some(endpoint) = maps::endpoint(id) else { return Reason::NoEndpoint as u32 };
    let Some(state) = maps::state_of_endpoint(id) else { return Reason::NoEndpoint as u32 };
    prepare(memory, endpoint);
    state.dials += 1;
    let mut turn = 0;
    while turn < PORT_TRIES {
        turn += 1;
        // Atomic: of two CPUs with the same port, the second would take over the first one's dial.
        let step = next_step(&mut state.cursor);
        if is_anothers(skb, settings, step) {
            continue;
        }
        number(settings);
        let tried = try_port();
        if tried == PORT_OURS {
            return finish();
        }
        if tried != PORT_TAKEN {
            return Reason::FlowsFull as u32;
        }
    }
    Reason::PortsTaken as u32
}

/// Fills both entries, except for what depends on the port.
#[inline(never)]
fn prepare(memory: &mut Scratch, endpoint: &KernelEndpoint) {
    let Scratch { client, backend, flight, key, arrived, .. } = memory;
    // SAFETY: the helper has no precondition.
    let now = unsafe { bpf_ktime_get_ns() };
    flight.dial.max_segment = endpoint.max_segment;
    // Field by field: a whole value of 128 bytes would be built on the stack.
    let to = &mut client.rewrite.to;
    to.source = endpoint.source;
    to.destination = endpoint.address;
    to.destination_port = endpoint.port;
    let received = flight.received;
    client.next_seq = flight.dial.handshake.client_isn.wrapping_add(1).wrapping_add(received);
    client.bytes = received as u64;
    client.packets = flight.segments as u64;
    client.interface = endpoint.interface;
    client.endpoint = flight.dial.endpoint;
    client.side = SIDE_CLIENT;
    let to = &mut backend.rewrite.to;
    to.source = key.destination;
    to.destination = key.source;
    to.source_port = key.destination_port;
    to.destination_port = key.source_port;
    backend.next_seq = 0;
    // See `begin_entry`.
    backend.bytes = verifier::opaque(0) as u64;
    backend.packets = 0;
    backend.interface = *arrived;
    backend.endpoint = client.endpoint;
    backend.route = client.route;
    backend.router = client.router;
    backend.protocol = client.protocol;
    backend.side = SIDE_BACKEND;
    begin_entry(client, now);
    begin_entry(backend, now);
    client.judged = client.next_seq;
    // So far, only the listener's SYN.
    client.acked = flight.dial.handshake.listener_isn.wrapping_add(1);
    client.retries = flight.dial.attempts;
    if flight.dial.handshake.state & HANDSHAKE_COUNTED != 0 {
        client.claims = FLOW_COUNTED;
    }
    if is_v4(&endpoint.address) != is_v4(&key.source) {
        client.own |= FLOW_ACROSS;
        backend.own |= FLOW_ACROSS;
    }
    if client.protocol == PROTOCOL_HTTP {
        client.own |= FLOW_CLEARTEXT;
        client.content = flight.dial.content;
        if flight.dial.asks != 0 {
            client.peer |= FLOW_ASKED;
            backend.own |= FLOW_ASKED;
        }
    }
}

/// Fields with the same value in both entries of a new connection.
#[inline(always)]
fn begin_entry(flow: &mut Flow, now: u64) {
    // Adjacent zeros would be compiled to a call of `memset`, with a stack frame.
    let zero = verifier::opaque(0);
    flow.rewrite.delta_seq = zero;
    flow.rewrite.delta_ack = zero;
    flow.rewrite.delta_tsval = zero;
    flow.rewrite.delta_tsecr = zero;
    flow.rewrite.shift_up = 0;
    flow.rewrite.shift_down = 0;
    flow.rewrite.pad = [0; 2];
    flow.last_ns = now;
    flow.started_ns = now;
    flow.ended_ns = 0;
    flow.fin_end = 0;
    flow.state = STATE_DIALING;
    flow.own = 0;
    flow.peer = 0;
    flow.end = 0;
    flow.acked = 0;
    flow.judged = 0;
    flow.retries = 0;
    flow.claims = 0;
    flow.content = ContentTracker::default();
}

const PORT_TAKEN: u32 = 0;
const PORT_OURS: u32 = 1;
const PORT_NO_ROOM: u32 = 2;

/// Sets the source port; true if another connection of this host uses it towards the endpoint, of a socket or
/// forwarded.
#[inline(never)]
fn is_anothers(skb: &Skb, settings: &Config, step: u32) -> bool {
    let Some(memory) = maps::scratch_memory() else { return true };
    let ports = if settings.ports == 0 { 1 } else { settings.ports as u64 };
    let Scratch { client, tuple, .. } = memory;
    client.rewrite.to.source_port = settings.first_port.wrapping_add((step as u64 * STRIDE % ports) as u16);
    let back = client.rewrite.to.reversed();
    maps::is_taken(&back) || skb.has_socket(&back, tuple)
}

/// Sets sequence number and timestamp of a dial from that port.
#[inline(never)]
fn number(settings: &Config) {
    let Some(memory) = maps::scratch_memory() else { return };
    let Scratch { client, backend, flight, .. } = memory;
    let back = client.rewrite.to.reversed();
    let hash = keyed_hash::hash(settings.secret, &back);
    let now = client.started_ns;
    let dial = &mut flight.dial;
    // Both increase from one connection to the next with the same addresses and ports, whichever client it is for: the
    // endpoint may still have the last one in TIME-WAIT (RFC 6191 §2, RFC 6528 §3).
    dial.isn = ((now >> 6) as u32).wrapping_add(hash as u32);
    dial.tsval = ((now / 1_000_000) as u32).wrapping_add((hash >> 32) as u32);
    let delta_seq = dial.isn.wrapping_add(dial.prefix).wrapping_sub(dial.handshake.client_isn);
    client.rewrite.delta_seq = delta_seq;
    backend.rewrite.delta_ack = delta_seq.wrapping_neg();
    if dial.handshake.options & OPTION_TIMESTAMPS != 0 {
        let delta = dial.tsval.wrapping_sub(dial.client_tsval);
        client.rewrite.delta_tsval = delta;
        backend.rewrite.delta_tsecr = delta.wrapping_neg();
    }
}

/// Claims that port by adding the entry of the endpoint's direction.
#[inline(never)]
fn try_port() -> u32 {
    let Some(memory) = maps::scratch_memory() else { return PORT_NO_ROOM };
    let Scratch { client, backend, .. } = memory;
    let back = client.rewrite.to.reversed();
    let Some(old) = maps::flow(&back) else {
        // On failure another CPU was faster, or the map is full.
        return if maps::add_flow(&back, backend) {
            PORT_OURS
        } else if maps::flow(&back).is_some() {
            PORT_TAKEN
        } else {
            PORT_NO_ROOM
        };
    };
    if old.state == STATE_CLOSING && take_over(&back, old, backend) { PORT_OURS } else { PORT_TAKEN }
}

/// Replaces the entry of a connection that has ended. `false`: another CPU, or the agent, was faster.
#[inline(always)]
fn take_over(back: &FlowKey, old: &mut Flow, new: &Flow) -> bool {
    if !give_back(old) {
        return false;
    }
    let taken = maps::replace_flow(back, new);
    if taken {
        maps::count(DialCounter::TakenOver);
    }
    taken
}

/// Releases the port of a connection that has ended, given its endpoint's entry, which the caller then replaces or
/// removes. `false`: another CPU, or the agent, was faster.
#[inline(always)]
pub fn give_back(old: &mut Flow) -> bool {
    let started = old.started_ns;
    if !maps::claim_port(old, started) {
        return false;
    }
    let client = old.rewrite.to.reversed();
    if let Some(other) = maps::flow(&client)
        && other.started_ns == started
    {
        telemetry::last_of(old, other);
        maps::remove_flow(&client);
    }
    true
}

/// Adds the client's entry, and stores the first flight until the endpoint has acknowledged it.
#[inline(never)]
fn finish() -> u32 {
    let Some(memory) = maps::scratch_memory() else { return Reason::NoEndpoint as u32 };
    let client = &memory.key;
    let back = memory.client.rewrite.to.reversed();
    if !maps::keep_dialed_flight(client, &memory.flight) {
        maps::remove_flow(&back);
        return Reason::MapFull as u32;
    }
    if !maps::add_flow(client, &memory.client) {
        maps::remove_flow(&back);
        maps::forget_first_flight(client);
        return Reason::FlowsFull as u32;
    }
    ENTERED
}

/// Sends what [`enter`] has prepared: a SYN to the endpoint, and a reset to the stack, whose request socket is not
/// needed any more.
///
/// The copy becomes the SYN, and the packet the reset: a copy sent up would wait in the backlog. But a copy can be sent
/// only if the neighbour's address is known; otherwise the packet becomes the SYN.
#[inline(always)]
pub fn send(skb: &Skb, segment: &Segment) -> i32 {
    match send_copy(skb, segment) {
        NOT_SENT => send_syn(skb),
        action => action,
    }
}

/// [`send_copy`]: the caller must send the packet as the SYN.
const NOT_SENT: i32 = i32::MAX;

/// Sends the SYN as a copy, and turns the packet into the reset. If a copy cannot be sent, sends the reset as a copy
/// and leaves the SYN to the caller, so that this frame is not in that call chain.
#[inline(never)]
fn send_copy(skb: &Skb, segment: &Segment) -> i32 {
    let Some(memory) = maps::scratch_memory() else { return TC_ACT_SHOT };
    let Some(macs) = skb.load::<12>(0) else { return TC_ACT_SHOT };
    let Scratch { wanted, client, .. } = memory;
    wanted.begin(skb, &client.rewrite.to);
    let made = make_syn(skb);
    let sent = made && next_hop::send_copy(skb, &client.rewrite.to, client.interface);
    // The Ethernet header is restored for a bridge that this interface may be a port of.
    let reset = skb.put_ethernet(0, &macs) && make_reset(skb, segment, made);
    if sent {
        skb.set_mark(PASS_UP);
        return if reset { TC_ACT_OK } else { TC_ACT_SHOT };
    }
    if !reset || !skb.send_copy_up() {
        // Without the reset the stack drops its socket later; the dial continues.
    }
    let Some(memory) = maps::scratch_memory() else { return TC_ACT_SHOT };
    let Scratch { wanted, client, .. } = memory;
    wanted.begin_again(skb, &client.rewrite.to);
    NOT_SENT
}

/// Turns the packet, which was composed in this run before, into a reset with the sequence number that the stack
/// expects next (RFC 9293 §3.10.7.4). `short`: the packet is a SYN, whose last bytes may stay as padding.
#[inline(never)]
fn make_reset(skb: &Skb, segment: &Segment, short: bool) -> bool {
    let Some(memory) = maps::scratch_memory() else { return false };
    let Scratch { wanted, flight, .. } = memory;
    wanted.begin_again(skb, &segment.flow);
    wanted.seq = flight.dial.handshake.client_isn.wrapping_add(1).wrapping_add(flight.went_up);
    wanted.flags = RST;
    wanted.padded = short as u8;
    compose(skb)
}

/// Turns any packet into the SYN of the dial in the working memory (`client` and `flight`), and sends it.
#[inline(never)]
pub fn syn(skb: &Skb) -> i32 {
    let Some(memory) = maps::scratch_memory() else { return TC_ACT_SHOT };
    let Scratch { wanted, client, .. } = memory;
    wanted.begin(skb, &client.rewrite.to);
    send_syn(skb)
}

/// Likewise, if `Scratch::wanted` is prepared.
#[inline(never)]
fn send_syn(skb: &Skb) -> i32 {
    let Some(memory) = maps::scratch_memory() else { return TC_ACT_SHOT };
    let client = &memory.client;
    if make_syn(skb) { next_hop::send(skb, &client.rewrite.to, client.interface) } else { TC_ACT_SHOT }
}

/// Turns the packet into the SYN; `Scratch::wanted` is prepared.
#[inline(never)]
fn make_syn(skb: &Skb) -> bool {
    let Some(memory) = maps::scratch_memory() else { return false };
    let Scratch { wanted, flight, .. } = memory;
    let (dial, handshake) = (&flight.dial, &flight.dial.handshake);
    wanted.seq = dial.isn;
    wanted.flags = if handshake.options & OPTION_ECN != 0 { SYN | ECE | CWR } else { SYN };
    let window = (dial.window as u32) << (handshake.client_shift & 15);
    wanted.window = if window > u16::MAX as u32 { u16::MAX } else { window as u16 };
    // Segments keep their size in both directions.
    let announced = if handshake.client_mss == 0 { DEFAULT_SEGMENT } else { handshake.client_mss };
    let mss = if dial.max_segment != 0 && announced > dial.max_segment { dial.max_segment } else { announced };
    wanted.syn_options(&options::of_syn(mss, handshake.options, dial.tsval, handshake.client_shift));
    compose(skb)
}
