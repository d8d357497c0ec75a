//! The actual content of the kernel's maps, decoded. Reads the pins only: no agent is needed.

mod common;
mod connections;
mod dials;
mod drops;
mod gate;

use std::collections::BTreeMap;

use aya::maps::{Array, HashMap, Map, MapError, PerCpuArray, PerCpuHashMap};
use router_common::hostname::field_text;
use router_common::maps::{
    AliasSlot, ConnVerdict, Decided, EndpointState, FirstFlight, FlowKey, FragmentKey, Fragmented, HANDSHAKE_COMPLETE,
    HANDSHAKE_DECIDED, Handshake, HostKey, HostRoute, KernelEndpoint, KernelPool, LaterHead, ListenerKey,
    ListenerOwner, MapsMeta, POOL_PROXY_V2, POOL_TOLD, ROUTE_ALLOW_LIST, Repeated, RouteName, RouteStats, ShortFlight,
    SlotKey, names,
};
use router_common::verdict::{REASON_CODES, Reason, Verdict};
use router_sys::abi::{Plain, Raw};
use serde_json::{Value, json};

use super::address::{address, network};
use super::clock;
use super::image::RouteMap;
use super::net_keys::{Net, NetTrie, nets};
use super::pin_folder::PinFolder;
use common::{flow, merge, protocol, reason, socket};

pub use common::DumpError;
pub use connections::connections;
pub use drops::DropRecord;
pub use gate::head;

/// All maps that can be dumped, with a description of their content.
pub const MAPS: [(&str, &str); 42] = [
    (names::LISTENERS, "listening addresses and the routers they belong to"),
    (names::HTTP_BE, "hosts of clear-text requests"),
    (names::EDGE_REENCRYPT, "hosts whose TLS is terminated"),
    (names::TCP_BE, "backends of passthrough hosts"),
    (names::SNI_PASSTHROUGH, "hosts whose TLS is passed through"),
    (names::ALLOWLISTS, "sources that routes with an allow-list admit"),
    (names::HANDSHAKES, "connections whose first data is awaited"),
    (names::HELLOS, "first flights that are not complete, or long and not acknowledged"),
    (names::SHORT_HELLOS, "first flights that are not acknowledged"),
    (names::LATER_HEADS, "later requests on clear text whose heads are not complete"),
    (names::VERDICTS, "decisions about the newest connections"),
    (names::ROUTE_STATS, "connections by route and verdict"),
    (names::REASON_STATS, "connections by reason"),
    (names::FLOWS, "connections that the kernel carries, by direction"),
    (names::FRAGMENTS, "packets in fragments of those connections"),
    (names::FRAGMENTS_AGAIN, "packets in fragments that were retransmitted"),
    (names::FRAGMENT_IDS, "number of packets in fragments so far"),
    (names::FRAGMENTING, "clients that are relayed because of fragments"),
    (names::ROUTES, "routes by id"),
    (names::POOLS, "endpoint pools by route"),
    (names::SLOTS, "endpoints of pools, with their shares"),
    (names::ENDPOINTS, "endpoints and the routes to them"),
    (names::ENDPOINT_STATE, "counters and port cursors of endpoints"),
    (names::PEERS, "interfaces to whose other ends packets are redirected"),
    (names::TAKEN, "addresses and ports of other connections, which dials avoid"),
    (names::CLASHES, "carried connections whose addresses and ports others requested"),
    (names::CONFIG, "settings of the programs"),
    (names::DIAL_STATS, "counters of dials and connections"),
    (names::GATE_POLICIES, "policies of the XDP gate by listening address"),
    (names::GATE_NETS, "networks of the gate's lists"),
    (names::GATE_SOURCES, "token buckets of sources that are limited"),
    (names::GATE_SYNS, "SYNs that the gate let pass"),
    (names::GATE_RATES, "token buckets of listeners"),
    (names::GATE_CONNS, "open connections of sources with a limit"),
    (names::GATE_COUNTS, "numbers of open connections of sources"),
    (names::GATE_PRESSURE, "SYNs at listeners, and cookies in answer to them"),
    (names::GATE_ANSWERS, "interfaces on which XDP answers SYNs"),
    (names::GATE_SOCKETS, "how many sockets there may be at flooded listeners"),
    (names::GATE_SOCKETS_USE, "whether XDP knows those, so that it does not look for others"),
    (names::GATE_FORWARDS, "interfaces between which XDP forwards established connections"),
    (names::GATE_DROPS, "a sample of the packets that the gate rejected lately"),
    (names::META, "layout version, writer and table revision"),
];

