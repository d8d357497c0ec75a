//! `/explain?<question>[&from=<address>]`: the engine's explanation, with what the data path knows.

mod live;

use std::sync::Arc;

use router_core::explain::{DataPath, Explanation, Facts, Query, QueryError, Step, explain};

use super::Views;
use live::{Pins, kernel};

/// Where it is asked.
pub const PATH: &str = "/explain";
/// What stands before the client's address.
const FROM: &str = "&from=";

/// Path and question of a query. A parsed query holds no byte that a URI cannot, but in its path.
pub fn path_of(query: &Query) -> String {
    let port = query.port.map(|port| format!(":{port}")).unwrap_or_default();
    let text = match &query.path {
        Some(path) => format!("{}://{}{port}{path}", query.protocol, query.host),
        None => format!("{}{port}", query.host),
    };
    let escaped = text.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b':' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    });
    let from = query.from.map(|client| format!("{FROM}{client}")).unwrap_or_default();
    format!("{PATH}?{}{from}", escaped.collect::<String>())
}

/// The query of a path's question.
fn query_of(question: &str) -> Result<Query, QueryError> {
    // An ampersand of the query itself is escaped.
    let (text, from) = question.split_once(FROM).map_or((question, None), |(text, from)| (text, Some(from)));
    let query = Query::parse(&unescaped(text))?;
    Ok(match from {
        Some(from) => query.asked_by(from.parse().map_err(|_| QueryError::From(from.to_owned()))?),
        None => query,
    })
}

/// Undoes the escapes; a `%` without two digits stands for itself.
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
    /// Explains what happens to a question as it stands in a URI.
    ///
    /// # Errors
    /// It is no question.
    pub fn explain(&self, question: &str) -> Result<Explanation, QueryError> {
        let query = query_of(question)?;
        let published = Arc::clone(&self.published.borrow());
        let status = &published.status;
        let facts = Facts { table: &published.table, report: &status.report, resources: &status.resources };
        let mut explanation = explain(facts, &query);
        let router = published.table.routers.iter().find(|r| explanation.router.as_deref() == Some(&*r.name.0));
        if let Some(router) = router {
            let path = Step::DataPath(self.data_path(router.id, &query, published.table.revision));
            // Who else wants it is no stage of the traffic's way: it stays last.
            let at = explanation.steps.iter().position(|step| matches!(step, Step::Losers { .. }));
            explanation.steps.insert(at.unwrap_or(explanation.steps.len()), path);
        }
        Ok(explanation)
    }

    fn data_path(&self, router: u32, query: &Query, revision: u64) -> DataPath {
        match &self.programmed {
            Err(reason) => {
                DataPath { mode: "userspace".to_owned(), verdict: reason.clone(), keys: Vec::new(), allow: Vec::new() }
            }
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
        for text in ["https://a.test:8443/x%20y/ä", "http://a.test/", "http://a.test/&from=x", "a.test", "a.test:443"]
        {
            for from in [None, Some("192.0.2.1"), Some("2001:db8::1")] {
                let query = Query::parse(text).unwrap();
                let query = from.map_or(query.clone(), |from| query.asked_by(from.parse().unwrap()));
                let path = path_of(&query);
                let uri: http::Uri = path.parse().unwrap();
                assert_eq!(query_of(uri.query().unwrap()), Ok(query), "{path}");
            }
        }
        assert_eq!(unescaped("a%zz%4"), "a%zz%4");
        assert_eq!(query_of("a.test&from=me"), Err(QueryError::From("me".to_owned())));
    }
}
