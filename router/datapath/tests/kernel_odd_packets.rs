//! The program's handling of odd packets of carried connections: options, extension headers, fragments, through
//! `BPF_PROG_TEST_RUN`. Needs root.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test reports by panicking")]

#[allow(dead_code, reason = "other tests need the rest")]
mod packets;

use std::net::IpAddr;

use aya::maps::{HashMap, MapData, PerCpuArray};
use aya::programs::{TestRun, TestRunOptions};
use router_common::maps::{
    FLOW_ACROSS, FLOW_CLEARTEXT, FLOW_FIN, Flow, FlowKey, FlowTranslation, PROTOCOL_TLS, SIDE_BACKEND, SIDE_CLIENT,
    STATE_ESTABLISHED, names,
};
use router_common::packet::segment;
use router_common::verdict::{DialCounter, FlowEndReason};
use router_datapath::address::sixteen;
use router_datapath::kernel::{BpfObject, KernelPrograms};
use router_sys::abi::Raw;

use packets::{Client, fragments, own_network, with};

/// `TC_ACT_UNSPEC`, `TC_ACT_SHOT`, `TC_ACT_REDIRECT` (linux/pkt_cls.h).
const LEFT: u32 = u32::MAX;
const DROPPED: u32 = 2;
const SENT: u32 = 7;

struct Rig {
    kernel: KernelPrograms,
    flows: HashMap<MapData, Raw<FlowKey>, Raw<Flow>>,
    counters: PerCpuArray<MapData, u64>,
}

impl Rig {
    fn new() -> Rig {
        own_network();
        let mut kernel = KernelPrograms::load(BpfObject::Plain).expect("the kernel takes the program (are you root?)");
        let flows = HashMap::try_from(kernel.take(names::FLOWS).unwrap()).unwrap();
        let counters = PerCpuArray::try_from(kernel.take(names::DIAL_STATS).unwrap()).unwrap();
        Rig { kernel, flows, counters }
    }

    /// Adds the entries of a client's carried connection.
    fn carry(&mut self, client: &Client, v6: bool, own: u8) {
        let address = |last: u8| -> IpAddr {
            if v6 { [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last].into() } else { [10, 0, 0, last].into() }
        };
        let to = FlowKey {
            source: sixteen(address(1)),
            destination: sixteen(address(2)),
            source_port: 9999,
            destination_port: 8443,
        };
        let rewrite = FlowTranslation { to, delta_seq: 0x0102_0304, delta_ack: 0xfffe_fdfc, ..Default::default() };
        let entry = Flow {
            rewrite,
            interface: 1,
            route: 1,
            started_ns: 1,
            endpoint: 1,
            router: 7,
            state: STATE_ESTABLISHED,
            side: SIDE_CLIENT,
            own,
            protocol: PROTOCOL_TLS,
            ..Default::default()
        };
        self.flows.insert(Raw(client.flow()), Raw(entry), 0).unwrap();
        let back = FlowTranslation { to: client.flow().reversed(), ..rewrite };
        let backend = Flow { rewrite: back, side: SIDE_BACKEND, ..entry };
        self.flows.insert(Raw(to.reversed()), Raw(backend), 0).unwrap();
    }

    fn flow(&self, client: &Client) -> Flow {
        self.flows.get(&Raw(client.flow()), 0).unwrap().0
    }

    /// The action on a packet, and the resulting packet.
    fn run(&mut self, packet: &[u8]) -> (u32, Vec<u8>) {
        let mut out = vec![0; packet.len() + 256];
        let options = TestRunOptions { data_in: Some(packet), data_out: Some(&mut out), ..TestRunOptions::new() };
        let result = self.kernel.ingress().unwrap().test_run(options).unwrap();
        out.truncate(result.data_size_out as usize);
        (result.return_value, out)
    }

    fn count(&self, counter: DialCounter) -> u64 {
        self.counters.get(&(counter as u32), 0).unwrap().iter().sum()
    }
}

