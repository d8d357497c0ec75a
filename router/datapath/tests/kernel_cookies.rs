//! SYN cookies of the XDP and TC programs, through `BPF_PROG_TEST_RUN`, with sockets of the kernel. Needs root.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test reports by panicking")]

#[allow(dead_code, reason = "other tests need the rest")]
mod packets;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::process::Command;

use aya::maps::{Array, HashMap, MapData, PerCpuArray};
use aya::programs::{TestRun, TestRunOptions, TestRunResult};
use router_common::gate::syn_cookie::WINDOW;
use router_common::maps::{
    Config, FlowKey, GATE_ANSWERS, GATE_ANSWERS_TAGGED, GATE_OBSERVE, GATE_SOCKETS_FOUND, GATE_SOCKETS_RECORDED,
    GATE_SOCKETS_SEEN, GatePolicy, GatePressure, GateSockets, HANDSHAKE_COMPLETE, Handshake, ListenerKey,
    ListenerOwner, PROTOCOL_TLS, names, pressure_id,
};
use router_common::packet::{ACK, SYN, segment};
use router_common::verdict::DialCounter;
use router_datapath::kernel::{BpfObject, KernelPrograms};
use router_sys::abi::Raw;
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use packets::{Client, assert_sums, fragments, own_network, with};

/// `XDP_DROP`, `XDP_PASS`, `XDP_TX` (linux/bpf.h); `TC_ACT_UNSPEC`, `TC_ACT_SHOT` (linux/pkt_cls.h).
const DROP: u32 = 1;
const PASS: u32 = 2;
const TX: u32 = 3;
const UP: u32 = u32::MAX;
const SHOT: u32 = 2;

/// Index of the loopback interface, on which test runs receive their packets.
const LOOPBACK: u32 = 1;
const PORT: u16 = 443;
const ROUTER: u32 = 3;
/// MTU of the loopback interface.
const MTU: u16 = 1500;

/// The programs, and listening sockets in a namespace of their own.
struct Rig {
    kernel: KernelPrograms,
    pressure: HashMap<MapData, u32, Raw<GatePressure>>,
    answers: HashMap<MapData, u32, u32>,
    sockets: Array<MapData, Raw<GateSockets>>,
    sockets_use: Array<MapData, u32>,
    handshakes: HashMap<MapData, Raw<FlowKey>, Raw<Handshake>>,
    counters: PerCpuArray<MapData, u64>,
    listening: Vec<TcpListener>,
}

impl Rig {
    fn new() -> Rig {
        own_network();
        let up = Command::new("ip").args(["link", "set", "lo", "up", "mtu", &MTU.to_string()]).status().unwrap();
        assert!(up.success());
        set_cookies(2);
        let mut kernel = KernelPrograms::load(BpfObject::Plain).expect("the kernel takes the programs (are you root?)");
        let mut config: Array<MapData, Raw<Config>> = Array::try_from(kernel.take(names::CONFIG).unwrap()).unwrap();
        config.set(0, Raw(Config { secret: [1, 2], dial: 1, ..Config::default() }), 0).unwrap();
        let mut listeners: HashMap<MapData, Raw<ListenerKey>, Raw<ListenerOwner>> =
            HashMap::try_from(kernel.take(names::LISTENERS).unwrap()).unwrap();
        for v6 in [false, true] {
            let address = client(v6, 1).flow().destination;
            let owner = ListenerOwner { router: ROUTER, protocol: PROTOCOL_TLS, is_limited: 0, max_segment: 0 };
            listeners.insert(Raw(ListenerKey { address, port: PORT, pad: 0 }), Raw(owner), 0).unwrap();
        }
        let mut rig = Rig {
            pressure: HashMap::try_from(kernel.take(names::GATE_PRESSURE).unwrap()).unwrap(),
            answers: HashMap::try_from(kernel.take(names::GATE_ANSWERS).unwrap()).unwrap(),
            sockets: Array::try_from(kernel.take(names::GATE_SOCKETS).unwrap()).unwrap(),
            sockets_use: Array::try_from(kernel.take(names::GATE_SOCKETS_USE).unwrap()).unwrap(),
            handshakes: HashMap::try_from(kernel.take(names::HANDSHAKES).unwrap()).unwrap(),
            counters: PerCpuArray::try_from(kernel.take(names::DIAL_STATS).unwrap()).unwrap(),
            kernel,
            listening: Vec::new(),
        };
        rig.listen();
        rig.above(1);
        rig.answers(GATE_ANSWERS);
        rig
    }