/// Entries of a pinned map, sorted.
///
/// # Errors
/// See [`DumpError`].
pub fn dump(folder: &PinFolder, name: &str) -> Result<Vec<Value>, DumpError> {
    if !MAPS.iter().any(|(known, _)| *known == name) {
        return Err(DumpError::Unknown(name.to_owned()));
    }
    let map = folder.open(name)?;
    let mut entries = match name {
        names::LISTENERS => hash(map, listener)?,
        names::HTTP_BE | names::EDGE_REENCRYPT | names::TCP_BE => hash(map, host_route)?,
        names::SNI_PASSTHROUGH => {
            let map: HashMap<_, Raw<HostKey>, u32> = HashMap::try_from(map)?;
            map.keys().map(|key| key.map(|Raw(key)| host_key(&key))).collect::<Result<_, _>>()?
        }
        names::ALLOWLISTS => allow_lists(map)?,
        names::HANDSHAKES => hash(map, |k: &FlowKey, v: &Handshake| {
            merge(
                flow(k),
                json!({"clientIsn": v.client_isn, "listenerIsn": v.listener_isn,
                "complete": v.state & HANDSHAKE_COMPLETE != 0, "decided": v.state & HANDSHAKE_DECIDED != 0}),
            )
        })?,
        names::HELLOS => hash(map, |k: &FlowKey, v: &FirstFlight| {
            merge(flow(k), json!({"startedNs": v.started_ns, "received": v.received, "segments": v.segments}))
        })?,
        names::SHORT_HELLOS => hash(map, |k: &FlowKey, v: &ShortFlight| {
            merge(flow(k), json!({"startedNs": v.started_ns, "received": v.received, "segments": v.segments}))
        })?,
        names::LATER_HEADS => hash(map, |k: &FlowKey, v: &LaterHead| merge(flow(k), json!({"readNs": v.read_ns})))?,
        names::VERDICTS => verdicts(map)?,
        names::ROUTE_STATS => route_stats(map)?,
        names::REASON_STATS => reason_stats(map)?,
        names::FLOWS => connections::entries(&map)?,
        names::FRAGMENTS => hash(map, fragmented)?,
        names::FRAGMENTS_AGAIN => {
            hash(map, |k: &FlowKey, v: &Repeated| merge(flow(k), json!({"seq": v.seq, "times": v.times})))?
        }
        names::FRAGMENT_IDS => {
            let map: Array<_, u32> = Array::try_from(map)?;
            vec![json!({"packets": map.get(&0, 0)?})]
        }
        names::FRAGMENTING => hash(
            map,
            |client: &[u8; 16], until: &u64| json!({"client": address(client).to_string(), "untilNs": until}),
        )?,
        names::ROUTES => hash(map, |id: &u32, v: &RouteName| route_name(*id, v))?,
        names::POOLS => hash(map, |route: &u32, v: &KernelPool| pool(*route, v))?,
        names::SLOTS => hash(map, slot)?,
        names::ENDPOINTS => hash(map, |id: &u32, v: &KernelEndpoint| endpoint(*id, v))?,
        names::ENDPOINT_STATE => hash(map, |id: &u32, v: &EndpointState| dials::state(*id, v))?,
        names::PEERS => {
            let now = clock::monotonic_ns();
            hash(
                map,
                |interface: &u32, until: &u64| json!({"interface": interface, "untilNs": until, "stands": now < *until}),
            )?
        }
        names::TAKEN | names::CLASHES => hash(map, |key: &FlowKey, _: &u32| flow(key))?,
        names::GATE_POLICIES => hash(map, gate::policy)?,
        names::GATE_NETS => gate::nets(map)?,
        names::GATE_SOURCES | names::GATE_SYNS => gate::sets(map)?,
        names::GATE_RATES => hash(map, |id: &u32, full: &u64| gate::bucket(*id, *full))?,
        names::GATE_CONNS => hash(map, gate::connection)?,
        names::GATE_COUNTS => gate::counts(map)?,
        names::GATE_PRESSURE => hash(map, gate::pressure)?,
        names::GATE_ANSWERS => hash(map, |interface: &u32, way: &u32| gate::answers(*interface, *way))?,
        names::GATE_SOCKETS => gate::sockets(map)?,
        names::GATE_SOCKETS_USE => gate::sockets_use(map)?,
        names::GATE_FORWARDS => hash(map, gate::forward)?,
        names::GATE_DROPS => DropRecord::of(map)?.read()?.iter().map(gate::dropped).collect(),
        names::CONFIG => dials::config(map)?,
        names::DIAL_STATS => dials::counters(map)?,
        _ => {
            let map: Array<_, Raw<MapsMeta>> = Array::try_from(map)?;
            let Raw(meta) = map.get(&0, 0)?;
            vec![json!({"abi": meta.abi, "pid": meta.pid, "revision": meta.revision})]
        }
    };
    entries.sort_by_cached_key(Value::to_string);
    Ok(entries)
}

