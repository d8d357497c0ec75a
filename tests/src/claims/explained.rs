//! The output of `sluice explain` for a request, compared with the actual outcome.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::cast::Member;
use super::outcome::{Got, Outcome};
use crate::sluice::{self, Sluice};

/// The query.
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

/// The explanation.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The verdict.
    pub verdict: String,
    /// The fix.
    pub fix: Option<String>,
    may: May,
}

/// A possible outcome of a request.
#[derive(Clone, Debug, Default)]
struct May {
    endpoints: BTreeSet<SocketAddr>,
    responses: Vec<Response>,
    closes: bool,
    has_handshake: bool,
}

/// A response of the router.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Response {
    status: u16,
    location: Option<String>,
    /// As in `x-sluice-cause`; `none` without an error.
    cause: String,
}

impl Question {
    /// Adds a header field; one without a value counts as not sent.
    pub fn add_field(&mut self, field: &str) {
        if field.split_once(':').is_some_and(|(_, value)| !value.trim().is_empty()) {
            self.fields.push(field.to_owned());
        }
    }

    /// Replaces the URL's host by that of a Host field; not over TLS, where the URL has the server name, and not if the
    /// URL has a port, which selects the listener.
    pub fn take_host(&mut self) {
        if self.url.starts_with("https:") {
            return;
        }
        let at = self.fields.iter().position(|field| field.to_ascii_lowercase().starts_with("host:"));
        let (Some(at), Some((scheme, rest))) = (at, self.url.split_once("://")) else { return };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains(':') {
            return;
        }
        let host = self.fields[at].split_once(':').map_or("", |(_, host)| host.trim()).to_owned();
        self.url = format!("{scheme}://{host}{path}");
        self.fields.remove(at);
    }
}

