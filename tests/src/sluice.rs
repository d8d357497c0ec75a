//! The router under test: the real binary, in a namespace.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitStatus, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result};
use router_common::maps::ABI;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::command::output;
use crate::netns::Netns;
use crate::process::Process;
use crate::workspace;

/// Time-out for a router to become ready, or to end, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// `--data-path`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataPath {
    /// With the kernel programs, which must load.
    Kernel,
    /// Without them.
    UserSpace,
    /// `auto`, in a process that may not load programs.
    Forbidden,
}

/// Options of a router.
pub struct Options {
    /// `--data-path`.
    pub data_path: DataPath,
    /// True if endpoints may be on loopback.
    pub any_endpoint: bool,
    /// True if `sluice keep` runs it.
    pub kept: bool,
    /// Limit of open descriptors (`RLIMIT_NOFILE`); `None` for the default.
    pub descriptors: Option<u32>,
    /// Log filter (`RUST_LOG`); `None`: that of the tests' environment.
    pub log: Option<&'static str>,
    /// Further arguments of `sluice run`.
    pub arguments: Vec<String>,
    /// State folder of an earlier router; `None`: a new one.
    pub state: Option<Arc<TempDir>>,
}

impl Options {
    /// Options for a folder with endpoints on loopback.
    pub fn loopback(data_path: DataPath) -> Options {
        Options { any_endpoint: true, ..Options::network(data_path) }
    }

    /// Options for a folder with endpoints elsewhere.
    pub const fn network(data_path: DataPath) -> Options {
        Options {
            data_path,
            any_endpoint: false,
            kept: false,
            descriptors: None,
            log: None,
            arguments: Vec::new(),
            state: None,
        }
    }
}

/// A running router.
pub struct Sluice {
    process: Process,
    instance: String,
    state: Arc<TempDir>,
}

impl Sluice {
    /// Starts it on a folder of manifests and waits until it is ready.
    ///
    /// # Errors
    /// When it cannot be built, or does not become ready; with all it printed.
    pub fn start(netns: &Netns, manifests: &Path, options: &Options) -> Result<Sluice> {
        let source = [OsStr::new("--manifests"), manifests.as_os_str()];
        let mut sluice = Sluice::spawn(netns, &source, options)?;
        sluice.wait_until_ready()?;
        Ok(sluice)
    }

    /// Starts it on the API server of a kubeconfig; it may not be ready when this returns.
    ///
    /// # Errors
    /// When it cannot be built or started.
    pub fn spawn_in_cluster(netns: &Netns, kubeconfig: &Path, options: &Options) -> Result<Sluice> {
        let source = [OsStr::new("--kubernetes"), OsStr::new("--kubeconfig"), kubeconfig.as_os_str()];
        Sluice::spawn(netns, &source, options)
    }

    fn spawn(netns: &Netns, source: &[&OsStr], options: &Options) -> Result<Sluice> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let instance = format!("test-{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let state = options.state.clone().map_or_else(|| TempDir::new().map(Arc::new), Ok)?;
        // `env` only executes the program.
        let mut command = netns.command("env")?;
        if let Some(filter) = options.log {
            command.args(["-u", "SLUICE_LOG"]).arg(format!("RUST_LOG={filter}"));
        }
        if options.data_path == DataPath::Forbidden {
            command.args(["setpriv", "--bounding-set=-bpf,-sys_admin"]);
        }
        if let Some(descriptors) = options.descriptors {
            command.arg("prlimit").arg(format!("--nofile={descriptors}"));
        }
        command.arg(binary()?);
        if options.kept {
            command.args(["keep", "--"]);
        }
        command.arg("run").args(source).arg("--state").arg(state.path());
        command.args(["--instance", &instance]);
        let data_path = match options.data_path {
            DataPath::Kernel => "kernel",
            DataPath::UserSpace => "userspace",
            DataPath::Forbidden => "auto",
        };
        command.args(["--data-path", data_path]);
        if options.any_endpoint {
            command.args(["--endpoint-addresses", "any"]);
        }
        command.args(&options.arguments);
        let process = Process::start("sluice", &mut command)?;
        Ok(Sluice { process, instance, state })
    }

    /// Waits until it is ready.
    ///
    /// # Errors
    /// When it ends before, or is not ready in time; with all it printed.
    pub fn wait_until_ready(&mut self) -> Result<()> {
        self.process.wait_for_line("sluice: ready", PATIENCE)
    }

    /// Process ids of a kept router's running agents, the oldest first.
    ///
    /// # Errors
    /// When the keeper has ended.
    pub fn agents(&self) -> Result<Vec<u32>> {
        let id = self.process.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"))?;
        let mut agents: Vec<u32> = children.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        agents.retain(|agent| runs(*agent));
        Ok(agents)
    }

    /// Resident memory in bytes.
    ///
    /// # Errors
    /// When it has ended.
    pub fn resident(&self) -> Result<u64> {
        self.process.resident()
    }

    /// Processor time so far, to 10 ms.
    ///
    /// # Errors
    /// When it has ended.
    pub fn processor_time(&self) -> Result<Duration> {
        self.process.processor_time()
    }

    /// Number of its open descriptors.
    ///
    /// # Errors
    /// When it has ended.
    pub fn descriptors(&self) -> Result<usize> {
        Ok(std::fs::read_dir(format!("/proc/{}/fd", self.process.id()))?.count())
    }

