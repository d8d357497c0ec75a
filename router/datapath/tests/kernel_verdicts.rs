//! The kernel program decides exactly as user space does: every file of the corpora, whole and split at every byte,
//! through the real program by `BPF_PROG_TEST_RUN`. Needs root.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test reports by panicking")]

#[allow(dead_code, reason = "other tests need the rest")]
mod packets;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use aya::maps::{MapData, RingBuf};
use aya::programs::{TestRun, TestRunOptions};
use router_common::maps::{ConnVerdict, DecisionEvent, FlowKey, MAX_HELLOS, PROTOCOL_HTTP, PROTOCOL_TLS};
use router_common::verdict::{Reason, Verdict};
use router_datapath::address::sixteen_net;
use router_datapath::image::{HostEntry, ListenerEntry, MapImage, RouteLabel, RouteMap};
use router_datapath::kernel::{BpfObject, KernelPrograms};
use router_datapath::maps::write::Maps;
use router_datapath::maps::{KernelMaps, reconcile};
use router_model::names::RouteId;
use router_sys::abi;

use packets::{Client, own_network};

const ROUTER: u32 = 7;
const HTTP_PORT: u16 = 8080;
const TLS_PORT: u16 = 8443;

/// The program in the kernel, its maps filled from an image.
struct Rig {
    kernel: KernelPrograms,
    image: MapImage,
    maps: KernelMaps,
    events: RingBuf<MapData>,
    verdicts: HashMap<FlowKey, ConnVerdict>,
    next_port: u16,
}

impl Rig {
    fn new(image: MapImage) -> Rig {
        own_network();
        let mut kernel = KernelPrograms::load(BpfObject::Plain).expect("the kernel takes the program (are you root?)");
        let events = kernel.take_events().unwrap();
        let mut maps = kernel.take_maps().unwrap();
        let mut now = MapImage::default();
        let undone = reconcile(&mut maps, &mut now, &image);
        assert!(undone.failed == 0, "{:?}", undone.first);
        maps.set_revision(1).unwrap();
        Rig { kernel, image, maps, events, verdicts: HashMap::new(), next_port: 1024 }
    }

    /// Sends a handshake and these segments from a new client port; the verdict, if one was given.
    fn send(&mut self, protocol: u8, address: IpAddr, segments: &[&[u8]]) -> Option<Reason> {
        self.next_port = self.next_port.checked_add(1).unwrap_or(1024);
        let port = if protocol == PROTOCOL_TLS { TLS_PORT } else { HTTP_PORT };
        let mut client = Client::new(address, self.next_port, port);
        let packets: Vec<_> =
            std::iter::once(client.syn()).chain(segments.iter().map(|payload| client.data(payload))).collect();
        self.run(&packets);
        self.verdict(&client.flow())
    }

    /// Sends a handshake and these segments to the HTTP listener, from this port of IPv4 loopback.
    fn send_from(&mut self, port: u16, segments: &[&[u8]]) -> Option<Reason> {
        let mut client = Client::new("127.0.0.1".parse().unwrap(), port, HTTP_PORT);
        let syn = client.syn();
        let packets: Vec<_> = std::iter::once(syn).chain(segments.iter().map(|part| client.data(part))).collect();
        self.run(&packets);
        self.verdict(&client.flow())
    }

    fn run(&mut self, packets: &[Vec<u8>]) {
        let program = self.kernel.ingress().unwrap();
        for packet in packets {
            let mut out = vec![0; packet.len() + 256];
            let options = TestRunOptions { data_in: Some(packet), data_out: Some(&mut out), ..TestRunOptions::new() };
            program.test_run(options).unwrap();
        }
    }

    /// The verdict of a connection's newest event.
    fn verdict(&mut self, flow: &FlowKey) -> Option<Reason> {
        while let Some(item) = self.events.next() {
            let event: DecisionEvent = abi::read(&item).expect("a whole event");
            self.verdicts.insert(event.flow, event.verdict);
        }
        let verdict = self.verdicts.get(flow)?;
        let reason = Reason::from_code(verdict.reason).expect("a known reason");
        assert_eq!(verdict.verdict, reason.verdict() as u8);
        assert_eq!(verdict.router, ROUTER);
        Some(reason)
    }

