//! After the last connection no state of any is left, however each ended.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use socket2::SockRef;
use tests::hello::client_hello;
use tests::pinned::Flows;
use tests::sluice::DataPath;
use tests::steering::{BACK, BACKEND_PORT, Family, HOST, Setup, Stage};
use tests::stream::{self, Pair};

/// A host with a silent endpoint.
const SILENT: &str = "silent.apps.test";

#[test]
fn no_flow_and_no_first_flight_outlives_its_connection() -> Result<()> {
    let nobody = SocketAddr::new(Family::V4.address(BACK, 99), BACKEND_PORT);
    let stage = Stage::new(DataPath::Kernel, Setup { other: Some((SILENT, nobody)), ..Setup::new(Family::V4) })?;
    stage.silence(nobody)?;
    // Dials without a response: of waiting clients, and of a disconnected one.
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let mut client = stream::open(&stage.client, stage.address)?;
        client.write_all(&client_hello(SILENT)?)?;
        waiting.push(client);
    }
    waiting.pop();
    for seed in 0..10 {
        // FINs in both orders.
        stage.connect()?.exchange(seed, 10_000, 10_000)?;
        for client_first in [true, false] {
            let Pair { client, origin } = stage.connect()?;
            let (mut first, mut second) = if client_first { (client, origin) } else { (origin, client) };
            first.shutdown(Shutdown::Write)?;
            ensure!(stream::read_once(&mut second)? == 0, "bytes that nobody sent");
            second.shutdown(Shutdown::Write)?;
            ensure!(stream::read_once(&mut first)? == 0, "bytes that nobody sent");
        }
        // Resets.
        for by_client in [true, false] {
            let Pair { client, origin } = stage.connect()?;
            let (resetting, mut other) = if by_client { (client, origin) } else { (origin, client) };
            SockRef::from(&resetting).set_linger(Some(Duration::ZERO))?;
            drop(resetting);
            match stream::read_once(&mut other) {
                Err(error) if error.kind() == ErrorKind::ConnectionReset => (),
                other => bail!("instead of a reset: {other:?}"),
            }
        }
        // A client that disconnects in the middle of its hello, by FIN and by RST; a silent one; and one whose host has
        // no route.
        let hello = client_hello(HOST)?;
        for orderly in [true, false] {
            let mut client = stream::open(&stage.client, stage.address)?;
            client.write_all(&hello[..hello.len() / 2])?;
            if !orderly {
                SockRef::from(&client).set_linger(Some(Duration::ZERO))?;
            }
        }
        drop(stream::open(&stage.client, stage.address)?);
        let mut client = stream::open(&stage.client, stage.address)?;
        client.write_all(&client_hello("nobody.apps.test")?)?;
        client.shutdown(Shutdown::Write)?;
        let mut answer = Vec::new();
        // An alert, or a reset.
        let _ = client.read_to_end(&mut answer);
    }
    // A check of the stage itself: there is state to remove.
    ensure!(Flows::of(&stage.sluice)?.count()? > 0, "nothing lingers, though connections have just ended");
    stage.nothing_is_left()?;
    // A waiting client gets a RST when it retransmits.
    for mut client in waiting {
        client.set_read_timeout(Some(Duration::from_secs(40)))?;
        match stream::read_once(&mut client) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => (),
            other => bail!("instead of a reset: {other:?}; passed up were {:?}", stage.passed_up()?),
        }
    }
    Ok(())
}
