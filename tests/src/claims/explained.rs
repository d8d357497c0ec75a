//! What `sluice explain` says of a request, and whether that is what became of it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::cast::Member;
use super::outcome::{Got, Outcome};
use crate::sluice::{self, Sluice};

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// URL, or the server name of a handshake.
    pub url: String,
    /// Method, if it is not GET.
    pub method: Option<String>,
    /// Header fields, `Name: value`.
    pub fields: Vec<String>,
    /// The client's address.
    pub from: Option<String>,
}

/// What was said.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The sentence.
    pub verdict: String,
    /// What to change.
    pub fix: Option<String>,
    may: May,
}

/// What may become of a request.
#[derive(Clone, Debug, Default)]
struct May {
    endpoints: BTreeSet<SocketAddr>,
    statuses: BTreeSet<u16>,
    location: Option<String>,
    close: bool,
    is_served: bool,
}

impl Question {
    /// Adds a header field; one without a value counts as not sent.
    pub fn add_field(&mut self, field: &str) {
        if field.split_once(':').is_some_and(|(_, value)| !value.trim().is_empty()) {
            self.fields.push(field.to_owned());
        }
    }

    /// Puts the host of a Host field into the URL.
    pub fn take_host(&mut self) {
        let at = self.fields.iter().position(|field| field.to_ascii_lowercase().starts_with("host:"));
        let (Some(at), Some((scheme, rest))) = (at, self.url.split_once("://")) else { return };
        let path = rest.find('/').map_or("", |at| &rest[at..]);
        let host = self.fields[at].split_once(':').map_or("", |(_, host)| host.trim()).to_owned();
        self.url = format!("{scheme}://{host}{path}");
        self.fields.remove(at);
    }
}

/// Asks the running router.
///
/// # Errors
/// When there is no answer.
pub fn ask(router: &Sluice, question: &Question) -> Result<Explained> {
    let mut command = Command::new(sluice::binary()?);
    command.args(["explain", "-o", "json", "--state"]).arg(router.state());
    if let Some(from) = &question.from {
        command.args(["--from", from]);
    }
    if takes_requests()? {
        command.args(question.method.iter().flat_map(|method| ["-X", method]));
        command.args(question.fields.iter().flat_map(|field| ["-H", field]));
    }
    let output = command.arg("--").arg(&question.url).output()?;
    // 4: it is not served.
    ensure!(
        matches!(output.status.code(), Some(0 | 4)),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let said: Value = serde_json::from_slice(&output.stdout).context("explain prints JSON")?;
    let text = |member: &str| said[member].as_str().map(str::to_owned);
    let verdict = text("verdict").context("explain has a verdict")?;
    let may = if said["outcome"].is_null() { by_verdict(&said, &verdict) } else { by_outcome(&said["outcome"])? };
    Ok(Explained { verdict, fix: text("fix"), may })
}

/// Whether `explain` can be asked for a method and for header fields.
fn takes_requests() -> Result<bool> {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return Ok(*known);
    }
    let help = Command::new(sluice::binary()?).args(["explain", "--help"]).output()?;
    Ok(*KNOWN.get_or_init(|| String::from_utf8_lossy(&help.stdout).contains("-H,")))
}

/// The outcome as data. Of shares each may come.
fn by_outcome(outcome: &Value) -> Result<May> {
    let mut may = May::default();
    let all = outcome.as_array().map_or(std::slice::from_ref(outcome), Vec::as_slice);
    for outcome in all {
        match outcome["kind"].as_str() {
            Some("endpoints") => {
                let endpoints = outcome["endpoints"].as_array().into_iter().flatten();
                may.endpoints.extend(endpoints.filter_map(|endpoint| endpoint.as_str()?.parse::<SocketAddr>().ok()));
                may.is_served = true;
            }
            Some("response") => {
                let status = outcome["status"].as_u64().context("a response has a status")?;
                may.statuses.insert(u16::try_from(status)?);
                may.location = outcome["location"].as_str().map(str::to_owned);
            }
            // Of a server name alone: TLS ends here, and a request decides the rest.
            Some("handshake") => may.is_served = true,
            Some("close") => may.close = true,
            other => bail!("explain has an outcome of a kind that is not known here: {other:?}"),
        }
    }
    Ok(may)
}

/// The outcome as far as the sentence and the services tell it.
fn by_verdict(said: &Value, verdict: &str) -> May {
    let steps = said["steps"].as_array().into_iter().flatten();
    let services = steps.filter_map(|step| step["services"].as_array()).flatten();
    let endpoints = services.filter_map(|service| service["endpoints"].as_array()).flatten();
    let endpoints = endpoints.filter_map(|endpoint| endpoint.as_str()?.parse::<SocketAddr>().ok());
    let words = verdict.split(|c: char| !c.is_ascii_digit()).filter(|word| word.len() == 3);
    let mut may = May {
        endpoints: endpoints.collect(),
        statuses: words.filter_map(|word| word.parse().ok()).collect(),
        is_served: said["served"] == true,
        ..May::default()
    };
    if may.is_served && may.endpoints.is_empty() {
        may.statuses.extend(300..400);
    }
    may.close = !may.is_served && may.statuses.is_empty();
    may
}

impl Explained {
    /// As lines of a story.
    pub fn lines(&self) -> Vec<String> {
        let fix = self.fix.iter().map(|fix| format!("  fix: {fix}"));
        std::iter::once(format!("explain: {}", self.verdict)).chain(fix).collect()
    }

    /// Whether this is what became of a request; else in which way it is not.
    ///
    /// # Errors
    /// What differs.
    pub fn agrees(&self, outcome: &Outcome, members: &[Member]) -> Result<(), String> {
        let may = &self.may;
        let tried: Vec<&str> = outcome.backends().collect();
        if !tried.is_empty() {
            for name in tried {
                let address = members.iter().find(|member| member.name == name).map(|member| member.address);
                if !may.is_served || !address.is_some_and(|address| may.endpoints.contains(&address)) {
                    return Err(format!("backend {name} has it, and is not among {:?}", may.endpoints));
                }
            }
            return Ok(());
        }
        match &outcome.got {
            Got::Response { status, line, .. } => {
                if !may.statuses.contains(status) {
                    return Err(format!("the router answers {line}, and explain knows of {:?}", may.statuses));
                }
                let location = outcome.got.field("location");
                if let Some(expected) = may.location.as_deref().filter(|expected| Some(*expected) != location) {
                    return Err(format!("the router sends to {location:?}, and explain says {expected:?}"));
                }
                Ok(())
            }
            Got::Nothing(_) if may.close => Ok(()),
            Got::Nothing(why) => Err(format!("the client got nothing: {why}")),
        }
    }
}
