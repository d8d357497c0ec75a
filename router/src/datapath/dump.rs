//! The kernel's real map content, decoded. Works on the pins alone: no agent is needed.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use aya::maps::lpm_trie::LpmTrie;
use aya::maps::{Array, HashMap, Map, MapData, MapError, PerCpuArray, PerCpuHashMap};
use router_common::hostname::field_text;
use router_common::maps::{
    ALLOW_ROUTE_BITS, AllowNet, ConnVerdict, Event, FirstFlight, FlowKey, Handshake, HostKey, HostRoute, Listener,
    ListenerKey, Meta, PROTOCOL_TLS, ROUTE_ALLOW_LIST, RouteStats, names,
};
use router_common::verdict::{REASON_CODES, Reason, Verdict};
use serde_json::{Value, json};

use super::PinFolder;
use super::abi::{self, Plain, Raw};

/// All maps that can be dumped, with what they hold.
pub const MAPS: [(&str, &str); 12] = [
    (names::LISTENERS, "listening addresses and the routers they belong to"),
    (names::HTTP_BE, "hosts of clear-text requests"),
    (names::EDGE_REENCRYPT, "hosts whose TLS is terminated"),
    (names::TCP_BE, "backends of passthrough hosts"),
    (names::SNI_PASSTHROUGH, "hosts whose TLS is passed through"),
    (names::ALLOWLISTS, "sources that routes with an allow-list admit"),
    (names::HANDSHAKES, "connections whose first data is awaited"),
    (names::HELLOS, "first flights that are not complete"),
    (names::VERDICTS, "decisions about the newest connections"),
    (names::ROUTE_STATS, "connections by route and verdict"),
    (names::REASON_STATS, "connections by reason"),
    (names::META, "layout version, writer and table revision"),
];

/// Why a map cannot be dumped.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// No such map.
    #[error("no map is called `{0}`; `sluice bpf maps` lists them")]
    Unknown(String),
    /// It is not pinned, or may not be read.
    #[error("cannot open {pin}: {error} (is an agent with the kernel data path running, and are you root?)")]
    Open {
        /// The pin.
        pin: String,
        /// What failed.
        error: MapError,
    },
    /// Reading failed.
    #[error("cannot read the map")]
    Read(#[from] MapError),
}

/// Entries of a pinned map, sorted.
///
/// # Errors
/// See [`DumpError`].
pub fn dump(folder: &PinFolder, name: &str) -> Result<Vec<Value>, DumpError> {
    if !MAPS.iter().any(|(known, _)| *known == name) {
        return Err(DumpError::Unknown(name.to_owned()));
    }
    let pin = folder.map(name);
    let open = |error| DumpError::Open { pin: pin.display().to_string(), error };
    let map = MapData::from_pin(&pin).and_then(Map::from_map_data).map_err(open)?;
    let mut entries = match name {
        names::LISTENERS => hash(map, |k: &ListenerKey, v: &Listener| {
            json!({"address": address(&k.address).to_string(), "port": k.port, "router": v.router,
                "protocol": protocol(v.protocol)})
        })?,
        names::HTTP_BE | names::EDGE_REENCRYPT | names::TCP_BE => hash(map, |k: &HostKey, v: &HostRoute| {
            json!({"router": k.router, "host": field_text(&k.host), "route": v.route, "backend": field_text(&v.backend),
                "reason": reason(v.reason), "allowList": v.flags & ROUTE_ALLOW_LIST != 0})
        })?,
        names::SNI_PASSTHROUGH => {
            let map: HashMap<_, Raw<HostKey>, u32> = HashMap::try_from(map)?;
            map.keys()
                .map(|key| Ok(key?.0))
                .map(|key: Result<HostKey, MapError>| {
                    key.map(|key| json!({"router": key.router, "host": field_text(&key.host)}))
                })
                .collect::<Result<_, _>>()?
        }
        names::ALLOWLISTS => allow_lists(map)?,
        names::HANDSHAKES => hash(map, |k: &FlowKey, v: &Handshake| {
            merge(flow(k), json!({"clientIsn": v.client_isn, "decided": v.decided != 0}))
        })?,
        names::HELLOS => hash(map, |k: &FlowKey, v: &FirstFlight| {
            merge(flow(k), json!({"startedNs": v.started_ns, "received": v.received, "segments": v.segments}))
        })?,
        names::VERDICTS => hash(map, |k: &FlowKey, v: &ConnVerdict| {
            merge(
                flow(k),
                json!({"verdict": verdict(v.verdict), "reason": reason(v.reason), "router": v.router,
                "route": v.route, "bytes": v.bytes, "protocol": protocol(v.protocol), "atNs": v.at_ns}),
            )
        })?,
        names::ROUTE_STATS => route_stats(map)?,
        names::REASON_STATS => reason_stats(map)?,
        _ => {
            let map: Array<_, Raw<Meta>> = Array::try_from(map)?;
            let Raw(meta) = map.get(&0, 0)?;
            vec![json!({"abi": meta.abi, "pid": meta.pid, "revision": meta.revision})]
        }
    };
    entries.sort_by_cached_key(Value::to_string);
    Ok(entries)
}

