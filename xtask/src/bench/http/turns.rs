//! Rates of several ways over the same time: all clients are started, and run in turn, some milliseconds each.
//!
//! On a shared machine, available processor time changes from second to second by more than routers differ. Ways
//! measured one after the other for a second each get different seconds; here they share them. Times of single requests
//! are meaningless then, as some wait while their client is stopped.

use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use super::figures::Figure;
use super::lane::Lane;
use super::rows::Measure;
use super::tools;
use crate::bench::network::Network;
use crate::bench::order::order;
use crate::bench::usage::{self, Processor};
use crate::process::text;

/// One turn.
const TURN: Duration = Duration::from_millis(100);
/// The last one of each client, of which the first is 0.
const LAST: usize = 19;
/// How long a client may take to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause after each turn, for pending work.
const GAP: Duration = Duration::from_millis(2);

/// All that one way's client has done so far.
struct Share {
    client: ClientProcess,
    begin: Processor,
    elapsed: Duration,
    /// The machine's.
    used: Processor,
}

/// Runs a measure of wrk over all ways. `None` if it failed, with the error on stderr.
///
/// # Errors
/// /proc cannot be read.
pub fn carry(network: &Network, lanes: &[Lane], measure: &Measure, round: usize) -> Result<Vec<Option<Figure>>> {
    let mut shares: Vec<Option<Share>> = lanes.iter().map(|_| None).collect();
    let mut figures: Vec<Option<Figure>> = vec![None; lanes.len()];
    for turn in 0..=LAST {
        for index in order(round, turn, lanes.len()) {
            let (lane, share) = (&lanes[index], &mut shares[index]);
            let done = match (turn, share.take()) {
                (0, _) => Share::begin(network, lane, measure).map(|begun| *share = Some(begun)),
                (LAST, Some(last)) => last.end(lane).map(|figure| figures[index] = Some(figure)),
                (_, Some(next)) => next.go_on().map(|next| *share = Some(next)),
                (_, None) => Ok(()),
            };
            if let Err(error) = done {
                eprintln!("xtask: {} on the way {}: {error:#}", measure.title, lane.way.name());
            }
            thread::sleep(GAP);
        }
    }
    Ok(figures)
}

impl Share {
    /// Starts the client, with its first turn.
    fn begin(network: &Network, lane: &Lane, measure: &Measure) -> Result<Share> {
        let begin = Processor::of(&lane.processes()?)?;
        let machine = Processor::of(&[])?;
        let now = Instant::now();
        let client = ClientProcess::start(tools::wrk(network, lane, measure, None)?)?;
        let mut share = Share { client, begin, elapsed: Duration::ZERO, used: Processor::default() };
        share.turn(now, machine)?;
        Ok(share)
    }

    fn go_on(mut self) -> Result<Share> {
        let (now, machine) = (Instant::now(), Processor::of(&[])?);
        self.client.signal(Signal::CONT)?;
        self.turn(now, machine)?;
        Ok(self)
    }

    fn turn(&mut self, now: Instant, machine: Processor) -> Result<()> {
        thread::sleep(TURN);
        self.client.signal(Signal::STOP)?;
        self.elapsed += now.elapsed();
        self.used += Processor::of(&[])? - machine;
        Ok(())
    }

    /// Its last turn.
    fn end(mut self, lane: &Lane) -> Result<Figure> {
        let (now, machine) = (Instant::now(), Processor::of(&[])?);
        let before = usage::ended_children()?;
        self.client.signal(Signal::CONT)?;
        thread::sleep(TURN);
        // wrk ends then as if its time were over. Its first thread must have gone on, as another one's interrupt does
        // not wake it.
        self.client.signal(Signal::INT)?;
        let said = self.client.end()?;
        self.elapsed += now.elapsed();
        self.used += Processor::of(&[])? - machine;
        let load = usage::ended_children()? - before;
        let of_router = Processor::of(&lane.processes()?)? - self.begin;
        let mut outcome = tools::of_wrk(&said)?;
        outcome.elapsed = self.elapsed;
        let processor = Processor { user: of_router.user, system: of_router.system, ..self.used };
        eprintln!("xtask:   {}, in turns: {:.0}/s", lane.way.name(), outcome.rate());
        Ok(Figure { outcome, processor, load })
    }
}

/// A process that can be stopped; killed when it is dropped.
struct ClientProcess {
    said: String,
    child: Option<Child>,
}

impl ClientProcess {
    fn start(mut command: Command) -> Result<ClientProcess> {
        use std::os::unix::process::CommandExt;

        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // One that is stopped would not see a gentler one.
        let end_with_parent = || Ok(set_parent_process_death_signal(Some(Signal::KILL))?);
        // SAFETY: between fork and exec the closure makes one system call, which is async-signal-safe, and allocates
        // nothing.
        unsafe { command.pre_exec(end_with_parent) };
        let said = text(&command);
        let child = command.spawn().with_context(|| format!("`{said}` cannot be run; `--install` gets it"))?;
        Ok(ClientProcess { said, child: Some(child) })
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = self.child.as_ref().and_then(|child| Pid::from_raw(i32::try_from(child.id()).ok()?));
        Ok(kill_process(pid.context("it has ended")?, signal)?)
    }

    /// Its output, once it has ended.
    fn end(&mut self) -> Result<String> {
        let begin = Instant::now();
        while self.child.as_mut().context("it has ended")?.try_wait()?.is_none() {
            ensure!(begin.elapsed() < PATIENCE, "`{}` does not end", self.said);
            thread::sleep(Duration::from_millis(1));
        }
        // Its output fits into a pipe.
        let child = self.child.take().context("it has ended")?;
        let Output { status, stdout, stderr } = child.wait_with_output()?;
        ensure!(status.success(), "`{}`: {}", self.said, String::from_utf8_lossy(&stderr).trim());
        Ok(String::from_utf8_lossy(&stdout).into_owned())
    }
}

impl Drop for ClientProcess {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended meanwhile.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> ClientProcess {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        ClientProcess::start(command).unwrap()
    }

    fn state(client: &ClientProcess) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", client.child.as_ref().unwrap().id())).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    }

    fn wait_until_it_is_stopped(client: &ClientProcess) {
        let begin = Instant::now();
        while state(client) != 'T' {
            assert!(begin.elapsed() < Duration::from_secs(20), "it does not stop");
        }
    }

    #[test]
    fn a_client_continues_on_the_signal() {
        let mut client = shell("echo begun; kill -STOP $$; echo over");
        wait_until_it_is_stopped(&client);
        client.signal(Signal::CONT).unwrap();
        assert_eq!(client.end().unwrap(), "begun\nover\n");
        assert!(client.signal(Signal::STOP).is_err(), "it has ended");
    }

    #[test]
    fn a_client_that_is_stopped_can_be_ended() {
        let client = shell("exec sleep 600");
        client.signal(Signal::STOP).unwrap();
        wait_until_it_is_stopped(&client);
        let folder = format!("/proc/{}", client.child.as_ref().unwrap().id());
        drop(client);
        assert!(!std::path::Path::new(&folder).exists());
    }

    #[test]
    fn errors_of_a_client_are_reported() {
        let error = shell("echo no >&2; exit 3").end().unwrap_err();
        assert!(error.to_string().ends_with(": no"), "{error}");
    }
}
