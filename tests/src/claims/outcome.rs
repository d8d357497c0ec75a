//! Outcome of a request, as its client and the backends saw it.

use std::sync::Arc;

use crate::echo::Seen;

/// Result for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Got {
    /// A response.
    Response {
        /// The first line.
        line: String,
        /// Its status.
        status: u16,
        /// Header fields and trailers, with names as received.
        fields: Vec<(String, String)>,
        /// The content.
        body: String,
    },
    /// No response: the reason as text.
    Nothing(String),
}

/// Outcome of a request.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Result for the client.
    pub got: Got,
    /// The backend that responded, with the request that it saw.
    pub answered: Option<Arc<Seen>>,
    /// The requests at backends that did not respond, in order; without mirrors.
    pub tried: Vec<Arc<Seen>>,
}

impl Got {
    /// A response from its head and content.
    pub fn response(line: &str, fields: Vec<(String, String)>, body: String) -> Got {
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
        Got::Response { line: line.trim_end().to_owned(), status, fields, body }
    }

    /// The first field of a name.
    pub fn field(&self, name: &str) -> Option<&str> {
        match self {
            Got::Response { fields, .. } => {
                fields.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
            }
            Got::Nothing(_) => None,
        }
    }

    /// The outcome in one line.
    pub fn summary(&self) -> &str {
        match self {
            Got::Response { line, .. } => line,
            Got::Nothing(why) => why,
        }
    }
}

impl Outcome {
    /// All backends that received it.
    pub fn backends(&self) -> impl Iterator<Item = &str> {
        self.tried.iter().chain(&self.answered).map(|seen| seen.backend.as_str())
    }

    /// The backend that responded, as text.
    pub fn who(&self) -> &str {
        match (&self.answered, &self.got) {
            (Some(seen), _) => &seen.backend,
            (None, Got::Response { .. }) => "the router",
            (None, Got::Nothing(_)) => "nobody",
        }
    }

    /// The outcome as lines, with these fields of the response and of the request at the backend.
    pub fn lines(&self, answer: &[String], seen: &[String]) -> Vec<String> {
        const ALWAYS: [&str; 4] = ["location", "x-sluice-cause", "grpc-status", "grpc-message"];
        let mut lines = vec![self.got.summary().to_owned()];
        if let Got::Response { fields, body, .. } = &self.got {
            let is = |name: &str, shown: &str| shown.eq_ignore_ascii_case(name);
            let shown = |name: &str| ALWAYS.iter().any(|it| is(name, it)) || answer.iter().any(|it| is(name, it));
            let fields = fields.iter().filter(|(name, _)| shown(name));
            lines.extend(fields.map(|(name, value)| format!("  {name}: {value}")));
            if answer.iter().any(|shown| shown == "body") {
                lines.extend(body.lines().map(|line| format!("  | {line}")));
            }
        }
        for other in &self.tried {
            lines.push(format!("{} saw {}, and the answer is not its own", other.backend, other.request));
        }
        if let Some(saw) = &self.answered {
            lines.extend(what(saw, seen));
        }
        lines
    }
}

/// The request at a backend, as lines.
pub fn what(saw: &Seen, shown: &[String]) -> Vec<String> {
    let mut lines = vec![format!("{} saw {}", saw.backend, saw.request)];
    let is_shown = |name: &str| shown.iter().any(|shown| shown.eq_ignore_ascii_case(name));
    let fields = saw.fields.iter().filter(|(name, _)| is_shown(name) || is_shown("all"));
    lines.extend(fields.map(|(name, value)| format!("  {name}: {value}")));
    lines.extend(saw.about.iter().map(|about| format!("  [{about}]")));
    if is_shown("body") {
        lines.extend(String::from_utf8_lossy(&saw.body).lines().map(|line| format!("  | {line}")));
    }
    lines.extend(saw.trailers.iter().map(|(name, value)| format!("  trailer {name}: {value}")));
    lines
}
