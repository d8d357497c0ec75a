//! Counted connections of a source, packet by packet, through `BPF_PROG_TEST_RUN`. Needs root.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test reports by panicking")]

#[allow(dead_code, reason = "other tests need the rest")]
mod packets;

use std::net::Ipv4Addr;

use aya::maps::{Array, HashMap, MapData, PerCpuArray};
use aya::programs::{TestRun, TestRunOptions};
use router_common::gate::connection::FLOW;
use router_common::gate::source_count::of_word;
use router_common::maps::{
    Config, FLOW_COUNTED, Flow, FlowKey, FlowTranslation, GATE_OBSERVE, GateConnection, GatePolicy, GateRelease,
    GateSet, HANDSHAKE_COMPLETE, Handshake, ListenerKey, ListenerOwner, PROTOCOL_TLS, SIDE_BACKEND, SIDE_CLIENT,
    STATE_CLOSING, STATE_ESTABLISHED, names,
};
use router_common::packet::{ACK, FIN, RST, SYN};
use router_common::verdict::{FlowEndReason, Reason};
use router_datapath::kernel::{BpfObject, KernelPrograms};
use router_sys::abi::Raw;

use packets::{Client, own_network, with};

const PORT: u16 = 443;
/// `XDP_DROP`, `XDP_PASS` (linux/bpf.h).
const DROP: u32 = 1;
const PASS: u32 = 2;
/// `TC_ACT_SHOT` (linux/pkt_cls.h).
const SHOT: u32 = 2;
/// Sequence number of a client's first byte, and its acknowledgement of the SYN-ACK, as `packets` makes them.
const FIRST: u32 = 1001;
const ACKNOWLEDGED: u32 = 5000;

struct Rig {
    kernel: KernelPrograms,
    config: Array<MapData, Raw<Config>>,
    listeners: HashMap<MapData, Raw<ListenerKey>, Raw<ListenerOwner>>,
    policies: HashMap<MapData, Raw<ListenerKey>, Raw<GatePolicy>>,
    handshakes: HashMap<MapData, Raw<FlowKey>, Raw<Handshake>>,
    flows: HashMap<MapData, Raw<FlowKey>, Raw<Flow>>,
    connections: HashMap<MapData, Raw<FlowKey>, Raw<GateConnection>>,
    counts: Array<MapData, Raw<GateSet>>,
    reasons: PerCpuArray<MapData, u64>,
    v6: bool,
}

impl Rig {
    fn new(v6: bool, limit: u32, flags: u32) -> Rig {
        own_network();
        let mut kernel = KernelPrograms::load(BpfObject::Plain).expect("the kernel takes the programs (are you root?)");
        let mut config: Array<MapData, Raw<Config>> = Array::try_from(kernel.take(names::CONFIG).unwrap()).unwrap();
        config.set(0, Raw(Config { secret: [1, 2], ..Config::default() }), 0).unwrap();
        let mut rig = Rig {
            config,
            listeners: HashMap::try_from(kernel.take(names::LISTENERS).unwrap()).unwrap(),
            policies: HashMap::try_from(kernel.take(names::GATE_POLICIES).unwrap()).unwrap(),
            handshakes: HashMap::try_from(kernel.take(names::HANDSHAKES).unwrap()).unwrap(),
            flows: HashMap::try_from(kernel.take(names::FLOWS).unwrap()).unwrap(),
            connections: HashMap::try_from(kernel.take(names::GATE_CONNS).unwrap()).unwrap(),
            counts: Array::try_from(kernel.take(names::GATE_COUNTS).unwrap()).unwrap(),
            reasons: PerCpuArray::try_from(kernel.take(names::REASON_STATS).unwrap()).unwrap(),
            kernel,
            v6,
        };
        let address = rig.client(0).flow().destination;
        let key = Raw(ListenerKey { address, port: PORT, pad: 0 });
        let owner = ListenerOwner { router: 1, protocol: PROTOCOL_TLS, is_limited: 1, max_segment: 0 };
        rig.listeners.insert(key, Raw(owner), 0).unwrap();
        let policy =
            GatePolicy { id: 1, source_connections: limit, v4_bits: 32, v6_bits: 64, flags, ..GatePolicy::default() };
        rig.policies.insert(key, Raw(policy), 0).unwrap();
        rig
    }

