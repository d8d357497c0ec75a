//! TCP options of the handshake: timestamps, selective acknowledgement, window scaling. Client, router and backend may
//! each lack some.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use tests::command;
use tests::netns::Netns;
use tests::sluice::DataPath;
use tests::steering::{BACK, FRONT, Family, Setup, Stage};

on_both_data_paths! {
    timestamps_sack_and_scaling_on_and_off_at_each_machine,
    timestamps_sack_and_scaling_on_and_off_at_each_machine_over_ipv6,
    every_window_shift_on_either_side,
}

/// Options that a machine may lack.
const SETTINGS: [&str; 3] = ["ipv4/tcp_timestamps", "ipv4/tcp_sack", "ipv4/tcp_window_scaling"];

/// Bytes each way: more than a window without scaling.
const LENGTH: u64 = 200_000;

fn timestamps_sack_and_scaling_on_and_off_at_each_machine(data_path: DataPath) -> Result<()> {
    combinations(data_path, Family::V4, 1)
}

fn timestamps_sack_and_scaling_on_and_off_at_each_machine_over_ipv6(data_path: DataPath) -> Result<()> {
    combinations(data_path, Family::V6, 5)
}

/// Three machines, three settings: 512 combinations; tries each `step`th of them.
fn combinations(data_path: DataPath, family: Family, step: usize) -> Result<()> {
    let stage = Stage::new(data_path, Setup::new(family))?;
    let machines = [("client", &stage.client), ("router", &stage.router), ("backend", &stage.backend)];
    let bits = machines.len() * SETTINGS.len();
    // Settings are written only when they change: writing costs more than a connection.
    let mut last = None;
    for combination in (0_u32..1 << bits).step_by(step) {
        let mut told = Vec::new();
        for bit in 0..bits {
            let (name, machine) = machines[bit % machines.len()];
            let setting = SETTINGS[bit / machines.len()];
            let on = combination >> bit & 1;
            if last.is_none_or(|last: u32| (last ^ combination) >> bit & 1 == 1) {
                machine.set(setting, &on.to_string())?;
            }
            if on == 0 {
                told.push(format!("{name} without {setting}"));
            }
        }
        last = Some(combination);
        let exchange = || stage.connect()?.exchange(combination.into(), LENGTH, LENGTH);
        exchange().with_context(|| told.join(", "))?;
    }
    stage.all_ended()
}

/// A machine's window shift follows from the largest window that it may offer (RFC 7323 §2.3).
fn every_window_shift_on_either_side(data_path: DataPath) -> Result<()> {
    const LARGEST: u8 = 14;
    let stage = Stage::new(data_path, Setup::new(Family::V4))?;
    let toward_router = |machine: &Netns, link, shift: u8| -> Result<()> {
        machine.set("ipv4/tcp_rmem", "4096 131072 1073741824")?;
        let window = (1_u32 << (15 + shift)).min((1 << 30) - 1);
        let (network, hop) = (format!("10.81.{}.0/24", 3 - link), stage.family.address(link, 1).to_string());
        machine.ip(&["route", "replace", &network, "via", &hop, "window", &window.to_string()])?;
        let own = format!("10.81.{link}.0/24");
        machine.ip(&["route", "replace", &own, "dev", "eth0", "window", &window.to_string()])
    };
    for client in 0..=LARGEST {
        // Each against its opposite, and each against itself.
        for backend in [LARGEST - client, client] {
            toward_router(&stage.client, FRONT, client)?;
            toward_router(&stage.backend, BACK, backend)?;
            let pair = stage.connect()?;
            let told = announced_shift(&stage.client, pair.client.local_addr()?)?;
            ensure!(told == client, "the client told the shift {told} instead of {client}");
            let told = announced_shift(&stage.backend, pair.origin.peer_addr()?)?;
            ensure!(told == backend, "the backend told the shift {told} instead of {backend}");
            pair.exchange(u64::from(client) << 8 | u64::from(backend), LENGTH, LENGTH)
                .with_context(|| format!("shifts {client} and {backend}"))?;
        }
    }
    stage.all_ended()
}

/// The window shift that a machine announced on a connection, from `ss`; `of` is its local or its remote address.
fn announced_shift(machine: &Netns, of: SocketAddr) -> Result<u8> {
    let (address, port) = (of.ip(), of.port());
    let filter = format!("( src {address}:{port} or dst {address}:{port} )");
    let output = command::output(machine.command("ss")?.args(["-tinH", "state", "established", &filter]))?;
    let text = String::from_utf8(output.stdout)?;
    let scale = text.split_whitespace().find_map(|word| word.strip_prefix("wscale:"));
    let (_, own) = scale.and_then(|scale| scale.split_once(',')).with_context(|| format!("no window scale: {text}"))?;
    Ok(own.parse()?)
}
