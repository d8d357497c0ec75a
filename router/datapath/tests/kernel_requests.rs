//! The kernel program tracks the requests of a connection exactly as `router_common::requests` does: random streams
//! through the real program by `BPF_PROG_TEST_RUN`, in sequence and out of it. Needs root.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test reports by panicking")]

#[allow(dead_code, reason = "each user takes a part")]
mod packets;
#[path = "../../../router-common/tests/common/streams.rs"]
#[allow(dead_code, reason = "each user takes a part")]
mod streams;

use std::cell::RefCell;
use std::net::IpAddr;

use aya::maps::HashMap;
use aya::programs::{TestRun, TestRunOptions};
use router_common::hostname::HostBuilder;
use router_common::http::{ContentTracker, HeadParser};
use router_common::maps::{
    FLOW_ASKED, FLOW_CLEARTEXT, FLOW_SWITCHED, Flow, FlowKey, FlowTranslation, PROTOCOL_HTTP, SIDE_BACKEND,
    SIDE_CLIENT, STATE_CLOSING, STATE_ESTABLISHED, names,
};
use router_common::requests;
use router_common::verdict::{FlowEndReason, Reason};
use router_datapath::address::sixteen;
use router_datapath::clock::clock;
use router_datapath::image::{HostEntry, MapImage, RouteMap};
use router_datapath::kernel::{BpfObject, KernelPrograms};
use router_datapath::maps::reconcile;
use router_sys::abi::Raw;
use rustix::time::ClockId;

use packets::{Client, own_network};
use streams::{Connection, OTHER, OWN, SegmentOutcome, Stream, in_any_order, in_order, tempting};

const ROUTER: u32 = 7;
const ROUTE: u32 = 8;
/// Most payload bytes of a test run.
const SEGMENT: usize = 1400;

/// The program in the kernel, and the connections that it carries.
struct Rig {
    kernel: KernelPrograms,
    flows: HashMap<aya::maps::MapData, Raw<FlowKey>, Raw<Flow>>,
    next: u16,
}

impl Rig {
    fn new() -> RefCell<Rig> {
        own_network();
        let mut kernel = KernelPrograms::load(BpfObject::Plain).expect("the kernel takes the program (are you root?)");
        let flows = HashMap::try_from(kernel.take(names::FLOWS).unwrap()).unwrap();
        let mut image = MapImage::default();
        for (host, route, reason) in [(OWN, ROUTE, Reason::Cleartext), (OTHER, 9, Reason::Cleartext)] {
            let entry = HostEntry { route, reason, allow_list: false, backend: format!("be_test:ns:r{route}") };
            image.hosts.insert((RouteMap::HttpBe, ROUTER, host.to_owned()), entry);
        }
        let undone = reconcile(&mut kernel.take_maps().unwrap(), &mut MapImage::default(), &image);
        assert!(undone.failed == 0, "{:?}", undone.first);
        RefCell::new(Rig { kernel, flows, next: 1024 })
    }
}

/// A connection that the program carries.
struct Carried<'r> {
    rig: &'r RefCell<Rig>,
    client: Client,
    /// Sequence number behind the first head.
    begin: u32,
    /// Keys of the client's and the endpoint's entry.
    keys: [FlowKey; 2],
}

