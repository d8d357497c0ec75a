//! Plays a story: a namespace, its backends, a router on its manifests, and the sections in their order.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use regex::Regex;
use rustix::process::Signal;
use tempfile::TempDir;

use super::cast::{self, ADDRESSES, Member};
use super::command::{self, Command, PATIENCE};
use super::curl::{self, Asked};
use super::explained::{self, Question};
use super::outcome::{self, Got, Outcome};
use super::placeholders::{Certificates, TRUSTED};
use super::story::{Outputs, Section, Story};
use super::{send, told};
use crate::echo::{Echo, NUMBER};
use crate::folder;
use crate::netns::Netns;
use crate::sluice::{self, DataPath, Options, Sluice};
use crate::wait;

/// A router that a story does not write itself.
const ROUTER: &str = "apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test}
";
/// A class that a story's Gateways name, and that it does not write itself.
const CLASS: &str = "apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: sluice}
spec: {controllerName: sluice.dev/gateway-controller}
";
/// How long a status may take to be what the story says, or to stay the same.
const SETTLED: Duration = Duration::from_millis(400);

/// A stage with a story on it.
struct Stage<'s> {
    story: &'s Story,
    // The router goes before what it uses.
    router: Sluice,
    echo: Echo,
    netns: Netns,
    members: Vec<Member>,
    certificates: Certificates,
    manifests: TempDir,
    files: TempDir,
    masks: Vec<Regex>,
    awaited: BTreeMap<String, usize>,
    under_way: Vec<(Command, Asked)>,
}

/// Plays a story; what came out of it, and in which requests `explain` does not say what the wire did.
///
/// # Errors
/// When the story cannot be played.
pub fn play(story: &Story) -> Result<(String, Vec<String>)> {
    let mut stage = Stage::new(story)?;
    let (mut outputs, mut faults) = (Outputs::new(), Vec::new());
    for (index, section) in story.sections.iter().enumerate() {
        match section.kind.as_str() {
            "requests" => stage.requests(index, section, &mut outputs, &mut faults)?,
            "status" => {
                for (at, object) in section.lines.iter().enumerate().filter(|(_, line)| is_input(line)) {
                    drop(outputs.insert((index, Some(at)), stage.status(object)));
                }
            }
            "validate" => drop(outputs.insert((index, None), stage.validate()?)),
            "bpf" => drop(outputs.insert((index, None), stage.dump(&section.argument)?)),
            _ => {}
        }
    }
    ensure!(stage.under_way.is_empty(), "requests are under way at the end; write `$ wait`");
    for lines in outputs.values_mut() {
        for line in lines {
            *line = stage.masked(line);
        }
    }
    Ok((story.render(&outputs), faults))
}

fn is_input(line: &str) -> bool {
    !line.trim().is_empty() && !line.starts_with('#')
}

