//! `/explain?<query>[&method=<method>][&header=<field>]…[&from=<address>]`: the engine's explanation, completed with
//! the state of the data path.

mod live;

use std::sync::Arc;

use router_translate::explain::data_path::KernelDecision;
use router_translate::explain::explain;
use router_translate::explain::explanation::{Explanation, ExplanationStep};
use router_translate::explain::facts::Facts;
use router_translate::explain::query::{Query, QueryError};

use super::views::Views;
use live::{Pins, kernel};

/// Path of the endpoint.
pub const PATH: &str = "/explain";
/// Names of the parameters: method, header field, client address.
const METHOD: &str = "method";
const HEADER: &str = "header";
const FROM: &str = "from";

/// Path and query string for a query.
pub fn path_of(query: &Query) -> String {
    let port = query.port.map(|port| format!(":{port}")).unwrap_or_default();
    let text = match &query.path {
        Some(path) => {
            let search = query.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
            format!("{}://{}{port}{path}{search}", query.protocol, query.host)
        }
        None => format!("{}{port}", query.host),
    };
    let method = query.method.as_ref().map(|method| (METHOD, method.clone()));
    let field = |(name, value): &(String, String)| match &**value {
        "" => (HEADER, format!("{name};")),
        value => (HEADER, format!("{name}: {value}")),
    };
    let from = query.from.map(|client| (FROM, client.to_string()));
    let members = method.into_iter().chain(query.headers.iter().map(field)).chain(from);
    let members: String = members.map(|(name, value)| format!("&{name}={}", escaped(&value))).collect();
    format!("{PATH}?{}{members}", escaped(&text))
}

/// Parses the query string of a request. Ampersands of the explained URL itself are escaped.
fn query_of(question: &str) -> Result<Query, QueryError> {
    let mut members = question.split('&');
    let query = Query::parse(&unescaped(members.next().unwrap_or_default()))?;
    members.try_fold(query, |query, member| {
        let (name, value) = member.split_once('=').unwrap_or((member, ""));
        let value = unescaped(value);
        match name {
            METHOD => query.with_method(&value),
            HEADER => query.with_header(&value),
            FROM => Ok(query.from_client(value.parse().map_err(|_| QueryError::From(value.clone()))?)),
            // Sent by a client of another version.
            _ => Ok(query),
        }
    })
}

fn escaped(text: &str) -> String {
    let escaped = text.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b':' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    });
    escaped.collect()
}

/// Decodes percent escapes; a `%` without two hex digits stands for itself.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = tail.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Views {
    /// Explains the query in a request's query string.
    ///
    /// # Errors
    /// The query is invalid.
    pub fn explain(&self, question: &str) -> Result<Explanation, QueryError> {
        let query = query_of(question)?;
        let published = Arc::clone(&self.published.borrow());
        let status = &published.status;
        let facts = Facts {
            table: &published.table,
            report: &status.report,
            resources: &status.resources,
            trust: self.known.trust(),
            is_guarded: self.programmed.as_ref().is_ok_and(|programmed| !programmed.borrow().gate.attached.is_empty()),
            live: Some(&self.known),
        };
        let mut explanation = explain(facts, &query);
        let router = published.table.routers.iter().find(|r| explanation.router.as_deref() == Some(&*r.name.0));
        // Packets that the gate drops reach no other stage.
        if let Some(router) = router.filter(|_| !explanation.is_dropped()) {
            let path = ExplanationStep::DataPath(self.data_path(router.id, &query, published.table.revision));
            // Losers are not a stage of traffic, so this step stays last.
            let at = explanation.steps.iter().position(|step| matches!(step, ExplanationStep::Losers { .. }));
            explanation.steps.insert(at.unwrap_or(explanation.steps.len()), path);
        }
        Ok(explanation)
    }

    fn data_path(&self, router: u32, query: &Query, revision: u64) -> KernelDecision {
        match &self.programmed {
            Err(reason) => KernelDecision {
                mode: "userspace".to_owned(),
                verdict: reason.clone(),
                keys: Vec::new(),
                allow: Vec::new(),
            },
            Ok(programmed) => {
                let programmed = Arc::clone(&programmed.borrow());
                let mut path = programmed.look(|image| kernel(image, &Pins(&self.pins), router, query));
                if programmed.failed > 0 || programmed.revision != revision {
                    path.verdict.push_str("; the maps are behind, see `sluice get status`");
                }
                path
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_survive_their_way_through_a_uri() {
        for text in [
            "https://a.test:8443/x%20y/ä",
            "http://a.test/",
            "http://a.test/&from=x",
            "http://a.test/x?v=2&from=1#y",
            "http://a.test/x?",
            "a.test",
            "a.test:443",
        ] {
            for from in [None, Some("192.0.2.1"), Some("2001:db8::1")] {
                let query = Query::parse(text).unwrap();
                let query = from.map_or(query.clone(), |from| query.from_client(from.parse().unwrap()));
                let fields = ["X-Version: 2&from=3", "x-empty;", "X-Text: é 100%"];
                let told = query
                    .clone()
                    .with_method("PATCH")
                    .and_then(|query| fields.into_iter().try_fold(query, |query, field| query.with_header(field)));
                for query in [Some(query), told.ok()].into_iter().flatten() {
                    let path = path_of(&query);
                    let uri: http::Uri = path.parse().unwrap();
                    assert_eq!(query_of(uri.query().unwrap()), Ok(query), "{path}");
                }
            }
        }
        assert_eq!(unescaped("a%zz%4"), "a%zz%4");
        assert_eq!(query_of("a.test&from=me"), Err(QueryError::From("me".to_owned())));
        assert_eq!(query_of("a.test&method=GET"), Err(QueryError::NoRequest("a.test".to_owned())));
    }
}