    fn listen(&mut self) {
        let addresses: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        self.listening = addresses.map(|address| TcpListener::bind((address, PORT)).unwrap()).into();
    }

    /// Sets the rate above which SYNs are answered.
    fn above(&mut self, above: u32) {
        let value = GatePressure { above, ..GatePressure::default() };
        self.pressure.insert(pressure_id(ROUTER, true), Raw(value), 0).unwrap();
        await_tick();
    }

    /// Sets on which SYNs of the loopback interface XDP answers; 0: on none.
    fn answers(&mut self, way: u32) {
        if way == 0 {
            self.answers.remove(&LOOPBACK).unwrap();
        } else {
            self.answers.insert(LOOPBACK, way, 0).unwrap();
        }
        await_tick();
    }

    /// Sets what is done with the sockets that there may be.
    fn uses(&mut self, what: u32) {
        self.sockets_use.set(0, what, 0).unwrap();
        await_tick();
    }

    /// How many places each entry of the sockets that there may be has.
    fn places(&self) -> [u32; 3] {
        [0, 1, 2].map(|entry| self.sockets.get(&entry, 0).unwrap().0.count())
    }

    fn count(&self, counter: DialCounter) -> u64 {
        self.counters.get(&(counter as u32), 0).unwrap().iter().sum()
    }

    /// What XDP does with a frame, and the frame after it.
    fn xdp(&mut self, frame: &[u8]) -> (u32, Vec<u8>) {
        run(self.kernel.gate().unwrap(), frame)
    }

    /// Likewise, TC.
    fn tc(&mut self, frame: &[u8]) -> (u32, Vec<u8>) {
        run(self.kernel.ingress().unwrap(), frame)
    }

    #[track_caller]
    fn passes(&mut self, frame: &[u8]) {
        let before = self.count(DialCounter::SynCookies);
        assert_eq!(self.xdp(frame), (PASS, frame.to_vec()), "{frame:02x?}");
        assert_eq!(self.count(DialCounter::SynCookies), before);
    }

    /// The cookie with which XDP answers a frame, after its answer was checked.
    #[track_caller]
    fn answer(&mut self, frame: &[u8], client: &Client) -> u32 {
        let before = self.count(DialCounter::SynCookies);
        let (action, answer) = self.xdp(frame);
        assert_eq!((action, self.count(DialCounter::SynCookies)), (TX, before + 1), "{frame:02x?}");
        let ethertype = |frame: &[u8]| {
            let tags = frame[12..].chunks(4).take_while(|tag| matches!(tag[..2], [0x81, 0] | [0x88, 0xa8])).count();
            14 + 4 * tags
        };
        let ip = ethertype(frame);
        assert_eq!(answer[..12], [&frame[6..12], &frame[..6]].concat());
        assert_eq!(answer[12..ip], frame[12..ip], "the tags stay");
        check_answer(&[&answer[..12], &answer[ip - 2..]].concat(), client)
    }
}

