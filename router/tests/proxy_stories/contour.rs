//! Contour's objects from manifests to bytes, with their explanations and statuses.

mod affinity;
mod timeouts;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::client::{self, Answer};
use crate::manifests::{World, object, proxy, service, to};
use crate::{backends, pki};

/// A request with these field lines; `host` and `Connection: close` are added.
async fn ask(world: &World, host: &str, path: &str, lines: &[&str]) -> Answer {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{lines}\r\n");
    client::request(world.rig.http, &head).await
}

/// The backend that responded.
fn who(answer: &Answer) -> &str {
    answer.field("x-backend").unwrap_or_else(|| panic!("no backend answered: {answer:?}"))
}

/// Number of responses by backend.
type Counts = BTreeMap<String, usize>;