/// Connections by reason, summed over CPUs. Reasons that never occurred are left out.
///
/// # Errors
/// See [`DumpError`].
pub fn stats(folder: &PinFolder) -> Result<Vec<Value>, DumpError> {
    dump(folder, names::REASON_STATS)
}

/// An event from the bytes of the ring.
pub fn ring_event(bytes: &[u8]) -> Option<Event> {
    abi::read(bytes)
}

/// An address from its 16-byte form.
pub fn address(bytes: &[u8; 16]) -> IpAddr {
    Ipv6Addr::from(*bytes).to_canonical()
}

fn hash<K: Plain, V: Plain>(map: Map, decode: impl Fn(&K, &V) -> Value) -> Result<Vec<Value>, MapError> {
    let map: HashMap<_, Raw<K>, Raw<V>> = HashMap::try_from(map)?;
    map.iter().map(|entry| entry.map(|(key, value)| decode(&key.0, &value.0))).collect()
}

fn allow_lists(map: Map) -> Result<Vec<Value>, MapError> {
    let map: LpmTrie<_, Raw<AllowNet>, u32> = LpmTrie::try_from(map)?;
    map.keys()
        .map(|key| {
            let key = key?;
            let Raw(net) = key.data();
            let bits = key.prefix_len().saturating_sub(ALLOW_ROUTE_BITS);
            let source = match address(&net.address) {
                IpAddr::V4(v4) => format!("{v4}/{}", bits.saturating_sub(96)),
                IpAddr::V6(v6) => format!("{v6}/{bits}"),
            };
            Ok(json!({"route": u32::from_be_bytes(net.route), "source": source}))
        })
        .collect()
}

fn route_stats(map: Map) -> Result<Vec<Value>, MapError> {
    let map: PerCpuHashMap<_, u32, Raw<RouteStats>> = PerCpuHashMap::try_from(map)?;
    map.iter()
        .map(|entry| {
            let (route, per_cpu) = entry?;
            let sum = |field: fn(&RouteStats) -> u64| per_cpu.iter().map(|Raw(stats)| field(stats)).sum::<u64>();
            Ok(json!({"route": route, "steer": sum(|s| s.steer), "pass": sum(|s| s.pass), "drop": sum(|s| s.drop)}))
        })
        .collect()
}

fn reason_stats(map: Map) -> Result<Vec<Value>, MapError> {
    let map: PerCpuArray<_, u64> = PerCpuArray::try_from(map)?;
    let mut sums = BTreeMap::new();
    for code in 0..REASON_CODES {
        let connections: u64 = map.get(&code, 0)?.iter().sum();
        if connections > 0 {
            sums.insert(code, connections);
        }
    }
    Ok(sums
        .into_iter()
        .map(|(code, connections)| {
            let reason = u16::try_from(code).ok().and_then(Reason::from_code);
            json!({"reason": reason.map_or("events-lost", Reason::text),
                "verdict": reason.map_or("-", |r| verdict(r.verdict() as u8)), "connections": connections})
        })
        .collect())
}

fn flow(key: &FlowKey) -> Value {
    json!({
        "client": std::net::SocketAddr::new(address(&key.client), key.client_port).to_string(),
        "listener": std::net::SocketAddr::new(address(&key.listener), key.listener_port).to_string(),
    })
}

fn merge(mut left: Value, right: Value) -> Value {
    if let (Value::Object(left), Value::Object(right)) = (&mut left, right) {
        left.extend(right);
    }
    left
}

fn protocol(code: u8) -> &'static str {
    if code == PROTOCOL_TLS { "tls" } else { "http" }
}

fn reason(code: u16) -> &'static str {
    Reason::from_code(code).map_or("unknown", Reason::text)
}

/// A verdict's code in words.
pub fn verdict(code: u8) -> &'static str {
    match code {
        c if c == Verdict::Steer as u8 => "steer",
        c if c == Verdict::Pass as u8 => "pass",
        c if c == Verdict::Drop as u8 => "drop",
        _ => "unknown",
    }
}