    /// The kernel dials from here on.
    fn dials(&mut self) {
        self.config.set(0, Raw(Config { secret: [1, 2], dial: 1, ..Config::default() }), 0).unwrap();
    }

    fn client(&self, port: u16) -> Client {
        Client::from(if self.v6 { "2001:db8::7" } else { "192.0.2.7" }.parse().unwrap(), port, PORT)
    }

    /// A client whose SYN the listener has answered.
    fn answered(&mut self, port: u16) -> Client {
        let mut client = self.client(port);
        assert_ne!(self.tc(&client.syn()), SHOT);
        let handshake = Handshake {
            client_isn: FIRST - 1,
            listener_isn: ACKNOWLEDGED - 1,
            state: HANDSHAKE_COMPLETE,
            ..Handshake::default()
        };
        self.handshakes.insert(Raw(client.flow()), Raw(handshake), 0).unwrap();
        client
    }

    fn tc(&mut self, packet: &[u8]) -> u32 {
        let options = TestRunOptions { data_in: Some(packet), ..TestRunOptions::new() };
        self.kernel.ingress().unwrap().test_run(options).unwrap().return_value
    }

    fn xdp(&mut self, packet: &[u8]) -> u32 {
        let options = TestRunOptions { data_in: Some(packet), ..TestRunOptions::new() };
        self.kernel.gate().unwrap().test_run(options).unwrap().return_value
    }

    /// Connections that are counted: their entries, whose number is that of all sources.
    fn counted(&self) -> u32 {
        let sets = (0..self.counts.len()).map(|set| self.counts.get(&set, 0).unwrap().0);
        let sum: u32 = sets.map(|set| set.iter().map(|word| of_word(*word)).sum::<u32>()).sum();
        assert_eq!(self.connections.keys().count(), sum as usize);
        sum
    }

    fn rejected(&self) -> u64 {
        self.reasons.get(&(Reason::SourceConnections as u32), 0).unwrap().iter().sum()
    }

    /// Makes flow entries of a counted connection.
    fn carry(&mut self, client: &Client) {
        let key = client.flow();
        let to = FlowKey { source: key.destination, destination: [9; 16], source_port: 40_000, destination_port: 9000 };
        let flow = |to: FlowKey, side: u8, claims: u8, next_seq: u32| Flow {
            rewrite: FlowTranslation { to, ..Default::default() },
            interface: 1,
            route: 1,
            started_ns: 7,
            next_seq,
            acked: next_seq,
            endpoint: 1,
            router: 1,
            state: STATE_ESTABLISHED,
            side,
            protocol: PROTOCOL_TLS,
            claims,
            ..Default::default()
        };
        self.flows.insert(Raw(key), Raw(flow(to, SIDE_CLIENT, FLOW_COUNTED, FIRST)), 0).unwrap();
        self.flows.insert(Raw(to.reversed()), Raw(flow(key.reversed(), SIDE_BACKEND, 0, ACKNOWLEDGED)), 0).unwrap();
        let Raw(mut connection) = self.connections.get(&Raw(key), 0).unwrap();
        connection.state |= FLOW;
        self.connections.insert(Raw(key), Raw(connection), 0).unwrap();
    }

    fn state(&self, client: &Client) -> (u8, u8) {
        let Raw(flow) = self.flows.get(&Raw(client.flow()), 0).unwrap();
        (flow.state, flow.end)
    }
}

