//! `/explain?<question>`: the engine's explanation, with what the data path knows.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use router_common::maps::{PROTOCOL_HTTP, PROTOCOL_TLS};
use router_common::verdict::Verdict;
use router_core::explain::{DataPath, Explanation, Facts, MapKey, Protocol, Query, QueryError, Step, explain};

use super::Views;
use crate::datapath::image::{MapImage, RouteMap};

/// Where it is asked.
pub const PATH: &str = "/explain";

/// Stands for a client whose address nobody told.
const SOME_CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

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
    format!("{PATH}?{}", escaped.collect::<String>())
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
        let query = Query::parse(&unescaped(question))?;
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
            Err(reason) => DataPath { mode: "userspace".to_owned(), verdict: reason.clone(), keys: Vec::new() },
            Ok(programmed) => {
                let programmed = Arc::clone(&programmed.borrow());
                let mut path = kernel(&programmed.intended(), router, query);
                if programmed.failed > 0 || programmed.revision != revision {
                    path.verdict.push_str("; the maps are behind, see `sluice get status`");
                }
                path
            }
        }
    }
}

/// What the kernel program decides about a client that no allow-list names, and the keys that it looks up.
fn kernel(image: &MapImage, router: u32, query: &Query) -> DataPath {
    let protocol = match query.protocol {
        Protocol::Http => PROTOCOL_HTTP,
        Protocol::Https => PROTOCOL_TLS,
    };
    let decision = image.decide_name(router, protocol, SOME_CLIENT, &query.host);
    let what = match decision.verdict() {
        Verdict::Steer => "steer: the stream goes to an endpoint as it is",
        Verdict::Pass => "pass: the agent takes it",
        Verdict::Drop => "drop: refused, unless the client is in the allow-list",
    };
    let wildcard = query.hostname().and_then(|host| host.parent().map(|parent| format!("*.{parent}")));
    let maps: &[RouteMap] = match query.protocol {
        Protocol::Http => &[RouteMap::HttpBe],
        Protocol::Https => &[RouteMap::SniPassthrough, RouteMap::TcpBe, RouteMap::EdgeReencrypt],
    };
    let mut keys = Vec::new();
    for host in std::iter::once(query.host.clone()).chain(wildcard) {
        for map in maps {
            let entry = image.hosts.get(&(*map, router, host.clone()));
            let value = entry.map(|entry| {
                let list = if entry.allow_list { ", allow-list" } else { "" };
                format!("{}, route {}, {}{list}", entry.backend, entry.route, entry.reason.text())
            });
            keys.push(MapKey { map: map.name().to_owned(), router, host: host.clone(), value });
        }
    }
    DataPath { mode: "kernel".to_owned(), verdict: format!("{what} ({})", decision.reason.text()), keys }
}

#[cfg(test)]
mod tests {
    use router_common::verdict::Reason;

    use super::*;
    use crate::datapath::image::HostEntry;

    #[test]
    fn questions_survive_their_way_through_a_uri() {
        for text in ["https://a.test:8443/x%20y/ä", "http://a.test/", "a.test", "a.test:443"] {
            let query = Query::parse(text).unwrap();
            let path = path_of(&query);
            let uri: http::Uri = path.parse().unwrap();
            assert_eq!(Query::parse(&unescaped(uri.query().unwrap())), Ok(query), "{path}");
        }
        assert_eq!(unescaped("a%zz%4"), "a%zz%4");
    }

    #[test]
    fn the_kernel_part_names_every_key_and_the_programs_own_verdict() {
        let mut image = MapImage::default();
        let entry = HostEntry {
            route: 7,
            reason: Reason::Passthrough,
            allow_list: false,
            backend: "be_tcp:shop:pay".to_owned(),
        };
        for map in [RouteMap::SniPassthrough, RouteMap::TcpBe] {
            image.hosts.insert((map, 5, "*.shop.test".to_owned()), entry.clone());
        }
        let path = kernel(&image, 5, &Query::parse("pay.shop.test").unwrap());
        assert_eq!(path.verdict, "steer: the stream goes to an endpoint as it is (passthrough)");
        let found: Vec<_> =
            path.keys.iter().map(|key| (key.map.as_str(), key.host.as_str(), key.value.is_some())).collect();
        assert_eq!(
            found,
            [
                ("sni_passthrough", "pay.shop.test", false),
                ("tcp_be", "pay.shop.test", false),
                ("edge_reencrypt", "pay.shop.test", false),
                ("sni_passthrough", "*.shop.test", true),
                ("tcp_be", "*.shop.test", true),
                ("edge_reencrypt", "*.shop.test", false),
            ]
        );
        let other = kernel(&image, 6, &Query::parse("http://pay.shop.test/").unwrap());
        assert_eq!(other.verdict, "pass: the agent takes it (unknown-host)");
    }
}
