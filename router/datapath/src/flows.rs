//! Connections that the kernel carries: when the agent ends one, and when it forgets it. Pure.

use std::time::Duration;

use router_common::maps::{
    FLOW_REPORTED, Flow, FlowEnd, FlowKey, SIDE_CLIENT, STATE_CLOSING, STATE_CONFIRMING, STATE_DIALING,
    STATE_ESTABLISHED,
};
use router_common::verdict::FlowEndReason;

/// How long an ended connection stays for packets that are repeated; more than a FIN is by any stack within its first
/// retries.
pub const LINGER: Duration = Duration::from_secs(10);
/// How long the last endpoint that is tried may be silent, as in the relay (`connectTimeout`'s default): the kernel goes
/// on to another one after a second, while there is one.
pub const DIAL_LIMIT: Duration = Duration::from_secs(5);
/// How long an endpoint that has accepted may leave the first payload unacknowledged: five times the client sends it
/// again.
pub const CONFIRM_LIMIT: Duration = Duration::from_secs(15);
/// An entry without its other direction is nobody's when it is this old: between the writing of the two there are
/// nanoseconds.
pub const ORPHAN_LIFE: Duration = Duration::from_secs(10);

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It stays.
    Keep,
    /// It has ended, and its end was told: both entries go.
    Forget,
    /// Both entries go, and the end is told, for this reason.
    End(FlowEndReason),
}

/// Judges a connection by its two entries. `now` is the monotonic clock's; `idle` the route's tunnel timeout.
/// The entry of the other direction is needed only when [`wants_backend`] says so.
pub fn judge(client: &Flow, backend: Option<&Flow>, now: Duration, idle: Duration) -> Fate {
    let since = |ns: u64| now.saturating_sub(Duration::from_nanos(ns));
    match client.state {
        STATE_CLOSING if since(client.ended_ns) <= LINGER => Fate::Keep,
        STATE_CLOSING if client.own & FLOW_REPORTED != 0 => Fate::Forget,
        STATE_CLOSING => Fate::End(FlowEndReason::from_code(client.end).unwrap_or(FlowEndReason::Finished)),
        STATE_DIALING if since(client.started_ns) > DIAL_LIMIT => Fate::End(FlowEndReason::Silent),
        STATE_CONFIRMING if since(client.started_ns) > CONFIRM_LIMIT => Fate::End(FlowEndReason::Silent),
        // The programs have given it up.
        STATE_ESTABLISHED if client.end != 0 => {
            Fate::End(FlowEndReason::from_code(client.end).unwrap_or(FlowEndReason::Fragmented))
        }
        STATE_ESTABLISHED => {
            let last = client.last_ns.max(client.started_ns).max(backend.map_or(0, |flow| flow.last_ns));
            if since(last) > idle { Fate::End(FlowEndReason::Idle) } else { Fate::Keep }
        }
        _ => Fate::Keep,
    }
}

/// Whether nobody needs an entry of either direction any more: the connection's end was told, and its packets are not
/// repeated any longer. Each goes by itself, for the other one may be of a newer connection or gone.
pub fn has_lingered(flow: &Flow, now: Duration) -> bool {
    flow.state == STATE_CLOSING
        && flow.own & FLOW_REPORTED != 0
        && now.saturating_sub(Duration::from_nanos(flow.ended_ns)) > LINGER
}

/// Whether the client's entry alone leaves open what becomes of the connection.
pub fn wants_backend(client: &Flow, now: Duration, idle: Duration) -> bool {
    judge(client, None, now, idle) != Fate::Keep
}

/// When a connection is to be ended if nothing more of it is seen, by the client's entry alone; `None`: it has ended.
pub fn due(client: &Flow, idle: Duration) -> Option<Duration> {
    let (from, limit) = match client.state {
        STATE_DIALING => (client.started_ns, DIAL_LIMIT),
        STATE_CONFIRMING => (client.started_ns, CONFIRM_LIMIT),
        STATE_ESTABLISHED => (client.last_ns.max(client.started_ns), idle),
        _ => return None,
    };
    Some(Duration::from_nanos(from).saturating_add(limit))
}

/// Whether an entry is old enough that the other direction's must be there.
pub fn has_settled(flow: &Flow, now: Duration) -> bool {
    let last = flow.started_ns.max(flow.last_ns).max(flow.ended_ns);
    now.saturating_sub(Duration::from_nanos(last)) > ORPHAN_LIFE
}

/// The end of a connection, as the kernel tells it, from its two entries.
pub fn end_of(key: &FlowKey, client: &Flow, backend: Option<&Flow>, now: Duration, reason: FlowEndReason) -> FlowEnd {
    let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    FlowEnd {
        client: *key,
        backend: client.rewrite.to,
        started_ns: client.started_ns,
        // While it lives, this is when a client's SYN was left without an answer.
        ended_ns: if client.state == STATE_CLOSING { client.ended_ns } else { now },
        bytes_in: client.bytes,
        bytes_out: backend.map_or(0, |flow| flow.bytes),
        packets_in: client.packets,
        packets_out: backend.map_or(0, |flow| flow.packets),
        router: client.router,
        route: client.route,
        endpoint: client.endpoint,
        reason: reason as u8,
        protocol: client.protocol,
        retries: client.retries,
        pad: 0,
    }
}

/// The key of the other direction's entry.
pub fn other_direction(flow: &Flow) -> FlowKey {
    flow.rewrite.to.reversed()
}

/// Whether an entry is of packets from the client.
pub fn is_client(flow: &Flow) -> bool {
    flow.side == SIDE_CLIENT
}

/// A state's code in words.
pub fn state(code: u8) -> &'static str {
    match code {
        STATE_DIALING => "dialing",
        STATE_CONFIRMING => "confirming",
        STATE_ESTABLISHED => "established",
        STATE_CLOSING => "closing",
        _ => "unknown",
    }
}

#[cfg(test)]
pub(super) mod tests;
