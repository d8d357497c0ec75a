//! The agent's reports on connections in the kernel, and the connections that it ends.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};
use router_common::maps::{ABI, names};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::command;
use tests::folder;
use tests::hello::client_hello;
use tests::netns::Netns;
use tests::process::Process;
use tests::sluice::{self, DataPath, Options, Sluice};
use tests::steering::{BACK, BACKEND_PORT, Family, HOST, ROUTER_PORT, Setup, Stage};
use tests::stream::{self, Pair};
use tests::wait::{PATIENCE, wait_for, wait_until};

/// Lines of the access log that the agent has printed.
fn lines(sluice: &Sluice) -> Vec<String> {
    sluice.output().into_iter().filter(|line| line.contains(" access: ")).collect()
}

fn wait_for_line(sluice: &Sluice, parts: &[&str]) -> Result<String> {
    let found = wait_for("the access-log line", PATIENCE, || {
        lines(sluice).into_iter().find(|line| parts.iter().all(|part| line.contains(part)))
    });
    let (line, _) = found.with_context(|| format!("no line has {parts:?}:\n{}", lines(sluice).join("\n")))?;
    Ok(line)
}

fn rows(value: &Value) -> Result<&Vec<Value>> {
    value.as_array().with_context(|| format!("a list is wanted, not {value}"))
}

/// `sluice bpf VERB` of the stage's router.
fn bpf(stage: &Stage, verb: &[&str]) -> Result<std::process::Output> {
    // …/<instance>/v<ABI>/<map>
    let pin = stage.sluice.pin(names::FLOWS);
    let instance = pin.ancestors().nth(2).and_then(Path::file_name).context("a pin is in its instance's folder")?;
    let mut arguments: Vec<&OsStr> = std::iter::once("bpf").chain(verb.iter().copied()).map(OsStr::new).collect();
    arguments.extend([OsStr::new("--instance"), instance]);
    sluice::run(&arguments)
}

#[test]
fn a_connection_is_shown_while_it_lives_and_logged_when_it_ends() -> Result<()> {
    for family in [Family::V4, Family::V6] {
        let stage = Stage::new(DataPath::Kernel, Setup::new(family))?;
        let Pair { mut client, mut origin } = stage.connect()?;
        let hello = client_hello(HOST)?.len() as u64;
        client.write_all(&[7; 1000])?;
        origin.read_exact(&mut [0; 1000])?;
        origin.write_all(&[8; 3000])?;
        client.read_exact(&mut [0; 3000])?;

        let flows = stage.sluice.get("flows")?;
        let [flow] = rows(&flows)?.as_slice() else { anyhow::bail!("one connection: {flows}") };
        let endpoint = SocketAddr::new(family.address(BACK, 2), BACKEND_PORT).to_string();
        for (field, value) in [
            ("client", client.local_addr()?.to_string()),
            ("listener", stage.address.to_string()),
            ("source", origin.peer_addr()?.to_string()),
            ("endpoint", endpoint.clone()),
            ("state", "established".to_owned()),
            ("protocol", "tls".to_owned()),
            ("router", "default".to_owned()),
            ("route", "test/raw".to_owned()),
        ] {
            assert_eq!(flow[field], value, "{field}: {flow}");
        }
        assert_eq!((flow["bytesIn"].as_u64(), flow["bytesOut"].as_u64()), (Some(hello + 1000), Some(3000)), "{flow}");
        ensure!(flow["age"].as_f64() >= flow["idle"].as_f64() && flow["packetsIn"].as_u64() > Some(1), "{flow}");
        ensure!(lines(&stage.sluice).is_empty(), "it has not ended: {:?}", lines(&stage.sluice));

        let from = client.local_addr()?;
        drop((client, origin));
        let line = wait_for_line(&stage.sluice, &[&format!("client={from}")])?;
        for part in [
            "router=default",
            &format!("listener={}", stage.address),
            &format!("host=\"{HOST}\""),
            "route=test/raw",
            &format!("endpoint={endpoint}"),
            &format!("bytes_in={}", hello + 1000),
            "bytes_out=3000",
            "flags=\"-\"",
            "datapath=\"kernel\"",
        ] {
            ensure!(line.contains(part), "{part} is not in {line}");
        }
        assert_eq!(lines(&stage.sluice).len(), 1, "one line a connection");
        let routes = stage.sluice.get("routes")?;
        let route = &rows(&routes)?[0];
        assert_eq!(
            (&route["counters"]["served"], &route["kernel"]["steered"], &route["kernel"]["ended"]),
            (&Value::from(1), &Value::from(1), &Value::from(1)),
            "{route}"
        );
        let stats: Value = serde_json::from_slice(&bpf(&stage, &["stats", "-o", "json"])?.stdout)?;
        let dials = rows(&stats["dials"])?;
        let count = |name: &str| dials.iter().find(|row| row["counter"] == name).and_then(|row| row["count"].as_u64());
        assert_eq!((count("dialed"), count("confirmed"), count("refused")), (Some(1), Some(1), Some(0)), "{stats}");
        assert_eq!(stats["routes"][0]["name"], "test/raw", "{stats}");
        stage.nothing_is_left()?;
        // No further line was logged when the entries were removed.
        assert_eq!(lines(&stage.sluice).len(), 1, "one line a connection");
    }
    Ok(())
}