/// Checks an untagged SYN-ACK; returns its sequence number.
#[track_caller]
fn check_answer(answer: &[u8], client: &Client) -> u32 {
    let read = segment(&answer).unwrap();
    assert_eq!(read.flow, client.flow().reversed());
    assert_eq!((read.flags, read.ack, read.window), (SYN | ACK, client.isn() + 1, WINDOW));
    assert_eq!((read.payload_len, read.payload as usize), (0, answer.len()));
    let [high, low] = (MTU - if read.v6 { 60 } else { 40 }).to_be_bytes();
    assert_eq!(answer[answer.len() - 4..], [2, 4, high, low], "the only option");
    assert_sums(answer);
    read.seq
}

fn run(
    program: &impl for<'a> TestRun<Opts<'a> = TestRunOptions<'a>, Result = TestRunResult>,
    frame: &[u8],
) -> (u32, Vec<u8>) {
    let mut out = vec![0; frame.len() + 256];
    let options = TestRunOptions { data_in: Some(frame), data_out: Some(&mut out), ..TestRunOptions::new() };
    let result = program.test_run(options).unwrap();
    out.truncate(result.data_size_out as usize);
    (result.return_value, out)
}

/// Waits until the programs read the maps anew.
fn await_tick() {
    let now = || clock_gettime(ClockId::MonotonicCoarse);
    let begin = now();
    while now() == begin {
        std::hint::spin_loop();
    }
}

/// Binds the caller to a CPU, on which its test runs take place.
fn stay_on_one_cpu() {
    let mut cpus = CpuSet::new();
    cpus.set(0);
    sched_setaffinity(None, &cpus).unwrap();
}

fn set_cookies(how: u8) {
    fs::write("/proc/sys/net/ipv4/tcp_syncookies", how.to_string()).unwrap();
}

fn client(v6: bool, port: u16) -> Client {
    Client::from(if v6 { "2001:db8::7" } else { "192.0.2.7" }.parse().unwrap(), port, PORT)
}

fn tagged(frame: &[u8], tags: &[[u8; 2]]) -> Vec<u8> {
    let tags: Vec<u8> = tags.iter().flat_map(|tag| [tag[0], tag[1], 0, 5]).collect();
    [&frame[..12], &tags, &frame[12..]].concat()
}

const MSS_1400: [u8; 4] = [2, 4, 5, 0x78];
const ALL: [u8; 20] = [2, 4, 5, 0x78, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 14];
/// The size is the last option, and one of an unknown kind precedes it.
const LAST: [u8; 16] = [1, 3, 3, 7, 254, 4, 0xf9, 0x89, 4, 2, 1, 1, 2, 4, 5, 0x78];

fn ack(client: &Client, ack: u32) -> Vec<u8> {
    client.ack_with(ack, &[])
}

#[test]
fn a_syn_is_answered_with_a_cookie_that_the_stack_accepts() {
    let mut rig = Rig::new();
    for v6 in [false, true] {
        let sizes = if v6 { [1220, 1220] } else { [536, 1300] };
        let cases: [(&[u8], u16); 5] =
            [(&[], sizes[0]), (&MSS_1400, sizes[1]), (&ALL, sizes[1]), (&LAST, sizes[1]), (&[1; 4], sizes[0])];
        for (number, (options, size)) in cases.into_iter().enumerate() {
            for tags in [&[][..], &[[0x81, 0]], &[[0x88, 0xa8], [0x81, 0]]] {
                for payload in [&b""[..], b"GET / HTTP/1.1\r\n\r\n"] {
                    let port = 2000 + 10 * number as u16 + 2 * tags.len() as u16 + u16::from(payload.is_empty());
                    let client = client(v6, port).starting_at(0x1_0000 * u32::from(port));
                    let frame = client.syn_with(options, payload);
                    let cookie = rig.answer(&tagged(&frame, tags), &client);
                    // The stack's own check, by the TC program.
                    let confirmed = rig.count(DialCounter::CookiesConfirmed);
                    assert_eq!(rig.tc(&ack(&client, cookie.wrapping_add(1))).0, SHOT, "only the handshake's end");
                    assert_eq!(rig.count(DialCounter::CookiesConfirmed), confirmed + 1);
                    let Raw(handshake) = rig.handshakes.get(&Raw(client.flow()), 0).unwrap();
                    assert_eq!((handshake.client_isn, handshake.listener_isn), (client.isn(), cookie));
                    assert_eq!((handshake.options, handshake.state), (0, HANDSHAKE_COMPLETE));
                    assert_eq!(handshake.client_mss, size, "{options:?}");
                }
            }
        }
    }
}