#[test]
fn a_source_has_as_many_connections_as_the_limit_whatever_is_repeated() {
    for v6 in [false, true] {
        let mut rig = Rig::new(v6, 3, 0);
        // Handshakes of all are under way before the first is counted.
        let mut clients: Vec<Client> = (1..=5).map(|port| rig.answered(port)).collect();
        assert_eq!(rig.counted(), 0, "a SYN takes no place");
        for (number, client) in clients.iter_mut().enumerate() {
            let (acknowledgement, is_in) = (client.data_at(0, b""), number < 3);
            for _ in 0..2 {
                assert_eq!(rig.tc(&acknowledgement) == SHOT, !is_in, "{number}");
                assert_eq!(rig.tc(&client.data_at(0, b"x")) == SHOT, !is_in, "{number}");
            }
        }
        assert_eq!((rig.counted(), rig.rejected()), (3, 2 * 2 * 2));
        // More SYNs do not get so far; one of a connection that is counted does.
        let syn = rig.client(6).syn();
        let tagged = [&syn[..12], &[0x81, 0, 0, 7], &syn[12..]].concat();
        assert_eq!((rig.xdp(&syn), rig.xdp(&tagged), rig.tc(&syn)), (DROP, DROP, SHOT));
        assert_eq!((rig.xdp(&clients[0].syn()), rig.xdp(&clients[4].data_at(0, b"x"))), (PASS, PASS));
        assert_eq!((rig.counted(), rig.rejected()), (3, 2 * 2 * 2 + 3));
        // Another source is not concerned.
        let other = if v6 { "2001:db8:1::7" } else { "192.0.2.8" };
        let mut other = Client::from(other.parse().unwrap(), 6, PORT);
        assert_eq!(rig.xdp(&other.syn()), PASS);
    }
}

#[test]
fn nobody_takes_a_place_without_the_answer_to_the_syn() {
    for v6 in [false, true] {
        let mut rig = Rig::new(v6, 1, 0);
        for port in 1..50 {
            let mut client = rig.client(port);
            rig.tc(&client.data_at(0, b"x"));
            rig.tc(&client.syn());
            rig.tc(&client.data_at(0, b"x"));
            let guessed = rig.answered(port + 1000);
            rig.tc(&guessed.segment(ACK, FIRST, ACKNOWLEDGED + 1, b"x"));
        }
        assert_eq!((rig.counted(), rig.rejected()), (0, 0));
        // What cannot be read may not complete a handshake unseen.
        let client = rig.answered(2000);
        let (next, between): (u8, &[u8]) = if v6 { (0, &[6, 0, 1, 4, 0, 0, 0, 0]) } else { (0, &[1, 1, 1, 0]) };
        assert_eq!(rig.tc(&with(&client.data_at(0, b"x"), next, between)), SHOT);
        assert_eq!(rig.counted(), 0);
        rig.tc(&client.data_at(0, b""));
        assert_ne!(rig.tc(&with(&client.data_at(0, b"x"), next, between)), SHOT);
        assert_eq!(rig.counted(), 1);
    }
}

#[test]
fn a_reset_of_a_handshake_frees_its_place_if_it_is_exact() {
    for v6 in [false, true] {
        let mut rig = Rig::new(v6, 1, 0);
        let client = rig.answered(1);
        rig.tc(&client.data_at(0, b""));
        for (seq, acknowledged) in [(FIRST + 1, ACKNOWLEDGED), (FIRST - 1, ACKNOWLEDGED), (FIRST, ACKNOWLEDGED + 1)] {
            rig.tc(&client.segment(RST | ACK, seq, acknowledged, b""));
            assert_eq!(rig.counted(), 1);
        }
        rig.tc(&client.segment(RST | ACK, FIRST, ACKNOWLEDGED, b""));
        assert_eq!(rig.counted(), 0);
        let next = rig.answered(2);
        assert_ne!(rig.tc(&next.data_at(0, b"")), SHOT);
        assert_eq!(rig.counted(), 1);
    }
}

#[test]
fn what_a_carried_connection_survives_frees_no_place() {
    for v6 in [false, true] {
        let mut rig = Rig::new(v6, 1, 0);
        let client = rig.answered(1);
        rig.tc(&client.data_at(0, b""));
        rig.carry(&client);
        for (flags, seq) in [(RST, FIRST + (1 << 20)), (RST, FIRST - 1), (FIN | ACK, FIRST), (SYN, 77)] {
            rig.tc(&client.segment(flags, seq, ACKNOWLEDGED, b""));
            assert_eq!((rig.counted(), rig.state(&client)), (1, (STATE_ESTABLISHED, 0)), "{flags:x} {seq}");
        }
        // One that its endpoint may reject: the next data shows that it did.
        let reset = client.segment(RST, FIRST + 100, ACKNOWLEDGED, b"");
        rig.tc(&reset);
        rig.tc(&reset);
        let ended = (STATE_CLOSING, FlowEndReason::ClientReset as u8);
        assert_eq!((rig.counted(), rig.state(&client)), (0, ended));
        rig.tc(&client.data_at(0, b"x"));
        assert_eq!((rig.counted(), rig.state(&client).0), (1, STATE_ESTABLISHED), "it has its place again");
        // Not if another connection has it.
        rig.tc(&reset);
        let other = rig.answered(2);
        assert_ne!(rig.tc(&other.data_at(0, b"")), SHOT);
        assert_eq!((rig.tc(&client.data_at(0, b"x")), rig.state(&client).0), (SHOT, STATE_CLOSING));
        assert_eq!((rig.counted(), rig.rejected()), (1, 0));
    }
}