#[test]
fn a_silent_connection_ends_at_its_routes_own_time() -> Result<()> {
    for family in [Family::V4, Family::V6] {
        for data_path in [DataPath::Kernel, DataPath::UserSpace] {
            silent(data_path, family).with_context(|| format!("{data_path:?}, {family:?}"))?;
        }
    }
    Ok(())
}

fn silent(data_path: DataPath, family: Family) -> Result<()> {
    let setup = Setup { annotations: "haproxy.router.openshift.io/timeout-tunnel: 2s", ..Setup::new(family) };
    let stage = Stage::new(data_path, setup)?;
    let (silent, half, busy) = (stage.connect()?, stage.connect()?, stage.connect()?);
    silent.greet()?;
    half.origin.shutdown(Shutdown::Write)?;
    ensure!(stream::read_once(&mut &half.client)? == 0, "more than the end came");
    let ends = |stage: &Stage, from: SocketAddr| {
        let line = lines(&stage.sluice).into_iter().find(|line| line.contains(&format!("client={from}")));
        line.inspect(|line| assert!(line.contains("flags=\"ID\"") && line.contains("host=\"raw.apps.test\""), "{line}"))
    };
    for pair in [&silent, &half] {
        let from = pair.client.local_addr()?;
        wait_for("the silent connection is ended", PATIENCE, || {
            // The other connection is busy: it exchanges bytes at each poll.
            busy.greet().ok()?;
            ends(&stage, from)
        })?;
    }
    // Neither end waits forever.
    for mut end in [&silent.client, &silent.origin, &half.origin] {
        let read = stream::read_once(&mut end);
        ensure!(
            read.as_ref().map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |read| *read == 0),
            "{read:?}"
        );
    }
    if stage.steers() {
        // It has received the endpoint's FIN; a reset shows on its writes, not on its reads.
        let error = half.client.take_error()?.map(|error| error.kind());
        ensure!(matches!(error, Some(ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)), "{error:?}");
        let flows = stage.sluice.get("flows")?;
        assert_eq!(rows(&flows)?.len(), 1, "the other one goes on: {flows}");
    }
    busy.greet()
}

