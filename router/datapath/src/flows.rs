//! Lifetimes of the connections that the kernel carries: when the agent ends one, and when it deletes its entries.
//! Pure.

use std::time::Duration;

use router_common::maps::{
    FLOW_REPORTED, Flow, FlowEnd, FlowKey, SIDE_CLIENT, STATE_CLOSING, STATE_CONFIRMING, STATE_DIALING,
    STATE_ESTABLISHED,
};
use router_common::verdict::FlowEndReason;

/// How long the entries of an ended connection stay for retransmitted packets: longer than the first FIN
/// retransmissions of any stack.
pub const LINGER: Duration = Duration::from_secs(10);
/// How long the last endpoint tried may leave the SYN unanswered, as in the relay (`connectTimeout`'s default). While
/// there is another endpoint, the kernel proceeds to it after a second.
pub const DIAL_LIMIT: Duration = Duration::from_secs(5);
/// How long an endpoint that has accepted may leave the first payload unacknowledged: time for five retransmissions of
/// the client.
pub const CONFIRM_LIMIT: Duration = Duration::from_secs(15);
/// Age at which an entry without its other direction is an orphan; the two are written nanoseconds apart.
pub const ORPHAN_LIFE: Duration = Duration::from_secs(10);

/// The action on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowAction {
    /// Keep it.
    Keep,
    /// It has ended, and its end was reported: delete both entries.
    Forget,
    /// Delete both entries, and report the end, for this reason.
    End(FlowEndReason),
}

/// The action on a connection, given its two entries. `now` is of the monotonic clock; `idle` is the route's tunnel
/// timeout. The backend's entry is needed only if [`needs_backend`] is true.
pub fn judge(client: &Flow, backend: Option<&Flow>, now: Duration, idle: Duration) -> FlowAction {
    let since = |ns: u64| now.saturating_sub(Duration::from_nanos(ns));
    match client.state {
        STATE_CLOSING if since(client.ended_ns) <= LINGER => FlowAction::Keep,
        STATE_CLOSING if client.own & FLOW_REPORTED != 0 => FlowAction::Forget,
        STATE_CLOSING => FlowAction::End(FlowEndReason::from_code(client.end).unwrap_or(FlowEndReason::Finished)),
        STATE_DIALING if since(client.started_ns) > DIAL_LIMIT => FlowAction::End(FlowEndReason::Silent),
        STATE_CONFIRMING if since(client.started_ns) > CONFIRM_LIMIT => FlowAction::End(FlowEndReason::Silent),
        // The programs have marked it for its end.
        STATE_ESTABLISHED if client.end != 0 => {
            FlowAction::End(FlowEndReason::from_code(client.end).unwrap_or(FlowEndReason::Fragmented))
        }
        STATE_ESTABLISHED => {
            let last = client.last_ns.max(client.started_ns).max(backend.map_or(0, |flow| flow.last_ns));
            if since(last) > idle { FlowAction::End(FlowEndReason::Idle) } else { FlowAction::Keep }
        }
        _ => FlowAction::Keep,
    }
}

/// True if an entry, of either direction, is no longer needed: the connection's end was reported, and the time for
/// retransmitted packets has passed. Each entry is judged separately, because the other one may belong to a newer
/// connection, or be deleted.
pub fn has_lingered(flow: &Flow, now: Duration) -> bool {
    flow.state == STATE_CLOSING
        && flow.own & FLOW_REPORTED != 0
        && now.saturating_sub(Duration::from_nanos(flow.ended_ns)) > LINGER
}

/// True if the decision about the connection needs the backend's entry, too.
pub fn needs_backend(client: &Flow, now: Duration, idle: Duration) -> bool {
    judge(client, None, now, idle) != FlowAction::Keep
}

/// Monotonic time at which a connection is to be ended if no further packet arrives, by the client's entry alone;
/// `None` if it has ended.
pub fn due(client: &Flow, idle: Duration) -> Option<Duration> {
    let (from, limit) = match client.state {
        STATE_DIALING => (client.started_ns, DIAL_LIMIT),
        STATE_CONFIRMING => (client.started_ns, CONFIRM_LIMIT),
        STATE_ESTABLISHED => (client.last_ns.max(client.started_ns), idle),
        _ => return None,
    };
    Some(Duration::from_nanos(from).saturating_add(limit))
}

/// True if an entry is so old that its other direction's entry must exist.
pub fn has_settled(flow: &Flow, now: Duration) -> bool {
    let last = flow.started_ns.max(flow.last_ns).max(flow.ended_ns);
    now.saturating_sub(Duration::from_nanos(last)) > ORPHAN_LIFE
}

/// The record of a connection's end, in the kernel's format, from its two entries.
pub fn end_of(key: &FlowKey, client: &Flow, backend: Option<&Flow>, now: Duration, reason: FlowEndReason) -> FlowEnd {
    let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    FlowEnd {
        client: *key,
        backend: client.rewrite.to,
        started_ns: client.started_ns,
        // Until the end, `ended_ns` is the time of a client's unanswered SYN.
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

/// True if an entry is of packets from the client.
pub fn is_client(flow: &Flow) -> bool {
    flow.side == SIDE_CLIENT
}

/// The name of a state's code.
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
