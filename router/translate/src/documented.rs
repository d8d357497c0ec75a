//! docs/gateway-api.md lists exactly the features in a GatewayClass's status.

use router_api::testing::documented;

use crate::gateway::class::FEATURES;

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