#[test]
fn a_changed_path_reaches_the_maps_without_a_look_from_time_to_time() -> Result<()> {
    let stage = Stage::new(DataPath::Kernel, Setup::new(Family::V4))?;
    let segments = || -> Result<(Option<u64>, Option<u64>)> {
        let (endpoints, listeners) = (stage.sluice.dump(names::ENDPOINTS)?, stage.sluice.dump(names::LISTENERS)?);
        let of = |rows: &Value| rows[0]["maxSegment"].as_u64();
        Ok((of(&endpoints), of(&listeners)))
    };
    assert_eq!(segments()?, (Some(1460), Some(1460)));
    stage.router.ip(&["link", "set", "back", "mtu", "1400"])?;
    wait_for("the smaller MTU is known", PATIENCE, || {
        segments().ok().filter(|both| *both == (Some(1360), Some(1360)))
    })?;
    let pool = || -> Result<Value> { Ok(stage.sluice.dump(names::POOLS)?[0].clone()) };
    let before = pool()?;
    assert_eq!(before["slots"], 1);
    // The network's own route is removed, and with it the path to the endpoint.
    stage.router.ip(&["route", "del", "10.81.2.0/24"])?;
    wait_for("the endpoint has no way", PATIENCE, || pool().ok().filter(|pool| pool["slots"] == 0))?;
    ensure!(stage.sluice.dump(names::ENDPOINTS)? == serde_json::json!([]), "an endpoint without a way stays");
    stage.router.ip(&["route", "add", "10.81.2.0/24", "dev", "back"])?;
    let (after, _) =
        wait_for("the endpoint has a way again", PATIENCE, || pool().ok().filter(|pool| pool["slots"] == 1))?;
    ensure!(after["pool"].as_u64() > before["pool"].as_u64(), "a pool's id was given twice: {before} {after}");
    stage.connect()?.greet()
}

#[test]
fn the_maps_are_as_the_agent_intends_after_every_change() -> Result<()> {
    let stage = Stage::new(DataPath::Kernel, Setup::new(Family::V4))?;
    let state = stage.sluice.state().display().to_string();
    let differences = || -> Result<(Option<i32>, String)> {
        let output = bpf(&stage, &["diff", "-o", "json", "--state", &state])?;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        Ok((output.status.code(), format!("{out}{err}")))
    };
    let endpoint = |host: u8, port: u16| SocketAddr::new(stage.family.address(BACK, host), port);
    for endpoints in [
        vec![endpoint(2, BACKEND_PORT), endpoint(3, BACKEND_PORT)],
        vec![endpoint(3, BACKEND_PORT)],
        vec![],
        vec![endpoint(2, BACKEND_PORT), endpoint(2, BACKEND_PORT + 1), endpoint(3, 1)],
    ] {
        let count = endpoints.len();
        stage.change(HOST, &endpoints)?;
        let rows = |map| stage.sluice.dump(map).ok().and_then(|rows| Some(rows.as_array()?.len()));
        wait_until("the new endpoints are there, and the old ones are gone", PATIENCE, || {
            rows(names::ENDPOINTS) == Some(count) && rows(names::SLOTS) == Some(count)
        })?;
        assert_eq!(rows(names::ENDPOINT_STATE), Some(count));
        let (code, text) = differences()?;
        ensure!(code == Some(0), "{code:?}: {text}");
    }
    Ok(())
}

#[test]
fn a_wildcard_routes_connection_is_logged_with_the_requested_name() -> Result<()> {
    const ASKED: &str = "pay.wild.test";
    let netns = Netns::new("wildcard")?;
    let listener = netns.run(|| Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, BACKEND_PORT))?))?;
    let manifests = TempDir::new()?;
    let router = folder::router() + "  routeAdmission: {wildcardPolicy: WildcardsAllowed}\n";
    let spec = format!("  wildcardPolicy: Subdomain\n{}", folder::PASSTHROUGH);
    let text =
        router + &folder::service("raw", listener.local_addr()?) + &folder::route("raw", "a.wild.test", "raw", &spec);
    std::fs::write(manifests.path().join("all.yaml"), text)?;
    let sluice = Sluice::start(&netns, manifests.path(), &Options::loopback(DataPath::Kernel))?;
    let pair = stream::connect(&netns, (Ipv4Addr::LOCALHOST, ROUTER_PORT).into(), &listener, ASKED)?;
    let from = pair.client.local_addr()?;
    drop(pair);
    let line = wait_for_line(&sluice, &[&format!("client={from}")])?;
    ensure!(line.contains(&format!("host=\"{ASKED}\"")) && line.contains("datapath=\"kernel\""), "{line}");
    Ok(())
}