/// Of a tick, the listener makes the first one.
#[test]
fn cookies_made_without_the_listener_are_its_own() {
    stay_on_one_cpu();
    let mut rig = Rig::new();
    for v6 in [false, true] {
        for options in [&[][..], &MSS_1400, &ALL, &LAST, &[2, 4, 0, 1], &[2, 4, 0xff, 0xff]] {
            let client = client(v6, 2000);
            let frame = client.syn_with(options, b"");
            let is_compared = (0..3).any(|_| {
                rig.uses(0);
                let before = rig.answer(&frame, &client);
                rig.uses(GATE_SOCKETS_SEEN[0]);
                let without = [(); 3].map(|()| rig.answer(&frame, &client));
                rig.uses(0);
                let after = rig.answer(&frame, &client);
                assert!(before != after || without == [before; 3], "{options:?}: {before:x} {without:x?}");
                before == after
            });
            assert!(is_compared, "cookies change once a minute");
        }
    }
}

/// A tick may end before the SYN is sent that is answered without the listener.
#[test]
fn a_closed_listener_makes_cookies_until_the_tick_ends() {
    stay_on_one_cpu();
    let mut rig = Rig::new();
    rig.uses(GATE_SOCKETS_SEEN[0]);
    for v6 in [false, true] {
        let mut client = client(v6, 2000);
        let syn = client.syn();
        let is_answered = (0..100).any(|_| {
            await_tick();
            assert_eq!(rig.xdp(&syn).0, TX);
            rig.listening.clear();
            let (action, _) = rig.xdp(&syn);
            await_tick();
            rig.passes(&syn);
            rig.listen();
            action == TX
        });
        assert!(is_answered);
    }
}

#[test]
fn odd_syns_are_answered_too() {
    let mut rig = Rig::new();
    for v6 in [false, true] {
        let mut client = client(v6, 2000);
        let syn = client.syn();
        let (next, between): (u8, &[u8]) = if v6 { (0, &[6, 0, 1, 4, 0, 0, 0, 0]) } else { (0, &[1, 1, 1, 0]) };
        rig.answer(&with(&syn, next, between), &client);
        let first = &fragments(&client.syn_with(&ALL, &[0; 64]), 7, 48)[0];
        rig.answer(first, &client);
        let padded = [syn, vec![0; 60]].concat();
        rig.answer(&padded, &client);
    }
}

#[test]
fn what_is_no_syn_of_a_flooded_listener_passes_unchanged() {
    let mut rig = Rig::new();
    for v6 in [false, true] {
        let mut client = client(v6, 2000);
        let syn = client.syn();
        rig.passes(&client.data(b"x"));
        rig.passes(&Client::from(if v6 { "2001:db8::7" } else { "192.0.2.7" }.parse().unwrap(), 2000, 444).syn());
        let mut group = syn.clone();
        group[0] |= 1;
        rig.passes(&group);
        rig.above(0);
        rig.passes(&syn);
        rig.above(1_000_000);
        rig.passes(&syn);
        rig.above(1);
        // The stack would not send a cookie itself: its queue is empty.
        set_cookies(1);
        rig.passes(&syn);
        set_cookies(0);
        rig.passes(&syn);
        set_cookies(2);
        rig.answers(GATE_ANSWERS_TAGGED);
        rig.passes(&syn);
        rig.answer(&tagged(&syn, &[[0x81, 0]]), &client);
        rig.answers(0);
        rig.passes(&syn);
        rig.answers(GATE_ANSWERS);
        rig.answer(&syn, &client);
    }
}