impl<'s> Stage<'s> {
    fn new(story: &'s Story) -> Result<Stage<'s>> {
        let mut certificates = Certificates::new()?;
        let backends: Vec<String> = story.of_kind("backends").flat_map(|section| section.lines.clone()).collect();
        let members = cast::members(&backends, &mut certificates)?;
        let netns = Netns::new("claim")?;
        for address in ADDRESSES {
            netns.ip(&["address", "add", address, "dev", "lo", "nodad"])?;
        }
        for member in members.iter().filter(|member| !member.address.ip().is_loopback()) {
            let prefix = if member.address.is_ipv6() { 128 } else { 32 };
            netns.ip(&["address", "replace", &format!("{}/{prefix}", member.address.ip()), "dev", "lo", "nodad"])?;
        }
        let echo = Echo::start(&netns, members.iter().filter_map(|member| member.backend.clone()).collect())?;
        let manifests = TempDir::new()?;
        let mut all = String::new();
        for section in story.of_kind("manifests") {
            let Some(name) = file_of(section) else { continue };
            let text = filled(&mut certificates, &members, &section.lines.join("\n"))?;
            fs::write(manifests.path().join(name).with_extension("yaml"), &text)?;
            all += &text;
        }
        fs::write(manifests.path().join("services.yaml"), cast::services(&members)?)?;
        let has = |kind: &str| all.lines().any(|line| line.trim() == format!("kind: {kind}"));
        let wants_router = story.settings("router").last().unwrap_or(match story.api() {
            "gateway-api" => "none",
            _ => "default",
        });
        if wants_router == "default" && !has("IngressController") {
            fs::write(manifests.path().join("router.yaml"), ROUTER)?;
        }
        if has("Gateway") && !has("GatewayClass") {
            fs::write(manifests.path().join("class.yaml"), CLASS)?;
        }
        let mut arguments = vec!["--drain", "0", "--show-cause", "--huge-text", "never"];
        arguments.extend(story.settings("flags").flat_map(str::split_whitespace));
        let data_path = match story.settings("data-path").last() {
            Some("kernel") => DataPath::Kernel,
            _ => DataPath::UserSpace,
        };
        let arguments = arguments.into_iter().map(str::to_owned).collect();
        let router = Sluice::start(&netns, manifests.path(), &Options { arguments, ..Options::network(data_path) })?;
        let masks = story.settings("mask").map(Regex::new).collect::<Result<_, _>>()?;
        Ok(Stage {
            story,
            router,
            echo,
            netns,
            members,
            certificates,
            manifests,
            files: TempDir::new()?,
            masks,
            awaited: BTreeMap::new(),
            under_way: Vec::new(),
        })
    }

    fn requests(
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
                let (mut lines, question, _) = send::handshake(&self.netns, &arguments, &ca)?;
                if let Some(question) = question {
                    lines.extend(explained::ask(&self.router, &question)?.lines());
                }
                Ok(lines)
            }
            ["send", port] => self.send(command, port.parse()?, None, faults),
            ["send", port, "tls", name] => self.send(command, port.parse()?, Some(name), faults),
            _ => anyhow::bail!("nobody knows what that is"),
        }
    }

    /// A program's arguments, placeholders filled in.
    fn arguments(&mut self, words: &[String]) -> Result<Vec<String>> {
        let (certificates, members, files) = (&mut self.certificates, &self.members, self.files.path());
        words.iter().map(|word| certificates.fill(word, Some(files), |what| place(members, what))).collect()
    }

    fn ca(&mut self) -> Result<std::path::PathBuf> {
        Ok(self.certificates.ca(TRUSTED)?.file())
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
        let question = curl::question(&command.words).context("a URL begins with http:// or https://")?;
        lines.extend(self.explained(command, &question, &outcomes, faults)?);
        Ok(lines)
    }

    fn shown(&self, outcome: &Outcome) -> Vec<String> {
        outcome.lines(&self.story.list("answer"), &self.story.list("seen"))
    }

    /// Asks `explain`, and notes where it differs from what came.
    fn explained(
        &self,
        command: &Command,
        question: &Question,
        outcomes: &[Outcome],
        faults: &mut Vec<String>,
    ) -> Result<Vec<String>> {
        let explained = explained::ask(&self.router, question)?;
        let differs = outcomes.iter().find_map(|outcome| explained.agrees(outcome, &self.members).err());
        match (differs, &command.excuse) {
            (Some(why), None) => {
                faults.push(format!("`$ {}`: explain says {:?}, but {why}", command.words.join(" "), explained.verdict))
            }
            (None, Some(excuse)) => faults
                .push(format!("`$ {}`: explain says what the wire did; remove `! {excuse}`", command.words.join(" "))),
            _ => {}
        }
        Ok(explained.lines())
    }

    /// What became of a request; backends have seen `before` requests before it.
    fn outcome(&self, got: Got, before: usize) -> Outcome {
        let own = got.field(NUMBER).and_then(|number| number.split_once('/')?.1.parse::<usize>().ok());
        let is_mirror = |name: &str| self.members.iter().any(|member| member.name == name && member.is_mirror);
        let log = self.echo.log().since(before);
        let tried =
            log.iter().filter(|(number, seen)| own.is_none_or(|own| *number < own) && !is_mirror(&seen.backend));
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
            let question = curl::question(&command.words).context("a URL begins with http:// or https://")?;
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

    fn send(
        &mut self,
        command: &Command,
        port: u16,
        name: Option<&str>,
        faults: &mut Vec<String>,
    ) -> Result<Vec<String>> {
        let before = self.echo.log().count();
        let ca = self.ca()?;
        let answers = send::send(&self.netns, port, name, &command.sent, &ca)?;
        let outcomes: Vec<Outcome> = answers.into_iter().map(|got| self.outcome(got, before)).collect();
        let mut lines: Vec<String> = outcomes.iter().flat_map(|outcome| self.shown(outcome)).collect();
        if let Some(question) = send::question(port, name, &command.sent) {
            lines.extend(self.explained(command, &question, &outcomes[..1], faults)?);
        }
        Ok(lines)
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

    /// The status of an object, once it is what the story says, or does not change any more.
    fn status(&self, object: &str) -> Vec<String> {
        let (mut last, mut since) = (None, Instant::now());
        loop {
            let found = told::status(self.router.state(), object);
            if found != last {
                (last, since) = (found, Instant::now());
            }
            if since.elapsed() > SETTLED || last.as_ref().is_some_and(|lines| self.is_expected(lines)) {
                return last.unwrap_or_else(|| vec!["no status".to_owned()]);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether these lines stand in the story.
    fn is_expected(&self, lines: &[String]) -> bool {
        let text: String = lines.iter().map(|line| format!("  {}\n", self.masked(line))).collect();
        self.story.text.contains(&text)
    }

    fn validate(&self) -> Result<Vec<String>> {
        let folder = self.manifests.path();
        let mut arguments = vec!["validate".as_ref(), folder.as_os_str()];
        // Those of the router that are about manifests.
        let flags: Vec<&str> = self.story.settings("flags").flat_map(str::split_whitespace).collect();
        arguments.extend(flags.iter().map(AsRef::<std::ffi::OsStr>::as_ref));
        let output = sluice::run(&arguments)?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(matches!(output.status.code(), Some(0 | 3)), "{}", String::from_utf8_lossy(&output.stderr));
        // `folder/file.yaml:line:column: Kind …`; the place would change with every line of the story.
        let position = Regex::new(r"^\S*:\d+:\d+: ")?;
        let lines = said.lines().map(|line| position.replace(line, "").into_owned());
        Ok(lines.collect())
    }

    fn dump(&self, map: &str) -> Result<Vec<String>> {
        let dump = self.router.dump(map)?;
        let entries = dump.as_array().with_context(|| format!("{map} is no list"))?;
        Ok(entries.iter().map(ToString::to_string).collect())
    }

    fn masked(&self, line: &str) -> String {
        let mut line = line.replace(&self.netns.name().to_owned(), "…");
        for mask in &self.masks {
            line = mask.replace_all(&line, "…").into_owned();
        }
        line
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        // In user space it leaves nothing behind, and need not end in an orderly way.
        if self.story.settings("data-path").last() != Some("kernel") {
            let _ = self.router.signal(Signal::KILL);
        }
    }
}

/// The file of a section of manifests; `None`: one that is applied later.
fn file_of(section: &Section) -> Option<&Path> {
    match section.argument.as_str() {
        "" => Some(Path::new("story")),
        later if later.starts_with("later ") => None,
        name => Some(Path::new(name)),
    }
}

fn filled(certificates: &mut Certificates, members: &[Member], text: &str) -> Result<String> {
    certificates.fill(text, None, |what| place(members, what))
}

/// `address NAME` and `port NAME`.
fn place(members: &[Member], what: &str) -> Option<String> {
    let (what, name) = what.split_once(' ')?;
    let member = members.iter().find(|member| member.name == name)?;
    match what {
        "address" => Some(member.address.ip().to_string()),
        "port" => Some(member.address.port().to_string()),
        _ => None,
    }
}

/// How often what came, and from whom.
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
