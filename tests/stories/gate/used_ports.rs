//! Clients that connect in a flood from ports of older connections.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, ensure};
use router_common::maps::names;
use router_common::verdict::DialCounter;
use serde_json::Value;
use tests::command;
use tests::hello::short_hello;
use tests::raw::{self, End, Nature, Place};
use tests::steering::{FRONT, Family, HOST, Setup, Stage};
use tests::stream;
use tests::wait::{PATIENCE, wait_until};

use super::cookies::{flooded, stage, used};

const PORT: u16 = 20_001;

/// A connection of a client without a stack, from [`PORT`].
fn begin(stage: &Stage, isn: u32) -> Result<(End, TcpStream)> {
    let address = SocketAddr::new(raw::address_on(stage.family.address(FRONT, 2)), PORT);
    let place = Place { at: (&stage.client, "eth0"), gateway: (&stage.router, "front"), address };
    let hello = short_hello(HOST)?;
    let mut client = End::connect(&place, stage.address, Nature { isn, ..Nature::COMMON })?;
    client.send(&hello)?;
    let origin = stream::accept_with(&stage.listener, &hello)?;
    stage.check_port(origin.peer_addr()?.port())?;
    client.all_acknowledged()?;
    Ok((client, origin))
}

/// Likewise, by a cookie.
fn begin_by_cookie(stage: &Stage, isn: u32) -> Result<(End, TcpStream)> {
    let before = stage.dial_counter(DialCounter::CookiesConfirmed)?;
    let begun = begin(stage, isn)?;
    ensure!(stage.dial_counter(DialCounter::CookiesConfirmed)? > before, "without a cookie");
    Ok(begun)
}

/// Both ends speak twice.
fn speak(client: &mut End, origin: &mut TcpStream) -> Result<()> {
    for time in 1..=2 {
        client.send(b"question")?;
        let mut question = [0; 8];
        origin.read_exact(&mut question)?;
        origin.write_all(b"answered")?;
        client.receive(8 * time)?;
    }
    ensure!(client.received() == b"answeredanswered");
    Ok(())
}

/// The kernel carries a connection that the client has forgotten. The new one's SYN is answered by XDP, and its acknowledgement
/// ends the old one.
#[test]
fn a_client_that_has_forgotten_a_carried_connection_begins_anew() -> Result<()> {
    for family in [Family::V4, Family::V6] {
        let stage = stage(Setup { offloads: false, ..Setup::new(family) }, "generic", "2")?;
        let (forgetful, _old) = begin(&stage, 1000)?;
        drop(forgetful);
        flooded(&stage, Some("generic"), || {
            let (mut client, mut origin) = begin_by_cookie(&stage, 0x7000_0000)?;
            // A repetition of its own beginning ends nothing.
            client.send_again(0, &short_hello(HOST)?)?;
            speak(&mut client, &mut origin)
        })?;
        let is_replaced = || {
            let output = stage.sluice.output();
            let mut ends =
                output.iter().filter(|line| line.contains(" access: ") && line.contains(&format!(":{PORT}")));
            ends.any(|line| line.contains("client-gone"))
        };
        wait_until("the old connection's end is logged", PATIENCE, is_replaced)
            .with_context(|| format!("{:#?}", stage.sluice.output()))?;
    }
    Ok(())
}

/// The numbers of two cookies for the same addresses and ports differ in the same minute by as much as the clients' numbers.
#[test]
fn a_client_that_begins_anew_right_after_the_end_is_served() -> Result<()> {
    for family in [Family::V4, Family::V6] {
        let stage = stage(Setup { offloads: false, ..Setup::new(family) }, "generic", "2")?;
        flooded(&stage, Some("generic"), || {
            for isn in [1000, 40_000, 80_000] {
                let (mut client, mut origin) = begin_by_cookie(&stage, isn).with_context(|| format!("{isn}"))?;
                speak(&mut client, &mut origin)?;
                client.finish()?;
                drop(origin);
                client.finished()?;
                let is_closing = |row: &Value| row["state"] == "closing" && row.to_string().contains(&PORT.to_string());
                let has_ended = || {
                    let flows = stage.sluice.dump(names::FLOWS);
                    flows.is_ok_and(|flows| flows.as_array().is_some_and(|rows| rows.iter().any(is_closing)))
                };
                wait_until("the connection has ended", PATIENCE, has_ended)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Whether the router has a socket in TIME-WAIT for a client's port.
fn waits(stage: &Stage, port: u16) -> Result<bool> {
    let output = command::output(stage.router.command("ss")?.args(["-tanH", "state", "time-wait"]))?;
    Ok(String::from_utf8(output.stdout)?.contains(&format!(":{port}")))
}

/// A connection that the router closes first.
fn leave_waiting(stage: &Stage, from: SocketAddr) -> Result<()> {
    let mut odd = stage.open_from(from)?;
    odd.write_all(b"no hello\r\n")?;
    odd.read_to_end(&mut Vec::new())?;
    drop(odd);
    ensure!(waits(stage, from.port())?, "the router's socket is not in TIME-WAIT");
    Ok(())
}

/// The stack answers a SYN at a socket in TIME-WAIT with no cookie, so that the kernel can carry the connection with its options:
/// at one that was there before XDP answered, and at one since then.
#[test]
fn a_client_of_a_port_in_time_wait_is_carried_with_its_options() -> Result<()> {
    for family in [Family::V4, Family::V6] {
        let stage = stage(Setup::new(family), "generic", "2")?;
        let at = |port: u16| SocketAddr::new(family.address(FRONT, 2), port);
        leave_waiting(&stage, at(PORT))?;
        flooded(&stage, Some("generic"), || {
            let knows = || {
                let rows = stage.sluice.dump(names::GATE_SOCKETS_USE);
                rows.is_ok_and(|rows| rows[0]["reads"].is_number())
            };
            wait_until("XDP looks for no sockets but those that it knows", PATIENCE, knows)?;
            leave_waiting(&stage, at(PORT + 1))?;
            for port in [PORT, PORT + 1] {
                ensure!(waits(&stage, port)?, "the router's socket is not in TIME-WAIT any more");
                let pair = stage.connect_from(at(port)).with_context(|| format!("{port}"))?;
                let used = used(&stage.client, at(port), stage.address)?;
                ensure!(used.iter().any(|word| word == "ts"), "{port}: {used:?}");
                pair.exchange(1, 20_000, 20_000)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}
