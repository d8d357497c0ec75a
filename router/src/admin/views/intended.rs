//! Entries of the host maps as they should be.

use router_datapath::image::{HostEntry, RouteMap, flags};
use serde_json::{Value, json};

/// An entry of a host map, as `sluice bpf dump` shows it once it is written.
pub fn intended_row(map: RouteMap, router: u32, host: &str, entry: &HostEntry) -> Value {
    match map {
        RouteMap::SniPassthrough => json!({"router": router, "host": host}),
        _ => json!({"router": router, "host": host, "route": entry.route, "backend": entry.backend,
            "reason": entry.reason.text(), "allowList": flags(entry) != 0}),
    }
}
