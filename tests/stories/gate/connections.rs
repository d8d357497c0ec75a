//! The limit of a source's open connections: exact, whatever carries them, and nothing is left of them, however they end.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::thread;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use tests::hello::short_hello;
use tests::raw::{End, Nature, Place};
use tests::socket_option::set_option;
use tests::steering::{FRONT, Family, HOST, Setup};
use tests::stream::{self, joined};
use tests::wait::{PATIENCE, wait_until};

use super::common::{UNANSWERED, explain, guard, rejected};
use super::limited::{ANSWER, Kind, Limited, reset_when_dropped};

const REASON: &str = "source-connections";

#[test]
fn of_eight_senders_at_once_as_many_connect_as_the_limit_allows() -> Result<()> {
    const SENDERS: usize = 8;
    for (family, mode) in [(Family::V4, "generic"), (Family::V6, "native")] {
        let limited = Limited::new(Setup::new(family), mode)?;
        for (kind, most) in Kind::ALL.into_iter().zip([1, 3, 5, 8]) {
            limited.limit(most, "", mode)?;
            let open = thread::scope(|scope| {
                let sender = |_| scope.spawn(|| (0..3).map(|_| limited.enters(kind)).collect::<Result<Vec<_>>>());
                let senders: Vec<_> = (0..SENDERS).map(sender).collect();
                senders.into_iter().map(joined).collect::<Result<Vec<_>>>()
            })?;
            let open: Vec<TcpStream> = open.into_iter().flatten().flatten().collect();
            ensure!(open.len() == most as usize, "{family:?} {kind:?}: {} instead of {most}", open.len());
            ensure!(rejected(&limited.stage, REASON)? > 0);
            // Sockets of refused clients are gone, and were never counted.
            limited.has(open.len())?;
            drop(open);
            limited.has(0)?;
            drop(limited.enters_at_last(kind)?);
            limited.has(0)?;
        }
    }
    Ok(())
}

#[test]
fn a_place_is_free_however_a_connection_ends() -> Result<()> {
    const MODE: &str = "native";
    let limited = Limited::new(
        Setup { annotations: "haproxy.router.openshift.io/timeout-tunnel: 6s", kept: true, ..Setup::new(Family::V4) },
        MODE,
    )?;
    limited.limit(10, "", MODE)?;
    let stage = &limited.stage;
    for kind in Kind::ALL {
        let enter = || limited.enters(kind)?.with_context(|| format!("{kind:?}"));
        drop(enter()?);
        limited.has(0).with_context(|| format!("{kind:?}: the client's FIN"))?;
        let client = enter()?;
        reset_when_dropped(&client)?;
        limited.has(1)?;
        drop(client);
        limited.has(0).with_context(|| format!("{kind:?}: the client's reset"))?;
        let mut client = enter()?;
        client.write_all(b"x")?;
        // The endpoint, or the proxy, closes first.
        client.set_read_timeout(Some(PATIENCE))?;
        let _ = client.read_to_end(&mut Vec::new());
        drop(client);
        limited.has(0).with_context(|| format!("{kind:?}: the endpoint's FIN"))?;
    }

    // Connections that send nothing: closed, reset, and one whose client has gone.
    for is_reset in [false, true] {
        let client = stream::open(&stage.client, stage.address)?;
        limited.has(1)?;
        if is_reset {
            reset_when_dropped(&client)?;
        }
        drop(client);
        limited.has(0).with_context(|| format!("nothing was sent, reset: {is_reset}"))?;
    }

    // Silence.
    let silent = limited.enters(Kind::Passthrough)?.context("let in")?;
    limited.has(1)?;
    limited.has(0).context("the tunnel time-out")?;
    drop(silent);

    // The agent is killed: its sockets end, what the kernel carries goes on.
    let mut carried = limited.enters(Kind::Passthrough)?.context("let in")?;
    let relayed = [Kind::Edge, Kind::Clear].map(|kind| limited.enters(kind));
    limited.has(3)?;
    let agents = limited.kill_agents()?;
    let lives = |carried: &mut TcpStream| -> Result<()> {
        carried.write_all(b"y")?;
        ensure!(carried.read(&mut [0; 4096])? > 0);
        Ok(())
    };
    wait_until("only what the kernel carries is counted", PATIENCE, || {
        let _ = lives(&mut carried);
        limited.counted().is_ok_and(|counted| counted == (1, 1))
    })?;
    let is_another = || {
        let _ = lives(&mut carried);
        stage.sluice.agents().is_ok_and(|now| !now.is_empty() && now != agents)
    };
    wait_until("the keeper starts another agent", PATIENCE, is_another)?;
    drop(relayed);
    lives(&mut carried)?;
    limited.limit(10, "", MODE)?;
    lives(&mut carried)?;
    drop(carried);
    limited.has(0).context("after an agent was killed")?;

    // The endpoint is gone, without FIN or RST.
    let open = [Kind::Passthrough, Kind::Edge].map(|kind| limited.enters(kind));
    limited.has(2)?;
    stage.backend.ip(&["link", "set", "eth0", "down"])?;
    drop(open);
    limited.has(0).context("the endpoint is gone")
}

