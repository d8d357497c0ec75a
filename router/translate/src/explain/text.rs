//! Renders an explanation as text.

use std::fmt;

use crate::explain::explanation::{Candidate, ClientAdmission, Explanation, ExplanationStep, Owner};
use crate::explain::outcome::QueryOutcome;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.query)?;
        for (number, step) in self.steps.iter().enumerate() {
            write!(f, "{}. ", number + 1)?;
            step.fmt(f)?;
        }
        writeln!(f, "{}: {}", if self.served { "served" } else { "not served" }, self.verdict)?;
        if let Some(cause) = self.outcome.first().and_then(QueryOutcome::cause) {
            writeln!(f, "cause: {cause}")?;
        }
        for outcome in self.outcome.iter().skip(1) {
            outcome.fmt(f)?;
        }
        match &self.fix {
            Some(fix) => writeln!(f, "fix: {fix}"),
            None => Ok(()),
        }
    }
}

/// One of several outcomes.
impl fmt::Display for QueryOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "or: {}", self.answer())?;
        self.cause().map_or(Ok(()), |cause| write!(f, " ({cause})"))?;
        let when = self.when.as_ref().map(|when| format!(", when {when}")).unwrap_or_default();
        writeln!(f, "{when}")
    }
}

impl fmt::Display for ExplanationStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExplanationStep::Listener { candidates: list } => candidates(f, "listener", list),
            ExplanationStep::Gate { rules, client } => {
                writeln!(f, "XDP gate")?;
                rules.iter().chain(client).try_for_each(|line| writeln!(f, "   {line}"))
            }
            ExplanationStep::Host { candidates: list } => candidates(f, "host", list),
            ExplanationStep::Path { candidates: list } => candidates(f, "path", list),
            ExplanationStep::Rule { listener, path, action } => {
                writeln!(f, "rule\n   on {listener}")?;
                for (depth, part) in path.iter().enumerate() {
                    writeln!(f, "   {:indent$}{part}", "", indent = 2 * depth)?;
                }
                writeln!(f, "   {action}")
            }
            ExplanationStep::Route(owner) => {
                writeln!(f, "route")?;
                object(f, "   ", owner)
            }
            ExplanationStep::Losers { routes } => {
                writeln!(f, "others that claim it")?;
                for loser in routes {
                    object(f, "   ", &loser.route)?;
                    writeln!(f, "     {}", loser.why)?;
                    if let Some(winner) = &loser.winner {
                        object(f, "     lost to ", winner)?;
                    }
                }
                Ok(())
            }
            ExplanationStep::Filter { allow, client } => {
                writeln!(f, "filter")?;
                match allow.as_deref() {
                    None => writeln!(f, "   everybody may connect")?,
                    Some([]) => writeln!(f, "   nobody may connect")?,
                    Some(allow) => writeln!(f, "   only {} may connect", allow.join(", "))?,
                }
                match client {
                    Some(ClientAdmission { address, admitted: true, by: Some(by) }) => {
                        writeln!(f, "   {address} is let in, by {by}")
                    }
                    Some(ClientAdmission { address, admitted: true, by: None }) => {
                        writeln!(f, "   {address} is let in")
                    }
                    Some(ClientAdmission { address, admitted: false, .. }) => writeln!(f, "   {address} is refused"),
                    None => Ok(()),
                }
            }
            ExplanationStep::Settings { settings } => {
                writeln!(f, "settings")?;
                settings.iter().try_for_each(|setting| writeln!(f, "   {}: {}", setting.what, setting.value))
            }
            ExplanationStep::Backends { services } => {
                writeln!(f, "backends")?;
                for service in services {
                    let endpoints =
                        if service.problem.is_empty() { service.endpoints.join(", ") } else { service.problem.clone() };
                    let who = if service.weight == 0 { " (only clients with its cookie)" } else { "" };
                    writeln!(f, "   service {} weight {}{who}: {endpoints}", service.name, service.weight)?;
                    service.troubles.iter().try_for_each(|trouble| writeln!(f, "     {trouble}"))?;
                }
                Ok(())
            }
            ExplanationStep::DataPath(path) => {
                writeln!(f, "data path\n   {}: {}", path.mode, path.verdict)?;
                for key in &path.keys {
                    let value = key.value.as_deref().unwrap_or("no entry");
                    write!(f, "   {} [router {}, {}]: {value}", key.map, key.router, key.host)?;
                    problem(f, key.problem.as_deref())?;
                }
                for net in &path.allow {
                    write!(f, "   allowlists [route {}, {}]: may connect", net.route, net.source)?;
                    problem(f, net.problem.as_deref())?;
                }
                Ok(())
            }
        }
    }
}

/// Ends a line, with the problem if there is one.
fn problem(f: &mut fmt::Formatter<'_>, problem: Option<&str>) -> fmt::Result {
    match problem {
        Some(problem) => writeln!(f, "; {problem}"),
        None => writeln!(f),
    }
}

fn candidates(f: &mut fmt::Formatter<'_>, stage: &str, candidates: &[Candidate]) -> fmt::Result {
    writeln!(f, "{stage}")?;
    for Candidate { what, taken, why } in candidates {
        writeln!(f, "   {} {what}: {why}", if *taken { "*" } else { "-" })?;
    }
    Ok(())
}

fn object(f: &mut fmt::Formatter<'_>, lead: &str, owner: &Owner) -> fmt::Result {
    write!(f, "{lead}{} {}/{}", owner.kind, owner.namespace, owner.name)?;
    if let Some(source) = &owner.source {
        write!(f, ", {source}")?;
    }
    match owner.created {
        Some(at) => write!(f, ", created {at}")?,
        // An invalid object's conditions are unknown.
        None if owner.conditions.iter().any(|condition| condition.reason == "InvalidManifest") => {}
        None => write!(f, ", without creationTimestamp (counts as youngest)")?,
    }
    let conditions = owner.conditions.iter().map(|condition| {
        let reason = if condition.reason.is_empty() { String::new() } else { format!(" ({})", condition.reason) };
        format!(", {} {}{reason}", condition.r#type, condition.status)
    });
    writeln!(f, "{}", conditions.collect::<String>())
}
