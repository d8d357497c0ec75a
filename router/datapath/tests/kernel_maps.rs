//! The configuration maps of a loaded program: written entries can be read back, and the next agent adopts them. Needs
//! root.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test reports by panicking")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use aya::maps::{HashMap, Map};
use router_common::hostname::HostBuilder;
use router_common::http::HeadParser;
use router_common::maps::{
    Config, FLOW_REPORTED, Flow, FlowKey, FlowTranslation, LaterHead, PROTOCOL_HTTP, PROTOCOL_TLS, SIDE_BACKEND,
    SIDE_CLIENT, STATE_CLOSING, STATE_ESTABLISHED, mapped, names,
};
use router_common::verdict::{FlowEndReason, Reason};
use router_datapath::address::sixteen;
use router_datapath::clock::clock;
use router_datapath::egress_routes::Path;
use router_datapath::flow_gc::Sweeper;
use router_datapath::image::{
    EndpointEntry, HostEntry, ListenerEntry, MapImage, PoolEntry, RouteLabel, RouteMap, SlotEntry,
};
#[cfg(feature = "kernel-log")]
use router_datapath::kernel::LogLevel;
use router_datapath::kernel::{BpfObject, KernelPrograms};
use router_datapath::maps::{KernelMaps, reconcile};
use router_model::kind::Kind;
use router_model::names::RouteId;
use router_sys::abi::Raw;
use router_sys::batch::MapWalk;
use rustix::time::ClockId;

fn kernel() -> KernelPrograms {
    KernelPrograms::load(BpfObject::Plain).expect("the kernel takes the program (are you root?)")
}

/// One entry of each kind, of both families.
fn image() -> MapImage {
    let mut image = MapImage::default();
    let v4: IpAddr = Ipv4Addr::new(192, 0, 2, 1).into();
    let v6: IpAddr = Ipv6Addr::LOCALHOST.into();
    for (ip, port, protocol) in [(v4, 80, PROTOCOL_HTTP), (v6, 443, PROTOCOL_TLS)] {
        image.listeners.insert((ip, port), ListenerEntry { router: 7, protocol, is_limited: true, max_segment: 1440 });
    }
    let entry = |route, reason, allow_list| HostEntry { route, reason, allow_list, backend: format!("be:ns:r{route}") };
    for map in [RouteMap::TcpBe, RouteMap::SniPassthrough] {
        image.hosts.insert((map, 7, "pay.test".to_owned()), entry(1, Reason::Passthrough, true));
        image.hosts.insert((map, 7, "*.wild.test".to_owned()), entry(2, Reason::Passthrough, false));
    }
    image.hosts.insert((RouteMap::EdgeReencrypt, 7, "edge.test".to_owned()), entry(3, Reason::TlsTerminate, false));
    image.hosts.insert((RouteMap::HttpBe, 7, "plain.test".to_owned()), entry(4, Reason::Cleartext, false));
    image.allow.extend([(1, sixteen(Ipv4Addr::new(10, 0, 0, 0).into()), 104), (1, sixteen(v6), 128)]);
    for route in 1..=4 {
        let id = RouteId::of_route("ns", format!("r{route}"));
        image.routes.insert(route, RouteLabel { router: 7, route: id });
    }
    // A host with rules, and a route that is a part of an object of another kind.
    let host_rules = HostEntry { backend: "HTTPRoute shop/store".to_owned(), ..entry(0, Reason::NeedsProxy, false) };
    image.hosts.insert((RouteMap::HttpBe, 7, "site.test".to_owned()), host_rules);
    let part = RouteId { kind: Kind::TlsRoute, part: 12, ..RouteId::of_route("ns", "tls") };
    image.routes.insert(5, RouteLabel { router: 7, route: part });
    for (id, ip) in [(5, v4), (6, v6)] {
        let path = Path { source: ip, interface: 3, max_segment: 1400 };
        image.endpoints.insert(id, EndpointEntry { address: SocketAddr::new(ip, 8443), path });
    }
    let slot = |endpoint, threshold, alias| SlotEntry { endpoint, threshold, alias };
    image.slots.insert(10, [slot(5, u32::MAX, 0), slot(6, 1 << 31, 0)].into());
    image.slots.insert(11, [slot(6, u32::MAX, 0)].into());
    image.slots.insert(12, [].into());
    image.pools.insert(1, PoolEntry { id: 10, slots: 2, flags: 1 });
    image.pools.insert(2, PoolEntry { id: 11, slots: 1, flags: 0 });
    image.pools.insert(4, PoolEntry { id: 12, slots: 0, flags: 0 });
    image
}

fn written(maps: &mut KernelMaps, now: &mut MapImage, wanted: &MapImage) {
    let undone = reconcile(maps, now, wanted);
    assert!(undone.failed == 0, "{:?}", undone.first);
    assert_eq!(&maps.read().unwrap(), wanted, "what is written is what is there");
}

