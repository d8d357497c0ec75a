//! A cluster for a person, in the background, with Sluice: `up NODES SLUICE`, `down`, `kubectl ARGUMENT...`, or `exec
//! PROGRAM ARGUMENT...` in the network of Sluice; `cargo xtask cluster` runs it.
//!
//! One process holds the cluster (`hold NODES SLUICE`, started by `up`), and removes it on SIGTERM. It locks a file in
//! `target/kube/cluster`, or in the folder `CLUSTER_FOLDER`, that says how to reach the cluster.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio, id};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tests::cluster::{Cluster, Demonstration, Pods, built, leftovers};
use tests::workspace;
use tokio::signal::unix::{SignalKind, signal};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let state = State::open()?;
    match arguments[..] {
        ["up", nodes, sluice] => up(&state, nodes, Path::new(sluice)),
        ["hold", nodes, sluice] => hold(&state, nodes.parse().context("a number of nodes")?, Path::new(sluice)),
        ["down"] => down(&state),
        ["kubectl", ref arguments @ ..] => become_one(&state, "kubectl", arguments),
        ["exec", ref command @ ..] => become_one(&state, "exec", command),
        _ => bail!("usage: cluster up NODES SLUICE | down | kubectl ARGUMENT... | exec PROGRAM ARGUMENT..."),
    }
}

/// Starts the process that holds a cluster, and waits until the cluster is ready.
fn up(state: &State, nodes: &str, sluice: &Path) -> Result<()> {
    ensure!(!state.is_held()?, "a cluster runs already: see `cargo xtask cluster down`");
    sweep(state)?;
    let log = state.folder.join("log");
    let mut command = Command::new("setsid");
    command.arg(std::env::current_exe()?).args(["hold", nodes]).arg(sluice);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&log)?);
    fs::create_dir_all(state.files())?;
    command.env("TMPDIR", state.files());
    let begin = Instant::now();
    let mut child = command.spawn().context("setsid cannot be run")?;
    let mut said = String::new();
    BufReader::new(child.stdout.take().context("stdout is piped")?).read_line(&mut said)?;
    if said != "ready\n" {
        bail!("the cluster has not started ({}):\n{}", child.wait()?, fs::read_to_string(log)?);
    }
    print!("{}", invitation(begin.elapsed(), state, sluice));
    Ok(())
}

/// What to try.
fn invitation(took: Duration, state: &State, sluice: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let short = |path: &Path| path.strip_prefix(&here).unwrap_or(path).display().to_string();
    let ca = short(&workspace().join("examples/demo-certificates/demo-only-ca.crt"));
    let (seconds, sluice) = (took.as_secs_f32(), short(sluice));
    let (folder, log) = (short(&state.sluice()), short(&state.log_of_sluice()));
    format!(
        "\
The cluster is ready after {seconds:.1} s. Sluice serves examples/quickstart in it. Try:

  cargo xtask cluster kubectl get routes --all-namespaces
  cargo xtask cluster exec curl http://hello.apps.localhost:8080/
  cargo xtask cluster exec curl --cacert {ca} https://passthrough.apps.localhost:8443/
  {sluice} get status --state {folder}

Sluice's log is {log}. `cargo xtask cluster down` removes everything.
"
    )
}

/// Holds a cluster until SIGTERM or Ctrl-C.
fn hold(state: &State, nodes: u8, sluice: &Path) -> Result<()> {
    ensure!(state.lock(FlockOperation::NonBlockingLockExclusive)?, "a cluster runs already");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _entered = runtime.enter();
    let [mut terminate, mut interrupt] = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
    state.write(&json!({"process": id()}))?;
    let cluster = Cluster::start(nodes, Pods::Routed)?;
    let demonstration =
        Demonstration::start(&cluster.plane, cluster.site(), sluice, &state.sluice(), &state.log_of_sluice())?;
    let network = format!("--net=/run/netns/{}", cluster.site().name());
    let kubectl = json!(["nsenter", network, built("kube")?, "kubectl", "--kubeconfig", cluster.plane.kubeconfig()]);
    let kubeconfig = format!("KUBECONFIG={}", cluster.plane.kubeconfig().display());
    let exec = json!(["nsenter", network, "env", kubeconfig]);
    state.write(&json!({"process": id(), "exec": exec, "kubectl": kubectl}))?;
    println!("ready");
    runtime.block_on(async {
        tokio::select! {
            _ = terminate.recv() => (),
            _ = interrupt.recv() => (),
        }
    });
    drop(demonstration);
    drop(cluster);
    state.write(&Value::Null)
}

