//! Retrying a dial that an endpoint has refused or not answered: with the next endpoint, a bounded number of times,
//! then with a reset to the client. If the source port belongs to another connection, with the next port.

use aya_ebpf::bindings::{TC_ACT_OK, TC_ACT_SHOT};
use router_common::maps::{Dial, Flow, KernelPool};
use router_common::packet::{ACK, RST};
use router_common::verdict::{DialCounter, FlowEndReason};

use crate::connect;
use crate::craft::compose;
use crate::flow_end;
use crate::log;
use crate::maps;
use crate::next_hop;
use crate::scratch::Scratch;
use crate::skb::Skb;

/// Most endpoints tried for one connection.
const MAX_ATTEMPTS: u8 = 4;

/// [`next_endpoint`]: the connection is gone.
const NO_CLIENT: u32 = 0;
/// [`next_endpoint`]: the flow entries of the next endpoint exist.
const ANOTHER: u32 = 1;
/// [`next_endpoint`]: there is no other.
const NO_OTHER: u32 = 2;

/// True if another endpoint may be left for this dial.
#[inline(always)]
pub fn may_be(dial: &Dial, route: u32) -> bool {
    dial.attempts + 1 < MAX_ATTEMPTS && (dial.slots > 1 || new_pool(dial, route).is_some())
}

/// Turns any packet into the SYN to another endpoint, or into a reset to the client if none is left. Takes the client's
/// key and the first flight from the working memory.
#[inline(always)]
pub fn dial(skb: &Skb) -> i32 {
    match next_endpoint(skb) {
        ANOTHER => connect::syn(skb),
        NO_OTHER => refuse(skb),
        _ => TC_ACT_SHOT,
    }
}

/// Passes a packet of another connection to the stack, and turns a copy of it into the SYN from another port, or into a
/// reset to the client if none is free. Takes the client's key and the first flight from the working memory.
#[inline(always)]
pub fn dial_from_another_port(skb: &Skb) -> i32 {
    match another_port(skb) {
        ANOTHER => connect::syn(skb),
        NO_OTHER => refuse(skb),
        _ => TC_ACT_OK,
    }
}

/// Replaces the flow entries by those of another endpoint.
#[inline(never)]
fn next_endpoint(skb: &Skb) -> u32 {
    let Some(memory) = maps::scratch_memory() else { return NO_CLIENT };
    let Some(client) = maps::flow(&memory.key) else { return NO_CLIENT };
    let Some(backend) = maps::flow(&client.rewrite.to.reversed()) else { return NO_CLIENT };
    remember(memory, client, backend);
    if choose_another(&mut memory.flight.dial, client.route) {
        maps::count(DialCounter::NextEndpoint);
        flow_end::forget(&memory.key, client);
        return enter(skb);
    }
    maps::count(DialCounter::Refused);
    flow_end::finish_and_forget(&memory.key, client, backend, FlowEndReason::Refused);
    NO_OTHER
}

/// Replaces the flow entries by those of another source port.
#[inline(never)]
fn another_port(skb: &Skb) -> u32 {
    let Some(memory) = maps::scratch_memory() else { return NO_CLIENT };
    let Some(client) = maps::flow(&memory.key) else { return NO_CLIENT };
    let Some(backend) = maps::flow(&client.rewrite.to.reversed()) else { return NO_CLIENT };
    remember(memory, client, backend);
    memory.flight.dial.moves += 1;
    flow_end::forget(&memory.key, client);
    // If that fails, the sender retransmits.
    let _ = skb.leave_copy();
    enter(skb)
}

/// Copies to the working memory what the connection's next entries need of these.
#[inline(always)]
fn remember(memory: &mut Scratch, client: &Flow, backend: &Flow) {
    memory.arrived = backend.interface;
    memory.client.route = client.route;
    memory.client.router = client.router;
    memory.client.protocol = client.protocol;
}

/// Makes new flow entries from the working memory.
#[inline(always)]
fn enter(skb: &Skb) -> u32 {
    if connect::enter(skb) == connect::ENTERED {
        log::dialed();
        return ANOTHER;
    }
    let Some(memory) = maps::scratch_memory() else { return NO_CLIENT };
    // The prepared entries report the end.
    let Scratch { client, backend, .. } = memory;
    flow_end::finish(client, backend, FlowEndReason::Refused);
    NO_OTHER
}

/// Chooses an endpoint that was not tried yet, up to [`MAX_ATTEMPTS`]. If the route has another pool by now, chooses
/// from that.
#[inline(always)]
fn choose_another(dial: &mut Dial, route: u32) -> bool {
    dial.attempts += 1;
    if dial.attempts >= MAX_ATTEMPTS {
        return false;
    }
    if let Some(pool) = new_pool(dial, route) {
        dial.pool = pool.id;
        dial.slots = pool.slots;
        return connect::draw(dial) && is_there(dial.endpoint);
    }
    let slots = if dial.slots == 0 { 1 } else { dial.slots };
    if dial.attempts as u32 >= slots {
        return false;
    }
    let index = dial.slot.wrapping_add(dial.attempts as u32) % slots;
    let Some(next) = maps::slot(dial.pool, index) else { return false };
    dial.endpoint = next.endpoint;
    is_there(dial.endpoint)
}

/// True if the maps have all that a dial needs to know of an endpoint.
#[inline(always)]
fn is_there(endpoint: u32) -> bool {
    maps::endpoint(endpoint).is_some() && maps::state_of_endpoint(endpoint).is_some()
}

/// The route's pool, if it is another one than the dial's.
#[inline(always)]
fn new_pool(dial: &Dial, route: u32) -> Option<KernelPool> {
    maps::pool(route).filter(|pool| pool.id != dial.pool)
}

/// Turns any packet into a reset to the client, with the sequence number that it expects next.
#[inline(never)]
fn refuse(skb: &Skb) -> i32 {
    let Some(memory) = maps::scratch_memory() else { return TC_ACT_SHOT };
    let Scratch { wanted, flight, key, arrived, .. } = memory;
    let handshake = &flight.dial.handshake;
    wanted.begin(skb, &key.reversed());
    wanted.seq = handshake.listener_isn.wrapping_add(1);
    wanted.ack = handshake.client_isn.wrapping_add(1).wrapping_add(flight.received);
    wanted.flags = RST | ACK;
    let interface = *arrived;
    if compose(skb) { next_hop::send(skb, &wanted.flow, interface) } else { TC_ACT_SHOT }
}
