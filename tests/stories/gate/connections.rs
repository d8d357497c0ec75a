//! The limit of a source's open connections: exact, whatever carries them, and nothing is left of them, however they end.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use tests::folder;
use tests::hello::{client_hello, short_hello};
use tests::pki::Ca;
use tests::raw::{End, Nature, Place};
use tests::sluice::DataPath;
use tests::steering::{BACK, BACKEND_PORT, FRONT, Family, HOST, Setup, Stage};
use tests::stream::{self, joined};
use tests::wait::{PATIENCE, wait_until};

use super::common::{UNANSWERED, explain, guard, is_attached, rejected};

const REASON: &str = "source-connections";
const EDGE: &str = "edge.apps.test";
const CLEAR: &str = "clear.apps.test";
const CARRIED: &str = "carried.apps.test";
const CLEAR_PORT: u16 = 8080;
/// What the backend answers to whatever it gets.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nk";

/// Routes, by what carries their connections.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// TLS passthrough: the kernel.
    Passthrough,
    /// TLS that the router terminates.
    Edge,
    /// Clear text, proxied.
    Clear,
    /// Clear text that the kernel carries.
    CarriedClear,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Passthrough, Kind::Edge, Kind::Clear, Kind::CarriedClear];

    fn address(self, stage: &Stage) -> SocketAddr {
        match self {
            Kind::Passthrough | Kind::Edge => stage.address,
            Kind::Clear | Kind::CarriedClear => SocketAddr::new(stage.address.ip(), CLEAR_PORT),
        }
    }

    /// What a client sends first; whatever comes back, it is let in.
    fn question(self) -> Result<Vec<u8>> {
        let request = |host: &str| format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes();
        Ok(match self {
            Kind::Passthrough => client_hello(HOST)?,
            Kind::Edge => client_hello(EDGE)?,
            Kind::Clear => request(CLEAR),
            Kind::CarriedClear => request(CARRIED),
        })
    }
}

/// A router with routes of each kind to a backend that answers.
struct Limited {
    stage: Stage,
    is_over: Arc<AtomicBool>,
    backend: Option<thread::JoinHandle<()>>,
}

impl Limited {
    fn new(setup: Setup, mode: &'static str) -> Result<Limited> {
        let arguments = ["--xdp", mode].map(str::to_owned).to_vec();
        let stage = Stage::new(DataPath::Kernel, Setup { arguments, ..setup })?;
        let certificate = Ca::new()?.leaf(EDGE)?;
        let forwarded = [("haproxy.router.openshift.io/set-forwarded-headers", "never")];
        let routes = [
            folder::route("edge", EDGE, "raw", &folder::terminated("edge", &certificate, "")),
            folder::route("clear", CLEAR, "raw", ""),
            folder::annotated(&folder::route("carried", CARRIED, "raw", ""), &forwarded),
        ];
        stage.place("routes.yaml", &routes.concat())?;
        let is_over = Arc::new(AtomicBool::new(false));
        let backend = thread::spawn({
            let (listener, is_over) = (stage.listener.try_clone()?, Arc::clone(&is_over));
            move || answer(&listener, &is_over)
        });
        Ok(Limited { stage, is_over, backend: Some(backend) })
    }

    fn limit(&self, most: u32, more: &str, mode: &'static str) -> Result<()> {
        let policy = format!("gate.sluice.dev/connections-per-source: \"{most}\"{more}");
        let in_force = |gate: &Value| is_attached(mode)(gate) && gate["sweepsOnly"].is_null();
        guard(&self.stage, &policy, in_force)?;
        let is_there = || {
            let policies = self.stage.sluice.dump("gate_policies");
            policies.is_ok_and(|rows| {
                rows.as_array().is_some_and(|rows| rows.iter().any(|row| row["sourceConnections"] == json!(most)))
            })
        };
        wait_until("the limit is in the maps", PATIENCE, is_there)?;
        // The routes serve.
        let routes =
            || self.stage.sluice.get("routes").is_ok_and(|rows| rows.to_string().matches("apps.test").count() >= 4);
        wait_until("the routes are there", PATIENCE, routes).map(drop)
    }

    /// Numbers of counted connections: of their entries, and of all sources.
    fn counted(&self) -> Result<(usize, u64)> {
        let rows = |map: &str| {
            let rows = self.stage.sluice.dump(map)?;
            rows.as_array().cloned().with_context(|| format!("{rows}"))
        };
        let sum = rows("gate_counts")?.iter().filter_map(|row| row["connections"].as_u64()).sum();
        Ok((rows("gate_conns")?.len(), sum))
    }

