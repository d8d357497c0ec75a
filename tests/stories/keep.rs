//! `sluice keep`: a failed agent is restarted, an agent is replaced by another, and clients notice neither.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;
use tempfile::TempDir;
use tests::client::{Client, trusting_the_demo_ca};
use tests::command;
use tests::netns::Netns;
use tests::nginx::{self, Nginx};
use tests::process::Process;
use tests::sluice::DataPath;
use tests::wait::{self, PATIENCE};
use tests::{folder, sluice, stream};

const HTTP: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
const HTTPS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8443);
const EDGE: &str = "edge.apps.localhost";

/// A keeper in a namespace of its own, with the backends of the quickstart. It runs the agent through a symbolic link,
/// so that a test can replace the binary.
struct Stage {
    instance: String,
    netns: Netns,
    nginx: Nginx,
    keeper: Process,
    ended: bool,
    state: TempDir,
    programs: TempDir,
    manifests: TempDir,
}

impl Stage {
    fn new(data_path: DataPath, arguments: &[&str]) -> Result<Stage> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let instance = format!("keep-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let netns = Netns::new("keep")?;
        let nginx = Nginx::start(&netns, &nginx::quickstart(Ipv4Addr::LOCALHOST.into()))?;
        let (manifests, state, programs) =
            (folder::quickstart(Ipv4Addr::LOCALHOST.into())?, TempDir::new()?, TempDir::new()?);
        let link = programs.path().join("sluice");
        symlink(sluice::binary()?, &link)?;
        let mut command = netns.command(&link)?;
        command.arg("keep").args(arguments).arg("--").args(agent(manifests.path(), state.path()));
        command.args(["--instance", &instance]);
        command.args(["--data-path", if data_path == DataPath::Kernel { "kernel" } else { "userspace" }]);
        let mut keeper = Process::start("sluice keep", &mut command)?;
        keeper.wait_for_line("sluice: ready", PATIENCE)?;
        Ok(Stage { instance, netns, nginx, keeper, ended: false, state, programs, manifests })
    }

    /// Process ids of the running agents, the oldest first.
    fn agents(&self) -> Result<Vec<i32>> {
        let id = self.keeper.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"))?;
        children.split_whitespace().map(|pid| pid.parse().context("a process id")).collect()
    }

    fn agent(&self) -> Result<i32> {
        match self.agents()?.as_slice() {
            [agent] => Ok(*agent),
            other => bail!("one agent is expected to run: {other:?}"),
        }
    }

    fn readies(&self) -> usize {
        self.keeper.output().iter().filter(|line| *line == "sluice: ready").count()
    }

    fn upgrade(&self) -> Result<Output> {
        sluice::run(&[OsStr::new("upgrade"), OsStr::new("--state"), self.state.path().as_os_str()])
    }

