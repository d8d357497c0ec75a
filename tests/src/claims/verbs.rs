//! The commands of a story.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Signal;

use super::command::{self, Command, PATIENCE};
use super::curl::{self, Asked};
use super::explained::{self, Explained, Question};
use super::line::{self, OpenLine};
use super::outcome::{self, Got, Outcome};
use super::send;
use super::stage::{Stage, filled};
use super::story::{Outputs, Section};
use crate::echo::NUMBER;
use crate::{folder, sluice, wait};

impl Stage<'_> {
    /// Runs the commands of a section.
    ///
    /// # Errors
    /// When one cannot be carried out.
    pub(super) fn requests(
        &mut self,
        index: usize,
        section: &Section,
        outputs: &mut Outputs,
        faults: &mut Vec<String>,
    ) -> Result<()> {
        for command in command::commands(section)? {
            let what = format!("`$ {}`", command.words.join(" "));
            let lines = self.run(&command, faults).with_context(|| what)?;
            outputs.insert((index, Some(command.last)), lines);
        }
        Ok(())
    }

    fn run(&mut self, command: &Command, faults: &mut Vec<String>) -> Result<Vec<String>> {
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        match *words.as_slice() {
            ["curl", ..] if command.in_background => self.ask_in_background(command),
            ["curl", ..] => self.ask(command, faults),
            ["wait"] => self.wait(faults),
            ["release"] => {
                self.echo.release();
                Ok(Vec::new())
            }
            ["await", backend] => self.await_request(backend),
            ["apply", name] => self.apply(name),
            ["openssl", ref arguments @ ..] => {
                let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
                let ca = self.ca()?;
                let arguments = self.arguments(&arguments)?;
                let handshake = send::handshake(&self.netns, &arguments, &ca)?;
                let mut lines = handshake.lines;
                if let Some(question) = handshake.question {
                    let explained = explained::ask(&self.router, &question)?;
                    self.judge(command, &explained, explained.agrees_with_handshake(handshake.is_done), faults);
                    lines.extend(explained.lines());
                }
                Ok(lines)
            }
            ["send", port] | ["send", port, "end"] => self.send_once(command, port, None, faults),
            ["send", port, "tls", name] | ["send", port, "tls", name, "end"] => {
                self.send_once(command, port, Some(name), faults)
            }
            ["open", line, port] => self.keep_open(line, port, None),
            ["open", line, port, "tls", name] => self.keep_open(line, port, Some(name)),
            ["write", line] | ["write", line, "end"] => self.write(command, line, faults),
            ["taken", line, from, to] => {
                let open = self.lines.get_mut(line).with_context(|| format!("line {line:?} is not open"))?;
                let limits: Vec<u64> = [from, to].into_iter().map(str::parse).collect::<Result<_, _>>()?;
                let took = open.taken_for()?;
                let fits = (limits[0]..=limits[1]).contains(&u64::try_from(took.as_millis())?);
                anyhow::ensure!(fits, "bytes are taken for {took:?}");
                Ok(vec![format!("the router takes bytes for {from} to {to} ms")])
            }
            ["crowd", port, count] => {
                self.crowd.extend(line::crowd(&self.netns, port.parse()?, count.parse()?)?);
                Ok(Vec::new())
            }
            ["leave"] => {
                self.crowd.clear();
                Ok(Vec::new())
            }
            ["checks", backend, count] => self.checks(backend, count.parse()?),
            ["log", count] => self.log(count.parse()?),
            ["terminate"] => {
                self.router.signal(Signal::TERM)?;
                let drains = || self.router.output().iter().any(|line| line.starts_with("sluice: draining"));
                wait::wait_until("the router drains", PATIENCE, drains)?;
                Ok(Vec::new())
            }
            ["sluice", ref words @ ..] => self.ask_sluice(words),
            _ => anyhow::bail!("nobody knows what that is"),
        }
    }

    fn start(&mut self, command: &Command) -> Result<Asked> {
        let arguments = self.arguments(&command.words[1..])?;
        let ca = self.ca()?;
        curl::start(&self.netns, &arguments, &ca, self.files.path())
    }

    fn ask(&mut self, command: &Command, faults: &mut Vec<String>) -> Result<Vec<String>> {
        let mut outcomes = Vec::new();
        for _ in 0..command.times {
            let before = self.echo.log().count();
            let got = self.start(command)?.got()?;
            outcomes.push(self.outcome(got, before));
        }
        let mut lines = if command.times == 1 {
            outcomes.iter().flat_map(|outcome| self.shown(outcome)).collect()
        } else {
            tally(&outcomes, command.is_vague)
        };
        let question = self.question(&command.words)?;
        lines.extend(self.explained(command, &question, &outcomes, faults)?);
        Ok(lines)
    }

    fn question(&mut self, words: &[String]) -> Result<Question> {
        let arguments = self.arguments(&words[1..])?;
        curl::question(&arguments).context("a URL begins with http:// or https://")
    }

    fn shown(&self, outcome: &Outcome) -> Vec<String> {
        outcome.lines(&self.story.list("answer"), &self.story.list("seen"))
    }

    /// Runs `explain`, and records differences from the outcome.
    fn explained(
        &self,
        command: &Command,
        question: &Question,
        outcomes: &[Outcome],
        faults: &mut Vec<String>,
    ) -> Result<Vec<String>> {
        let explained = explained::ask(&self.router, question)?;
        let agrees = outcomes.iter().try_for_each(|outcome| explained.agrees(outcome, &self.members));
        self.judge(command, &explained, agrees, faults);
        Ok(explained.lines())
    }

    /// Records a fault if `explain` differs from the wire without an excuse, or agrees despite one.
    fn judge(&self, command: &Command, explained: &Explained, agrees: Result<(), String>, faults: &mut Vec<String>) {
        let what = command.words.join(" ");
        match (agrees, &command.excuse) {
            (Err(why), None) => faults.push(format!("`$ {what}`: explain says {:?}, but {why}", explained.verdict)),
            (Ok(()), Some(excuse)) => {
                faults.push(format!("`$ {what}`: explain says what the wire did; remove `! {excuse}`"));
            }
            _ => {}
        }
    }

    /// The outcome of a request; `before` is the number of earlier requests at backends.
    fn outcome(&self, got: Got, before: usize) -> Outcome {
        let own = got.field(NUMBER).and_then(|number| number.split_once('/')?.1.parse::<usize>().ok());
        let is_mirror = |name: &str| self.members.iter().any(|member| member.name == name && member.is_mirror);
        let log = self.echo.log().since(before);
        let tried = log.iter().filter(|(number, seen)| {
            own.is_none_or(|own| *number < own) && !is_mirror(&seen.backend) && !seen.is_check()
        });
        let tried = tried.map(|(_, seen)| Arc::clone(seen)).collect();
        let answered = log.iter().find(|(number, _)| Some(*number) == own).map(|(_, seen)| Arc::clone(seen));
        Outcome { got, answered, tried }
    }

    fn ask_in_background(&mut self, command: &Command) -> Result<Vec<String>> {
        for _ in 0..command.times {
            let before = self.echo.log().count();
            let asked = self.start(command)?;
            let log = self.echo.log();
            wait::wait_until("a backend has the request", PATIENCE, || log.count() > before)?;
            self.under_way.push((command.clone(), asked));
        }
        Ok(Vec::new())
    }

    fn wait(&mut self, faults: &mut Vec<String>) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for (command, asked) in std::mem::take(&mut self.under_way) {
            let got = asked.got()?;
            let own = got.field(NUMBER).and_then(|number| number.split_once('/')?.1.parse::<usize>().ok());
            let log = self.echo.log().since(0);
            let answered = own.and_then(|own| log.get(own)).map(|(_, seen)| Arc::clone(seen));
            let outcome = Outcome { got, answered, tried: Vec::new() };
            lines.push(format!("$ {}", command.words.join(" ")));
            lines.extend(self.shown(&outcome));
            let question = self.question(&command.words)?;
            lines.extend(self.explained(&command, &question, &[outcome], faults)?);
        }
        Ok(lines)
    }

    fn await_request(&mut self, backend: &str) -> Result<Vec<String>> {
        let count = self.awaited.entry(backend.to_owned()).or_default();
        *count += 1;
        let seen = self.echo.log().wait_for(backend, *count, PATIENCE);
        let seen = seen.with_context(|| format!("{backend} has no request"))?;
        Ok(outcome::what(&seen, &self.story.list("seen")))
    }

    /// `send`, or `write` on an open line.
    fn send(
        &mut self,
        command: &Command,
        mut line: OpenLine,
        question: Option<Question>,
        faults: &mut Vec<String>,
    ) -> Result<(Vec<String>, OpenLine)> {
        let before = self.echo.log().count();
        line.write(&command.sent);
        if command.words.last().is_some_and(|word| word == "end") {
            line.end();
        }
        let received = line.read()?;
        let ends = !received.is_open;
        let mut outcomes: Vec<Outcome> = received.answers.into_iter().map(|got| self.outcome(got, before)).collect();
        let mut lines: Vec<String> = outcomes.iter().flat_map(|outcome| self.shown(outcome)).collect();
        if outcomes.is_empty() {
            let what = if ends { "the connection ends without an answer" } else { "there is no answer" };
            outcomes.push(self.outcome(Got::Nothing(what.to_owned()), before));
            lines.extend(outcomes.iter().flat_map(|outcome| self.shown(outcome)));
        } else if ends {
            lines.push("the connection ends".to_owned());
        }
        if let Some(question) = question {
            lines.extend(self.explained(command, &question, &outcomes[..1], faults)?);
        }
        Ok((lines, line))
    }

    fn keep_open(&mut self, name: &str, port: &str, tls: Option<&str>) -> Result<Vec<String>> {
        Ok(match self.open(port, tls)? {
            Some(line) => {
                self.lines.insert(name.to_owned(), line);
                Vec::new()
            }
            None => vec!["no connection".to_owned()],
        })
    }

    fn open(&mut self, port: &str, name: Option<&str>) -> Result<Option<OpenLine>> {
        let ca = self.ca()?;
        OpenLine::open(&self.netns, port.parse()?, name, &ca)
    }

    /// Opens a connection for one exchange.
    fn send_once(
        &mut self,
        command: &Command,
        port: &str,
        name: Option<&str>,
        faults: &mut Vec<String>,
    ) -> Result<Vec<String>> {
        match self.open(port, name)? {
            Some(line) => {
                let question = send::question(port.parse()?, name, &command.sent);
                Ok(self.send(command, line, question, faults)?.0)
            }
            None => Ok(vec!["no connection".to_owned()]),
        }
    }

    /// Exchanges on an open line.
    fn write(&mut self, command: &Command, name: &str, faults: &mut Vec<String>) -> Result<Vec<String>> {
        let line = self.lines.remove(name).with_context(|| format!("line {name:?} is not open"))?;
        let (lines, line) = self.send(command, line, None, faults)?;
        self.lines.insert(name.to_owned(), line);
        Ok(lines)
    }

    /// Waits for connections to a backend, within a time limit.
    fn checks(&self, backend: &str, count: usize) -> Result<Vec<String>> {
        const WITHIN: Duration = Duration::from_secs(3);
        let before = self.echo.log().connections_of(backend);
        let has_come = || self.echo.log().connections_of(backend) >= before + count;
        wait::wait_until(&format!("{backend} is connected to {count} times"), WITHIN, has_come)?;
        Ok(vec![format!("{count} connections within {} s", WITHIN.as_secs())])
    }

    /// Waits for new lines of the access log; returns them without the time.
    fn log(&mut self, count: usize) -> Result<Vec<String>> {
        let lines = |all: Vec<String>| -> Vec<String> {
            let of_access = all.iter().filter_map(|line| line.split_once(" access: ")).map(|(_, said)| said.to_owned());
            of_access.collect()
        };
        let wanted = self.logged + count;
        wait::wait_until(&format!("{wanted} lines of the access log"), PATIENCE, || {
            lines(self.router.output()).len() >= wanted
        })?;
        let told = lines(self.router.output()).split_off(self.logged);
        self.logged += told.len();
        Ok(told)
    }

    /// Runs `sluice` with further arguments on the running router, until the output is as expected or stable.
    fn ask_sluice(&self, words: &[&str]) -> Result<Vec<String>> {
        let print = || {
            let state = self.router.state().as_os_str();
            let arguments: Vec<&OsStr> = words.iter().map(OsStr::new).chain([OsStr::new("--state"), state]).collect();
            let output = sluice::run(&arguments).ok()?;
            Some(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect::<Vec<_>>())
        };
        self.settled(print).context("sluice prints nothing")
    }

    fn apply(&mut self, name: &str) -> Result<Vec<String>> {
        let later = format!("later {name}");
        let mut sections = self.story.of_kind("manifests").filter(|section| section.argument == later);
        let section = sections.next().with_context(|| format!("there is no section `== manifests {later}`"))?;
        let text = filled(&mut self.certificates, &self.members, &section.lines.join("\n"))?;
        let revision = || self.router.get("status").ok().and_then(|status| status["revision"].as_u64());
        let before = revision();
        folder::replace(&self.manifests.path().join(name).with_extension("yaml"), &text)?;
        wait::wait_until("the change is served", PATIENCE, || revision() > before)?;
        Ok(Vec::new())
    }
}

/// Counts equal outcomes.
fn tally(outcomes: &[Outcome], is_vague: bool) -> Vec<String> {
    let mut counts = BTreeMap::<(String, &str), usize>::new();
    for outcome in outcomes {
        *counts.entry((outcome.got.summary().to_owned(), outcome.who())).or_default() += 1;
    }
    let line = |((got, who), count): (&(String, &str), &usize)| match is_vague {
        true => format!("{got} from {who}"),
        false => format!("{count} × {got} from {who}"),
    };
    counts.iter().map(line).collect()
}
