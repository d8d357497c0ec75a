//! Intended entries of the host maps.

use router_datapath::image::{HostEntry, RouteMap, flags};
use serde_json::{Value, json};

/// An intended entry of a host map, in the form of `sluice bpf dump`.
pub fn intended_row(map: RouteMap, router: u32, host: &str, entry: &HostEntry) -> Value {
    match map {
        RouteMap::SniPassthrough => json!({"router": router, "host": host}),
        _ => json!({"router": router, "host": host, "route": entry.route, "backend": entry.backend,
            "reason": entry.reason.text(), "allowList": flags(entry) != 0}),
    }
}