    /// Replaces the agent's binary atomically.
    fn install(&self, make: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<()> {
        let new = self.programs.path().join("new");
        make(&new)?;
        Ok(fs::rename(new, self.programs.path().join("sluice"))?)
    }

    fn install_script(&self, line: &str) -> Result<()> {
        self.install(|path| {
            fs::write(path, format!("#!/bin/sh\n{line}\n"))?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        })
    }

    /// Waits for the exit of the keeper; returns its exit code.
    fn code(&mut self) -> Result<Option<i32>> {
        let code = self.keeper.ended(PATIENCE)?.code();
        self.ended = true;
        Ok(code)
    }

    /// Stops the keeper; returns its exit code.
    fn end(&mut self) -> Result<Option<i32>> {
        kill(i32::try_from(self.keeper.id())?, Signal::TERM)?;
        self.code()
    }

    /// Stops the keeper, and checks that no state is left in the kernel.
    fn ends_cleanly(mut self) -> Result<()> {
        assert_eq!(self.end()?, Some(0));
        assert!(!Path::new("/sys/fs/bpf/sluice").join(&self.instance).exists(), "pins are left");
        Ok(())
    }

    fn edge(&self) -> Result<String> {
        Ok(Client::of(&self.netns, Ipv4Addr::LOCALHOST.into()).get("https://edge.apps.localhost:8443/")?.body)
    }
}

impl Drop for Stage {
    /// A killed keeper leaves its agents running.
    fn drop(&mut self) {
        if !self.ended
            && let Err(error) = self.end()
        {
            eprintln!("leaving a keeper behind: {error:#}");
        }
        // After a failed test. User-space runs have no pins.
        let _ = fs::remove_dir_all(Path::new("/sys/fs/bpf/sluice").join(&self.instance));
    }
}

fn agent(manifests: &Path, state: &Path) -> Vec<PathBuf> {
    let fixed = ["--listen", "127.0.0.1", "--endpoint-addresses", "any"];
    let mut arguments: Vec<PathBuf> = ["run", "--manifests"].map(PathBuf::from).into();
    arguments.push(manifests.into());
    arguments.push("--state".into());
    arguments.push(state.into());
    arguments.extend(fixed.map(PathBuf::from));
    arguments
}

fn kill(pid: i32, signal: Signal) -> Result<()> {
    Ok(kill_process(Pid::from_raw(pid).context("a process id is positive")?, signal)?)
}

fn lives(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_connection_made_while_no_agent_runs_is_served_by_the_next_one() -> Result<()> {
    killed(DataPath::UserSpace)
}

#[test]
fn a_connection_made_while_no_agent_runs_is_served_by_the_next_one_with_the_kernel_program() -> Result<()> {
    killed(DataPath::Kernel)
}

fn killed(data_path: DataPath) -> Result<()> {
    let stage = Stage::new(data_path, &[])?;
    for round in 1..=3 {
        let killed = stage.agent()?;
        kill(killed, Signal::KILL)?;
        wait::wait_until("the killed agent is gone", PATIENCE, || !lives(killed))?;
        let mut connection = stage.netns.run(|| Ok(TcpStream::connect_timeout(&HTTP, PATIENCE)?))?;
        ensure!(stage.agents()?.is_empty(), "the connection was to be made while no agent runs");
        connection.set_read_timeout(Some(PATIENCE))?;
        connection.write_all(b"GET / HTTP/1.1\r\nHost: hello.apps.localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("nginx hello"), "{answer}");
        wait::wait_until("the next agent is ready", Duration::from_secs(5), || stage.readies() == 1 + round)?;
        assert_ne!(stage.agent()?, killed);
    }
    stage.ends_cleanly()
}

/// A client that opens TLS connections one after another, and counts them.
struct Load {
    stop: AtomicBool,
    served: AtomicU64,
}

impl Load {
    fn run(&self, netns: &Netns) -> Result<()> {
        let config = trusting_the_demo_ca()?;
        netns.run(|| {
            while !self.stop.load(Ordering::Relaxed) {
                let begin = Instant::now();
                get(&config).with_context(|| {
                    let served = self.served.load(Ordering::Relaxed);
                    format!("connection {served}, after {:?}", begin.elapsed())
                })?;
                self.served.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        })
    }
}

fn get(config: &Arc<ClientConfig>) -> Result<()> {
    let tcp = TcpStream::connect_timeout(&HTTPS, PATIENCE)?;
    tcp.set_read_timeout(Some(PATIENCE))?;
    tcp.set_nodelay(true)?;
    let session = ClientConnection::new(Arc::clone(config), ServerName::try_from(EDGE)?)?;
    let mut tls = StreamOwned::new(session, tcp);
    write!(tls, "GET / HTTP/1.1\r\nHost: {EDGE}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    tls.read_to_string(&mut answer)?;
    ensure!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("nginx edge"), "{answer:?}");
    Ok(())
}

#[test]
fn upgrades_under_load_refuse_and_break_nothing() -> Result<()> {
    upgrades(DataPath::UserSpace)
}

#[test]
fn upgrades_under_load_refuse_and_break_nothing_with_the_kernel_program() -> Result<()> {
    upgrades(DataPath::Kernel)
}

/// New TLS connections at full speed, and a response that takes longer than an upgrade: none is refused or broken.
fn upgrades(data_path: DataPath) -> Result<()> {
    const LENGTH: u64 = 16 << 20;
    let stage = Stage::new(data_path, &[])?;
    let content = stream::Content::new(7);
    let sent = content.send(&mut File::create(stage.nginx.files().join("long"))?, LENGTH, |_| ())?;
    let load = Load { stop: AtomicBool::new(false), served: AtomicU64::new(0) };
    let target = stage.programs.path().join("download");
    let first = stage.agent()?;
    thread::scope(|scope| {
        let clients: Vec<_> = (0..3).map(|_| scope.spawn(|| load.run(&stage.netns))).collect();
        let download = scope.spawn(|| {
            let client = Client::of(&stage.netns, Ipv4Addr::LOCALHOST.into());
            client.download("https://edge.apps.localhost:8443/file/long", &target)
        });
        let upgrades = (|| {
            wait::wait_until("the download has begun", PATIENCE, || fs::metadata(&target).is_ok_and(|m| m.len() > 0))?;
            for upgrade in 1..=3 {
                let before = load.served.load(Ordering::Relaxed);
                let output = stage.upgrade()?;
                let said = String::from_utf8_lossy(&output.stdout).into_owned();
                ensure!(output.status.success() && said.starts_with("upgraded: process "), "{upgrade}: {output:?}");
                // The download takes longer than this on the slowest machine.
                ensure!(upgrade > 1 || !download.is_finished(), "the download was to take longer than an upgrade");
                ensure!(lives(first) || download.is_finished(), "the first agent has ended before its download");
                wait::wait_until("the new agent serves", PATIENCE, || {
                    load.served.load(Ordering::Relaxed) > before + 20
                        || clients.iter().any(|client| client.is_finished())
                })?;
            }
            Ok(())
        })();
        load.stop.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))?;
        }
        download.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))?;
        upgrades
    })?;
    let received = stream::receive(&mut File::open(&target)?)?;
    assert_eq!(received, (LENGTH, sent), "the download is whole");
    wait::wait_until("the older agents have drained", PATIENCE, || stage.agents().is_ok_and(|all| all.len() == 1))?;
    assert_ne!(stage.agent()?, first);
    assert!(stage.edge()?.starts_with("nginx edge"), "the admin socket and the listeners are the last agent's");
    let state = stage.state.path().as_os_str();
    let routes = sluice::run(&[OsStr::new("get"), OsStr::new("routes"), OsStr::new("--state"), state])?;
    assert!(routes.status.success(), "{routes:?}");
    stage.ends_cleanly()
}

