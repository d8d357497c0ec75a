//! Forwarding of established connections in XDP: the same frame as TC's, or none, through `BPF_PROG_TEST_RUN`. Needs root.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test reports by panicking")]

#[allow(dead_code, reason = "other tests need the rest")]
mod packets;

use std::fs;
use std::net::IpAddr;
use std::process::Command;

use aya::maps::{HashMap, MapData, PerCpuArray};
use aya::programs::{TestRun, TestRunOptions, TestRunResult};
use router_common::http::ContentTracker;
use router_common::maps::{
    FLOW_ACROSS, FLOW_CLEARTEXT, FLOW_FIN, Flow, FlowKey, FlowTranslation, GateForward, PROTOCOL_TLS, SIDE_BACKEND,
    SIDE_CLIENT, STATE_CLOSING, STATE_CONFIRMING, STATE_ESTABLISHED, names,
};
use router_common::packet::{ACK, FIN, PSH, RST, SYN};
use router_common::verdict::DialCounter;
use router_datapath::kernel::{BpfObject, KernelPrograms};
use router_sys::abi::Raw;
use rustix::thread::{CpuSet, sched_setaffinity};

use packets::{Client, assert_sums, fragments, own_network, with};

/// `TC_ACT_REDIRECT` (linux/pkt_cls.h), `XDP_PASS`, `XDP_REDIRECT` (linux/bpf.h).
const SENT: u32 = 7;
const PASS: u32 = 2;
const FORWARDED: u32 = 4;

/// Index of the loopback interface, on which test runs receive their packets.
const LOOPBACK: u32 = 1;
const MTU: u32 = 1500;
/// The next hop, and the interface that leads to it.
const ENDPOINT: [u8; 6] = [2, 0, 0, 0, 0, 9];
const OUT: [u8; 6] = [2, 0, 0, 0, 0, 1];
const PORT: u16 = 8443;
const OWN_PORT: u16 = 9999;

fn ip(arguments: &str) {
    assert!(Command::new("ip").args(arguments.split(' ')).status().unwrap().success(), "{arguments}");
}

struct Rig {
    kernel: KernelPrograms,
    flows: HashMap<MapData, Raw<FlowKey>, Raw<Flow>>,
    forwards: HashMap<MapData, u32, Raw<GateForward>>,
    counters: PerCpuArray<MapData, u64>,
    out: u32,
}

fn address(v6: bool, last: u8) -> IpAddr {
    if v6 { [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last].into() } else { [10, 0, 0, last].into() }
}

fn client(v6: bool, port: u16) -> Client {
    Client::new(if v6 { "2001:db8::7" } else { "192.0.2.7" }.parse().unwrap(), port, 443)
}

/// The other end of a client's connection.
fn endpoint(v6: bool) -> Client {
    Client::new(address(v6, 2), PORT, OWN_PORT).to(address(v6, 1))
}

impl Rig {
    fn new() -> Rig {
        // Next hops are cached by processor.
        let mut one = CpuSet::new();
        one.set(0);
        sched_setaffinity(None, &one).unwrap();
        own_network();
        let octets = |of: [u8; 6]| of.map(|octet| format!("{octet:02x}")).join(":");
        ip("link set lo up");
        ip(&format!("link add out address {} type veth peer name far", octets(OUT)));
        for version in [4, 6] {
            let setting = if version == 4 { "ipv4/ip_forward" } else { "ipv6/conf/all/forwarding" };
            fs::write(format!("/proc/sys/net/{setting}"), "1").unwrap();
        }
        ip("link set out up");
        ip("link set far up");
        for v6 in [false, true] {
            let bits = if v6 { "64 nodad" } else { "24" };
            ip(&format!("address add {}/{bits} dev out", address(v6, 1)));
            ip(&format!("neighbour add {} lladdr {} dev out nud permanent", address(v6, 2), octets(ENDPOINT)));
        }
        ip(&format!("route add 192.0.2.7 via {} dev out", address(false, 2)));
        ip(&format!("route add 2001:db8::7 via {} dev out", address(true, 2)));
        let out = nix::net::if_::if_nametoindex("out").unwrap();
        let mut kernel = KernelPrograms::load(BpfObject::Plain).expect("the kernel takes the programs (are you root?)");
        let mut rig = Rig {
            flows: HashMap::try_from(kernel.take(names::FLOWS).unwrap()).unwrap(),
            forwards: HashMap::try_from(kernel.take(names::GATE_FORWARDS).unwrap()).unwrap(),
            counters: PerCpuArray::try_from(kernel.take(names::DIAL_STATS).unwrap()).unwrap(),
            kernel,
            out,
        };
        rig.permit(LOOPBACK, [0; 6], u64::MAX);
        rig.permit(out, OUT, u64::MAX);
        rig
    }