/// SYNs of one tick of the clock are counted at the next one.
#[test]
fn every_syn_of_a_flood_is_counted() {
    const SYNS: u64 = 300;
    stay_on_one_cpu();
    let mut rig = Rig::new();
    let seen = |rig: &Rig| {
        let Raw(pressure) = rig.pressure.get(&pressure_id(ROUTER, true), 0).unwrap();
        (pressure.early[0] >> 32, pressure.early[0] & u64::from(u32::MAX))
    };
    // One that begins and ends in one window is checked.
    let is_counted = (0..10).any(|_| {
        rig.above(1);
        rig.answer(&client(false, 1).syn(), &client(false, 1));
        let (window, first) = seen(&rig);
        assert_eq!(first, 1);
        for number in 1..SYNS {
            let mut client = client(number % 3 == 0, 2000 + u16::try_from(number).unwrap());
            assert_eq!(rig.xdp(&client.syn()).0, TX);
        }
        await_tick();
        for v6 in [false, true] {
            rig.answer(&client(v6, 2).syn(), &client(v6, 2));
        }
        let (now, counted) = seen(&rig);
        assert!(now != window || counted == SYNS + 2, "{counted}");
        now == window
    });
    assert!(is_counted, "a window is longer than these SYNs take");
}

/// `SLUICE_SYNS`: how many, each of another source.
#[test]
fn very_many_answers_leave_nothing_in_maps() {
    let count: u32 = std::env::var("SLUICE_SYNS").map_or(2000, |number| number.parse().unwrap());
    let mut rig = Rig::new();
    let mut times = Vec::new();
    for number in 0..count {
        let source = Ipv4Addr::from_bits(Ipv4Addr::new(198, 18, 0, 0).to_bits() | number & 0x1_ffff);
        let syn = Client::from(source.into(), 2000, PORT).syn();
        let mut out = vec![0; syn.len() + 256];
        let options = TestRunOptions { data_in: Some(&syn), data_out: Some(&mut out), ..TestRunOptions::new() };
        let result = rig.kernel.gate().unwrap().test_run(options).unwrap();
        assert_eq!(result.return_value, TX);
        times.push(result.duration);
    }
    assert_eq!(rig.count(DialCounter::SynCookies), u64::from(count));
    assert_eq!(rig.handshakes.keys().count(), 0);
    times.sort();
    println!("{count} SYNs answered; the program takes {:?}, the median", times[times.len() / 2]);
}

#[test]
fn a_policy_decides_before_a_flooded_listener_answers() {
    let mut rig = Rig::new();
    let mut policies: HashMap<MapData, Raw<ListenerKey>, Raw<GatePolicy>> =
        HashMap::try_from(rig.kernel.take(names::GATE_POLICIES).unwrap()).unwrap();
    // An empty allow-list.
    let policy = GatePolicy { id: 1, allow: 7, source_burst: 1, listener_burst: 1, ..GatePolicy::default() };
    for v6 in [false, true] {
        let mut client = client(v6, 2000);
        let key = Raw(ListenerKey { address: client.flow().destination, port: PORT, pad: 0 });
        rig.answer(&client.syn(), &client);
        policies.insert(key, Raw(policy), 0).unwrap();
        await_tick();
        for _ in 0..3 {
            assert_eq!(rig.xdp(&client.syn()).0, DROP);
        }
        policies.insert(key, Raw(GatePolicy { flags: GATE_OBSERVE, ..policy }), 0).unwrap();
        for _ in 0..3 {
            rig.answer(&client.syn(), &client);
        }
        policies.insert(key, Raw(policy), 0).unwrap();
        assert_eq!(rig.xdp(&client.syn()).0, DROP, "with a policy, it is read for each SYN");
        policies.remove(&key).unwrap();
        rig.answer(&client.syn(), &client);
    }
}

