//! The gate with very many sources and networks, through `BPF_PROG_TEST_RUN`. Needs root.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test reports by panicking")]

#[allow(dead_code, reason = "other tests need the rest")]
mod packets;

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use aya::maps::{Array, Map, MapData};
use aya::programs::{TestRun, TestRunOptions, Xdp};
use ipnet::{IpNet, Ipv4Net};
use router_common::maps::{Config, GatePolicy, names};
use router_datapath::gate::{GateContent, GateImage, GateMaps, GateWrites, reconcile};
use router_datapath::kernel::{BpfObject, KernelPrograms};
use router_sys::abi::Raw;

use packets::{Client, own_network};

/// `XDP_DROP`, `XDP_PASS` (linux/bpf.h).
const DROP: u32 = 1;
const PASS: u32 = 2;
const PORT: u16 = 443;

/// A number of the environment; without it, one that does not take long.
fn number(name: &str, short: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(short)
}

fn loaded() -> (KernelPrograms, GateMaps) {
    own_network();
    let mut kernel = KernelPrograms::load(BpfObject::Plain).expect("the kernel takes the programs (are you root?)");
    let mut config: Array<MapData, Raw<Config>> = Array::try_from(kernel.take(names::CONFIG).unwrap()).unwrap();
    config.set(0, Raw(Config { secret: [1, 2], ..Config::default() }), 0).unwrap();
    let maps = kernel.take_gate_maps().unwrap();
    (kernel, maps)
}

fn run(program: &mut Xdp, packet: &[u8]) -> u32 {
    let options = TestRunOptions { data_in: Some(packet), ..TestRunOptions::new() };
    program.test_run(options).unwrap().return_value
}

fn client(source: u32) -> Client {
    Client::from(IpAddr::V4(Ipv4Addr::from_bits(source)), 2000, PORT)
}

fn listener() -> (IpAddr, u16) {
    (Ipv4Addr::LOCALHOST.into(), PORT)
}

/// `SLUICE_SOURCES`: how many there are.
#[test]
fn sources_that_are_limited_stay_so_among_very_many_others() {
    const LIMITED: u32 = 1000;
    let sources = u32::try_from(number("SLUICE_SOURCES", 300_000)).unwrap();
    let (mut kernel, mut maps) = loaded();
    // One SYN in a quarter of an hour.
    let interval = u32::try_from(900_000_000_000_u64 >> 8).unwrap();
    let policy = GatePolicy {
        id: 1,
        v4_bits: 32,
        v6_bits: 64,
        source_interval: interval,
        source_burst: 1,
        listener_burst: 1,
        ..GatePolicy::default()
    };
    maps.put(listener(), &policy).unwrap();
    let table = kernel.take(names::GATE_SOURCES).unwrap();
    let before = memory(&table);
    let program = kernel.gate().unwrap();
    let first = Ipv4Addr::new(11, 0, 0, 0).to_bits();
    let passed = (0..LIMITED).filter(|source| run(program, &client(first + source).syn()) == PASS).count();
    assert_eq!(passed, LIMITED as usize);
    for source in LIMITED..sources {
        run(program, &client(first + source).syn());
    }
    let limited = (0..LIMITED).filter(|source| run(program, &client(first + source).starting_at(7).syn()) == DROP);
    assert_eq!(limited.count(), LIMITED as usize);
    assert_eq!(memory(&table), before);
    println!("{sources} sources: {LIMITED} stay limited; the table has {before} bytes");
}

/// Bytes of a map (`/proc/PID/fdinfo`).
fn memory(map: &Map) -> usize {
    let Map::Array(data) = map else { panic!("{map:?}") };
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", data.fd().as_fd().as_raw_fd())).unwrap();
    info.lines().find_map(|line| line.strip_prefix("memlock:")).unwrap().trim().parse().unwrap()
}

/// `SLUICE_NETWORKS`: how many a list has.
#[test]
fn packets_pass_while_very_many_networks_are_loaded_changed_and_freed() {
    let count = number("SLUICE_NETWORKS", 20_000);
    let (mut kernel, mut maps) = loaded();
    let is_over = Arc::new(AtomicBool::new(false));
    let begin = Ipv4Addr::new(20, 0, 0, 0).to_bits();
    let (denied, other) = (client(begin + 256).syn(), client(Ipv4Addr::new(19, 0, 0, 1).to_bits()).syn());
    let list = |number: u32| -> Arc<[IpNet]> {
        let net = |i: u32| IpNet::V4(Ipv4Net::new(Ipv4Addr::from_bits(begin + 256 * (number + i)), 24).unwrap());
        (0..u32::try_from(count).unwrap()).map(net).collect()
    };
    let denying = |id: u32, nets: Arc<[IpNet]>| GateImage {
        policies: BTreeMap::from([(
            listener(),
            GatePolicy { id: 1, deny: id, source_burst: 1, listener_burst: 1, ..GatePolicy::default() },
        )]),
        lists: BTreeMap::from([(id, nets)]),
    };
    let steps = [("loaded", denying(1, list(0))), ("changed", denying(2, list(1))), ("freed", GateImage::default())];
    let receiver = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            let (mut slowest, mut packets, mut decided) = (Duration::ZERO, 0_u64, 0_u64);
            while !is_over.load(Ordering::Relaxed) {
                for (packet, may_drop) in [(&denied, true), (&other, false)] {
                    let options = TestRunOptions { data_in: Some(packet), ..TestRunOptions::new() };
                    let begin = Instant::now();
                    let decision = kernel.gate().unwrap().test_run(options).unwrap().return_value;
                    slowest = slowest.max(begin.elapsed());
                    assert!(decision == PASS || may_drop, "a source of no list was rejected");
                    packets += 1;
                    decided += u64::from(decision == DROP);
                }
            }
            (slowest, packets, decided)
        }
    });
    let mut content = GateContent::default();
    for (what, wanted) in steps {
        let (begin, mut longest) = (Instant::now(), Duration::ZERO);
        loop {
            let part = Instant::now();
            let is_complete = reconcile(&mut maps, &mut content, &wanted).unwrap();
            longest = longest.max(part.elapsed());
            if is_complete {
                break;
            }
            std::thread::sleep(content.pause);
        }
        assert_eq!(content.now, wanted);
        println!("{count} networks {what} in {:.2} s, at most {longest:?} at a time", begin.elapsed().as_secs_f64());
    }
    is_over.store(true, Ordering::Relaxed);
    let (slowest, packets, dropped) = receiver.join().unwrap();
    assert_eq!(maps.read().unwrap(), GateImage::default(), "nothing is left");
    assert!(dropped > 0 && dropped < packets, "{dropped} of {packets}");
    println!("{packets} packets meanwhile, {dropped} of them rejected; the slowest took {slowest:?}");
    // The program never waits for the agent; a busy machine may delay it.
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
}