#[test]
fn what_is_written_is_read_back_and_goes_again() {
    let mut maps = kernel().take_maps().unwrap();
    let mut now = maps.read().unwrap();
    assert_eq!(now, MapImage::default());
    let mut wanted = image();
    written(&mut maps, &mut now, &wanted);

    // Another set of slots for one route, a listener that announces another segment size, a changed path.
    wanted.slots.remove(&10);
    wanted.slots.insert(13, [SlotEntry { endpoint: 5, threshold: u32::MAX, alias: 0 }].into());
    wanted.pools.insert(1, PoolEntry { id: 13, slots: 1, flags: 0 });
    wanted.listeners.values_mut().for_each(|listener| listener.max_segment = 1300);
    wanted.endpoints.get_mut(&5).unwrap().path.interface = 9;
    written(&mut maps, &mut now, &wanted);

    // The next agent finds the maps in this state, and needs no other writes than these.
    let mut found = maps.read().unwrap();
    written(&mut maps, &mut found, &MapImage::default());
}

#[test]
fn settings_are_what_was_set() {
    let mut maps = kernel().take_maps().unwrap();
    assert_eq!((maps.config().unwrap(), maps.writer().unwrap()), (Config::default(), 0), "a new map is nobody's");
    let config = Config { secret: [1, 2], dial: 1, first_port: 10_240, ports: 64 };
    maps.set_config(config).unwrap();
    assert_eq!(maps.config().unwrap(), config);
}

fn key(client: u16) -> FlowKey {
    FlowKey {
        source: mapped([198, 51, 100, 1]),
        destination: mapped([192, 0, 2, 1]),
        source_port: client,
        destination_port: 443,
    }
}

/// Both entries of a connection, the client's first.
fn pair(client: u16, change: impl Fn(&mut Flow)) -> [(FlowKey, Flow); 2] {
    let to = FlowKey {
        source: mapped([10, 0, 0, 1]),
        destination: mapped([10, 0, 0, 2]),
        source_port: client,
        destination_port: 8443,
    };
    let now = clock(ClockId::Monotonic).as_nanos() as u64;
    let translation = FlowTranslation { to, ..Default::default() };
    let mut entry = Flow {
        rewrite: translation,
        interface: 1,
        route: 1,
        bytes: 10,
        packets: 1,
        last_ns: now,
        started_ns: now,
        endpoint: 5,
        router: 7,
        state: STATE_ESTABLISHED,
        side: SIDE_CLIENT,
        protocol: PROTOCOL_TLS,
        ..Default::default()
    };
    change(&mut entry);
    let rewrite = FlowTranslation { to: key(client).reversed(), ..translation };
    [(key(client), entry), (to.reversed(), Flow { rewrite, side: SIDE_BACKEND, bytes: 20, ..entry })]
}

#[test]
fn a_walk_sees_every_entry_of_a_large_map_once() {
    let map = kernel().take(names::FLOWS).unwrap();
    let mut walk = MapWalk::<FlowKey, Flow>::new(&map).unwrap();
    let mut flows: HashMap<_, Raw<FlowKey>, Raw<Flow>> = HashMap::try_from(map).unwrap();
    walk.all(|_, _| panic!("an empty map has no entry")).unwrap();
    for client in 0..20_000 {
        let [(key, flow), _] = pair(client, |_| ());
        flows.insert(Raw(key), Raw(flow), 0).unwrap();
    }
    for _ in 0..2 {
        let mut seen = vec![0; 20_000];
        walk.all(|key, flow| {
            assert_eq!(flow.rewrite.to.source_port, key.source_port, "a value stands by its key");
            seen[usize::from(key.source_port)] += 1;
        })
        .unwrap();
        assert!(seen.iter().all(|times| *times == 1));
    }
}

#[test]
fn a_walk_rejects_a_map_of_another_type() {
    let mut kernel = kernel();
    assert!(MapWalk::<FlowKey, Flow>::new(&kernel.take(names::HELLOS).unwrap()).is_err(), "other values");
    let map = kernel.take(names::EVENTS).unwrap();
    assert!(matches!(map, Map::RingBuf(_)) && MapWalk::<FlowKey, Flow>::new(&map).is_err());
}