    fn expected(&self, protocol: u8, address: IpAddr, bytes: &[u8]) -> Option<Reason> {
        self.image.decide(ROUTER, protocol, address, bytes).map(|decision| decision.reason)
    }
}

fn entry(route: u32, reason: Reason, allow_list: bool) -> HostEntry {
    HostEntry { route, reason, allow_list, backend: format!("be_test:ns:r{route}") }
}

fn listener(protocol: u8) -> ListenerEntry {
    ListenerEntry { router: ROUTER, protocol, is_limited: false, max_segment: 0 }
}

fn label(route: u32) -> RouteLabel {
    RouteLabel { router: ROUTER, route: RouteId::of_route("ns", format!("r{route}")) }
}

/// Names in the corpora, in entries of all kinds.
fn image() -> MapImage {
    let mut image = MapImage::default();
    for address in ["127.0.0.1", "::1"] {
        let address: IpAddr = address.parse().unwrap();
        image.listeners.insert((address, HTTP_PORT), listener(PROTOCOL_HTTP));
        image.listeners.insert((address, TLS_PORT), listener(PROTOCOL_TLS));
    }
    let mut passthrough = |host: &str, route, allow| {
        for map in [RouteMap::TcpBe, RouteMap::SniPassthrough] {
            image.hosts.insert((map, ROUTER, host.to_owned()), entry(route, Reason::Passthrough, allow));
        }
        image.routes.insert(route, label(route));
    };
    passthrough("a.test", 1, false);
    passthrough("*.w.test", 2, false);
    passthrough("private.test", 3, true);
    let (address, bits) = sixteen_net(&"127.0.0.0/8".parse().unwrap());
    image.allow.insert((3, address, bits));
    for (map, host, route, reason) in [
        (RouteMap::EdgeReencrypt, "b.test", 4, Reason::TlsTerminate),
        (RouteMap::EdgeReencrypt, "edge.w.test", 5, Reason::TlsTerminate),
        (RouteMap::EdgeReencrypt, "localhost", 6, Reason::TlsTerminate),
        (RouteMap::EdgeReencrypt, "*.example.com", 7, Reason::TlsTerminate),
        (RouteMap::HttpBe, "a.test", 8, Reason::Cleartext),
        (RouteMap::HttpBe, "b.test", 9, Reason::NeedsProxy),
        (RouteMap::HttpBe, "*.example.com", 10, Reason::Cleartext),
        // Sites: rules that the kernel does not know.
        (RouteMap::EdgeReencrypt, "site.w.test", 0, Reason::TlsTerminate),
        (RouteMap::HttpBe, "site.example.com", 0, Reason::NeedsProxy),
    ] {
        image.hosts.insert((map, ROUTER, host.to_owned()), entry(route, reason, false));
        if route != 0 {
            image.routes.insert(route, label(route));
        }
    }
    image
}

fn corpus(kind: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../router-common/corpus").join(kind);
    let files: BTreeMap<_, _> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().is_some_and(|name| name != "MANIFEST"))
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    assert!(files.len() >= 20, "{} has only {} files", folder.display(), files.len());
    files
}

/// Segments of at most 1,400 bytes, which fit in a test run and in an Ethernet frame.
fn segments(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.chunks(1400).collect()
}

