//! `haproxy.router.openshift.io/ip_allowlist`: the clients that may connect (docs/openshift.md#allow-list).

use std::net::IpAddr;

use ipnet::IpNet;
use router_model::field::{FieldPath, Findings};

use crate::meta::Annotations;

/// The annotation.
pub const ALLOWLIST: &str = "haproxy.router.openshift.io/ip_allowlist";
/// Its old name; the new one wins.
pub const WHITELIST: &str = "haproxy.router.openshift.io/ip_whitelist";

/// The clients that may connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowList {
    /// Name of the annotation: [`ALLOWLIST`] or [`WHITELIST`].
    pub annotation: &'static str,
    /// The valid items; if there are none, no client may connect.
    pub nets: Box<[IpNet]>,
}

/// Parses a route's allow-list, with a warning about invalid items; `None`: every client may connect.
pub fn parse(annotations: &Annotations, findings: &mut Findings) -> Option<AllowList> {
    let (annotation, text) =
        [ALLOWLIST, WHITELIST].into_iter().find_map(|name| annotations.get(name).map(|text| (name, text)))?;
    let (mut nets, mut invalid) = (Vec::new(), Vec::new());
    for item in text.split_ascii_whitespace() {
        match net(item) {
            Some(net) => nets.push(net),
            None => invalid.push(item),
        }
    }
    if !invalid.is_empty() {
        let message = format!(
            "not addresses, ignored: {}; write IP addresses or networks, such as 10.0.0.0/8",
            invalid.join(" ")
        );
        findings.warn(FieldPath::of(&["metadata", "annotations", annotation]), message);
    }
    Some(AllowList { annotation, nets: nets.into() })
}

/// An address or a network. IPv4-mapped IPv6 becomes IPv4: clients' addresses are compared in that form.
pub fn net(item: &str) -> Option<IpNet> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_items_are_kept_and_without_one_no_client_may_connect() {
        let read = |annotations: &[(&str, &str)]| {
            let texts = annotations.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
            let mut findings = Findings::default();
            let list = parse(&texts, &mut findings);
            (list, findings.warnings.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let list = |annotations: &[(&str, &str)]| read(annotations).0;
        assert_eq!(read(&[]), (None, vec![]));
        let texts = |list: AllowList| list.nets.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mixed = "192.168.1.0 2001:0db8:85a3:0000:0000:8a2e:0370 172.16.14.10/24 64:ff9b::192.168.0.1 10. \
                     ::ffff:1.2.3.4/120";
        let (found, warnings) = read(&[(ALLOWLIST, mixed), (WHITELIST, "0.0.0.0/0")]);
        let found = found.unwrap();
        assert_eq!(found.annotation, ALLOWLIST);
        let message = "metadata.annotations[haproxy.router.openshift.io/ip_allowlist]: not addresses, ignored: \
                       2001:0db8:85a3:0000:0000:8a2e:0370 10.; write IP addresses or networks, such as 10.0.0.0/8";
        assert_eq!(warnings, [message]);
        assert_eq!(texts(found), ["192.168.1.0/32", "172.16.14.0/24", "64:ff9b::c0a8:1/128", "1.2.3.0/24"]);
        let old = list(&[(WHITELIST, "10.0.0.0/8")]).unwrap();
        assert_eq!((old.annotation, texts(old)), (WHITELIST, vec!["10.0.0.0/8".to_owned()]));
        for nothing in ["", "  ", "192.168.10.5/64"] {
            assert!(list(&[(ALLOWLIST, nothing)]).unwrap().nets.is_empty(), "{nothing:?}");
        }
    }
}