/// Ends the process that holds the cluster, and waits for its end.
fn down(state: &State) -> Result<()> {
    if state.is_held()? {
        let held = state.read()?;
        let process = held["process"].as_i64().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        kill_process(process.context("the holder of the cluster has not said who it is")?, Signal::TERM)?;
    } else {
        println!("no cluster runs");
    }
    // The holder keeps the lock until it has removed everything.
    state.lock(FlockOperation::LockExclusive)?;
    sweep(state)
}

/// Becomes a command of the cluster, with further arguments.
fn become_one(state: &State, name: &str, arguments: &[&str]) -> Result<()> {
    ensure!(state.is_held()?, "no cluster runs: see `cargo xtask cluster up`");
    let held = state.read()?;
    let words = held[name].as_array().context("the cluster is not ready yet")?;
    let [program, first @ ..] = &words.iter().filter_map(Value::as_str).collect::<Vec<_>>()[..] else {
        bail!("the state of the cluster has no command {name}");
    };
    Err(Command::new(program).args(first).args(arguments).exec()).with_context(|| format!("{program} cannot be run"))
}

/// Removes what a holder that was killed has left. Its processes have ended with it.
fn sweep(state: &State) -> Result<()> {
    if let Some(process) = state.read()?["process"].as_u64() {
        leftovers::remove(u32::try_from(process)?)?;
        state.write(&Value::Null)?;
    }
    if state.files().exists() {
        fs::remove_dir_all(state.files())?;
    }
    Ok(())
}

/// The file that the holder of a cluster locks.
struct State {
    folder: PathBuf,
    file: File,
}

impl State {
    fn open() -> Result<State> {
        let folder = match std::env::var_os("CLUSTER_FOLDER") {
            Some(folder) => folder.into(),
            None => built("kube")?.with_file_name("cluster"),
        };
        fs::create_dir_all(&folder)?;
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(State::path(&folder))?;
        Ok(State { folder, file })
    }

    fn path(folder: &Path) -> PathBuf {
        folder.join("state.json")
    }

    /// Folder of the cluster's files.
    fn files(&self) -> PathBuf {
        self.folder.join("files")
    }

    /// State folder of Sluice.
    fn sluice(&self) -> PathBuf {
        self.files().join("sluice")
    }

    fn log_of_sluice(&self) -> PathBuf {
        self.folder.join("sluice.log")
    }

    /// Locks the file; false if another process has locked it, and the operation does not wait.
    fn lock(&self, operation: FlockOperation) -> Result<bool> {
        match flock(&self.file, operation) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error).context("locking the state of the cluster"),
        }
    }

    /// Whether a process holds a cluster.
    fn is_held(&self) -> Result<bool> {
        let locked = self.lock(FlockOperation::NonBlockingLockExclusive)?;
        if locked {
            flock(&self.file, FlockOperation::Unlock)?;
        }
        Ok(!locked)
    }

    fn read(&self) -> Result<Value> {
        let text = fs::read_to_string(State::path(&self.folder))?;
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    fn write(&self, value: &Value) -> Result<()> {
        let mut file = &self.file;
        std::io::Seek::rewind(&mut file)?;
        file.set_len(0)?;
        Ok(file.write_all(value.to_string().as_bytes())?)
    }
}
