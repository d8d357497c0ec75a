//! Processes that a test starts: their output is kept, and they end when the value is dropped.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::wait;

/// A running process.
pub struct Process {
    name: String,
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Process {
    /// Starts it; stdout and stderr are kept line by line.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(name: &str, command: &mut Command) -> Result<Process> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("{name} cannot be started"))?;
        let lines = Arc::new(Mutex::new(Vec::new()));
        keep(child.stdout.take(), &lines);
        keep(child.stderr.take(), &lines);
        Ok(Process { name: name.to_owned(), child, lines })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed.
    pub fn output(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for a line.
    ///
    /// # Errors
    /// When it ends before, or the deadline passes; the error has what it printed.
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

    /// Whether it has not ended.
    pub fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks it to end, and waits until it has.
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

    /// Sends it a signal.
    ///
    /// # Errors
    /// When it has ended.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill_process(self.pid()?, signal)?)
    }

    /// Resident memory in bytes.
    ///
    /// # Errors
    /// When it has ended.
    pub fn resident(&self) -> Result<u64> {
        self.memory("VmRSS:")
    }

    /// The most resident memory that it ever had, in bytes.
    ///
    /// # Errors
    /// When it has ended.
    pub fn peak(&self) -> Result<u64> {
        self.memory("VmHWM:")
    }

    fn memory(&self, field: &str) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(field)).with_context(|| format!("no {field}"))?;
        let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().context("memory is a number")?;
        Ok(kib * 1024)
    }

    fn pid(&self) -> Result<Pid> {
        i32::try_from(self.id()).ok().and_then(Pid::from_raw).context("a process id is positive")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("{} printed:\n{}", self.name, self.output().join("\n"));
        }
    }
}

fn keep(stream: Option<impl std::io::Read + Send + 'static>, lines: &Arc<Mutex<Vec<String>>>) {
    let Some(stream) = stream else { return };
    let lines = Arc::clone(lines);
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    });
}