/// Queries the running router.
///
/// # Errors
/// There is no answer.
pub fn ask(router: &Sluice, question: &Question) -> Result<Explained> {
    let mut command = Command::new(sluice::binary()?);
    command.args(["explain", "-o", "json", "--state"]).arg(router.state());
    if let Some(from) = &question.from {
        command.args(["--from", from]);
    }
    command.args(question.method.iter().flat_map(|method| ["-X", method]));
    command.args(question.fields.iter().flat_map(|field| ["-H", field]));
    let output = command.arg("--").arg(&question.url).output()?;
    // Exit code 4: the query is not served.
    ensure!(
        matches!(output.status.code(), Some(0 | 4)),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let said: Value = serde_json::from_slice(&output.stdout).context("explain prints JSON")?;
    let text = |member: &str| said[member].as_str().map(str::to_owned);
    let verdict = text("verdict").context("explain has a verdict")?;
    let may = outcomes(&said["outcome"])?;
    Ok(Explained { verdict, fix: text("fix"), may })
}

fn outcomes(outcomes: &Value) -> Result<May> {
    let mut may = May::default();
    for outcome in outcomes.as_array().context("explain tells outcomes")? {
        let text = |member: &str| outcome[member].as_str().map(str::to_owned);
        match outcome["kind"].as_str() {
            Some("endpoints") => {
                let endpoints = outcome["endpoints"].as_array().context("endpoints")?;
                may.endpoints.extend(endpoints.iter().filter_map(|it| it.as_str()?.parse::<SocketAddr>().ok()));
            }
            Some("response") => may.responses.push(Response {
                status: outcome["status"].as_u64().and_then(|it| it.try_into().ok()).context("a status")?,
                location: text("location"),
                cause: text("cause").context("a cause")?,
            }),
            Some("close") => may.closes = true,
            Some("handshake") => may.has_handshake = true,
            other => bail!("explain has an outcome of a kind that is not known here: {other:?}"),
        }
    }
    Ok(may)
}

impl Explained {
    /// The explanation as lines of a story.
    pub fn lines(&self) -> Vec<String> {
        let fix = self.fix.iter().map(|fix| format!("  fix: {fix}"));
        std::iter::once(format!("explain: {}", self.verdict)).chain(fix).collect()
    }

    /// Checks that the outcome of a request is one of the explained ones.
    ///
    /// # Errors
    /// The difference.
    pub fn agrees(&self, outcome: &Outcome, members: &[Member]) -> Result<(), String> {
        let may = &self.may;
        let address = |name: &str| members.iter().find(|member| member.name == name).map(|member| member.address);
        let (status, line) = match &outcome.got {
            Got::Response { status, line, .. } => (status, line),
            // Any backend may have received the request.
            Got::Nothing(_) if may.closes => return Ok(()),
            Got::Nothing(why) => return Err(format!("the client got nothing: {why}; {may:?}")),
        };
        let mut tried = outcome.backends().peekable();
        if tried.peek().is_some() {
            return match tried.find(|name| !address(name).is_some_and(|it| may.endpoints.contains(&it))) {
                Some(name) => Err(format!("backend {name} has it, and the endpoints are {:?}", may.endpoints)),
                None => Ok(()),
            };
        }
        let field = |name| outcome.got.field(name);
        let found = Response {
            status: *status,
            location: field("location").map(str::to_owned),
            cause: field("x-sluice-cause").unwrap_or("none").to_owned(),
        };
        match may.responses.contains(&found) {
            true => Ok(()),
            false => Err(format!("the router answers {line} ({found:?}), and may do {may:?}")),
        }
    }

    /// Checks that a handshake completed, or did not, as explained.
    ///
    /// # Errors
    /// The difference.
    pub fn agrees_with_handshake(&self, is_done: bool) -> Result<(), String> {
        let may = &self.may;
        let can_be_done = may.has_handshake || !may.endpoints.is_empty();
        match is_done {
            true if !can_be_done => Err(format!("the handshake is completed, and {may:?}")),
            false if !may.closes => Err(format!("there is no handshake, and {may:?}")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::claims::cast::members;
    use crate::claims::placeholders::Certificates;
    use crate::echo::Seen;

    fn explained(outcome: Value) -> Explained {
        Explained { verdict: String::new(), fix: None, may: outcomes(&outcome).unwrap() }
    }

    fn response(status: u16, fields: &[(&str, &str)]) -> Outcome {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let got = Got::response(&format!("HTTP/1.1 {status} Whatever"), fields, String::new());
        Outcome { got, answered: None, tried: Vec::new() }
    }

    fn from(backend: &str) -> Outcome {
        let seen = Seen { backend: backend.to_owned(), ..Seen::default() };
        Outcome { answered: Some(Arc::new(seen)), ..response(200, &[]) }
    }

    #[test]
    fn the_endpoint_the_status_the_place_and_the_cause_are_compared() {
        let lines = ["one: http", "two: http"].map(str::to_owned);
        let members = members(&lines, &mut Certificates::new().unwrap()).unwrap();
        let agrees = |said: &Value, outcome: &Outcome| explained(said.clone()).agrees(outcome, &members).is_ok();
        let endpoints = json!([{ "kind": "endpoints", "endpoints": ["10.1.0.1:3000"] }]);
        assert!(agrees(&endpoints, &from("one")));
        assert!(!agrees(&endpoints, &from("two")), "another endpoint");
        assert!(!agrees(&endpoints, &response(503, &[("x-sluice-cause", "no-route")])), "no endpoint at all");
        let refused = json!([{ "kind": "response", "status": 503, "cause": "no-route" }]);
        assert!(agrees(&refused, &response(503, &[("x-sluice-cause", "no-route")])));
        assert!(!agrees(&refused, &response(404, &[("x-sluice-cause", "no-route")])), "another status");
        assert!(!agrees(&refused, &response(503, &[("x-sluice-cause", "no-endpoints")])), "another cause");
        assert!(!agrees(&refused, &from("one")), "an endpoint, though there is none");
        let sent = json!([{ "kind": "response", "status": 302, "cause": "none", "location": "https://a.test/" }]);
        assert!(agrees(&sent, &response(302, &[("location", "https://a.test/")])));
        assert!(!agrees(&sent, &response(302, &[("location", "https://b.test/")])), "another place");
        let nothing = || Outcome { got: Got::Nothing("it ends".to_owned()), answered: None, tried: Vec::new() };
        assert!(agrees(&json!([{ "kind": "close", "cause": "no-route" }]), &nothing()));
        assert!(!agrees(&refused, &nothing()), "an answer was said to come");
        let shares = json!([{ "kind": "endpoints", "endpoints": ["10.1.0.1:3000"] },
                            { "kind": "response", "status": 500, "cause": "invalid-backend" }]);
        assert!(
            agrees(&shares, &from("one")) && agrees(&shares, &response(500, &[("x-sluice-cause", "invalid-backend")]))
        );
    }
}
