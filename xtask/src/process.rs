//! Child processes, without a shell.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Lines};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

/// A command that has failed when its exit code is not 0.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("`{}` could not be started", text(command)))?;
    ensure!(status.success(), "`{}` failed ({status})", text(command));
    Ok(())
}

/// Whether a program exists and succeeds; its output is dropped.
pub fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}

/// What a command prints; what it says on stderr is echoed, and part of the error when it fails.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("`{}` cannot be run; is it installed?", text(command)))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{}`: {}", text(command), said.trim().trim_start_matches("xtask: "));
    if !said.trim().is_empty() {
        eprintln!("{}", said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// `cargo`, in the workspace.
pub fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// Folders of programs: the path, and those of system programs, which not every root shell has on it.
pub fn search_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from)).collect()
}

/// Cargo's target folder: `CARGO_TARGET_DIR`, else `target` in the workspace.
pub fn target(root: &Path) -> PathBuf {
    root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Builds the `sluice` binary to run and returns where it is.
pub fn build_sluice(root: &Path) -> Result<PathBuf> {
    run(cargo(root).args(BUILD_SLUICE).arg("--release"))?;
    Ok(target(root).join("release/sluice"))
}

/// Builds the `sluice` binary that the tests run, which has the log of the kernel program too, and returns where it is.
pub fn build_tested_sluice(root: &Path) -> Result<PathBuf> {
    run(cargo(root).args(BUILD_SLUICE).args(TESTED_FEATURES))?;
    Ok(target(root).join("debug/sluice"))
}

/// Arguments of cargo: what tests and lints have of the agent and a release has not. One set, so that no crate is compiled twice.
pub const TESTED_FEATURES: [&str; 2] = ["--features", "router/kernel-log"];
const BUILD_SLUICE: [&str; 6] = ["build", "--locked", "--package", "router", "--bin", "sluice"];

/// Whether this process is root, and so may load kernel programs and install packages.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Ignores Ctrl-C, which the terminal also sends to the children: this process stays for their final output.
pub fn leave_interrupts_to_children() {
    // SAFETY: ignoring a signal runs no code of ours. Children inherit it; servers that end in order on an interrupt
    // install a handler, and the others get SIGTERM when they are dropped.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
}

/// A child that gets SIGTERM when this process ends in any way, or when the value is dropped, and whose stderr is read
/// line by line.
pub struct Server {
    running: Running,
    lines: Lines<BufReader<ChildStderr>>,
}

impl Server {
    /// Starts it.
    pub fn start(name: &'static str, command: &mut Command) -> Result<Server> {
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let end_with_parent = || Ok(set_parent_process_death_signal(Some(Signal::TERM))?);
        // SAFETY: between fork and exec the closure makes one system call, which is async-signal-safe, and allocates
        // nothing.
        unsafe { command.pre_exec(end_with_parent) };
        let mut child = command.spawn().with_context(|| format!("`{}` could not be started", text(command)))?;
        let stderr = child.stderr.take().context("stderr is piped")?;
        Ok(Server { running: Running { name, child }, lines: BufReader::new(stderr).lines() })
    }

    /// Echoes its lines until one is `line`; returns those before.
    pub fn wait_for(&mut self, line: &str) -> Result<Vec<String>> {
        let mut before = Vec::new();
        for read in self.lines.by_ref() {
            let read = read.with_context(|| format!("reading what {} says", self.running.name))?;
            eprintln!("{read}");
            if read == line {
                return Ok(before);
            }
            before.push(read);
        }
        let status = self.running.child.wait()?;
        bail!("{} ended before it was ready ({status}); what it said is above", self.running.name)
    }

    /// Echoes its lines while it runs, in a thread of their own.
    pub fn echo(self) -> Running {
        let Server { running, lines } = self;
        thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("{line}")));
        running
    }
}

/// Starts `sluice run`; returns how long it took from exec to `sluice: ready`.
pub fn start_sluice(command: &mut Command) -> Result<(Duration, Running)> {
    let begin = Instant::now();
    let mut server = Server::start("sluice run", command)?;
    server.wait_for("sluice: ready")?;
    Ok((begin.elapsed(), server.echo()))
}

/// A server whose output is being echoed.
pub struct Running {
    name: &'static str,
    child: Child,
}

impl Running {
    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it runs.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|ended| ended.is_none())
    }

    /// Resident memory in bytes.
    pub fn resident(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().context("VmRSS is a number")?;
        Ok(kib * 1024)
    }

    /// Waits until it has used no processor time for a moment.
    pub fn settle(&self) -> Result<()> {
        let mut last = (self.processor_time()?, Instant::now());
        while last.1.elapsed() < Duration::from_millis(60) {
            thread::sleep(Duration::from_millis(10));
            let now = self.processor_time()?;
            if now != last.0 {
                last = (now, Instant::now());
            }
        }
        Ok(())
    }

    /// User and system time in clock ticks (proc_pid_stat(5), fields 14 and 15).
    fn processor_time(&self) -> Result<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let (_, after_name) = stat.rsplit_once(')').context("no name in stat")?;
        Ok(after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum())
    }

    /// Waits for it to end, which is an error unless it ends well.
    pub fn wait(&mut self) -> Result<()> {
        let status = self.child.wait()?;
        ensure!(status.success(), "{} ended ({status})", self.name);
        Ok(())
    }
}

impl Drop for Running {
    /// SIGTERM, on which servers end their own children, and then the end.
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
            return;
        }
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself meanwhile, which is as good.
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

/// The command as one would type it.
pub fn text(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::bench::usage::family;

    /// Waits for a condition, 20 s at most.
    fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
        let begin = Instant::now();
        while !condition() {
            assert!(begin.elapsed() < Duration::from_secs(20), "not within 20 s: {what}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn workers_of_a_server_end_with_it() {
        let folder = std::env::temp_dir().join(format!("xtask-process-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let at = folder.display();
        let config = format!(
            "daemon off; worker_processes 2; pid {at}/pid; error_log stderr; events {{}}
             http {{ access_log off; client_body_temp_path {at}/a; proxy_temp_path {at}/b; fastcgi_temp_path {at}/c;
             uwsgi_temp_path {at}/d; scgi_temp_path {at}/e; server {{ listen unix:{at}/socket; }} }}"
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, config).unwrap();
        let program = search_path().into_iter().map(|folder| folder.join("nginx")).find(|file| file.is_file());
        let mut command = Command::new(program.unwrap());
        command.arg("-p").arg(&folder).arg("-c").arg(&file).args(["-e", "stderr"]);
        // A server that is not echoed yet is ended as well.
        let server = Server::start("nginx", &mut command).unwrap();
        let master = server.running.id();
        wait_until("nginx has two workers", || family(master).unwrap().len() == 3);
        let all = family(master).unwrap();
        drop(server);
        let left: Vec<u32> = all.into_iter().filter(|pid| Path::new(&format!("/proc/{pid}")).exists()).collect();
        fs::remove_dir_all(&folder).unwrap();
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}