#[test]
fn a_syn_that_ends_anywhere_is_answered_or_passes_whole() {
    let mut rig = Rig::new();
    for v6 in [false, true] {
        let client = client(v6, 2000);
        let frame = client.syn_with(&ALL, b"");
        for frame in [frame.clone(), tagged(&frame, &[[0x81, 0]])] {
            for length in 14..frame.len() {
                rig.passes(&frame[..length]);
            }
            rig.answer(&frame, &client);
        }
    }
}

#[test]
fn only_acknowledgements_of_cookies_without_options_make_a_handshake() {
    let mut rig = Rig::new();
    for v6 in [false, true] {
        let mut client = client(v6, 2000);
        let syn = client.syn();
        let cookie = rig.answer(&syn, &client);
        for (frame, what) in [
            (ack(&client, cookie), "another number"),
            (ack(&client, cookie.wrapping_add(1000)), "another number"),
            (client.ack_with(cookie.wrapping_add(1), &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]), "timestamps"),
        ] {
            assert_eq!(rig.tc(&frame).0, UP, "{what}");
            assert!(rig.handshakes.get(&Raw(client.flow()), 0).is_err(), "{what}");
        }
        // Without the acknowledgement, by the first data.
        let data = client.data_acknowledging(cookie.wrapping_add(1), &[0x16, 3, 1]);
        assert_eq!(rig.tc(&data).0, UP);
        let Raw(handshake) = rig.handshakes.get(&Raw(client.flow()), 0).unwrap();
        assert_eq!(handshake.listener_isn, cookie);
    }
}

#[test]
fn answers_on_the_loopback_interface_are_left_to_the_stack() {
    let mut rig = Rig::new();
    for v6 in [false, true] {
        let client = client(v6, 2000);
        let syn = client.syn_with(&ALL, b"");
        assert_eq!(rig.tc(&syn), (UP, syn));
        assert!(rig.handshakes.get(&Raw(client.flow()), 0).is_ok());
    }
}

/// A SYN to a socket is the stack's. XDP looks for one only where there may be one.
#[test]
fn sockets_are_looked_for_where_the_agent_or_a_segment_has_one() {
    let [one, other] = GATE_SOCKETS_SEEN;
    for address in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
        let mut rig = Rig::new();
        let socket = TcpStream::connect((address, PORT)).unwrap();
        let mut client = Client::new(address, socket.local_addr().unwrap().port(), PORT);
        let syn = client.syn();
        rig.tc(&client.data(b"x"));
        assert_eq!(rig.places(), [0; 3], "nothing is recorded yet");
        for what in [0, GATE_SOCKETS_RECORDED] {
            rig.uses(what);
            rig.passes(&syn);
        }
        for entry in [one, other] {
            rig.uses(entry);
            rig.answer(&syn, &client);
        }
        let mut found = GateSockets::EMPTY;
        found.insert(&client.flow());
        rig.sockets.set(GATE_SOCKETS_FOUND, Raw(found), 0).unwrap();
        for entry in [one, other] {
            rig.uses(entry);
            rig.passes(&syn);
        }
        // A client that has its bit of one kind alone is in no set.
        let GateSockets { coarse, fine } = GateSockets::EMPTY;
        for lacking in [GateSockets { coarse, ..found }, GateSockets { fine, ..found }, GateSockets::EMPTY] {
            rig.sockets.set(GATE_SOCKETS_FOUND, Raw(lacking), 0).unwrap();
            for entry in [one, other] {
                rig.uses(entry);
                rig.answer(&syn, &client);
            }
        }
        rig.tc(&client.data(b"x"));
        rig.tc(&client.data(b"x"));
        assert_eq!(rig.places(), [0, 1, 1]);
        for entry in [one, other] {
            rig.uses(entry);
            rig.passes(&syn);
        }
    }
}