fn client(v6: bool, port: u16) -> Client {
    Client::new(if v6 { "2001:db8::7" } else { "192.0.2.7" }.parse().unwrap(), port, 443)
}

/// A packet's bytes without the Ethernet addresses.
fn ip(frame: &[u8]) -> &[u8] {
    &frame[12..]
}

#[test]
fn what_a_host_goes_past_is_taken_out() {
    let mut rig = Rig::new();
    let padding = |next: u8| vec![next, 0, 1, 4, 0, 0, 0, 0];
    let cases: [(bool, u8, Vec<u8>); 7] = [
        (false, 0, vec![1, 1, 1, 0]),
        (false, 0, [vec![7, 39, 4], vec![0; 37]].concat()),
        (true, 0, padding(6)),
        (true, 60, [padding(60), padding(6)].concat()),
        (true, 0, [padding(43), vec![44, 0, 0, 0, 0, 0, 0, 0], vec![60, 0, 0, 0, 1, 2, 3, 4], padding(6)].concat()),
        (true, 44, vec![6, 0, 0, 0, 1, 2, 3, 4]),
        (true, 60, [vec![6, 31, 0x1e, 252], vec![7; 252]].concat()),
    ];
    for (port, (v6, next, between)) in (2000..).zip(cases) {
        let mut client = client(v6, port);
        let packet = client.data(b"0123456789");
        let odd = with(&packet, next, &between);
        assert_eq!(rig.run(&odd), (LEFT, odd.clone()), "of no connection: {odd:?}");
        rig.carry(&client, v6, 0);
        let (action, plain) = rig.run(&packet);
        assert_eq!(action, SENT);
        let (action, out) = rig.run(&odd);
        assert_eq!(action, SENT, "{between:?}");
        assert_eq!(ip(&out), ip(&plain), "{between:?}");
    }
    assert_eq!(rig.count(DialCounter::RefusedHeaders), 0);
}