    fn has(&self, count: usize) -> Result<()> {
        let is_so = || self.counted().is_ok_and(|counted| counted == (count, count as u64));
        wait_until(&format!("{count} connections are counted"), PATIENCE, is_so)
            .map(drop)
            .with_context(|| format!("{:?} {:?}", self.counted(), self.stage.sluice.dump("gate_conns")))
    }

    /// A client that is let in; `None`: it got no answer.
    fn enters(&self, kind: Kind) -> Result<Option<TcpStream>> {
        let (address, question) = (kind.address(&self.stage), kind.question()?);
        let Ok(mut client) = self.stage.client.run(|| Ok(TcpStream::connect_timeout(&address, UNANSWERED)))? else {
            return Ok(None);
        };
        // The host is busy with other stories: who is let in may be answered late.
        client.set_read_timeout(Some(5 * UNANSWERED))?;
        client.write_all(&question)?;
        if client.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {
            return Ok(Some(client));
        }
        // Else its kernel sends the question again and again, and gets in once there is a place.
        reset_when_dropped(&client)?;
        Ok(None)
    }

    /// Kills the agents, and returns which they were.
    fn kill_agents(&self) -> Result<Vec<u32>> {
        let agents = self.stage.sluice.agents()?;
        for agent in &agents {
            kill_process(Pid::from_raw(i32::try_from(*agent)?).context("a process id")?, Signal::KILL)?;
        }
        Ok(agents)
    }

    /// A client that is let in at last.
    fn enters_at_last(&self, kind: Kind) -> Result<TcpStream> {
        let mut client = None;
        wait_until("a client is let in", PATIENCE, || {
            client = self.enters(kind).ok().flatten();
            client.is_some()
        })?;
        client.context("a client")
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // It wakes the backend.
        let address = SocketAddr::new(self.stage.family.address(BACK, 2), BACKEND_PORT);
        let _ = self.stage.backend.run(|| Ok(TcpStream::connect_timeout(&address, PATIENCE)?));
        let _ = self.backend.take().map(thread::JoinHandle::join);
    }
}

/// Answers every connection, and closes it when its client has. One that closes first (the client sends `x`) is closed.
fn answer(listener: &TcpListener, is_over: &AtomicBool) {
    while let Ok((mut stream, _)) = listener.accept() {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while stream.read(&mut buffer).is_ok_and(|read| read > 0 && buffer[0] != b'x') {
                if stream.write_all(ANSWER).is_err() {
                    break;
                }
            }
        });
    }
}

fn reset_when_dropped(stream: &TcpStream) -> Result<()> {
    Ok(socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO))?)
}

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

/// `SLUICE_CONNECTIONS`: how many, of several kinds, that end in several ways.
#[test]
fn nothing_is_left_of_very_many_connections() -> Result<()> {
    const MODE: &str = "generic";
    const SENDERS: usize = 8;
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
                    for number in (sender..count).step_by(SENDERS) {
                        let is_answered = come_and_go(stage, number).with_context(|| format!("connection {number}"))?;
                        answered.fetch_add(is_answered.into(), Ordering::Relaxed);
                        if number > count / 2 && !is_killed.swap(true, Ordering::Relaxed) {
                            limited.kill_agents()?;
                        }
                    }
                    Ok(())
                })
            })
        };
        let senders: Vec<_> = (0..SENDERS).map(sender).collect();
        senders.into_iter().try_for_each(joined)
    })?;
    let (took, answered) = (begin.elapsed(), answered.into_inner());
    // Four of six ways wait for an answer; some that were relayed have lost their agent.
    ensure!(answered >= count * 4 / 6 * 9 / 10, "{answered} of {count} were answered");
    ensure!(rejected(stage, REASON)? == 0);
    limited.has(0)?;
    println!(
        "{count} connections in {took:.1?}, {answered} answered; none is counted {:.1?} later",
        begin.elapsed() - took
    );

    // Their endpoint is gone, and they are silent.
    let silent = (0..(count / 200).min(900)).map(|_| limited.enters(Kind::Passthrough)).collect::<Result<Vec<_>>>()?;
    ensure!(silent.iter().all(Option::is_some));
    stage.backend.ip(&["link", "set", "eth0", "down"])?;
    limited.has(0).context("the endpoint is gone")
}

/// A connection that ends in one of six ways; whether it was answered.
fn come_and_go(stage: &Stage, number: usize) -> Result<bool> {
    let kind = Kind::ALL[number % 4];
    let from = SocketAddr::new(stage.family.address(FRONT, if (number / 4).is_multiple_of(2) { 2 } else { 3 }), 0);
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&from.into())?;
    socket.connect_timeout(&kind.address(stage).into(), PATIENCE)?;
    let mut client = TcpStream::from(socket);
    client.set_read_timeout(Some(UNANSWERED))?;
    let way = number / 8 % 6;
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
        _ => {}
    }
    Ok(is_answered)
}