#[test]
fn the_sweep_deletes_what_is_over_and_nothing_else() {
    let mut kernel = kernel();
    let [map, hellos, short_hellos, later_heads] =
        [names::FLOWS, names::HELLOS, names::SHORT_HELLOS, names::LATER_HEADS].map(|name| kernel.take(name).unwrap());
    let mut walk = MapWalk::<FlowKey, Flow>::new(&map).unwrap();
    let copy = |map: &Map| {
        let Map::HashMap(data) = map else { panic!("a hash map") };
        Map::HashMap(aya::maps::MapData::from_id(data.info().unwrap().id()).unwrap())
    };
    let mut flows: HashMap<_, Raw<FlowKey>, Raw<Flow>> = HashMap::try_from(copy(&map)).unwrap();
    let mut heads: HashMap<_, Raw<FlowKey>, Raw<LaterHead>> = HashMap::try_from(copy(&later_heads)).unwrap();
    let mut sweeper = Sweeper::new(map, hellos, short_hellos, later_heads).unwrap();
    let long_ago = (clock(ClockId::Monotonic) - Duration::from_secs(20)).as_nanos() as u64;
    let closing = |own: u8| {
        move |flow: &mut Flow| {
            (flow.state, flow.end, flow.own) = (STATE_CLOSING, FlowEndReason::BackendReset as u8, own);
            (flow.started_ns, flow.last_ns, flow.ended_ns) = (long_ago, long_ago, long_ago);
        }
    };
    let idle = |flow: &mut Flow| (flow.started_ns, flow.last_ns, flow.route) = (long_ago, long_ago, 2);
    let live = pair(1, |_| ());
    let (reported, unreported, silent) = (pair(2, closing(FLOW_REPORTED)), pair(3, closing(0)), pair(4, idle));
    // Another client's connection has taken over the port of an ended one: the backend's entry is of the other
    // connection.
    let mut taken_over = pair(5, closing(FLOW_REPORTED));
    taken_over[1].1 = Flow { started_ns: live[0].1.started_ns, ..live[1].1 };
    // An entry without its other direction.
    let mut lonely = pair(6, |flow| (flow.started_ns, flow.last_ns) = (long_ago, long_ago));
    lonely[0] = live[0];
    // The client has begun anew: the kernel deletes its entry alone.
    let mut begun_anew = pair(7, closing(FLOW_REPORTED));
    begun_anew[0] = live[0];
    for (key, flow) in [live, reported, unreported, silent, taken_over, lonely, begun_anew].into_iter().flatten() {
        flows.insert(Raw(key), Raw(flow), 0).unwrap();
    }
    assert_eq!(sweeper.highest_ids().unwrap(), (2, 5));
    // Partial heads of a live connection, of one that ends here, and of a deleted one; and one that has just begun.
    let boot = clock(ClockId::Boottime);
    for (client, age) in [(1, 20), (4, 20), (8, 20), (9, 0)] {
        let read_ns = (boot - Duration::from_secs(age)).as_nanos() as u64;
        let head = LaterHead { read_ns, head: HeadParser::new(), host: HostBuilder::new() };
        heads.insert(Raw(key(client)), Raw(head), 0).unwrap();
    }
    let mut ended = Vec::new();
    let timeout = |route| Duration::from_secs(if route == 2 { 10 } else { 3600 });
    sweeper
        .sweep(timeout, |end| ended.push((end.client.source_port, end.reason, end.bytes_in, end.bytes_out)))
        .unwrap();
    ended.sort_unstable();
    let (reset, idle) = (FlowEndReason::BackendReset as u8, FlowEndReason::Idle as u8);
    assert_eq!(ended, [(3, reset, 10, 20), (4, idle, 10, 20)], "reported ends are not reported again");
    let mut left = Vec::new();
    walk.all(|key, _| left.push((key.source_port, key.destination_port))).unwrap();
    left.sort_unstable();
    assert_eq!(left, [(1, 443), (8443, 1), (8443, 5)]);
    let mut kept: Vec<_> = heads.keys().map(|key| key.unwrap().0.source_port).collect();
    kept.sort_unstable();
    assert_eq!(kept, [1, 9]);
    // Connections that the first pass counted before it deleted them are not live in the second.
    sweeper.sweep(timeout, |end| panic!("reported twice: {end:?}")).unwrap();
    assert_eq!(sweeper.live(), Some(1));
}

#[test]
fn the_verifier_has_room_to_spare() {
    has_room_to_spare(BpfObject::Plain);
}

#[cfg(feature = "kernel-log")]
#[test]
fn the_verifier_has_room_to_spare_for_each_level_of_the_log() {
    [LogLevel::Off, LogLevel::Debug, LogLevel::Trace].map(BpfObject::Logging).into_iter().for_each(has_room_to_spare);
}

/// The programs use at most half of the million instructions that the verifier processes
/// (`BPF_COMPLEXITY_LIMIT_INSNS`), and leave an eighth of the stack.
fn has_room_to_spare(object: BpfObject) {
    let programs =
        KernelPrograms::load(object).expect("the kernel takes the program (are you root?)").programs().unwrap();
    assert_eq!(programs.len(), 5);
    for program in programs {
        let (name, verified, stack) = (&program.name, program.verified, program.stack);
        println!("margin: {name}, {object:?}: {verified} of 1000000 instructions, {stack} of 512 bytes of stack");
        assert!((1..=500_000).contains(&verified), "{verified} instructions of {name}");
        assert!((32..=448).contains(&stack), "{stack} bytes of stack of {name}");
    }
}
