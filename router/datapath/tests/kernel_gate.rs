//! The XDP program's decisions, through `BPF_PROG_TEST_RUN`. Needs root.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test reports by panicking")]

mod agreement;
#[allow(dead_code, reason = "other tests need the rest")]
mod packets;

use std::time::Duration;

use aya::maps::{Array, HashMap, LpmTrie, MapData, PerCpuArray};
use aya::programs::{TestRun, TestRunOptions};
use ipnet::IpNet;
use router_common::gate::arrival::{Arrival, read};
use router_common::gate::sampler::WINDOW_NS;
use router_common::gate::{GateState, rejection};
use router_common::maps::{
    Config, FlowKey, GATE_HEAD, GATE_NO_FRAGMENTS, GATE_NO_OPTIONS, GATE_OBSERVE, GatePolicy, ListenerKey, names,
};
use router_common::verdict::Reason;
use router_datapath::address::{address, sixteen_net};
use router_datapath::dump::DropRecord;
use router_datapath::kernel::{BpfObject, KernelPrograms};
use router_datapath::net_keys::{NetTrie, key};
use router_sys::abi::Raw;

use packets::{Client, fragments, own_network, with};

/// `XDP_DROP`, `XDP_PASS` (linux/bpf.h).
const DROP: u32 = 1;
const PASS: u32 = 2;

const PORT: u16 = 443;

struct Rig {
    kernel: KernelPrograms,
    policies: HashMap<MapData, Raw<ListenerKey>, Raw<GatePolicy>>,
    nets: NetTrie<MapData>,
    rates: HashMap<MapData, u32, u64>,
    reasons: PerCpuArray<MapData, u64>,
}

impl Rig {
    fn new() -> Rig {
        own_network();
        let mut kernel = KernelPrograms::load(BpfObject::Plain).expect("the kernel takes the programs (are you root?)");
        let mut config: Array<MapData, Raw<Config>> = Array::try_from(kernel.take(names::CONFIG).unwrap()).unwrap();
        config.set(0, Raw(Config { secret: [1, 2], ..Config::default() }), 0).unwrap();
        Rig {
            policies: HashMap::try_from(kernel.take(names::GATE_POLICIES).unwrap()).unwrap(),
            nets: LpmTrie::try_from(kernel.take(names::GATE_NETS).unwrap()).unwrap(),
            rates: HashMap::try_from(kernel.take(names::GATE_RATES).unwrap()).unwrap(),
            reasons: PerCpuArray::try_from(kernel.take(names::REASON_STATS).unwrap()).unwrap(),
            kernel,
        }
    }

    /// Sets the policy of the listener, and of its address.
    fn policy(&mut self, client: &Client, policy: GatePolicy) {
        let address = client.flow().destination;
        for port in [0, PORT] {
            self.policies.insert(Raw(ListenerKey { address, port, pad: 0 }), Raw(policy), 0).unwrap();
        }
        self.rates.insert(policy.id, 0, 0).unwrap();
    }

    fn list(&mut self, list: u32, net: IpNet) {
        let (address, bits) = sixteen_net(&net);
        self.nets.insert(&key((list, address, bits)), 1, 0).unwrap();
    }

    fn run(&mut self, packet: &[u8]) -> u32 {
        let mut out = vec![0; packet.len() + 256];
        let options = TestRunOptions { data_in: Some(packet), data_out: Some(&mut out), ..TestRunOptions::new() };
        let result = self.kernel.gate().unwrap().test_run(options).unwrap();
        out.truncate(result.data_size_out as usize);
        assert_eq!(out, packet, "the gate changes no packet");
        result.return_value
    }

    fn count(&self, reason: Reason) -> u64 {
        self.reasons.get(&(reason as u32), 0).unwrap().iter().sum()
    }

    /// Checks that a packet is dropped for a reason.
    #[track_caller]
    fn drops(&mut self, packet: &[u8], reason: Reason) {
        let before = self.count(reason);
        assert_eq!((self.run(packet), self.count(reason)), (DROP, before + 1), "{reason:?}: {packet:x?}");
    }
}

fn client(v6: bool, port: u16) -> Client {
    Client::new(if v6 { "2001:db8::7" } else { "192.0.2.7" }.parse().unwrap(), port, PORT)
}

fn plain() -> GatePolicy {
    GatePolicy { id: 1, v4_bits: 32, v6_bits: 64, source_burst: 1, listener_burst: 1, ..GatePolicy::default() }
}

#[test]
fn a_listener_without_a_policy_and_other_ports_are_left_alone() {
    let mut rig = Rig::new();
    for v6 in [false, true] {
        let mut client = client(v6, 2000);
        let mut broken = client.syn();
        broken[47] = 0;
        assert_eq!(rig.run(&broken), PASS);
        rig.policy(&client, plain());
        let other = Client::new(if v6 { "2001:db8::7" } else { "192.0.2.7" }.parse().unwrap(), 2000, 444).syn();
        assert_eq!(rig.run(&other), PASS);
        assert_eq!(rig.run(&client.syn()), PASS);
    }
}

