//! Processes started by a test: their output is kept, and they end when the value is dropped.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::Duration;
use std::{io, thread};

use anyhow::{Context, Result, bail};
use rustix::fs::{MemfdFlags, OFlags, fcntl_setfl, memfd_create};
use rustix::process::{Pid, Signal, kill_process};

use crate::wait;

/// A command to start, and where to send the result.
type Order = (Command, mpsc::Sender<io::Result<Child>>);

/// A running process.
pub struct Process {
    name: String,
    child: Child,
    /// A file in memory, or a log: complete when the process has ended, while the last part of a pipe may still be in flight.
    output: File,
}

impl Process {
    /// Starts it; stdout and stderr are kept line by line.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(name: &str, command: &mut Command) -> Result<Process> {
        let output = memory(name)?;
        keep(&output, command)?;
        let child = command.spawn().with_context(|| format!("{name} cannot be started"))?;
        Ok(Process { name: name.to_owned(), child, output })
    }

    /// As [`Process::start`], for a command that gets a signal when its parent ends (`PR_SET_PDEATHSIG`, by `setpriv
    /// --pdeathsig`). The parent is the thread that starts it: here one that lives as long as this process.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_lasting(name: &str, command: Command) -> Result<Process> {
        Process::start_on(name, command, memory(name)?)
    }

    /// As [`Process::start_lasting`], with stdout and stderr in a file, which is made empty.
    ///
    /// # Errors
    /// When it cannot be started, or the file cannot be written.
    pub fn start_logged(name: &str, command: Command, log: &Path) -> Result<Process> {
        File::create(log).with_context(|| log.display().to_string())?;
        Process::start_on(name, command, File::options().read(true).append(true).open(log)?)
    }

    fn start_on(name: &str, mut command: Command, output: File) -> Result<Process> {
        static STARTER: OnceLock<mpsc::Sender<Order>> = OnceLock::new();
        let starter = STARTER.get_or_init(|| {
            let (orders, taken) = mpsc::channel::<Order>();
            thread::spawn(move || taken.iter().for_each(|(mut command, answer)| drop(answer.send(command.spawn()))));
            orders
        });
        keep(&output, &mut command)?;
        let (answer, started) = mpsc::channel();
        starter.send((command, answer))?;
        let child = started.recv()?.with_context(|| format!("{name} cannot be started"))?;
        Ok(Process { name: name.to_owned(), child, output })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The lines printed so far.
    pub fn output(&self) -> Vec<String> {
        self.output_from(&mut 0)
    }

    /// The lines behind the first `since` bytes of the output; adds their bytes to it.
    pub fn output_from(&self, since: &mut u64) -> Vec<String> {
        let len = self.output.metadata().map_or(0, |file| file.len().saturating_sub(*since));
        let mut text = vec![0; usize::try_from(len).unwrap_or(0)];
        // A file is read completely by one call.
        let _ = self.output.read_exact_at(&mut text, *since);
        // The last line may be incomplete.
        let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        text.truncate(whole);
        *since += whole as u64;
        String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
    }

    /// Waits for a line.
    ///
    /// # Errors
    /// It ends before, or the deadline passes; the error has its output.
    pub fn wait_for_line(&mut self, line: &str, within: Duration) -> Result<()> {
        let mut ended = None;
        let result = wait::wait_until(&format!("{} prints {line:?}", self.name), within, || {
            ended = self.child.try_wait().ok().flatten();
            ended.is_some() || self.output().iter().any(|printed| printed == line)
        });
        if let Some(status) = ended {
            bail!("{} has ended ({status}), printing:\n{}", self.name, self.output().join("\n"));
        }
        result.map(drop).with_context(|| format!("it printed:\n{}", self.output().join("\n")))
    }

    /// True if it has not ended.
    pub fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends SIGTERM and waits until it has ended.
    ///
    /// # Errors
    /// When it does not end in time.
    pub fn terminate(&mut self, within: Duration) -> Result<ExitStatus> {
        kill_process(self.pid()?, Signal::TERM)?;
        self.ended(within)
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// When it does not end in time.
    pub fn ended(&mut self, within: Duration) -> Result<ExitStatus> {
        let child = &mut self.child;
        let what = format!("{} ends", self.name);
        let (status, _) = wait::wait_for(&what, within, || child.try_wait().ok().flatten())
            .with_context(|| format!("it printed:\n{}", self.output().join("\n")))?;
        Ok(status)
    }

    /// Sends it a signal. With SIGSTOP, returns once all its threads are stopped.
    ///
    /// # Errors
    /// When it has ended.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        send(self.pid()?, signal)
    }

    /// Resident memory in bytes.
    ///
    /// # Errors
    /// When it has ended.
    pub fn resident(&self) -> Result<u64> {
        self.memory("VmRSS:")
    }

    /// Maximum resident memory so far, in bytes.
    ///
    /// # Errors
    /// When it has ended.
    pub fn peak(&self) -> Result<u64> {
        self.memory("VmHWM:")
    }

    /// Processor time so far, in user mode and in the kernel (proc_pid_stat(5), fields 14 and 15), to 10 ms.
    ///
    /// # Errors
    /// When it has ended.
    pub fn processor_time(&self) -> Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id()))?;
        let (_, after_name) = stat.rsplit_once(')').context("no name in stat")?;
        let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
        Ok(Duration::from_secs(ticks.sum()) / u32::try_from(rustix::param::clock_ticks_per_second())?)
    }

    fn memory(&self, field: &str) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(field)).with_context(|| format!("no {field}"))?;
        let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().context("memory is a number")?;
        Ok(kib * 1024)
    }

    fn pid(&self) -> Result<Pid> {
        i32::try_from(self.id()).ok().and_then(Pid::from_raw).context("a process id is positive")
    }
}

/// Sends a process a signal. With SIGSTOP, returns once all its threads are stopped: kill(2) returns before.
///
/// # Errors
/// When it has ended, or does not stop.
pub fn send(process: Pid, signal: Signal) -> Result<()> {
    kill_process(process, signal)?;
    if signal == Signal::STOP {
        wait::wait_until("all threads are stopped", wait::PATIENCE, || stopped(process).unwrap_or(false))?;
    }
    Ok(())
}

/// Whether all threads of a process are stopped (proc_pid_stat(5), field 3).
fn stopped(process: Pid) -> io::Result<bool> {
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let stat = fs::read_to_string(thread?.path().join("stat"))?;
        if !stat.rsplit_once(')').is_some_and(|(_, fields)| fields.trim_start().starts_with('T')) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A file in memory.
fn memory(name: &str) -> Result<File> {
    let output = File::from(memfd_create(name, MemfdFlags::CLOEXEC)?);
    fcntl_setfl(&output, OFlags::APPEND)?;
    Ok(output)
}

/// Directs the output of a command to a file.
fn keep(output: &File, command: &mut Command) -> Result<()> {
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?);
    Ok(())
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("{} printed:\n{}", self.name, self.output().join("\n"));
        }
    }
}