#[test]
fn a_repeated_syn_a_forged_reset_and_one_fin_change_no_number() -> Result<()> {
    const MODE: &str = "generic";
    let limited = Limited::new(Setup { offloads: false, ..Setup::new(Family::V4) }, MODE)?;
    limited.limit(2, "", MODE)?;
    let stage = &limited.stage;
    let place = Place {
        at: (&stage.client, "eth0"),
        gateway: (&stage.router, "front"),
        address: SocketAddr::new(stage.family.address(FRONT, 9), 20_000),
    };
    let mut end = End::connect(&place, stage.address, Nature::COMMON)?;
    limited.has(1)?;
    end.acknowledge()?;
    let hello = short_hello(HOST)?;
    end.send(&hello)?;
    end.receive(ANSWER.len())?;
    limited.has(1)?;
    // The endpoint answers it with a challenge, and the connection goes on.
    end.forge_reset(100)?;
    end.send(b"y")?;
    end.receive(2 * ANSWER.len())?;
    limited.has(1)?;
    // Before what the endpoint has acknowledged.
    end.forge_fin(hello.len() as u32)?;
    // Beyond the window of resets.
    end.forge_reset(1 << 20)?;
    end.send(b"y")?;
    end.receive(3 * ANSWER.len())?;
    limited.has(1)?;

    // One side's end is not the connection's.
    let client = limited.enters(Kind::Passthrough)?.context("let in")?;
    limited.has(2)?;
    client.shutdown(Shutdown::Write)?;
    drop(client);
    limited.has(1)?;
    end.forge_reset(0)?;
    limited.has(0)
}

#[test]
fn a_limit_on_trial_counts_whom_it_would_refuse() -> Result<()> {
    const MODE: &str = "native";
    let limited = Limited::new(Setup::new(Family::V4), MODE)?;
    limited.limit(1, ", gate.sluice.dev/mode: observe", MODE)?;
    let mut open = Vec::new();
    for number in 0..4_u64 {
        open.push(limited.enters(Kind::Passthrough)?.context("nobody is refused")?);
        limited.has(open.len())?;
        ensure!(rejected(&limited.stage, REASON)? == number, "each beyond the first is counted once");
    }
    // It is in force from now on, for those that are open, too.
    limited.limit(4, "", MODE)?;
    ensure!(limited.enters(Kind::Passthrough)?.is_none());
    drop(open.pop());
    open.push(limited.enters_at_last(Kind::Passthrough)?);
    limited.has(4)?;
    guard(&limited.stage, "", Value::is_null)?;
    drop(open);
    limited.has(0).context("there is no limit any more")
}

#[test]
fn whom_tc_rejects_is_in_the_record() -> Result<()> {
    let limited = Limited::new(Setup::new(Family::V4), "auto")?;
    limited.limit(1, "", "auto")?;
    let stage = &limited.stage;
    // Of IPv4 with TCP, its header as long as `first` says. A client's kernel sends its SYN until it is answered.
    let recorded = |reason: &str, first: &str| {
        let (client, listener) = (format!("{}:", Family::V4.address(FRONT, 2)), stage.address.to_string());
        let is_it = |row: &Value| {
            row["reason"] == reason
                && row["observed"] == json!(false)
                && row["client"].as_str().is_some_and(|text| text.starts_with(&client))
                && row["listener"] == listener
                && row["head"].as_str().is_some_and(|head| head.len() > 108 && head[24..].starts_with(first))
        };
        let is_there = || {
            let drops = stage.sluice.dump("gate_drops");
            drops.is_ok_and(|drops| drops.as_array().is_some_and(|rows| rows.iter().any(is_it)))
        };
        let waited = wait_until(&format!("a record of {reason}"), PATIENCE, is_there);
        waited.map(drop).with_context(|| format!("{:#?}", stage.sluice.dump("gate_drops")))
    };
    // Nobody can say whether a packet with options completes a handshake past the limit.
    let socket = stage.client.run(|| Ok(Socket::new(Domain::IPV4, Type::STREAM, None)?))?;
    set_option(&socket, libc::IPPROTO_IP, libc::IP_OPTIONS, &[7, 7, 4, 0, 0, 0, 0, 0])?;
    ensure!(socket.connect_timeout(&stage.address.into(), UNANSWERED).is_err());
    recorded("ip-options", "080047")?;
    // Its SYNs would share a window of the record with the one below, of which one packet is kept.
    drop(socket);
    let _open = limited.enters_at_last(Kind::Passthrough)?;
    ensure!(limited.enters(Kind::Edge)?.is_none());
    recorded(REASON, "080045")
}

#[test]
fn who_is_limited_is_said() -> Result<()> {
    const MODE: &str = "native";
    let limited = Limited::new(Setup::new(Family::V6), MODE)?;
    limited.limit(1, ", gate.sluice.dev/source-prefix: \"32,128\"", MODE)?;
    let client: IpAddr = Family::V6.address(FRONT, 2);
    let explained = explain(&limited.stage, client)?;
    let rules =
        ["open connections of each source (/32, /128): at most 1", "passes, as long as it keeps within these limits"];
    ensure!(rules.iter().all(|rule| explained.contains(rule)), "{explained}");
    let open = limited.enters(Kind::Passthrough)?.context("let in")?;
    ensure!(limited.enters(Kind::Passthrough)?.is_none());
    let drops = limited.stage.sluice.dump("gate_drops")?;
    let drops = drops.as_array().context("rows")?;
    ensure!(drops.iter().all(|row| row["reason"] == REASON) && !drops.is_empty(), "{drops:?}");
    let rows = limited.stage.sluice.dump("gate_conns")?;
    let from = open.local_addr()?;
    let row = &rows[0];
    ensure!(row["carried"] == json!(true) && row["socket"] == json!(false), "{rows}");
    ensure!(row.to_string().contains(&from.port().to_string()), "{rows}");
    Ok(())
}