    /// Maximum resident memory so far, in bytes.
    ///
    /// # Errors
    /// When it has ended.
    pub fn peak(&self) -> Result<u64> {
        self.process.peak()
    }

    /// `--instance`.
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// Its output.
    pub fn output(&self) -> Vec<String> {
        self.process.output()
    }

    /// Its output behind the first bytes: see [`Process::output_from`].
    pub fn output_from(&self, since: &mut u64) -> Vec<String> {
        self.process.output_from(since)
    }

    /// Whether it has printed a line with this text.
    pub fn has_line(&self, text: &str) -> bool {
        self.output().iter().any(|line| line.contains(text))
    }

    /// `--state`.
    pub fn state(&self) -> &Path {
        self.state.path()
    }

    /// Path of a map's pin.
    pub fn pin(&self, map: &str) -> PathBuf {
        self.pins().join(format!("v{ABI}")).join(map)
    }

    /// `sluice get WHAT -o json`.
    ///
    /// # Errors
    /// When the command fails or prints no JSON.
    pub fn get(&self, what: &str) -> Result<Value> {
        json(Command::new(binary()?).args(["get", what, "-o", "json", "--state"]).arg(self.state()))
    }

    /// `sluice bpf dump MAP -o json`.
    ///
    /// # Errors
    /// When the command fails or prints no JSON.
    pub fn dump(&self, map: &str) -> Result<Value> {
        json(Command::new(binary()?).args(["bpf", "dump", map, "-o", "json", "--instance", &self.instance]))
    }

    /// `bpftool` on a pinned map, with its verb before the map and its arguments after it.
    ///
    /// # Errors
    /// When it fails.
    pub fn bpftool(&self, verb: &str, map: &str) -> Result<String> {
        let output = output(Command::new("bpftool").args(["map", verb, "pinned"]).arg(self.pin(map)))?;
        Ok(String::from_utf8(output.stdout)?)
    }

    /// As [`Sluice::bpftool`], in JSON.
    ///
    /// # Errors
    /// When it fails.
    pub fn bpftool_json(&self, verb: &str, map: &str) -> Result<Value> {
        json(Command::new("bpftool").args(["-j", "map", verb, "pinned"]).arg(self.pin(map)))
    }

    /// Sends it a signal. With SIGSTOP, returns once all its threads are stopped.
    ///
    /// # Errors
    /// When it has ended.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.process.signal(signal)
    }

    /// Stops it with SIGTERM.
    ///
    /// # Errors
    /// When it does not end.
    pub fn stop(mut self) -> Result<ExitStatus> {
        self.process.terminate(PATIENCE)
    }

    /// Kills it; returns its state folder, for a router after it ([`Options::state`]).
    ///
    /// # Errors
    /// When it has ended.
    pub fn kill(self) -> Result<Arc<TempDir>> {
        self.signal(Signal::KILL)?;
        Ok(Arc::clone(&self.state))
    }

    /// Kills it and waits for its end. What it has pinned stays until the value is dropped.
    ///
    /// # Errors
    /// When it had ended before.
    pub fn crash(&mut self) -> Result<()> {
        self.signal(Signal::KILL)?;
        self.process.ended(PATIENCE).map(drop)
    }

    fn pins(&self) -> PathBuf {
        Path::new("/sys/fs/bpf/sluice").join(&self.instance)
    }
}

impl Drop for Sluice {
    fn drop(&mut self) {
        // A stopped process handles no other signal.
        let _ = self.process.signal(Signal::CONT);
        // On a second signal, a keeper ends agents that did not end by themselves; if it is killed, they stay.
        if self.process.terminate(PATIENCE).is_err() && self.process.terminate(PATIENCE).is_err() {
            eprintln!("sluice printed:\n{}", self.output().join("\n"));
        }
        // Pins deliberately outlive the router; here no router adopts them. User-space runs have none.
        let _ = std::fs::remove_dir_all(self.pins());
    }
}

/// The `sluice` binary of the profile that this test was built with, built if necessary; the environment variable
/// `SLUICE_BINARY` overrides it.
///
/// # Errors
/// When the build fails.
pub fn binary() -> Result<&'static Path> {
    static BINARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match BINARY.get_or_init(|| build().map_err(|error| format!("{error:#}"))) {
        Ok(path) => Ok(path),
        Err(error) => anyhow::bail!("{error}"),
    }
}

fn build() -> Result<PathBuf> {
    if let Some(other) = std::env::var_os("SLUICE_BINARY") {
        return Ok(other.into());
    }
    // …/target/<profile>/deps/<test>-<hash>
    let test = std::env::current_exe()?;
    let profile = test.ancestors().nth(2).context("a test is in target/<profile>/deps")?;
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--locked", "--package", "router", "--bin", "sluice", "--features", "kernel-log"]);
    cargo.current_dir(workspace());
    if profile.file_name() == Some(OsStr::new("release")) {
        cargo.arg("--release");
    }
    output(&mut cargo)?;
    Ok(profile.join("sluice"))
}

/// Runs `sluice` with these arguments to completion.
///
/// # Errors
/// When it cannot be started.
pub fn run(arguments: &[&OsStr]) -> Result<Output> {
    Ok(Command::new(binary()?).args(arguments).output()?)
}

/// True if a process runs; one that has exited stays a zombie until its parent has waited for it.
fn runs(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The process name before the state may contain anything.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn json(command: &mut Command) -> Result<Value> {
    let output = output(command)?;
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{command:?} printed no JSON:\n{}", String::from_utf8_lossy(&output.stdout)))
}
