//! Connections that the kernel carries.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use aya::maps::{HashMap, Map, MapError};
use router_common::hostname::field_text;
use router_common::maps::{Flow, FlowKey, RouteName, STATE_CLOSING, names};
use router_common::verdict::FlowEndReason;
use router_sys::abi::Raw;
use router_sys::batch::MapWalk;
use rustix::time::ClockId;
use serde_json::{Value, json};

use crate::clock::clock;
use crate::dump::common::{DumpError, protocol, socket};
use crate::flows::{is_client, other_direction, state};
use crate::pin_folder::PinFolder;

/// All connections, including ended ones whose entries remain, by client.
///
/// # Errors
/// See [`DumpError`].
pub fn connections(folder: &PinFolder) -> Result<Vec<Value>, DumpError> {
    let routes: HashMap<_, u32, Raw<RouteName>> = HashMap::try_from(folder.open(names::ROUTES)?)?;
    let map = folder.open(names::FLOWS)?;
    let mut clients = Vec::new();
    let mut backends = BTreeMap::new();
    walk(&map, |key, flow| {
        if is_client(flow) {
            clients.push((*key, *flow));
        } else {
            backends.insert(bytes_of(key), *flow);
        }
    })?;
    let now = clock(ClockId::Monotonic);
    let mut names = BTreeMap::new();
    let mut rows: Vec<_> = clients
        .iter()
        .map(|(key, client)| {
            let other = other_direction(client);
            let backend = backends.get(&bytes_of(&other)).filter(|flow| flow.started_ns == client.started_ns);
            let name = names.entry(client.route).or_insert_with(|| {
                routes.get(&client.route, 0).ok().map(|Raw(name)| field_text(&name.name).to_owned())
            });
            row(key, client, backend, name.as_deref(), now)
        })
        .collect();
    rows.sort_by_cached_key(|row| row["client"].to_string());
    Ok(rows)
}

/// One connection, from its two entries.
fn row(key: &FlowKey, client: &Flow, backend: Option<&Flow>, route: Option<&str>, now: Duration) -> Value {
    let to = &client.rewrite.to;
    let seconds = |ns: u64| now.saturating_sub(Duration::from_nanos(ns)).as_secs_f64();
    let tenths = |seconds: f64| (seconds * 10.0).round() / 10.0;
    let last = client.last_ns.max(backend.map_or(0, |flow| flow.last_ns)).max(client.started_ns);
    let end = FlowEndReason::from_code(client.end).filter(|_| client.state == STATE_CLOSING);
    json!({
        "client": socket(&key.source, key.source_port),
        "listener": socket(&key.destination, key.destination_port),
        "source": socket(&to.source, to.source_port),
        "endpoint": socket(&to.destination, to.destination_port),
        "state": state(client.state),
        "protocol": protocol(client.protocol),
        "router": client.router,
        "routeId": client.route,
        "route": route,
        "bytesIn": client.bytes,
        "bytesOut": backend.map_or(0, |flow| flow.bytes),
        "packetsIn": client.packets,
        "packetsOut": backend.map_or(0, |flow| flow.packets),
        "age": tenths(seconds(client.started_ns)),
        "idle": tenths(seconds(last)),
        "end": end.map(FlowEndReason::text),
    })
}

/// The entries of `flows`, one row each: two per connection.
pub fn entries(map: &Map) -> Result<Vec<Value>, DumpError> {
    let mut rows = Vec::new();
    walk(map, |key, flow| {
        let to = &flow.rewrite.to;
        rows.push(json!({
            "from": socket(&key.source, key.source_port),
            "to": socket(&key.destination, key.destination_port),
            "side": if is_client(flow) { "client" } else { "backend" },
            "newFrom": socket(&to.source, to.source_port),
            "newTo": socket(&to.destination, to.destination_port),
            "interface": flow.interface,
            "state": state(flow.state),
            "router": flow.router,
            "route": flow.route,
            "endpoint": flow.endpoint,
            "deltaSeq": flow.rewrite.delta_seq,
            "deltaAck": flow.rewrite.delta_ack,
            "deltaTsval": flow.rewrite.delta_tsval,
            "deltaTsecr": flow.rewrite.delta_tsecr,
            "shiftUp": flow.rewrite.shift_up,
            "shiftDown": flow.rewrite.shift_down,
            "bytes": flow.bytes,
            "packets": flow.packets,
            "startedNs": flow.started_ns,
            "lastNs": flow.last_ns,
            "endedNs": flow.ended_ns,
            "own": flow.own,
            "peer": flow.peer,
            "end": FlowEndReason::from_code(flow.end).map(FlowEndReason::text),
        }));
    })?;
    Ok(rows)
}

fn walk(map: &Map, take: impl FnMut(&FlowKey, &Flow)) -> Result<(), DumpError> {
    let failed = |error: io::Error| DumpError::Read(MapError::IoError(error));
    MapWalk::new(map)?.all(take).map_err(failed)
}

/// A sort key: flow keys are not ordered.
fn bytes_of(key: &FlowKey) -> ([u8; 16], [u8; 16], u16, u16) {
    (key.source, key.destination, key.source_port, key.destination_port)
}

#[cfg(test)]
mod tests {
    use router_common::maps::{STATE_ESTABLISHED, mapped};

    use super::*;
    use crate::flows::tests::flow;

    #[test]
    fn a_connection_is_shown_with_both_directions() {
        let key = |port, to, to_port| FlowKey {
            source: mapped([10, 0, 0, port as u8]),
            destination: mapped(to),
            source_port: port,
            destination_port: to_port,
        };
        let mut client = flow(STATE_ESTABLISHED);
        client.rewrite.to = key(20, [10, 0, 1, 1], 8443);
        (client.started_ns, client.last_ns) = (5_000_000_000, 7_000_000_000);
        let backend = Flow { bytes: 2000, packets: 20, last_ns: 9_400_000_000, ..client };
        let shown =
            row(&key(7, [192, 0, 2, 1], 443), &client, Some(&backend), Some("shop/pay"), Duration::from_secs(10));
        assert_eq!(
            shown,
            json!({"client": "10.0.0.7:7", "listener": "192.0.2.1:443", "source": "10.0.0.20:20",
                "endpoint": "10.0.1.1:8443", "state": "established", "protocol": "tls", "router": 7, "routeId": 5,
                "route": "shop/pay", "bytesIn": 100, "bytesOut": 2000, "packetsIn": 10, "packetsOut": 20,
                "age": 5.0, "idle": 0.6, "end": null})
        );
        let ended = Flow { state: STATE_CLOSING, end: FlowEndReason::BackendReset as u8, ..client };
        let shown = row(&key(7, [192, 0, 2, 1], 443), &ended, None, None, Duration::from_secs(10));
        assert_eq!(
            (&shown["state"], &shown["end"], &shown["bytesOut"]),
            (&json!("closing"), &json!("backend-reset"), &json!(0))
        );
    }
}
