//! `haproxy.router.openshift.io/ip_allowlist`: who may connect (docs/openshift.md#allow-list).

use std::net::IpAddr;

use ipnet::IpNet;
use router_model::object::TextMap;

/// The annotation.
pub const ALLOWLIST: &str = "haproxy.router.openshift.io/ip_allowlist";
/// Its old name; the new one wins.
pub const WHITELIST: &str = "haproxy.router.openshift.io/ip_whitelist";

/// A route's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowList {
    /// Name of the annotation that was read.
    pub annotation: &'static str,
    /// The valid networks; with none of them nobody may connect.
    pub nets: Vec<IpNet>,
    /// Items that are no addresses or networks.
    pub invalid: Vec<String>,
}

/// Reads a route's list; `None`: everybody may connect.
pub fn allowlist(annotations: &TextMap) -> Option<AllowList> {
    let (annotation, text) = [ALLOWLIST, WHITELIST]
        .into_iter()
        .find_map(|annotation| annotations.get(annotation).map(|text| (annotation, text)))?;
    let mut list = AllowList { annotation, nets: Vec::new(), invalid: Vec::new() };
    for item in text.split_ascii_whitespace() {
        match net(item) {
            Some(net) => list.nets.push(net),
            None => list.invalid.push(item.to_owned()),
        }
    }
    Some(list)
}

/// An address or a network. IPv4-mapped ones become IPv4, as the clients' addresses are compared in that form.
fn net(item: &str) -> Option<IpNet> {
    let net = match item.parse::<IpNet>() {
        Ok(net) => net.trunc(),
        Err(_) => IpNet::from(item.parse::<IpAddr>().ok()?),
    };
    let IpNet::V6(v6) = net else { return Some(net) };
    match (v6.addr().to_ipv4_mapped(), v6.prefix_len().checked_sub(96)) {
        (Some(v4), Some(prefix)) => IpNet::new(IpAddr::V4(v4), prefix).ok(),
        _ => Some(net),
    }
}