fn agree_on(kind: &str, protocol: u8) {
    let mut rig = Rig::new(image());
    let mut runs = 0;
    let mut reasons = BTreeMap::<&str, usize>::new();
    for address in ["127.0.0.1", "::1"].map(|a| a.parse::<IpAddr>().unwrap()) {
        for (path, bytes) in corpus(kind) {
            let expected = rig.expected(protocol, address, &bytes);
            let got = rig.send(protocol, address, &segments(&bytes));
            assert_eq!(got, expected, "{} whole, from {address}", path.display());
            *reasons.entry(expected.map_or("incomplete", Reason::text)).or_default() += 1;
            // Files longer than the kernel gathers are cut within the part that it reads.
            for cut in 1..bytes.len().min(2800) {
                let (first, second) = bytes.split_at(cut);
                let parts: Vec<_> = segments(first).into_iter().chain(segments(second)).collect();
                let got = rig.send(protocol, address, &parts);
                // If the first part suffices for a decision, it decides.
                let expected = rig.expected(protocol, address, first).or(expected);
                assert_eq!(got, expected, "{} cut at {cut}, from {address}", path.display());
                runs += 1;
            }
        }
    }
    println!("{kind}: {runs} splits agree; {reasons:?}");
    assert!(reasons.len() >= 4, "the corpus exercises few reasons: {reasons:?}");
}

#[test]
fn every_hello_whole_and_split_at_every_byte() {
    agree_on("hello", PROTOCOL_TLS);
}

#[test]
fn every_request_whole_and_split_at_every_byte() {
    agree_on("head", PROTOCOL_HTTP);
}

#[test]
fn one_byte_segments_and_retransmissions_change_nothing() {
    let mut rig = Rig::new(image());
    let v4: IpAddr = "127.0.0.1".parse().unwrap();
    let request = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let bytes: Vec<&[u8]> = request.chunks(1).collect();
    assert_eq!(rig.send(PROTOCOL_HTTP, v4, &bytes), Some(Reason::Cleartext));

    // The first half again, an overlap, then the rest.
    let mut client = Client::new(v4, 60_000, HTTP_PORT);
    let packets = [
        client.syn(),
        client.data_at(0, &request[..10]),
        client.data_at(0, &request[..10]),
        client.data_at(5, &request[5..20]),
        client.data_at(20, &request[20..]),
    ];
    rig.run(&packets);
    assert_eq!(rig.verdict(&client.flow()), Some(Reason::Cleartext));
}

#[test]
fn what_the_kernel_is_not_sure_of_goes_up_with_a_reason() {
    let mut rig = Rig::new(image());
    let v4: IpAddr = "127.0.0.1".parse().unwrap();

    // A gap.
    let mut client = Client::new(v4, 61_000, HTTP_PORT);
    let packets = [client.syn(), client.data_at(7, b"GET / HTTP/1.1\r\n\r\n")];
    rig.run(&packets);
    assert_eq!(rig.verdict(&client.flow()), Some(Reason::OutOfOrder));

    // Without a recorded handshake.
    let mut client = Client::new(v4, 61_001, HTTP_PORT);
    let packets = [client.data(b"GET / HTTP/1.1\r\n\r\n")];
    rig.run(&packets);
    assert_eq!(rig.verdict(&client.flow()), Some(Reason::NoHandshake));

    // Headers before TCP in the handshake, and a first segment in fragments: the decision does not depend on what
    // follows.
    let request = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let mut client = Client::new(v4, 61_004, HTTP_PORT);
    let packets = [packets::with(&client.syn(), 0, &[1, 1, 1, 0]), client.data(request)];
    rig.run(&packets);
    assert_eq!(rig.verdict(&client.flow()), Some(Reason::Unreadable));
    let mut client = Client::new("::1".parse().unwrap(), 61_005, HTTP_PORT);
    let syn = client.syn();
    rig.run(&[&[syn][..], &packets::fragments(&client.data(request), 1, 24), &[client.data_at(0, request)]].concat());
    assert_eq!(rig.verdict(&client.flow()), Some(Reason::Unreadable));

    // A port without a listener.
    let mut client = Client::new(v4, 61_002, 9999);
    let packets = [client.syn(), client.data(b"GET / HTTP/1.1\r\n\r\n")];
    rig.run(&packets);
    assert_eq!(rig.verdict(&client.flow()), None);

    // A head longer than the kernel reads, and a host that needs the proxy.
    let long = format!("GET / HTTP/1.1\r\nHost: a.test\r\nX: {}\r\n\r\n", "x".repeat(5000));
    assert_eq!(rig.send_from(61_010, &segments(long.as_bytes())), Some(Reason::LargeHead));
    assert_eq!(rig.send_from(61_011, &[b"GET / HTTP/1.1\r\nHost: b.test\r\n\r\n"]), Some(Reason::NeedsProxy));

    // The sequence space wraps within the flight.
    let mut client = Client::new(v4, 61_003, HTTP_PORT).starting_at(u32::MAX - 9);
    let packets = [client.syn(), client.data(b"GET / HTTP/1.1\r\nHo"), client.data(b"st: a.test\r\n\r\n")];
    rig.run(&packets);
    assert_eq!(rig.verdict(&client.flow()), Some(Reason::Cleartext));
}