#[test]
fn what_a_host_refuses_is_dropped_and_counted() {
    let mut rig = Rig::new();
    let cases: [(bool, u8, Vec<u8>); 6] = [
        (false, 0, vec![131, 7, 4, 10, 0, 0, 9, 0]),
        (false, 0, vec![1, 7, 9, 1]),
        (true, 43, vec![6, 0, 0, 1, 0, 0, 0, 0]),
        (true, 43, vec![6, 0, 4, 0, 0, 0, 0, 0]),
        (true, 0, vec![6, 0, 0x9e, 4, 0, 0, 0, 0]),
        (true, 60, vec![6, 0, 0x1e, 5, 0, 0, 0, 0]),
    ];
    for (port, (v6, next, between)) in (2000_u16..).zip(cases) {
        let mut client = client(v6, port);
        rig.carry(&client, v6, 0);
        let odd = with(&client.data(b"0123456789"), next, &between);
        assert_eq!(rig.run(&odd).0, DROPPED, "{between:?}");
        assert_eq!(rig.count(DialCounter::RefusedHeaders), u64::from(port - 1999));
    }
    // An authentication header is left to the stack.
    let mut client = client(true, 3000);
    rig.carry(&client, true, 0);
    let odd = with(&client.data(b"0123456789"), 51, &[6, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(rig.run(&odd), (LEFT, odd.clone()));
}

#[test]
fn fragments_are_parts_of_what_the_whole_would_be() {
    let mut rig = Rig::new();
    for (v6, id) in [(false, 0x1234), (true, 0x1234_5678)] {
        let mut client = client(v6, 2000);
        let payload: Vec<u8> = (0..=255).cycle().take(1000).collect();
        let packet = client.data(&payload);
        let parts = fragments(&packet, id, 400);
        assert_eq!(parts.len(), 3);
        for part in &parts {
            assert_eq!(rig.run(part), (LEFT, part.clone()), "of no connection");
        }
        rig.carry(&client, v6, 0);
        let whole = rig.run(&packet).1;
        let before = rig.flow(&client);
        // Fragments before the first one are unknown.
        assert_eq!(rig.run(&parts[2]), (LEFT, parts[2].clone()));
        // With options, or an extension header, too: they are removed from each fragment.
        let between: &[u8] = if v6 { &[44, 0, 1, 4, 0, 0, 0, 0] } else { &[1, 1, 1, 0] };
        let mut sent = Vec::new();
        for (i, part) in parts.iter().enumerate() {
            let part = if i == 1 { with(part, 0, between) } else { part.clone() };
            let (action, out) = rig.run(&part);
            assert_eq!(action, SENT, "part {i}");
            sent.push(out);
        }
        let sent_as = if v6 { u32::from_be_bytes(sent[0][58..62].try_into().unwrap()) } else { u32::from(sent[0][19]) };
        for (i, (out, expected)) in sent.iter().zip(fragments(&whole, sent_as, 400)).enumerate() {
            assert_eq!(ip(out), ip(&expected), "part {i}");
        }
        let after = rig.flow(&client);
        assert_eq!((after.bytes - before.bytes, after.packets - before.packets), (1000, 1), "noted once, whole");
        assert_eq!(after.next_seq, segment(&&packet[..]).unwrap().seq + 1000);
    }
    assert_eq!(rig.count(DialCounter::LostFragments), 0);
}

#[test]
fn a_fin_in_fragments_is_seen() {
    let mut rig = Rig::new();
    let mut client = client(false, 2000);
    rig.carry(&client, false, 0);
    let mut packet = client.data(&[7; 800]);
    packet[47] |= 1;
    for part in fragments(&packet, 1, 400) {
        assert_eq!(rig.run(&part).0, SENT);
    }
    let flow = rig.flow(&client);
    assert_eq!(flow.own & FLOW_FIN, FLOW_FIN);
    assert_eq!(flow.fin_end, segment(&&packet[..]).unwrap().seq + 801);
}

#[test]
fn what_cannot_be_carried_in_fragments_ends_the_connection() {
    let mut rig = Rig::new();
    // The same segment repeatedly: it does not arrive.
    let mut again = client(false, 2000);
    rig.carry(&again, false, 0);
    let packet = again.data(&[7; 800]);
    for id in 1..=6 {
        assert_eq!(rig.run(&fragments(&packet, id, 400)[0]).0, SENT);
    }
    assert_eq!(rig.flow(&again).end, 0);
    assert_eq!(rig.run(&fragments(&packet, 7, 400)[0]).0, DROPPED);
    assert_eq!(rig.flow(&again).end, FlowEndReason::Fragmented as u8, "for the agent to see");
    // A clear-text request; and a first fragment without the TCP header.
    let mut request = client(true, 2001);
    rig.carry(&request, true, FLOW_CLEARTEXT);
    assert_eq!(rig.run(&fragments(&request.data(&[7; 800]), 1, 400)[0]).0, DROPPED);
    assert_eq!(rig.flow(&request).end, FlowEndReason::Fragmented as u8);
    let mut tiny = client(false, 2002);
    rig.carry(&tiny, false, 0);
    assert_eq!(rig.run(&fragments(&tiny.data(&[7; 800]), 1, 16)[0]).0, DROPPED);
    assert_eq!(rig.flow(&tiny).end, FlowEndReason::Fragmented as u8);
    // A connection between the two versions of IP.
    let mut across = client(false, 2003);
    rig.carry(&across, true, FLOW_ACROSS);
    assert_eq!(rig.run(&fragments(&across.data(&[7; 800]), 1, 400)[0]).0, DROPPED);
    assert_eq!(rig.flow(&across).end, FlowEndReason::Fragmented as u8);
    let counts = [DialCounter::LostFragments, DialCounter::Fragmented].map(|counter| rig.count(counter));
    assert_eq!(counts, [4, 4]);
}