    fn permit(&mut self, interface: u32, hardware: [u8; 6], until_ns: u64) {
        self.forwards.insert(interface, Raw(GateForward { until_ns, hardware, pad: [0; 2] }), 0).unwrap();
    }

    /// Adds the entries of a client's carried connection.
    fn carry(&mut self, client: &Client, v6: bool) {
        let to = endpoint(v6).flow().reversed();
        let rewrite = FlowTranslation {
            to,
            delta_seq: 0x0102_0304,
            delta_ack: 0xfffe_fdfc,
            delta_tsval: 0x1111_1111,
            delta_tsecr: 0xfedc_ba98,
            shift_up: 2,
            shift_down: 5,
            ..Default::default()
        };
        let entry = Flow {
            rewrite,
            interface: self.out,
            route: 1,
            started_ns: 1,
            endpoint: 1,
            router: 7,
            state: STATE_ESTABLISHED,
            side: SIDE_CLIENT,
            protocol: PROTOCOL_TLS,
            ..Default::default()
        };
        self.set(client, entry);
        let back = FlowTranslation { to: client.flow().reversed(), ..rewrite };
        self.set(&endpoint(v6), Flow { rewrite: back, side: SIDE_BACKEND, ..entry });
    }

    fn set(&mut self, of: &Client, entry: Flow) {
        self.flows.insert(Raw(of.flow()), Raw(entry), 0).unwrap();
    }

    fn flow(&self, of: &Client) -> Flow {
        self.flows.get(&Raw(of.flow()), 0).unwrap().0
    }

    fn tc(&mut self, frame: &[u8]) -> (u32, Vec<u8>) {
        run(self.kernel.ingress().unwrap(), frame)
    }

    fn xdp(&mut self, frame: &[u8]) -> (u32, Vec<u8>) {
        run(self.kernel.gate().unwrap(), frame)
    }

    fn forwarded(&self) -> u64 {
        self.counters.get(&(DialCounter::XdpForwarded as u32), 0).unwrap().iter().sum()
    }

    /// Asserts that XDP leaves a frame, and the entry, as they are.
    #[track_caller]
    fn leaves(&mut self, what: &str, of: &Client, frame: &[u8]) {
        let before = (self.flow(of), self.forwarded());
        assert_eq!(self.xdp(frame), (PASS, frame.to_vec()), "{what}");
        assert_eq!((self.flow(of), self.forwarded()), before, "{what}");
    }
}

fn run(
    program: &mut impl for<'a> TestRun<Opts<'a> = TestRunOptions<'a>, Result = TestRunResult>,
    frame: &[u8],
) -> (u32, Vec<u8>) {
    let mut out = vec![0; frame.len() + 256];
    let options = TestRunOptions { data_in: Some(frame), data_out: Some(&mut out), ..TestRunOptions::new() };
    let result = program.test_run(options).unwrap();
    out.truncate(result.data_size_out as usize);
    (result.return_value, out)
}

/// Timestamps as Linux sends them; with SACK blocks; in an odd place, beside options that mean nothing here.
const OPTIONS: [&[u8]; 4] = [
    &[],
    &[1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8],
    &[
        1, 1, 8, 10, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 9, 0xff, 2, 3, 4, 0xff, 3,
        3, 3,
    ],
    &[1, 254, 5, 9, 9, 9, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8],
];

