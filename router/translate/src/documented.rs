//! The documentation lists every feature that a GatewayClass's status has, and none that it has not.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::gateway::class::FEATURES;

/// The names in code of the first cells of a document's tables.
fn documented(document: &str) -> BTreeSet<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(document);
    let text = fs::read_to_string(file).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = rows.filter_map(|row| row.split_once(" |")).map(|(cell, _)| cell);
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

#[test]
fn every_feature_of_gateway_api_is_listed() {
    let listed = documented("gateway-api.md");
    let lacking: Vec<&&str> = FEATURES.iter().filter(|feature| !listed.contains(**feature)).collect();
    assert!(lacking.is_empty(), "docs/gateway-api.md does not list {lacking:?}");
    let is_feature = |name: &&String| {
        ["Gateway", "HTTPRoute", "GRPCRoute", "TLSRoute"].iter().any(|kind| {
            name.strip_prefix(kind).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        })
    };
    let unknown: Vec<&String> = listed.iter().filter(is_feature).filter(|name| !FEATURES.contains(&&***name)).collect();
    assert!(unknown.is_empty(), "docs/gateway-api.md lists {unknown:?}, which no status has");
}
