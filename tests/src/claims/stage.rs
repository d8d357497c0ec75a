//! The stage of a story: a namespace, its backends, and a router on its manifests.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use regex::Regex;
use rustix::process::Signal;
use tempfile::TempDir;

use super::cast::{self, ADDRESSES, Member};
use super::command::Command;
use super::curl::Asked;
use super::line::OpenLine;
use super::placeholders::{Certificates, TRUSTED};
use super::short_status;
use super::story::{Section, Story};
use crate::echo::Echo;
use crate::folder;
use crate::netns::Netns;
use crate::sluice::{self, DataPath, Options, Sluice};

/// The router of a story that defines none.
const ROUTER: &str = "apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test}
";
/// Time for which output must stay the same before it is final, if it is not the expected one.
const SETTLED: Duration = Duration::from_secs(3);

/// A stage with a story on it.
pub(super) struct Stage<'s> {
    pub(super) story: &'s Story,
    // Dropped before the resources that it uses.
    pub(super) router: Sluice,
    pub(super) echo: Echo,
    pub(super) netns: Netns,
    pub(super) members: Vec<Member>,
    pub(super) certificates: Certificates,
    pub(super) manifests: TempDir,
    pub(super) files: TempDir,
    masks: Vec<Regex>,
    pub(super) awaited: BTreeMap<String, usize>,
    pub(super) under_way: Vec<(Command, Asked)>,
    pub(super) lines: BTreeMap<String, OpenLine>,
    pub(super) crowd: Vec<TcpStream>,
    /// Number of access-log lines already reported.
    pub(super) logged: usize,
}

impl<'s> Stage<'s> {
    /// Sets up the stage; everything listens and serves when this returns.
    ///
    /// # Errors
    /// When something of it cannot be had.
    pub(super) fn new(story: &'s Story) -> Result<Stage<'s>> {
        let mut certificates = Certificates::new()?;
        let backends: Vec<String> = story.of_kind("backends").flat_map(|section| section.lines.clone()).collect();
        let members = cast::members(&backends, &mut certificates)?;
        let netns = Netns::new("claim")?;
        for address in ADDRESSES {
            netns.ip(&["address", "add", address, "dev", "lo", "nodad"])?;
        }
        for member in members.iter().filter(|member| member.is_silent) {
            // A veth end must not answer for the other end.
            let (here, there, address) =
                (format!("{}a", member.name), format!("{}b", member.name), member.address.ip());
            netns.ip(&["link", "add", &here, "type", "veth", "peer", "name", &there])?;
            netns.ip(&["link", "set", &here, "up"])?;
            netns.ip(&["link", "set", &there, "up"])?;
            netns.ip(&["route", "add", &address.to_string(), "dev", &here])?;
            let nobody = ["lladdr", "02:00:00:00:00:01", "nud", "permanent"];
            netns.ip(&[&["neigh", "add", &address.to_string(), "dev", &here][..], &nobody].concat())?;
        }
        for member in members.iter().filter(|member| !member.is_silent && !member.address.ip().is_loopback()) {
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
            fs::write(manifests.path().join("class.yaml"), folder::gateway_class())?;
        }
        let mut arguments = vec!["--show-cause"];
        let files = TempDir::new()?;
        let flags: Vec<&str> = story.settings("flags").collect();
        let flags = certificates.fill(&flags.join(" "), Some(files.path()), |_| None)?;
        arguments.extend(flags.split_whitespace());
        if !arguments.contains(&"--drain") {
            arguments.extend(["--drain", "0"]);
        }
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
            files,
            masks,
            awaited: BTreeMap::new(),
            under_way: Vec::new(),
            lines: BTreeMap::new(),
            crowd: Vec::new(),
            logged: 0,
        })
    }

    /// A program's arguments with placeholders resolved.
    pub(super) fn arguments(&mut self, words: &[String]) -> Result<Vec<String>> {
        let (certificates, members, files) = (&mut self.certificates, &self.members, self.files.path());
        words.iter().map(|word| certificates.fill(word, Some(files), |what| place(members, what))).collect()
    }

    pub(super) fn ca(&mut self) -> Result<PathBuf> {
        Ok(self.certificates.ca(TRUSTED)?.file())
    }

    /// The status of an object, once it is as expected or stable.
    pub(super) fn status(&self, object: &str) -> Vec<String> {
        let found = self.settled(|| short_status::status(self.router.state(), object));
        found.unwrap_or_else(|| vec!["no status".to_owned()])
    }

    /// The output of `find`, once it is as expected or stable.
    pub(super) fn settled(&self, find: impl Fn() -> Option<Vec<String>>) -> Option<Vec<String>> {
        let (mut last, mut since) = (None, Instant::now());
        loop {
            let found = find();
            if found != last {
                (last, since) = (found, Instant::now());
            }
            if since.elapsed() > SETTLED || last.as_ref().is_some_and(|lines| self.is_expected(lines)) {
                return last;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// True if the story contains these lines.
    fn is_expected(&self, lines: &[String]) -> bool {
        let text: String = lines.iter().map(|line| format!("  {}\n", self.masked(line))).collect();
        self.story.text.contains(&text)
    }

    pub(super) fn validate(&self) -> Result<Vec<String>> {
        let folder = self.manifests.path();
        let mut arguments = vec!["validate".as_ref(), folder.as_os_str()];
        // The router's flags that concern manifests.
        let flags: Vec<&str> = self.story.settings("flags").flat_map(str::split_whitespace).collect();
        arguments.extend(flags.iter().map(AsRef::<OsStr>::as_ref));
        let output = sluice::run(&arguments)?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(matches!(output.status.code(), Some(0 | 3)), "{}", String::from_utf8_lossy(&output.stderr));
        // `folder/file.yaml:line:column: Kind …`; the position would change with every line of the story.
        let position = Regex::new(r"^\S*:\d+:\d+: ")?;
        let lines = said.lines().map(|line| position.replace(line, "").into_owned());
        Ok(lines.collect())
    }

    pub(super) fn dump(&self, map: &str) -> Result<Vec<String>> {
        let dump = self.router.dump(map)?;
        let entries = dump.as_array().with_context(|| format!("{map} is no list"))?;
        Ok(entries.iter().map(ToString::to_string).collect())
    }

    pub(super) fn masked(&self, line: &str) -> String {
        let mut line = line.replace(&self.netns.name().to_owned(), "…");
        for mask in &self.masks {
            line = mask.replace_all(&line, "…").into_owned();
        }
        line
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        // In user space it leaves no state behind, and need not shut down cleanly.
        if self.story.settings("data-path").last() != Some("kernel") {
            let _ = self.router.signal(Signal::KILL);
        }
    }
}

/// The file of a section of manifests; `None` for one that is applied later.
fn file_of(section: &Section) -> Option<&Path> {
    match section.argument.as_str() {
        "" => Some(Path::new("story")),
        later if later.starts_with("later ") => None,
        name => Some(Path::new(name)),
    }
}

pub(super) fn filled(certificates: &mut Certificates, members: &[Member], text: &str) -> Result<String> {
    certificates.fill(text, None, |what| place(members, what))
}

/// Resolves `address NAME` and `port NAME`.
fn place(members: &[Member], what: &str) -> Option<String> {
    let (what, name) = what.split_once(' ')?;
    let member = members.iter().find(|member| member.name == name)?;
    match what {
        "address" => Some(member.address.ip().to_string()),
        "port" => Some(member.address.port().to_string()),
        _ => None,
    }
}