#[test]
fn sigusr2_upgrades_too() -> Result<()> {
    let stage = Stage::new(DataPath::UserSpace, &[])?;
    let first = stage.agent()?;
    kill(i32::try_from(stage.keeper.id())?, Signal::USR2)?;
    wait::wait_until("another agent serves alone", PATIENCE, || stage.agent().is_ok_and(|agent| agent != first))?;
    assert!(stage.edge()?.starts_with("nginx edge"));
    Ok(())
}

#[test]
fn an_upgrade_to_an_agent_that_does_not_get_ready_says_why_and_changes_nothing() -> Result<()> {
    // The hanging agent uses up this time once; the last one must be ready within it on a slow machine.
    let stage = Stage::new(DataPath::UserSpace, &["--ready-within", "10"])?;
    let agent = stage.agent()?;
    let failures = [
        ("exit 7", "ended with exit code 7"),
        ("kill -9 $$", "was ended by signal 9"),
        ("exec sleep 600", "was not ready within 10 s"),
    ];
    for (script, why) in failures {
        stage.install_script(script)?;
        let output = stage.upgrade()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("the running agent stays") && said.contains(why), "{why:?} is expected: {said}");
        assert!(lives(agent) && stage.edge()?.starts_with("nginx edge"));
    }
    stage.install(|path| fs::write(path, "no program"))?;
    let said = String::from_utf8(stage.upgrade()?.stderr)?;
    assert!(said.contains("cannot be run"), "{said}");
    // An older agent that hangs does not block the upgrade.
    let binary = sluice::binary()?;
    stage.install(|path| symlink(binary, path))?;
    let output = stage.upgrade()?;
    assert!(output.status.success(), "{output:?}");
    assert!(stage.edge()?.starts_with("nginx edge"));
    Ok(())
}

