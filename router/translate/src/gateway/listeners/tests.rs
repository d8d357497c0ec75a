//! Indistinct listeners of one Gateway. Most such Gateways are rejected by the reader.

use router_api::gateway_api::types::ListenerTls;
use router_model::names::Hostname;

use super::*;

fn listener(port: u16, protocol: &str, hostname: Option<&str>, passthrough: bool) -> Listener {
    Listener {
        name: format!("{protocol}-{port}").into(),
        hostname: hostname.map_or(HostPattern::Any, |name| HostPattern::Exact(Hostname::parse(name).unwrap())),
        port,
        protocol: protocol.into(),
        tls: Some(ListenerTls { passthrough, certificates: Vec::new() }),
        allowed: Default::default(),
        unsupported: Vec::new(),
    }
}

#[test]
fn indistinct_listeners_are_all_conflicted() {
    let (a, b) = (Some("a.test"), Some("b.test"));
    let (host, protocol) = (Some("HostnameConflict"), Some("ProtocolConflict"));
    for (listeners, reasons) in [
        (vec![(80, "HTTP", a, false), (80, "HTTP", b, false), (80, "HTTP", None, false)], vec![None, None, None]),
        (vec![(80, "HTTP", a, false), (80, "HTTP", a, false), (80, "HTTP", b, false)], vec![host, host, None]),
        (vec![(80, "HTTP", None, false), (80, "HTTP", None, false)], vec![host, host]),
        (vec![(443, "TLS", a, false), (443, "TLS", a, true)], vec![host, host]),
        (vec![(443, "TLS", a, false), (443, "TLS", b, true)], vec![None, None]),
        (vec![(443, "HTTPS", a, false), (443, "TLS", a, true), (443, "TLS", b, true)], vec![protocol, protocol, None]),
        (
            vec![(443, "HTTPS", a, false), (443, "HTTP", b, false), (80, "HTTP", b, false)],
            vec![protocol, protocol, None],
        ),
        // A listener with an unsupported protocol causes no conflict.
        (vec![(80, "HTTP", a, false), (80, "UDP", a, false)], vec![None, None]),
    ] {
        let written: Vec<_> = listeners.iter().map(|(p, k, h, pass)| listener(*p, k, *h, *pass)).collect();
        let found: Vec<_> =
            conflicts(&written).into_iter().map(|conflict| conflict.map(|(reason, _)| reason)).collect();
        assert_eq!(found, reasons, "{listeners:?}");
    }
}