#[test]
fn the_agent_releases_what_it_found_and_nothing_newer() {
    let mut rig = Rig::new(false, 1, 0);
    let client = rig.answered(1);
    rig.tc(&client.data_at(0, b""));
    let Raw(GateConnection { state, at_ns, .. }) = rig.connections.get(&Raw(client.flow()), 0).unwrap();
    let found = GateRelease { key: client.flow(), pad: 0, state, at_ns };
    for other in [
        GateRelease { state: state | FLOW, ..found },
        GateRelease { at_ns: at_ns + 1, ..found },
        GateRelease { key: rig.client(2).flow(), ..found },
    ] {
        assert!(!rig.kernel.release(&other).unwrap());
    }
    assert_eq!(rig.counted(), 1);
    assert!(rig.kernel.release(&found).unwrap() && !rig.kernel.release(&found).unwrap());
    assert_eq!(rig.counted(), 0);
}

#[test]
fn a_limit_on_trial_refuses_nobody() {
    let mut rig = Rig::new(true, 1, GATE_OBSERVE);
    for port in 1..=4 {
        let mut client = rig.answered(port);
        assert_eq!(rig.xdp(&client.syn()), PASS);
        assert_ne!(rig.tc(&client.data_at(0, b"")), SHOT);
    }
    assert_eq!((rig.counted(), rig.rejected()), (4, 3));
}

/// `SLUICE_SOURCES`: how many there are.
#[test]
fn very_many_sources_take_no_place_of_one_that_is_counted() {
    let sources: u32 = std::env::var("SLUICE_SOURCES").map_or(100_000, |number| number.parse().unwrap());
    let mut rig = Rig::new(false, 1, 0);
    let client = rig.answered(1);
    rig.tc(&client.data_at(0, b""));
    for source in 0..sources {
        let mut other = Client::from(Ipv4Addr::from_bits(0x0b00_0000 + source).into(), 2, PORT);
        assert_eq!(rig.xdp(&other.syn()), PASS);
        if source % 16 == 0 {
            rig.tc(&other.syn());
            rig.tc(&other.data_at(0, b"x"));
        }
    }
    let syn = rig.client(2).syn();
    assert_eq!((rig.counted(), rig.xdp(&syn)), (1, DROP));
}

#[test]
fn a_client_that_was_refused_waits_for_an_acknowledgement_once_it_is_let_in() {
    for v6 in [false, true] {
        let mut rig = Rig::new(v6, 1, 0);
        rig.dials();
        // The first 700 of 1,029 bytes of a hello: a client sends the rest at once, unless it has to send again.
        let mut part = vec![0; 700];
        part[..11].copy_from_slice(&[22, 3, 1, 4, 0, 1, 0, 3, 0xfc, 3, 3]);
        // Its cipher suites, after a random and no session.
        part[44..46].copy_from_slice(&800_u16.to_be_bytes());
        let [mut first, mut second] = [1, 2].map(|port| rig.answered(port));
        let [one, two] = [first.data(&part), second.data(&part)];
        assert_eq!((rig.tc(&one), rig.counted()), (SHOT, 1), "it is held until the rest comes");
        assert_eq!((rig.tc(&two), rig.rejected()), (SHOT, 1));
        assert_ne!(rig.tc(&first.segment(RST | ACK, FIRST, ACKNOWLEDGED, &[])), SHOT);
        assert_eq!(rig.counted(), 0);
        assert_ne!(rig.tc(&two), SHOT, "the stack acknowledges it");
        assert_eq!(rig.counted(), 1);
    }
}
