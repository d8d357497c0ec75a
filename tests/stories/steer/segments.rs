//! Segment sizes: different MTUs, offloads on and off, large packets of loopback.

use anyhow::{Context, Result, ensure};
use router_common::maps::names;
use tests::sluice::DataPath;
use tests::steering::{Family, Setup, Stage};

on_both_data_paths! {
    mtus_that_differ,
    mtus_that_differ_over_ipv6,
    a_route_tells_a_smaller_segment_size_on_either_side,
    links_without_offloads,
    links_without_offloads_over_ipv6,
    packets_merged_on_the_way,
    loopback_carries_both_families,
}

/// Bytes each way.
const LENGTH: u64 = 6_000_000;

fn mtus_that_differ(data_path: DataPath) -> Result<()> {
    differing(data_path, Family::V4, &[(1500, 576), (576, 1500), (9000, 1500), (1500, 9000)])
}

fn mtus_that_differ_over_ipv6(data_path: DataPath) -> Result<()> {
    differing(data_path, Family::V6, &[(1500, 1280), (1280, 9000)])
}

/// "Packet too big" is never sent here, since the router's machine does not forward; nothing may depend on it.
fn differing(data_path: DataPath, family: Family, mtus: &[(u16, u16)]) -> Result<()> {
    for (i, mtu) in (0..).zip(mtus) {
        for offloads in [true, false] {
            let stage = Stage::new(data_path, Setup { mtu: *mtu, offloads, ..Setup::new(family) })?;
            let exchange = || stage.connect()?.exchange(i, LENGTH, LENGTH);
            exchange().with_context(|| format!("MTUs {mtu:?}, offloads {offloads}"))?;
            stage.all_ended()?;
        }
    }
    Ok(())
}

fn a_route_tells_a_smaller_segment_size_on_either_side(data_path: DataPath) -> Result<()> {
    let stage = Stage::new(data_path, Setup::new(Family::V4))?;
    for (machine, network) in [(&stage.client, "10.81.1.0/24"), (&stage.backend, "10.81.2.0/24")] {
        machine.ip(&["route", "replace", network, "dev", "eth0", "advmss", "536"])?;
        stage.connect()?.exchange(7, LENGTH, LENGTH).with_context(|| format!("advmss 536 on {network}"))?;
    }
    Ok(())
}

fn links_without_offloads(data_path: DataPath) -> Result<()> {
    without_offloads(data_path, Family::V4)
}

fn links_without_offloads_over_ipv6(data_path: DataPath) -> Result<()> {
    without_offloads(data_path, Family::V6)
}

fn without_offloads(data_path: DataPath, family: Family) -> Result<()> {
    let stage = Stage::new(data_path, Setup { offloads: false, ..Setup::new(family) })?;
    stage.connect()?.exchange(8, LENGTH, LENGTH)?;
    // And where only one interface lacks offloads.
    for interface in ["client", "front", "back", "backend"] {
        let stage = Stage::new(data_path, Setup::new(family))?;
        match interface {
            "client" => stage.client.without_offloads("eth0"),
            "backend" => stage.backend.without_offloads("eth0"),
            of_router => stage.router.without_offloads(of_router),
        }?;
        stage.connect()?.exchange(9, LENGTH, LENGTH).with_context(|| format!("no offloads at {interface}"))?;
    }
    Ok(())
}

/// Single segments of a sender without offloads, which the router's interfaces merge (GRO).
fn packets_merged_on_the_way(data_path: DataPath) -> Result<()> {
    let stage = Stage::new(data_path, Setup::new(Family::V4))?;
    stage.client.without_offloads("eth0")?;
    stage.backend.without_offloads("eth0")?;
    for interface in ["front", "back"] {
        tests::command::output(stage.router.command("ethtool")?.args(["-K", interface, "gro", "on"]))?;
    }
    for seed in 0..8 {
        stage.connect()?.exchange(seed, LENGTH / 4, LENGTH / 4)?;
    }
    stage.all_ended()?;
    if stage.steers() {
        // Packets as the program sees them: merged ones are fewer than segments.
        let flows = stage.sluice.dump(names::FLOWS)?;
        let sum =
            |field: &str| flows.as_array().into_iter().flatten().filter_map(|flow| flow[field].as_u64()).sum::<u64>();
        let (bytes, packets) = (sum("bytes"), sum("packets"));
        ensure!(packets > 0 && bytes / packets > 1460, "{bytes} bytes in {packets} packets: none were merged");
    }
    Ok(())
}

fn loopback_carries_both_families(data_path: DataPath) -> Result<()> {
    for family in [Family::V4, Family::V6] {
        let stage = Stage::loopback(data_path, family)?;
        for seed in 0..20 {
            stage.connect()?.exchange(seed, LENGTH / 4, LENGTH / 4)?;
        }
        stage.all_ended()?;
    }
    Ok(())
}