/// An agent on a loopback of its own, with its folder in the BPF file system and its manifests; the next agent uses the
/// same.
struct Seat {
    netns: Netns,
    instance: String,
    state: TempDir,
    manifests: TempDir,
}

impl Seat {
    fn new() -> Result<Seat> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let instance = format!("flows-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Ok(Seat { netns: Netns::new("flows")?, instance, state: TempDir::new()?, manifests: TempDir::new()? })
    }

    fn listen(&self) -> Result<TcpListener> {
        self.netns.run(|| Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, BACKEND_PORT))?))
    }

    fn connect(&self, listener: &TcpListener, host: &str) -> Result<Pair> {
        stream::connect(&self.netns, (Ipv4Addr::LOCALHOST, ROUTER_PORT).into(), listener, host)
    }

    fn start(&self, arguments: &[&str]) -> Result<Process> {
        let mut command = self.netns.command(sluice::binary()?)?;
        command.args(["run", "--data-path", "kernel", "--endpoint-addresses", "any", "--instance", &self.instance]);
        command.arg("--manifests").arg(self.manifests.path()).arg("--state").arg(self.state.path());
        command.args(arguments);
        let mut process = Process::start("sluice", &mut command)?;
        process.wait_for_line("sluice: ready", PATIENCE)?;
        Ok(process)
    }

    /// Writes a passthrough route for each name, to the listener.
    fn write(&self, names: &[&str], listener: &TcpListener) -> Result<()> {
        let routes = names.iter().map(|name| folder::route(name, &format!("{name}.test"), "raw", folder::PASSTHROUGH));
        let text = folder::router() + &folder::service("raw", listener.local_addr()?) + &routes.collect::<String>();
        folder::replace(&self.manifests.path().join("all.yaml"), &text)
    }

    fn dump(&self, map: &str) -> Result<Vec<Value>> {
        let arguments = ["bpf", "dump", map, "-o", "json", "--instance", &self.instance].map(OsStr::new);
        let output = sluice::run(&arguments)?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Route ids by name.
    fn ids(&self) -> Result<BTreeMap<String, u64>> {
        let rows = self.dump(names::ROUTES)?;
        let named = rows.iter().map(|row| Some((row["name"].as_str()?.to_owned(), row["route"].as_u64()?)));
        named.collect::<Option<_>>().context("rows have a name and an id")
    }

    fn pin(&self, map: &str) -> PathBuf {
        Path::new("/sys/fs/bpf/sluice").join(&self.instance).join(format!("v{ABI}")).join(map)
    }

    /// A map's bytes, including secrets.
    fn raw(&self, map: &str) -> Result<String> {
        let output = command::output(Command::new("bpftool").args(["map", "dump", "pinned"]).arg(self.pin(map)))?;
        Ok(String::from_utf8(output.stdout)?)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // State left by a killed agent; a clean end leaves none.
        let _ = sluice::run(&["bpf", "cleanup", "--instance", &self.instance].map(OsStr::new));
    }
}

