//! Rejected packets by source, listener and reason.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use router_common::maps::GateDrop;
use router_common::verdict::Reason;
use router_datapath::address::address;
use router_datapath::dump::head;
use serde_json::{Value, json};

/// What a row is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rejected {
    source: IpNet,
    listener: SocketAddr,
    reason: &'static str,
    is_observed: bool,
}

/// A row.
#[derive(Clone, Debug, Default)]
struct Count {
    packets: u64,
    /// First bytes of the newest recorded packet.
    head: String,
}

/// Packets of the entries of a record.
#[derive(Debug)]
pub struct Tally {
    bits: (u8, u8),
    counts: BTreeMap<Rejected, Count>,
}

impl Tally {
    /// Of sources that have these bits of IPv4 and IPv6 addresses.
    pub fn new(bits: (u8, u8)) -> Self {
        Tally { bits, counts: BTreeMap::new() }
    }

    /// Adds an entry, newer than those before.
    pub fn add(&mut self, drop: &GateDrop) {
        let source = address(&drop.flow.source);
        let bits = if source.is_ipv4() { self.bits.0 } else { self.bits.1 };
        // Bits that the address does not have are not asked for.
        let source = IpNet::new(source, bits).map_or(IpNet::from(source), |net| net.trunc());
        let rejected = Rejected {
            source,
            listener: SocketAddr::new(address(&drop.flow.destination), drop.flow.destination_port),
            reason: Reason::from_code(drop.reason).map_or("unknown", Reason::text),
            is_observed: drop.is_observed != 0,
        };
        let count = self.counts.entry(rejected).or_default();
        count.packets += drop.packets;
        count.head = head(drop);
    }

    /// The rows with the most packets, by falling number, then by source, listener and reason.
    pub fn rows(&self, seconds: u64, most: usize) -> Vec<Value> {
        let mut rows: Vec<_> = self.counts.iter().collect();
        rows.sort_by_key(|(_, count)| Reverse(count.packets));
        let row = |(rejected, count): (&Rejected, &Count)| {
            let Rejected { source, listener, reason, is_observed } = rejected;
            let is_host = source.prefix_len() == source.max_prefix_len();
            json!({
                "source": if is_host { source.addr().to_string() } else { source.to_string() },
                "listener": listener_text(*listener),
                "reason": reason,
                "effect": if *is_observed { "observed" } else { "dropped" },
                "packets": count.packets,
                "perSecond": (count.packets * 10 / seconds.max(1)) as f64 / 10.0,
                "head": count.head,
            })
        };
        rows.into_iter().take(most).map(row).collect()
    }
}

/// An address without a port if the packets' could not be read.
fn listener_text(listener: SocketAddr) -> String {
    match (listener.port(), listener.ip()) {
        (0, IpAddr::V4(ip)) => ip.to_string(),
        (0, IpAddr::V6(ip)) => format!("[{ip}]"),
        _ => listener.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use router_common::maps::{FlowKey, GATE_HEAD};
    use router_datapath::address::sixteen;

    use super::*;

    fn drop(source: &str, port: u16, reason: u16, packets: u64) -> GateDrop {
        let flow = FlowKey {
            source: sixteen(source.parse().unwrap()),
            destination: sixteen("192.0.2.1".parse().unwrap()),
            source_port: 7,
            destination_port: port,
        };
        let mut head = [0; GATE_HEAD];
        head[..2].copy_from_slice(&[0x1b, b'[']);
        GateDrop { window: 1, begin_ns: 1, packets, flow, reason, is_observed: 0, length: 2, head }
    }

    #[test]
    fn rows_are_in_a_fixed_order() {
        let mut tally = Tally::new((24, 64));
        let drops = [
            drop("198.51.100.9", 443, Reason::SourceRate as u16, 5),
            drop("198.51.100.7", 443, Reason::SourceRate as u16, 6),
            drop("2001:db8::7", 443, Reason::SourceDenied as u16, 40),
            drop("203.0.113.9", 0, Reason::Malformed as u16, 11),
            drop("203.0.113.9", 80, 9999, 1),
        ];
        drops.iter().for_each(|drop| tally.add(drop));
        tally.add(&GateDrop { is_observed: 1, ..drops[3] });
        let text = |row: &Value| {
            ["source", "listener", "reason", "effect", "perSecond", "head"].map(|name| row[name].to_string()).join(" ")
        };
        let rows: Vec<String> = tally.rows(2, 5).iter().map(text).collect();
        assert_eq!(
            rows,
            [
                r#""2001:db8::/64" "192.0.2.1:443" "source-denied" "dropped" 20.0 "1b5b""#,
                r#""198.51.100.0/24" "192.0.2.1:443" "source-syn-rate" "dropped" 5.5 "1b5b""#,
                r#""203.0.113.0/24" "192.0.2.1" "malformed" "dropped" 5.5 "1b5b""#,
                r#""203.0.113.0/24" "192.0.2.1" "malformed" "observed" 5.5 "1b5b""#,
                r#""203.0.113.0/24" "192.0.2.1:80" "unknown" "dropped" 0.5 "1b5b""#,
            ]
        );
        let mut hosts = Tally::new((32, 128));
        drops.iter().for_each(|drop| hosts.add(drop));
        assert_eq!(hosts.rows(1, 1)[0]["source"], "2001:db8::7");
    }
}