#[test]
fn host_rules_hide_the_wildcard_that_would_be_steered() {
    let mut rig = Rig::new(image());
    let v4: IpAddr = "127.0.0.1".parse().unwrap();
    let request = |host: &str| format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes();
    let cases = [
        (PROTOCOL_TLS, packets::client_hello("site.w.test"), Reason::TlsTerminate),
        (PROTOCOL_TLS, packets::client_hello("other.w.test"), Reason::Passthrough),
        (PROTOCOL_HTTP, request("site.example.com"), Reason::NeedsProxy),
        (PROTOCOL_HTTP, request("other.example.com"), Reason::Cleartext),
    ];
    for (protocol, bytes, reason) in cases {
        assert_eq!(rig.expected(protocol, v4, &bytes), Some(reason));
        assert_eq!(rig.send(protocol, v4, &segments(&bytes)), Some(reason));
    }
}

#[test]
fn a_source_that_is_not_listed_is_reset_on_both_sides() {
    let mut rig = Rig::new(image());
    let hello = packets::client_hello("private.test");
    let listed: IpAddr = "127.0.0.1".parse().unwrap();
    assert_eq!(rig.send(PROTOCOL_TLS, listed, &[&hello]), Some(Reason::Passthrough));

    for foreign in ["10.9.8.7", "2001:db8::7"].map(|a| a.parse::<IpAddr>().unwrap()) {
        let mut client = Client::from(foreign, 62_000, TLS_PORT);
        let (syn, data) = (client.syn(), client.data(&hello));
        rig.run(&[syn]);
        let mut up = vec![0; data.len() + 256];
        let options = TestRunOptions { data_in: Some(&data), data_out: Some(&mut up), ..TestRunOptions::new() };
        let result = rig.kernel.ingress().unwrap().test_run(options).unwrap();
        assert_eq!(rig.verdict(&client.flow()), Some(Reason::SourceNotAllowed));
        // The packet that goes up the stack is a bare reset with the sequence number that the stack expects.
        up.truncate(result.data_size_out as usize);
        packets::assert_reset(&up, &client);
    }
    let stats = rig.maps.route_stats(3).unwrap();
    assert_eq!((stats.steer, stats.pass, stats.drop), (1, 0, 2));
    assert_eq!(Reason::SourceNotAllowed.verdict(), Verdict::Drop);
}

#[test]
fn a_full_map_of_first_flights_passes_newcomers_up_and_keeps_the_others() {
    let mut rig = Rig::new(image());
    let v4: IpAddr = "127.0.0.1".parse().unwrap();
    let request = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let (first, rest) = request.split_at(10);
    let mut waiting: Vec<Client> = Vec::new();
    for port in 1024..1024 + MAX_HELLOS as u16 {
        let mut client = Client::new(v4, port, HTTP_PORT);
        rig.run(&[client.syn(), client.data(first)]);
        waiting.push(client);
    }
    assert_eq!(rig.send_from(60_000, &[first]), Some(Reason::MapFull));
    // A request in one segment needs no room in the map, and the waiting ones have kept theirs.
    assert_eq!(rig.send_from(60_001, &[request]), Some(Reason::Cleartext));
    for client in &mut waiting {
        rig.run(&[client.data(rest)]);
        assert_eq!(rig.verdict(&client.flow()), Some(Reason::Cleartext));
    }
    // All are done, so there is room again.
    assert_eq!(rig.send_from(60_002, &[first]), None);
}
