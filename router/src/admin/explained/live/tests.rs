//! Maps with the intended entries, and maps with others.

use std::collections::HashMap;
use std::io;

use aya::maps::MapError;
use router_common::verdict::Reason;
use router_datapath::address::sixteen;
use router_datapath::image::{HostEntry, PoolEntry};
use router_translate::explain::explanation::{Explanation, ExplanationStep};
use serde_json::json;

use super::*;

#[derive(Default)]
struct Fake {
    hosts: HashMap<(RouteMap, String), Value>,
    allow: Vec<Value>,
    broken: Option<RouteMap>,
}

impl MapReader for Fake {
    fn host(&self, map: RouteMap, _: u32, host: &str) -> Result<Option<Value>, DumpError> {
        if self.broken == Some(map) {
            return Err(DumpError::Read(MapError::IoError(io::Error::other("worn out"))));
        }
        Ok(self.hosts.get(&(map, host.to_owned())).cloned())
    }

    fn allow_lists(&self) -> Result<Vec<Value>, DumpError> {
        Ok(self.allow.clone())
    }
}

fn entry(route: u32, allow_list: bool) -> HostEntry {
    HostEntry { route, reason: Reason::Passthrough, allow_list, backend: "be_tcp:shop:pay".to_owned() }
}

/// A passthrough wildcard of router 5 with an allow-list, and the maps for it.
fn stage() -> (MapImage, Fake) {
    let (mut image, mut fake) = (MapImage::default(), Fake::default());
    for map in [RouteMap::SniPassthrough, RouteMap::TcpBe] {
        let host = "*.shop.test".to_owned();
        fake.hosts.insert((map, host.clone()), intended_row(map, 5, &host, &entry(7, true)));
        image.hosts.insert((map, 5, host), entry(7, true));
    }
    image.pools.insert(7, PoolEntry { id: 1, slots: 1, flags: 0 });
    image.allow.insert((7, sixteen("10.0.0.0".parse().unwrap()), 104));
    image.allow.insert((8, sixteen("10.9.0.0".parse().unwrap()), 112));
    fake.allow = vec![json!({"route": 7, "source": "10.0.0.0/8"}), json!({"route": 8, "source": "10.9.0.0/16"})];
    (image, fake)
}

/// The step as text, without its first line.
fn shown(path: KernelDecision) -> String {
    let query = query("x.test");
    let steps = vec![ExplanationStep::DataPath(path)];
    let (verdict, fix, outcome) = (String::new(), None, Vec::new());
    let all = Explanation { query, router: None, steps, served: true, verdict, fix, outcome }.to_string();
    let lines: Vec<&str> = all.lines().collect();
    lines[2..lines.len() - 1].join("\n")
}

fn query(text: &str) -> Query {
    Query::parse(text).unwrap()
}

#[test]
fn maps_that_hold_what_they_should_are_shown() {
    let (image, fake) = stage();
    let expected = "   kernel: drop: refused, unless the client is in the allow-list (source-not-allowed)
   sni_passthrough [router 5, pay.shop.test]: no entry
   tcp_be [router 5, pay.shop.test]: no entry
   edge_reencrypt [router 5, pay.shop.test]: no entry
   sni_passthrough [router 5, *.shop.test]: passthrough
   tcp_be [router 5, *.shop.test]: be_tcp:shop:pay, route 7, passthrough, allow-list
   edge_reencrypt [router 5, *.shop.test]: no entry
   allowlists [route 7, 10.0.0.0/8]: may connect";
    let path = kernel(&image, &fake, 5, &query("pay.shop.test"));
    assert_eq!(path.keys[4].entry.as_ref().unwrap()["route"], 7);
    assert_eq!(shown(path), expected);
    let of =
        |client: &str| kernel(&image, &fake, 5, &query("pay.shop.test").from_client(client.parse().unwrap())).verdict;
    assert_eq!(of("10.1.2.3"), "steer: the stream goes to an endpoint as it is (passthrough)");
    assert_eq!(of("192.0.2.1"), "drop: refused (source-not-allowed)");
    let other = kernel(&image, &fake, 6, &query("http://pay.shop.test/"));
    assert_eq!(other.verdict, "pass: the agent takes it (unknown-host)");
    assert_eq!((other.keys.len(), other.allow.len()), (2, 0));
}

#[test]
fn maps_that_differ_say_how() {
    let (image, mut fake) = stage();
    let wildcard = || "*.shop.test".to_owned();
    fake.hosts.insert((RouteMap::TcpBe, wildcard()), intended_row(RouteMap::TcpBe, 5, "*.shop.test", &entry(3, false)));
    fake.hosts.remove(&(RouteMap::SniPassthrough, wildcard()));
    let stray = intended_row(RouteMap::EdgeReencrypt, 5, "pay.shop.test", &entry(4, false));
    fake.hosts.insert((RouteMap::EdgeReencrypt, "pay.shop.test".to_owned()), stray);
    fake.allow[0] = json!({"route": 7, "source": "10.0.0.0/9"});
    let path = kernel(&image, &fake, 5, &query("pay.shop.test"));
    let problems: Vec<_> = path.keys.iter().map(|key| key.problem.as_deref().unwrap_or_default()).collect();
    assert_eq!(
        problems,
        [
            "",
            "",
            "is not intended",
            "missing: should be passthrough",
            "differs from what is intended: be_tcp:shop:pay, route 7, passthrough, allow-list",
            ""
        ]
    );
    assert!(path.verdict.ends_with(", if the maps held what is intended; they do not"), "{}", path.verdict);
    let text = shown(path);
    for line in [
        "   tcp_be [router 5, *.shop.test]: be_tcp:shop:pay, route 3, passthrough; differs from what is intended: ",
        "   sni_passthrough [router 5, *.shop.test]: no entry; missing: should be passthrough",
        "   allowlists [route 7, 10.0.0.0/8]: may connect; missing",
        "   allowlists [route 7, 10.0.0.0/9]: may connect; is not intended",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn a_map_that_cannot_be_read_says_so() {
    let (image, mut fake) = stage();
    fake.broken = Some(RouteMap::TcpBe);
    let path = kernel(&image, &fake, 5, &query("pay.shop.test"));
    assert!(path.keys[1].problem.as_deref().unwrap().starts_with("cannot be read: "), "{:?}", path.keys[1]);
    assert_eq!(path.keys[0].problem, None);
}