#[test]
fn the_next_agent_goes_on_with_ids_connections_and_clocks() -> Result<()> {
    let seat = Seat::new()?;
    let listener = seat.listen()?;
    let connect = |host: &str| seat.connect(&listener, host);
    seat.write(&["stays", "goes"], &listener)?;
    let mut first = seat.start(&[])?;
    let (stays, goes) = (connect("stays.test")?, connect("goes.test")?);
    let (of_stays, of_goes) = (stays.client.local_addr()?, goes.client.local_addr()?);
    let (ids, pools, endpoints) = (seat.ids()?, seat.dump(names::POOLS)?, seat.dump(names::ENDPOINTS)?);
    let (config, highest) = (seat.raw(names::CONFIG)?, ids.values().copied().max());

    first.signal(Signal::KILL)?;
    first.ended(PATIENCE)?;
    stays.greet()?;
    seat.write(&["stays", "comes"], &listener)?;
    let second = seat.start(&[])?;
    stays.greet()?;
    goes.greet()?;
    let now = seat.ids()?;
    assert_eq!(now.keys().collect::<Vec<_>>(), ["test/comes", "test/stays"]);
    assert_eq!(now["test/stays"], ids["test/stays"]);
    ensure!(Some(now["test/comes"]) > highest, "an id was given twice: {ids:?} {now:?}");
    let pool = |pools: &[Value]| pools.iter().find(|row| row["route"] == now["test/stays"]).cloned();
    assert_eq!(pool(&seat.dump(names::POOLS)?), pool(&pools));
    assert_eq!((seat.dump(names::ENDPOINTS)?, seat.raw(names::CONFIG)?), (endpoints, config));
    connect("comes.test")?.greet()?;

    drop((stays, goes));
    let line = |client: SocketAddr| {
        let begin = format!("client={client} ");
        wait_for("the line", PATIENCE, || second.output().into_iter().find(|line| line.contains(&begin)))
    };
    let (line_of_stays, _) = line(of_stays)?;
    ensure!(
        line_of_stays.contains("host=\"stays.test\"") && line_of_stays.contains("datapath=\"kernel\""),
        "{line_of_stays}"
    );
    // The host is not in the table any more, but the maps still name the route.
    let (line_of_goes, _) = line(of_goes)?;
    ensure!(line_of_goes.contains("route=test/goes") && line_of_goes.contains("router=default"), "{line_of_goes}");
    Ok(())
}

#[test]
fn an_agent_that_ends_waits_for_connections_and_tells_of_those_it_could_not_wait_for() -> Result<()> {
    let seat = Seat::new()?;
    let listener = seat.listen()?;
    seat.write(&["a"], &listener)?;
    let mut agent = seat.start(&["--drain", "3"])?;
    let (first, second) = (seat.connect(&listener, "a.test")?, seat.connect(&listener, "a.test")?);
    let (ends, stays) = (first.client.local_addr()?, second.client.local_addr()?);
    // Enough of them that logging takes noticeable time.
    let others = (0..500).map(|_| seat.connect(&listener, "a.test")).collect::<Result<Vec<_>>>()?;
    let line = |agent: &Process, client: SocketAddr| {
        let begin = format!("client={client} ");
        let found = wait_for("the line", PATIENCE, || agent.output().into_iter().find(|line| line.contains(&begin)));
        found.map(|(line, _)| line)
    };
    agent.signal(Signal::TERM)?;
    // While the router drains, established connections continue.
    first.greet()?;
    drop(first);
    let line_of_first = line(&agent, ends)?;
    ensure!(line_of_first.contains("flags=\"-\""), "{line_of_first}");
    second.greet()?;
    let status = agent.ended(PATIENCE)?;
    ensure!(status.success(), "{status}");
    let line_of_second = line(&agent, stays)?;
    ensure!(
        line_of_second.contains("flags=\"DC\"") && line_of_second.contains("datapath=\"kernel\""),
        "{line_of_second}"
    );
    let told = agent.output().iter().filter(|line| line.contains("flags=\"DC\"")).count();
    ensure!(told == others.len() + 1, "{told} of {} connections that stayed have a line", others.len() + 1);
    ensure!(!seat.pin(names::FLOWS).exists(), "pins are left");

    // Without connections, it exits at once.
    let mut agent = seat.start(&["--drain", "3600"])?;
    agent.terminate(PATIENCE)?;
    Ok(())
}

/// A connection on a data path: its line in the access log, as JSON.
fn line_of(data_path: DataPath) -> Result<Value> {
    let arguments = ["--access-log", "json"].map(str::to_owned).to_vec();
    let stage = Stage::new(data_path, Setup { arguments, ..Setup::new(Family::V4) })?;
    stage.connect()?.exchange(1, 5000, 7000)?;
    let found = wait_for("a line", PATIENCE, || {
        let output = stage.sluice.output();
        output.iter().find_map(|line| serde_json::from_str::<Value>(line).ok().filter(|line| line["time"].is_string()))
    });
    Ok(found.with_context(|| stage.sluice.output().join("\n"))?.0)
}