impl<'r> Carried<'r> {
    /// A connection whose first head ends before `begin` and announces this content.
    fn new(rig: &'r RefCell<Rig>, address: &str, begin: u32, content: ContentTracker) -> Carried<'r> {
        let mut at = rig.borrow_mut();
        at.next = at.next.checked_add(1).unwrap_or(1024);
        let address: IpAddr = address.parse().unwrap();
        let client = Client::new(address, at.next, 8080).starting_at(begin.wrapping_sub(1));
        let flow = client.flow();
        let to = FlowKey {
            source: sixteen(address),
            destination: sixteen(address),
            source_port: flow.source_port,
            destination_port: 9000,
        };
        let now = clock(ClockId::Monotonic).as_nanos() as u64;
        let entry = |to, side, own| Flow {
            rewrite: FlowTranslation { to, ..Default::default() },
            interface: 1,
            route: ROUTE,
            last_ns: now,
            started_ns: now,
            next_seq: begin,
            acked: begin,
            judged: begin,
            endpoint: 5,
            router: ROUTER,
            state: STATE_ESTABLISHED,
            side,
            own,
            protocol: PROTOCOL_HTTP,
            content,
            ..Default::default()
        };
        let keys = [flow, to.reversed()];
        at.flows.insert(Raw(flow), Raw(entry(to, SIDE_CLIENT, FLOW_CLEARTEXT)), 0).unwrap();
        at.flows.insert(Raw(keys[1]), Raw(entry(flow.reversed(), SIDE_BACKEND, 0)), 0).unwrap();
        drop(at);
        Carried { rig, client, begin, keys }
    }

    fn after_first_head<'a>(rig: &'r RefCell<Rig>, address: &'a str) -> impl Fn(&Stream, u32) -> Carried<'r> + 'a
    where
        'r: 'a,
    {
        move |stream, begin| {
            let (mut parser, mut host) = (HeadParser::new(), HostBuilder::new());
            parser.feed(&mut host, &stream.bytes[..stream.first]);
            Carried::new(rig, address, begin, requests::content(&parser.head()))
        }
    }

    fn entry(&self, side: usize) -> Flow {
        self.rig.borrow().flows.get(&Raw(self.keys[side]), 0).unwrap().0
    }

    fn change(&self, side: usize, change: impl FnOnce(&mut Flow)) {
        let mut entry = self.entry(side);
        change(&mut entry);
        self.rig.borrow_mut().flows.insert(Raw(self.keys[side]), Raw(entry), 0).unwrap();
    }

    fn run(&self, packet: &[u8]) {
        let mut out = vec![0; packet.len() + 256];
        let options = TestRunOptions { data_in: Some(packet), data_out: Some(&mut out), ..TestRunOptions::new() };
        self.rig.borrow_mut().kernel.ingress().unwrap().test_run(options).unwrap();
    }

    /// Sends bytes of the client at an offset behind the first ones.
    fn sends(&self, offset: u32, bytes: &[u8]) -> SegmentOutcome {
        self.sends_packet(&self.client.data_at(offset, bytes))
    }

    fn sends_packet(&self, packet: &[u8]) -> SegmentOutcome {
        let before = self.entry(0).packets;
        self.run(packet);
        let after = self.entry(0);
        match (after.state == STATE_CLOSING, after.packets - before) {
            (true, 0) => SegmentOutcome::Reset,
            (false, 0) => SegmentOutcome::Early,
            (false, 1) => SegmentOutcome::Passes,
            other => panic!("{other:?}"),
        }
    }
}

impl Connection for Carried<'_> {
    fn segment(&mut self, seq: u32, bytes: &[u8], acked: u32) -> SegmentOutcome {
        self.change(1, |backend| backend.acked = acked);
        self.sends(seq.wrapping_sub(self.begin), bytes)
    }
}

#[test]
fn random_streams_end_exactly_where_they_must() {
    let rig = Rig::new();
    for address in ["127.0.0.1", "::1"] {
        for seed in 1..150 {
            in_order(seed, SEGMENT, Carried::after_first_head(&rig, address));
            in_any_order(seed, SEGMENT, Carried::after_first_head(&rig, address));
        }
    }
}

/// Each prefix of a stream in one segment, and the rest in another.
#[test]
fn a_request_for_another_host_is_detected_wherever_the_stream_is_split() {
    let rig = Rig::new();
    let own = "POST /own HTTP/1.1\r\nHost: own.test\r\nContent-Length: 39\r\n\r\nGET / HTTP/1.1\r\nHost: other.test\r\n\r\nabc\
               \r\nPOST / HTTP/1.1\r\nHost: own.test\r\nTransfer-Encoding: chunked\r\n\r\n2c;x=y\r\n\
               GET / HTTP/1.1\r\nHost: other.test\r\n\r\nabcdefgh\r\n0\r\nX: y\r\n\r\n";
    let other = "GET / HTTP/1.1\r\nHost: other.test\r\n\r\n";
    let whole = [own, other].concat();
    for cut in 1..whole.len() {
        let connection = Carried::new(&rig, "127.0.0.1", u32::MAX - 50, ContentTracker::default());
        let (first, second) = whole.as_bytes().split_at(cut);
        assert_eq!(connection.sends(0, first), SegmentOutcome::Passes, "{cut} bytes");
        assert_eq!(connection.sends(cut as u32, second), SegmentOutcome::Reset, "behind {cut} bytes");
        assert_eq!(connection.entry(0).end, FlowEndReason::OtherHost as u8);
    }
}

