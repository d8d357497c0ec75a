//! A kernel in qemu, without KVM: boots an initramfs, and records the serial console.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::packages::UnpackedKernel;

/// The line that a guest prints when it has done everything.
pub const END: &str = "sluice-guest: end";
/// How long a guest may take.
const PATIENCE: Duration = Duration::from_secs(720);
/// Lines of the console that are shown when something failed.
const TAIL: usize = 80;

/// The boot configuration.
pub struct Guest<'a> {
    /// The kernel.
    pub kernel: &'a UnpackedKernel,
    /// Its files.
    pub initramfs: PathBuf,
    /// How many tests it runs.
    pub tests: u64,
}

/// The recorded console.
pub struct Console(Vec<String>);

impl Guest<'_> {
    /// Boots it, passes each line of the console on, and waits until it powers off; kills it after the time-out.
    ///
    /// # Errors
    /// qemu cannot be started.
    pub fn boot(&self, mut tell: impl FnMut(&str)) -> Result<Console> {
        let mut command = Command::new("qemu-system-x86_64");
        command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio"]);
        command.args(["-accel", "tcg,thread=multi", "-cpu", "Nehalem", "-smp", "2", "-m", "1G"]);
        command.arg("-kernel").arg(&self.kernel.image).arg("-initrd").arg(&self.initramfs);
        command.args(["-append", "console=ttyS0 quiet panic=-1 mitigations=off rdinit=/init"]);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("qemu could not be started")?;
        let output = child.stdout.take().context("stdout is piped")?;
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            // Invalid UTF-8 is replaced.
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                if sender.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                    return;
                }
            }
        });
        let mut lines = Vec::new();
        let end = Instant::now() + PATIENCE;
        loop {
            match receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    tell(&line);
                    lines.push(line);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    lines.push(format!("xtask: ended after {} s", PATIENCE.as_secs()));
                    child.kill()?;
                    break;
                }
            }
        }
        child.wait()?;
        Ok(Console(lines))
    }
}

impl Console {
    /// Whether the guest came to its end.
    pub fn is_complete(&self) -> bool {
        self.0.iter().any(|line| line == END)
    }

    /// The last lines.
    pub fn tail(&self) -> String {
        self.0[self.0.len().saturating_sub(TAIL)..].join("\n")
    }
}