#[test]
fn a_connections_line_is_the_same_on_either_path() -> Result<()> {
    let [mut kernel, mut relay] = [line_of(DataPath::Kernel)?, line_of(DataPath::UserSpace)?];
    ensure!((&kernel["datapath"], &relay["datapath"]) == (&"kernel".into(), &"relay".into()), "{kernel} {relay}");
    ensure!(kernel["bytes_out"] == 7000, "{kernel}");
    for line in [&mut kernel, &mut relay] {
        // Fields that are specific to this connection.
        for field in ["datapath", "time", "duration_ms"] {
            ensure!(!line[field].is_null(), "{field} is missing");
            line[field] = Value::Null;
        }
        let client = line["client"].as_str().and_then(|client| client.split(':').next()).map(str::to_owned);
        line["client"] = client.into();
    }
    assert_eq!(kernel, relay);
    Ok(())
}

/// `auto` without permission to load programs: all connections are relayed, and status and log give the reason.
#[test]
fn without_the_kernel_everything_is_relayed_and_the_reason_is_named() -> Result<()> {
    let stage = Stage::new(DataPath::Forbidden, Setup::new(Family::V4))?;
    stage.connect()?.exchange(2, 5000, 5000)?;
    stage.carried(1)?;
    let told = stage.sluice.output().into_iter().find(|line| line.contains("user-space data path: "));
    let told = told.with_context(|| stage.sluice.output().join("\n"))?;
    ensure!(told.contains("CAP_BPF"), "{told}");
    let status = stage.sluice.get("status")?.to_string();
    ensure!(status.contains("CAP_BPF"), "{status}");
    Ok(())
}

/// Interfaces that are created, or created again, while the router runs carry connections like existing ones.
#[test]
fn connections_of_interfaces_that_come_and_go_are_carried() -> Result<()> {
    let stage = Stage::new(DataPath::Kernel, Setup::new(Family::V4))?;
    stage.connect()?.greet()?;
    for round in 0..2 {
        let pod = Netns::new("pod")?;
        stage.router.link(("late", &["10.81.9.1/24"]), &pod, ("eth0", &["10.81.9.2/24"]))?;
        let listener = pod.run(|| Ok(TcpListener::bind(("10.81.9.2", BACKEND_PORT))?))?;
        stage.change(HOST, &[listener.local_addr()?])?;
        wait_until("the kernel knows the endpoint's interface", PATIENCE, || {
            let endpoints = stage.sluice.dump(names::ENDPOINTS).unwrap_or_default();
            endpoints
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one["address"] == format!("10.81.9.2:{BACKEND_PORT}")))
        })
        .with_context(|| stage.sluice.dump(names::ENDPOINTS).unwrap_or_default().to_string())?;
        let mut last = None;
        wait_until("its connections are carried", PATIENCE, || {
            let pair = stream::connect(&stage.client, stage.address, &listener, HOST);
            last = pair.and_then(|pair| stage.check(&pair).and_then(|()| pair.exchange(round, 50_000, 50_000))).err();
            last.is_none()
        })
        .with_context(|| format!("round {round}: {last:?}"))?;
        stage.router.ip(&["link", "delete", "late"])?;
    }
    Ok(())
}

#[test]
fn what_the_agent_takes_over_is_counted_for_its_route_by_reason() -> Result<()> {
    let annotations = "haproxy.router.openshift.io/balance: leastconn";
    let stage = Stage::new(DataPath::Kernel, Setup { annotations, ..Setup::new(Family::V4) })?;
    for _ in 0..3 {
        stream::connect(&stage.client, stage.address, &stage.listener, HOST)?.greet()?;
    }
    let counted = || {
        let routes = stage.sluice.get("routes").unwrap_or_default();
        let route = routes.as_array().and_then(|routes| routes.iter().find(|route| route["host"] == HOST)).cloned();
        route.unwrap_or_default()["kernel"].clone()
    };
    wait_until("three are counted", PATIENCE, || counted()["relayed"] == json!({"needs-relay": 3}))
        .with_context(|| counted().to_string())?;
    let kernel = counted();
    ensure!((&kernel["steered"], &kernel["passed"]) == (&json!(0), &json!(3)), "{kernel}");
    Ok(())
}