#[test]
fn damaged_segments_are_not_read() {
    let rig = Rig::new();
    let connection = Carried::new(&rig, "127.0.0.1", 1000, ContentTracker::default());
    let head = b"GET / HTTP/1.1\r\nHost: own.test\r\n\r\n";
    let mut damaged = connection.client.data_at(0, head);
    let last = damaged.len() - 10;
    damaged[last] ^= 1;
    assert_eq!(connection.sends_packet(&damaged), SegmentOutcome::Early);
    assert_eq!(connection.sends(0, b"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n"), SegmentOutcome::Reset);
}

/// Sends an endpoint's packet at an offset of its stream.
fn answers(connection: &Carried, offset: u32, bytes: &[u8]) {
    let endpoint = Client::new("127.0.0.1".parse().unwrap(), 9000, connection.keys[1].destination_port);
    let before = connection.entry(1);
    connection.run(&endpoint.starting_at(before.judged.wrapping_sub(1)).data_at(offset, bytes));
    assert_eq!(connection.entry(1).packets, before.packets + 1, "answers are sent on");
}

fn with_content(rig: &RefCell<Rig>, content: ContentTracker) -> Carried<'_> {
    let connection = Carried::new(rig, "127.0.0.1", 1000, content);
    connection.change(0, |client| client.peer |= FLOW_ASKED);
    connection.change(1, |backend| {
        backend.own |= FLOW_ASKED;
        backend.judged = 70_000;
    });
    connection
}

#[test]
fn behind_a_switch_of_protocols_nothing_is_looked_at() {
    let rig = Rig::new();
    let (own, other) =
        (&b"GET / HTTP/1.1\r\nHost: own.test\r\n\r\n"[..], b"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n");
    let connection = with_content(&rig, ContentTracker::sized(5));
    assert_eq!(connection.sends(0, b"hello"), SegmentOutcome::Passes, "content of the request");
    assert_eq!(connection.sends(5, own), SegmentOutcome::Early, "until the answer is there");
    // A later packet, out of order, decides nothing.
    answers(&connection, 100, b"HTTP/1.1 200 OK\r\n\r\n");
    assert_eq!(connection.sends(5, own), SegmentOutcome::Early);
    answers(&connection, 0, b"HTTP/1.1 101 Switching Protocols\r\n\r\n");
    assert_eq!((connection.entry(0).peer, connection.entry(1).own), (FLOW_SWITCHED, 0));
    for (offset, bytes) in [(5, &other[..]), (41, &b"\0\x01\x02"[..]), (44, &other[..])] {
        assert_eq!(connection.sends(offset, bytes), SegmentOutcome::Passes);
    }
    assert_eq!(connection.entry(0).own & FLOW_CLEARTEXT, 0);
}

#[test]
fn an_endpoint_that_does_not_switch_gets_requests_that_are_looked_at() {
    let other = b"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n";
    let rig = Rig::new();
    for answer in [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 426 Upgrade",
        "HTTP/1.0 101 Sw",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 10",
    ] {
        let connection = with_content(&rig, ContentTracker::default());
        answers(&connection, 0, answer.as_bytes());
        // As if a second first response arrived.
        answers(&connection, 0, b"HTTP/1.1 101 Switching Protocols\r\n\r\n");
        assert_eq!(connection.sends(0, other), SegmentOutcome::Reset, "{answer:?}");
    }
    // Content and further bytes in one segment cannot be held: the endpoint may wait for the content first.
    let connection = with_content(&rig, ContentTracker::sized(5));
    assert_eq!(connection.sends(0, b"helloGET / HTTP/1.1\r\n"), SegmentOutcome::Reset);
    assert_eq!(connection.entry(0).end, FlowEndReason::Unfollowed as u8);
}

#[test]
fn content_of_any_length_passes() {
    let rig = Rig::new();
    let mut connection = Carried::new(&rig, "127.0.0.1", 1000, ContentTracker::sized(10 << 32));
    let tempting = tempting(SEGMENT);
    let mut seq = 1000_u32;
    for _ in 0..40 {
        assert_eq!(connection.segment(seq, &tempting, seq.wrapping_sub(5)), SegmentOutcome::Passes, "at {seq}");
        // As if a window of other segments had passed.
        seq = seq.wrapping_add(1 << 29);
    }
    // Unacknowledged content may be as long as the largest range inspected at once.
    assert!(connection.entry(0).content.free() <= (10_u64 << 32) - (39 << 29) + (1 << 30));
}
