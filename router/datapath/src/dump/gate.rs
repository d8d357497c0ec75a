//! Entries of the XDP gate's maps.

use aya::maps::{Array, Map, MapError};
use router_common::gate::connection::{FLOW, SOCKET};
use router_common::gate::pressure::is_on;
use router_common::gate::source_count::of_word;
use router_common::maps::{
    FlowKey, GATE_ANSWERS_TAGGED, GATE_NO_FRAGMENTS, GATE_NO_OPTIONS, GATE_OBSERVE, GATE_SOCKETS_FOUND,
    GATE_SOCKETS_RECORDED, GateConnection, GateDrop, GateForward, GatePolicy, GatePressure, GateSet, GateSockets,
    ListenerKey,
};
use router_sys::abi::Raw;
use serde_json::{Value, json};

use super::common::{flow, merge, reason};
use crate::address::{address, network};
use crate::clock;
use crate::net_keys::{self, Net, NetTrie};

/// A row of `gate_policies`. Intervals are in nanoseconds.
pub fn policy(key: &ListenerKey, value: &GatePolicy) -> Value {
    json!({"address": address(&key.address).to_string(), "port": key.port, "policy": value.id,
        "observe": value.flags & GATE_OBSERVE != 0, "dropFragments": value.flags & GATE_NO_FRAGMENTS != 0,
        "dropOptions": value.flags & GATE_NO_OPTIONS != 0, "deny": value.deny, "allow": value.allow,
        "sourceIntervalNs": u64::from(value.source_interval) << 8, "sourceBurst": value.source_burst,
        "sourceConnections": value.source_connections, "listenerIntervalNs": value.listener_interval >> 4, "listenerBurst": value.listener_burst,
        "sourceBits": format!("{},{}", value.v4_bits, value.v6_bits)})
}

/// The rows of `gate_nets`.
pub fn nets(map: Map) -> Result<Vec<Value>, MapError> {
    let row = |(list, address, bits): Net| json!({"list": list, "source": network(&address, bits)});
    net_keys::nets(&NetTrie::try_from(map)?).map(|net| net.map(row)).collect()
}

/// The words of `gate_sources` or `gate_syns` that are in use. They have hashes of addresses, not the addresses.
pub fn sets(map: Map) -> Result<Vec<Value>, MapError> {
    let map: Array<_, Raw<GateSet>> = Array::try_from(map)?;
    let mut rows = Vec::new();
    for set in 0..map.len() {
        let Raw(words) = map.get(&set, 0)?;
        let used = words.iter().enumerate().filter(|(_, word)| **word != 0);
        rows.extend(used.map(|(index, word)| json!({"set": set, "index": index, "word": format!("{word:016x}")})));
    }
    Ok(rows)
}

/// A row of `gate_conns`. `count` is the word of `gate_counts` that has its source.
pub fn connection(key: &FlowKey, value: &GateConnection) -> Value {
    merge(
        flow(key),
        json!({"policy": value.policy, "atNs": value.at_ns, "count": [value.count >> 3, value.count & 7],
            "socket": value.state & SOCKET != 0, "carried": value.state & FLOW != 0}),
    )
}

/// The words of `gate_counts` with connections, of sources' hashes.
pub fn counts(map: Map) -> Result<Vec<Value>, MapError> {
    let map: Array<_, Raw<GateSet>> = Array::try_from(map)?;
    let mut rows = Vec::new();
    for set in 0..map.len() {
        let Raw(words) = map.get(&set, 0)?;
        let used = words.iter().enumerate().filter(|(_, word)| of_word(**word) != 0);
        rows.extend(used.map(|(index, word)| json!({"set": set, "index": index, "connections": of_word(*word)})));
    }
    Ok(rows)
}

/// A row of `gate_rates`.
pub fn bucket(policy: u32, full: u64) -> Value {
    json!({"policy": policy, "fullNs": full >> 4, "isFull": full >> 4 <= clock::monotonic_ns()})
}

/// A row of `gate_pressure`.
pub fn pressure(listener: &u32, value: &GatePressure) -> Value {
    let now = clock::monotonic_ns();
    let is_on = [value.early, value.late].iter().any(|[_, until]| is_on(*until, now));
    json!({"listener": listener, "above": value.above, "isUnderPressure": is_on, "answeredNs": value.answered_ns})
}

/// A row of `gate_answers`.
pub fn answers(interface: u32, way: u32) -> Value {
    json!({"interface": interface, "onlyTagged": way == GATE_ANSWERS_TAGGED})
}

/// Rows of `gate_sockets`.
pub fn sockets(map: Map) -> Result<Vec<Value>, MapError> {
    let map: Array<_, Raw<GateSockets>> = Array::try_from(map)?;
    let row = |entry: u32| {
        let places = map.get(&entry, 0)?.0.count();
        Ok(
            json!({"entry": entry, "by": if entry == GATE_SOCKETS_FOUND { "agent" } else { "segments" }, "places": places}),
        )
    };
    (0..map.len()).map(row).collect()
}

/// The row of `gate_sockets_use`.
pub fn sockets_use(map: Map) -> Result<Vec<Value>, MapError> {
    let map: Array<_, u32> = Array::try_from(map)?;
    let used = map.get(&0, 0)?;
    let reads = (used != 0 && used != GATE_SOCKETS_RECORDED).then_some(used);
    Ok(vec![json!({"records": used != 0, "reads": reads})])
}

/// A row of `gate_forwards`.
pub fn forward(interface: &u32, value: &GateForward) -> Value {
    let stands = clock::monotonic_ns() < value.until_ns;
    json!({"interface": interface, "untilNs": value.until_ns, "stands": stands})
}

/// A row of `gate_drops`.
pub fn dropped(drop: &GateDrop) -> Value {
    merge(
        flow(&drop.flow),
        json!({"reason": reason(drop.reason), "observed": drop.is_observed != 0, "packets": drop.packets,
            "beginNs": drop.begin_ns, "head": head(drop)}),
    )
}

/// The first bytes of a rejected packet, as hexadecimal digits.
pub fn head(drop: &GateDrop) -> String {
    let bytes = drop.head.get(..usize::from(drop.length)).unwrap_or_default();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