/// Meanwhile, the old agent did not update the kernel's maps.
#[test]
fn after_an_upgrade_that_failed_the_kernels_maps_follow_the_manifests_again() -> Result<()> {
    let stage = Stage::new(DataPath::Kernel, &[])?;
    stage.install_script("exit 7")?;
    ensure!(!stage.upgrade()?.status.success(), "this upgrade cannot succeed");
    let backend = SocketAddr::from((Ipv4Addr::LOCALHOST, 18443));
    let late =
        folder::service("late", backend) + &folder::route("late", "late.apps.localhost", "late", folder::PASSTHROUGH);
    folder::replace(&stage.manifests.path().join("late.yaml"), &late)?;
    let dump = ["bpf", "dump", "sni_passthrough", "--instance", &stage.instance].map(OsStr::new);
    wait::wait_until("the new route is in the kernel", PATIENCE, || {
        sluice::run(&dump).is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("late.apps.localhost"))
    })?;
    let diff = ["bpf", "diff", "--instance", &stage.instance, "--state"].map(OsStr::new);
    let diff = sluice::run(&[&diff[..], &[stage.state.path().as_os_str()]].concat())?;
    assert!(diff.status.success(), "{diff:?}");
    stage.ends_cleanly()
}

#[test]
fn cleanup_removes_what_a_killed_agent_left_and_nothing_of_one_that_lives() -> Result<()> {
    let netns = Netns::new("cleanup")?;
    let (manifests, state) = (folder::quickstart(Ipv4Addr::LOCALHOST.into())?, TempDir::new()?);
    let instance = format!("cleanup-{}", std::process::id());
    // In the router's namespace, where its interfaces are.
    let cleanup = || -> Result<Output> {
        Ok(netns.command(sluice::binary()?)?.args(["bpf", "cleanup", "--instance", &instance]).output()?)
    };
    let mut command = netns.command(sluice::binary()?)?;
    command.args(agent(manifests.path(), state.path())).args(["--instance", &instance, "--data-path", "kernel"]);
    let mut agent = Process::start("sluice", &mut command)?;
    agent.wait_for_line("sluice: ready", PATIENCE)?;
    let refused = cleanup()?;
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains(&format!("process {} is using", agent.id())), "{said}");

    kill(i32::try_from(agent.id())?, Signal::KILL)?;
    agent.ended(PATIENCE)?;
    let folder = Path::new("/sys/fs/bpf/sluice").join(&instance);
    let link = folder.join(format!("v{}/links/lo-ingress", router_common::maps::ABI));
    // Before Linux 6.6 there are filters instead of pinned links.
    let filters = || -> Result<String> {
        let shown = command::output(netns.command("tc")?.args(["filter", "show", "dev", "lo", "ingress"]))?;
        Ok(String::from_utf8(shown.stdout)?)
    };
    assert!(link.exists() || filters()?.contains("sluice_ingress"), "the programs stay attached without an agent");
    let removed = cleanup()?;
    assert!(removed.status.success() && !folder.exists(), "{removed:?}");
    assert!(!filters()?.contains("sluice_ingress"), "a filter is left");
    assert!(cleanup()?.status.success(), "there being nothing is fine");
    Ok(())
}

#[test]
fn exit_codes_that_another_start_would_not_change_are_passed_on() -> Result<()> {
    for code in [0, 2, 3] {
        let mut stage = Stage::new(DataPath::UserSpace, &[])?;
        stage.install_script(&format!("exit {code}"))?;
        kill(stage.agent()?, Signal::KILL)?;
        assert_eq!(stage.code()?, Some(code));
    }
    // The exit of the keeper follows that of the agent.
    let mut stage = Stage::new(DataPath::UserSpace, &[])?;
    assert_eq!(stage.end()?, Some(0));
    assert!(stage.netns.run(|| Ok(TcpStream::connect(HTTP).is_err()))?, "nobody listens any more");
    assert!(!stage.state.path().join("keep.sock").exists() && !stage.state.path().join("admin.sock").exists());
    Ok(())
}

#[test]
fn other_exit_codes_are_tried_again_more_and_more_slowly() -> Result<()> {
    let stage = Stage::new(DataPath::UserSpace, &[])?;
    stage.install_script("exit 1")?;
    kill(stage.agent()?, Signal::KILL)?;
    for wait in ["0.1", "0.2", "0.4", "0.8"] {
        let line = format!("starting it again in {wait} s");
        wait::wait_until(&line, PATIENCE, || stage.keeper.output().iter().any(|said| said.ends_with(&line)))?;
    }
    let binary = sluice::binary()?;
    stage.install(|path| symlink(binary, path))?;
    wait::wait_until("an agent is ready again", PATIENCE, || stage.readies() == 2)?;
    assert!(stage.edge()?.starts_with("nginx edge"));
    Ok(())
}