/// The entry of one host in a pinned host map, as [`dump`] shows it.
///
/// # Errors
/// See [`DumpError`].
pub fn host_entry(folder: &PinFolder, map: RouteMap, router: u32, host: &str) -> Result<Option<Value>, DumpError> {
    let opened = folder.open(map.name())?;
    let key = HostKey::new(router, host);
    let found = if map == RouteMap::SniPassthrough {
        let map: HashMap<_, Raw<HostKey>, u32> = HashMap::try_from(opened)?;
        map.get(&Raw(key), 0).map(|_| host_key(&key))
    } else {
        let map: HashMap<_, Raw<HostKey>, Raw<HostRoute>> = HashMap::try_from(opened)?;
        map.get(&Raw(key), 0).map(|Raw(value)| host_route(&key, &value))
    };
    match found {
        Ok(entry) => Ok(Some(entry)),
        Err(MapError::KeyNotFound) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The programs' counters: connections by reason, dials by outcome, and connections by route.
///
/// # Errors
/// See [`DumpError`].
pub fn stats(folder: &PinFolder) -> Result<Value, DumpError> {
    let named: BTreeMap<_, _> =
        dump(folder, names::ROUTES)?.into_iter().map(|row| (row["route"].as_u64(), row)).collect();
    let mut routes = dump(folder, names::ROUTE_STATS)?;
    for row in &mut routes {
        let name = named.get(&row["route"].as_u64());
        row["name"] = name.map(|name| name["name"].clone()).unwrap_or_default();
        row["router"] = name.map(|name| name["router"].clone()).unwrap_or_default();
    }
    Ok(
        json!({"reasons": dump(folder, names::REASON_STATS)?, "dials": dump(folder, names::DIAL_STATS)?, "routes": routes}),
    )
}

/// A row of `listeners`.
pub fn listener(key: &ListenerKey, value: &ListenerOwner) -> Value {
    json!({"address": address(&key.address).to_string(), "port": key.port, "router": value.router,
        "protocol": protocol(value.protocol), "limited": value.is_limited != 0, "maxSegment": value.max_segment})
}

/// A row of `routes`.
pub fn route_name(id: u32, value: &RouteName) -> Value {
    json!({"route": id, "router": value.router, "name": field_text(&value.name)})
}

/// A row of `pools`.
pub fn pool(route: u32, value: &KernelPool) -> Value {
    json!({"route": route, "pool": value.id, "slots": value.slots, "proxyV2": value.flags & POOL_PROXY_V2 != 0,
        "told": value.flags & POOL_TOLD != 0})
}

/// A row of `slots`.
pub fn slot(key: &SlotKey, value: &AliasSlot) -> Value {
    json!({"pool": key.pool, "slot": key.index, "endpoint": value.endpoint, "threshold": value.threshold,
        "alias": value.alias})
}

/// A row of `endpoints`.
pub fn endpoint(id: u32, value: &KernelEndpoint) -> Value {
    json!({"endpoint": id, "address": socket(&value.address, value.port), "source": address(&value.source).to_string(),
        "interface": value.interface, "maxSegment": value.max_segment})
}

/// A row of `allowlists`.
pub fn allowed((route, address, bits): Net) -> Value {
    json!({"route": route, "source": network(&address, bits)})
}

fn fragmented(key: &FragmentKey, value: &Fragmented) -> Value {
    let (source, destination) = (address(&key.source), address(&key.destination));
    json!({"source": source.to_string(), "destination": destination.to_string(), "id": key.id, "sentAs": value.id,
        "sourcePort": value.flow.source_port, "destinationPort": value.flow.destination_port,
        "untilNs": value.until_ns})
}

fn host_key(key: &HostKey) -> Value {
    json!({"router": key.router, "host": field_text(&key.host)})
}

fn host_route(key: &HostKey, value: &HostRoute) -> Value {
    let entry = json!({"route": value.route, "backend": field_text(&value.backend), "reason": reason(value.reason),
        "allowList": value.flags & ROUTE_ALLOW_LIST != 0});
    merge(host_key(key), entry)
}

fn hash<K: Plain, V: Plain>(map: Map, decode: impl Fn(&K, &V) -> Value) -> Result<Vec<Value>, MapError> {
    let map: HashMap<_, Raw<K>, Raw<V>> = HashMap::try_from(map)?;
    map.iter().map(|entry| entry.map(|(key, value)| decode(&key.0, &value.0))).collect()
}

fn allow_lists(map: Map) -> Result<Vec<Value>, MapError> {
    nets(&NetTrie::try_from(map)?).map(|net| net.map(allowed)).collect()
}

/// The decisions of all CPUs, oldest first; of a connection that was decided again, the newest only.
fn verdicts(map: Map) -> Result<Vec<Value>, MapError> {
    let map: PerCpuArray<_, Raw<Decided>> = PerCpuArray::try_from(map)?;
    let mut newest: std::collections::HashMap<FlowKey, ConnVerdict> = std::collections::HashMap::new();
    for place in 0..map.len() {
        for Raw(decided) in map.get(&place, 0)?.iter().filter(|Raw(decided)| decided.verdict.at_ns != 0) {
            let of_flow = newest.entry(decided.flow).or_insert(decided.verdict);
            if of_flow.at_ns < decided.verdict.at_ns {
                *of_flow = decided.verdict;
            }
        }
    }
    let mut all: Vec<_> = newest.into_iter().collect();
    all.sort_by_key(|(_, verdict)| verdict.at_ns);
    let entry = |(k, v): &(FlowKey, ConnVerdict)| {
        merge(
            flow(k),
            json!({"verdict": verdict(v.verdict), "reason": reason(v.reason), "router": v.router,
            "route": v.route, "bytes": v.bytes, "protocol": protocol(v.protocol), "atNs": v.at_ns}),
        )
    };
    Ok(all.iter().map(entry).collect())
}

fn route_stats(map: Map) -> Result<Vec<Value>, MapError> {
    let map: PerCpuHashMap<_, u32, Raw<RouteStats>> = PerCpuHashMap::try_from(map)?;
    map.iter()
        .map(|entry| {
            let (route, per_cpu) = entry?;
            let sum = |field: fn(&RouteStats) -> u64| per_cpu.iter().map(|Raw(stats)| field(stats)).sum::<u64>();
            Ok(json!({"route": route, "steer": sum(|s| s.steer), "pass": sum(|s| s.pass), "drop": sum(|s| s.drop),
                "ended": sum(|s| s.ended), "bytesIn": sum(|s| s.bytes_in), "bytesOut": sum(|s| s.bytes_out)}))
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

/// The name of a verdict's code.
pub fn verdict(code: u8) -> &'static str {
    match code {
        c if c == Verdict::Steer as u8 => "steer",
        c if c == Verdict::Pass as u8 => "pass",
        c if c == Verdict::Drop as u8 => "drop",
        _ => "unknown",
    }
}
