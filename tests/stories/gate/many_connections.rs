//! Nothing is left of very many connections that end in every way.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use tests::steering::{FRONT, Family, Setup, Stage};
use tests::stream::joined;
use tests::wait::{PATIENCE, wait_until};

use super::common::{UNANSWERED, rejected};
use super::limited::{Kind, Limited, reset_when_dropped};

/// Silent connections of one sender, which a time-out is to end.
const AT_ONCE: usize = 80;

/// `SLUICE_CONNECTIONS`: how many, of several kinds, that end in several ways.
#[test]
fn nothing_is_left_of_very_many_connections() -> Result<()> {
    const MODE: &str = "generic";
    const SENDERS: usize = 8;
    /// Most connections of a sender that are lost with the agent, by how long the next one takes to begin.
    const LOST: usize = 5;
    let count: usize = std::env::var("SLUICE_CONNECTIONS").map_or(Ok(400), |number| number.parse())?;
    let annotations = "haproxy.router.openshift.io/timeout-tunnel: 2s";
    let limited = Limited::new(Setup { kept: true, annotations, ..Setup::new(Family::V4) }, MODE)?;
    limited.limit(1000, "", MODE)?;
    let stage = &limited.stage;
    stage.client.set("ipv4/ip_local_port_range", "1024 65535")?;
    stage.client.set("ipv4/tcp_tw_reuse", "1")?;
    let (answered, is_killed, begin) = (AtomicUsize::new(0), AtomicBool::new(false), Instant::now());
    thread::scope(|scope| {
        let sender = |sender: usize| {
            let (limited, answered, is_killed) = (&limited, &answered, &is_killed);
            scope.spawn(move || {
                stage.client.run(|| {
                    let mut silent = Vec::new();
                    for number in (sender..count).step_by(SENDERS) {
                        let is_answered =
                            come_and_go(stage, number, &mut silent).with_context(|| format!("connection {number}"))?;
                        answered.fetch_add(is_answered.into(), Ordering::Relaxed);
                        if silent.len() == AT_ONCE {
                            time_out(limited, &mut silent)?;
                        }
                        if number > count / 2 && !is_killed.swap(true, Ordering::Relaxed) {
                            limited.kill_agents()?;
                        }
                    }
                    time_out(limited, &mut silent)
                })
            })
        };
        let senders: Vec<_> = (0..SENDERS).map(sender).collect();
        senders.into_iter().try_for_each(joined)
    })?;
    let (took, answered) = (begin.elapsed(), answered.into_inner());
    // Five of seven ways wait for an answer. Of a sender's connections while its agent is killed, the relayed ones get none.
    ensure!(answered + SENDERS * LOST >= count * 5 / 7 * 9 / 10, "{answered} of {count} were answered");
    ensure!(rejected(stage, "source-connections")? == 0);
    limited.has(0)?;
    println!(
        "{count} connections in {took:.1?}, {answered} answered; none is counted {:.1?} later",
        begin.elapsed() - took
    );

    let at_once = (count / 200).min(900);
    let rounds = 1 + count / 20_000;
    for _ in 0..rounds {
        drop(limited.enters_at_last(Kind::Passthrough)?);
        let silent = (0..at_once).map(|_| limited.enters(Kind::Passthrough)).collect::<Result<Vec<_>>>()?;
        ensure!(silent.iter().all(Option::is_some));
        stage.backend.ip(&["link", "set", "eth0", "down"])?;
        limited.has(0).context("the endpoint is gone")?;
        stage.backend.ip(&["link", "set", "eth0", "up"])?;
    }
    println!("{rounds} times {at_once} connections, whose endpoint is gone: none is counted");
    Ok(())
}

/// Waits until silent connections are not counted any more, then closes them.
fn time_out(limited: &Limited, silent: &mut Vec<TcpStream>) -> Result<()> {
    let clients =
        silent.iter().map(|client| Ok(json!(client.local_addr()?.to_string()))).collect::<Result<Vec<_>>>()?;
    wait_until("silent connections have ended", PATIENCE, || {
        let rows = limited.stage.sluice.dump("gate_conns").ok();
        rows.as_ref()
            .and_then(Value::as_array)
            .is_some_and(|rows| !rows.iter().any(|row| clients.contains(&row["client"])))
    })?;
    silent.clear();
    Ok(())
}

/// A connection that ends in one of seven ways; whether it was answered. Those that a time-out is to end go to `silent`.
fn come_and_go(stage: &Stage, number: usize, silent: &mut Vec<TcpStream>) -> Result<bool> {
    let kind = Kind::ALL[number % 4];
    let from = SocketAddr::new(stage.family.address(FRONT, if (number / 4).is_multiple_of(2) { 2 } else { 3 }), 0);
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&from.into())?;
    socket.connect_timeout(&kind.address(stage).into(), PATIENCE)?;
    let mut client = TcpStream::from(socket);
    client.set_read_timeout(Some(UNANSWERED))?;
    let way = number / 8 % 7;
    if way == 0 {
        // Nothing is sent.
        return Ok(false);
    }
    client.write_all(&kind.question()?)?;
    if way == 1 {
        // It is reset before an answer.
        reset_when_dropped(&client)?;
        return Ok(false);
    }
    let is_answered = client.read(&mut [0; 4096]).is_ok_and(|read| read > 0);
    match way {
        2 => reset_when_dropped(&client)?,
        // The endpoint closes first.
        3 if matches!(kind, Kind::Passthrough) => {
            let _ = client.write_all(b"x");
            let _ = client.read_to_end(&mut Vec::new());
        }
        4 => {
            let _ = client.shutdown(Shutdown::Write);
            let _ = client.read_to_end(&mut Vec::new());
        }
        5 if is_answered && matches!(kind, Kind::Passthrough) => silent.push(client),
        _ => {}
    }
    Ok(is_answered)
}