#[test]
fn wrong_usage_is_reported_once_and_not_restarted() -> Result<()> {
    for (arguments, part) in [
        (&["keep", "--", "run", "--no-such-flag"][..], "--no-such-flag"),
        (&["keep", "--", "get", "routes"], "`sluice keep -- run …`"),
        (&["keep"], "run …"),
    ] {
        let output = sluice::run(&arguments.iter().map(OsStr::new).collect::<Vec<_>>())?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(part), "{said}");
    }
    let state = TempDir::new()?;
    let output = sluice::run(&[OsStr::new("upgrade"), OsStr::new("--state"), state.path().as_os_str()])?;
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("no keeper answers on") && said.contains("sluice keep -- run"), "{said}");
    Ok(())
}

/// As with systemd: sockets through `LISTEN_FDS`, readiness through `NOTIFY_SOCKET`.
#[test]
fn sockets_of_systemd_are_used_and_readiness_is_notified() -> Result<()> {
    let netns = Netns::new("activation")?;
    let _nginx = Nginx::start(&netns, &nginx::quickstart(Ipv4Addr::LOCALHOST.into()))?;
    let (manifests, state) = (folder::quickstart(Ipv4Addr::LOCALHOST.into())?, TempDir::new()?);
    let unwanted = SocketAddr::from((Ipv4Addr::LOCALHOST, 9999));
    let [http, https, other] = [HTTP, HTTPS, unwanted].map(|address| netns.run(|| Ok(TcpListener::bind(address)?)));
    let [http, https, other] = [http?, https?, other?];
    let (notify, log) = (state.path().join("notify"), state.path().join("log"));
    let notified = UnixDatagram::bind(&notify)?;
    notified.set_read_timeout(Some(PATIENCE))?;

    // A shell moves the descriptors to the numbers of LISTEN_FDS, and then executes the agent under its own process id.
    let mut command = netns.command("sh")?;
    let own = |listener: &TcpListener| Ok::<OwnedFd, std::io::Error>(listener.try_clone()?.into());
    command.stdin(own(&http)?).stdout(own(&https)?).stderr(own(&other)?).env("NOTIFY_SOCKET", &notify);
    command.arg("-c").arg("exec 3<&0 4<&1 5<&2 </dev/null >\"$0\" 2>&1; LISTEN_PID=$$ LISTEN_FDS=3 exec \"$@\"");
    command.arg(&log).arg(sluice::binary()?).args(agent(manifests.path(), state.path()));
    command.args(["--data-path", "userspace"]);
    let mut agent = Child(command.spawn()?);
    let said = || fs::read_to_string(&log).unwrap_or_default();
    let mut text = String::new();
    while !text.lines().any(|line| line == "READY=1") {
        let mut buffer = [0; 4096];
        let length = notified.recv(&mut buffer).with_context(said)?;
        text = String::from_utf8_lossy(&buffer[..length]).into_owned();
        ensure!(!text.contains("FDSTORE"), "nothing was opened that systemd does not have: {text}");
    }
    let client = Client::of(&netns, Ipv4Addr::LOCALHOST.into());
    assert!(client.get("https://edge.apps.localhost:8443/")?.body.starts_with("nginx edge"));
    assert!(client.get("http://hello.apps.localhost:8080/")?.body.starts_with("nginx hello"));
    let warned = said().lines().any(|line| line.contains("kept open") && line.contains("127.0.0.1:9999"));
    assert!(warned, "{}", said());

    agent.end()?;
    // systemd owns the sockets: connections wait for the next agent.
    for address in [HTTP, HTTPS, unwanted] {
        netns.run(|| Ok(TcpStream::connect_timeout(&address, PATIENCE)?))?;
    }
    Ok(())
}

/// A process that is killed when the test ends.
struct Child(std::process::Child);

impl Child {
    fn end(&mut self) -> Result<()> {
        kill(i32::try_from(self.0.id())?, Signal::TERM)?;
        let ended = wait::wait_for("it ends on SIGTERM", PATIENCE, || self.0.try_wait().ok().flatten())?;
        ensure!(ended.0.success(), "it ended with {}", ended.0);
        Ok(())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