#[test]
fn lists_decide_by_the_source() {
    let mut rig = Rig::new();
    for v6 in [false, true] {
        let mut client = client(v6, 2000);
        let net: IpNet = if v6 { "2001:db8::/32" } else { "192.0.2.0/24" }.parse().unwrap();
        let syn = client.syn();
        rig.policy(&client, GatePolicy { deny: 5, ..plain() });
        assert_eq!(rig.run(&syn), PASS);
        rig.list(5, net);
        rig.drops(&syn, Reason::SourceDenied);
        rig.drops(&client.data(b"x"), Reason::SourceDenied);
        rig.policy(&client, GatePolicy { allow: 6, ..plain() });
        rig.drops(&syn, Reason::SourceNotListed);
        rig.list(6, net);
        assert_eq!(rig.run(&syn), PASS);
        // A network of the other family has no address of this one.
        let (other, everything) = if v6 { ("0.0.0.0/0", 7) } else { ("::/0", 8) };
        rig.list(everything, other.parse().unwrap());
        rig.policy(&client, GatePolicy { allow: everything, ..plain() });
        rig.drops(&syn, Reason::SourceNotListed);
        // Observed.
        rig.policy(&client, GatePolicy { deny: 5, flags: GATE_OBSERVE, ..plain() });
        let before = rig.count(Reason::SourceDenied);
        assert_eq!((rig.run(&syn), rig.count(Reason::SourceDenied)), (PASS, before + 1));
    }
}

#[test]
fn syns_are_limited_by_source_and_listener() {
    let mut rig = Rig::new();
    // One in twelve minutes, five at once.
    let hour = 3_600_000_000_000_u64 >> 8;
    for v6 in [false, true] {
        let first = client(v6, 0);
        rig.policy(
            &first,
            GatePolicy { source_interval: u32::try_from(hour / 5).unwrap(), source_burst: 5, ..plain() },
        );
        for port in 1..=20 {
            let syn = client(v6, port).syn();
            if port <= 5 {
                assert_eq!(rig.run(&syn), PASS, "{port}")
            } else {
                rig.drops(&syn, Reason::SourceRate)
            }
            assert_eq!(rig.run(&client(v6, port).data(b"x")), PASS, "other segments pass");
        }
        let interval = 3_600_000_000_000_u64 << 4;
        rig.policy(&first, GatePolicy { id: 2, listener_interval: interval, listener_burst: 3, ..plain() });
        for port in 1..=20 {
            let syn = client(v6, port).syn();
            if port <= 3 { assert_eq!(rig.run(&syn), PASS) } else { rig.drops(&syn, Reason::ListenerRate) }
        }
    }
}

#[test]
fn fragments_and_options_pass_unless_the_policy_rejects_them() {
    let mut rig = Rig::new();
    for v6 in [false, true] {
        let mut client = client(v6, 2000);
        let packet = client.data(&[7; 1000]);
        let parts = fragments(&packet, 7, 400);
        let (next, between): (u8, &[u8]) = if v6 { (0, &[6, 0, 1, 4, 0, 0, 0, 0]) } else { (0, &[1, 1, 1, 0]) };
        let odd = with(&packet, next, between);
        rig.policy(&client, plain());
        for packet in parts.iter().chain([&odd]) {
            assert_eq!(rig.run(packet), PASS);
        }
        rig.policy(&client, GatePolicy { flags: GATE_NO_FRAGMENTS, ..plain() });
        parts.iter().for_each(|part| rig.drops(part, Reason::Fragmented));
        assert_eq!(rig.run(&odd), PASS);
        rig.policy(&client, GatePolicy { flags: GATE_NO_OPTIONS, ..plain() });
        rig.drops(&odd, Reason::IpOptions);
        if v6 {
            // Options that hide the port from the gate get no packet past its lists.
            rig.policy(&client, plain());
            let many = [[60, 0, 1, 4, 0, 0, 0, 0].repeat(8), [6, 0, 1, 4, 0, 0, 0, 0].to_vec()].concat();
            rig.drops(&with(&packet, 60, &many), Reason::Malformed);
        }
    }
}

#[test]
fn the_record_has_what_was_rejected() {
    let ended = || std::thread::sleep(Duration::from_nanos(2 * WINDOW_NS));
    let mut rig = Rig::new();
    let mut record = DropRecord::of(rig.kernel.take(names::GATE_DROPS).unwrap()).unwrap();
    let mut sent = Vec::new();
    for (v6, flags) in [(false, 0), (true, GATE_OBSERVE)] {
        let mut client = client(v6, 2000);
        rig.list(5, address(&client.flow().source).into());
        rig.policy(&client, GatePolicy { deny: 5, flags, ..plain() });
        for packet in [client.syn(), client.data(&[0x1b; 1000])] {
            rig.run(&packet);
            sent.push((client.flow(), u8::from(v6), packet));
            ended();
        }
    }
    let recorded = record.read().unwrap();
    assert_eq!(recorded.len(), sent.len());
    for (drop, (flow, is_observed, packet)) in recorded.iter().zip(&sent) {
        assert_eq!((drop.flow, drop.is_observed, drop.packets), (*flow, *is_observed, 1));
        assert_eq!(drop.reason, Reason::SourceDenied as u16);
        assert_eq!(drop.head[..drop.length.into()], packet[..packet.len().min(GATE_HEAD)]);
    }
    assert_eq!(record.read().unwrap(), [], "each is read once");
    // Of many, a few stand for all.
    for _ in 0..5000 {
        rig.run(&sent[0].2);
    }
    ended();
    let recorded = record.read().unwrap();
    assert!(recorded.len() < 500, "{}", recorded.len());
    assert_eq!(recorded.iter().map(|drop| drop.packets).sum::<u64>(), 5000);
}