#[test]
fn xdp_makes_the_frame_that_tc_makes() {
    let mut rig = Rig::new();
    let payloads: [&[u8]; 3] = [b"", b"odd", &[0xa5; 1400]];
    for v6 in [false, true] {
        let client = client(v6, 2000);
        rig.carry(&client, v6);
        for from in [&client, &endpoint(v6)] {
            for (options, payload) in OPTIONS.into_iter().flat_map(|options| payloads.map(|payload| (options, payload)))
            {
                for flags in [ACK, ACK | PSH] {
                    let what = format!("IPv6: {v6}, options {options:?}, {} bytes, flags {flags}", payload.len());
                    let frame = from.segment_with(flags, 0xffff_fff0, 0x7fff_ffff, options, payload);
                    let before = rig.flow(from);
                    let (action, by_tc) = rig.tc(&frame);
                    assert_eq!(action, SENT, "{what}");
                    let (middle, count) = (rig.flow(from), rig.forwarded());
                    let (action, by_xdp) = rig.xdp(&frame);
                    assert_eq!(action, FORWARDED, "{what}");
                    assert_eq!(by_xdp[..12], [ENDPOINT, OUT].concat(), "{what}");
                    assert_eq!(by_xdp[12..], by_tc[12..], "{what}");
                    assert_sums(&by_xdp);
                    assert_eq!(rig.forwarded(), count + 1);
                    let after = rig.flow(from);
                    let expected = Flow {
                        packets: middle.packets + 1,
                        bytes: middle.bytes + payload.len() as u64,
                        last_ns: after.last_ns,
                        ..middle
                    };
                    assert_eq!(after, expected, "{what}");
                    assert!(after.last_ns >= middle.last_ns && middle.packets == before.packets + 1);
                }
            }
        }
    }
}

#[test]
fn everything_else_is_left_to_tc() {
    let mut rig = Rig::new();
    for v6 in [false, true] {
        let client = client(v6, 2000);
        rig.carry(&client, v6);
        let plain = client.segment(ACK, 1001, 5000, b"0123456789abcdef");
        rig.leaves("before TC has found the next hop", &client, &plain);
        assert_eq!(rig.tc(&plain).0, SENT);
        assert_eq!(rig.xdp(&plain).0, FORWARDED);

        for flags in [FIN | ACK, RST, RST | ACK, SYN | ACK] {
            rig.leaves(&format!("flags {flags}"), &client, &client.segment(flags, 1001, 5000, b"0123456789"));
        }
        let options = if v6 { with(&plain, 60, &[6, 0, 1, 4, 0, 0, 0, 0]) } else { with(&plain, 0, &[1, 1, 1, 0]) };
        rig.leaves("options of IP", &client, &options);
        for fragment in fragments(&plain, 7, 24) {
            rig.leaves("a fragment", &client, &fragment);
        }
        let tagged = [&plain[..12], &[0x81, 0, 0, 100], &plain[12..]].concat();
        rig.leaves("a VLAN", &client, &tagged);
        let mut others = plain.clone();
        others[0] = 2;
        rig.leaves("another host's", &client, &others);
        let tcp = if v6 { 54 } else { 34 };
        let mut partial = plain.clone();
        let (addresses, length) = if v6 { (22..54, plain.len() - 54) } else { (26..34, plain.len() - 34) };
        let words = plain[addresses].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum = words.sum::<u32>() + 6 + length as u32;
        let once = (sum & 0xffff) + (sum >> 16);
        partial[tcp + 16..tcp + 18].copy_from_slice(&(((once & 0xffff) + (once >> 16)) as u16).to_be_bytes());
        rig.leaves("a checksum for hardware", &client, &partial);
        let headers = plain.len() - 14 - 16;
        let largest = client.segment(ACK, 1001, 5000, &vec![7; MTU as usize - headers]);
        assert_eq!(rig.xdp(&largest).0, FORWARDED);
        rig.leaves("beyond the MTU", &client, &client.segment(ACK, 1001, 5000, &vec![7; MTU as usize - headers + 1]));

        let entry = rig.flow(&client);
        let requests = Flow { own: FLOW_CLEARTEXT, judged: 1001, content: ContentTracker::default(), ..entry };
        let entries = [
            ("confirming", Flow { state: STATE_CONFIRMING, ..entry }),
            ("ended", Flow { state: STATE_CLOSING, ..entry }),
            ("the other side has ended", Flow { peer: FLOW_FIN, ..entry }),
            ("between versions of IP", Flow { own: FLOW_ACROSS, ..entry }),
            ("a request", requests),
            ("back where it came from", Flow { interface: LOOPBACK, ..entry }),
        ];
        for (what, other) in entries {
            rig.set(&client, other);
            rig.leaves(what, &client, &plain);
        }
        rig.set(&client, entry);
        for (interface, hardware) in [(LOOPBACK, [0; 6]), (rig.out, OUT)] {
            rig.permit(interface, hardware, 1);
            rig.leaves("the permission has expired", &client, &plain);
            rig.forwards.remove(&interface).unwrap();
            rig.leaves("no permission", &client, &plain);
            rig.permit(interface, hardware, u64::MAX);
        }
        assert_eq!(rig.xdp(&plain).0, FORWARDED, "within half a second");
    }
}
