//! `haproxy.router.openshift.io/ip_allowlist`: the clients that may connect (docs/openshift.md#allow-list).

use std::net::IpAddr;

use ipnet::IpNet;

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
    /// The items that are neither addresses nor networks.
    pub invalid: Box<[Box<str>]>,
}

/// Parses a route's allow-list; `None`: every client may connect.
pub fn parse(annotations: &Annotations) -> Option<AllowList> {
    let (annotation, text) =
        [ALLOWLIST, WHITELIST].into_iter().find_map(|name| annotations.get(name).map(|text| (name, text)))?;
    let (mut nets, mut invalid) = (Vec::new(), Vec::new());
    for item in text.split_ascii_whitespace() {
        match net(item) {
            Some(net) => nets.push(net),
            None => invalid.push(item.into()),
        }
    }
    Some(AllowList { annotation, nets: nets.into(), invalid: invalid.into() })
}

/// An address or a network. IPv4-mapped IPv6 becomes IPv4: clients' addresses are compared in that form.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_items_are_kept_and_without_one_nobody_may_connect() {
        let list = |annotations: &[(&str, &str)]| {
            parse(&annotations.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect())
        };
        assert_eq!(list(&[]), None);
        let texts = |list: AllowList| list.nets.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mixed = "192.168.1.0 2001:0db8:85a3:0000:0000:8a2e:0370 172.16.14.10/24 64:ff9b::192.168.0.1 10. \
                     ::ffff:1.2.3.4/120";
        let found = list(&[(ALLOWLIST, mixed), (WHITELIST, "0.0.0.0/0")]).unwrap();
        assert_eq!(found.annotation, ALLOWLIST);
        assert_eq!(*found.invalid, ["2001:0db8:85a3:0000:0000:8a2e:0370", "10."].map(Into::into));
        assert_eq!(texts(found), ["192.168.1.0/32", "172.16.14.0/24", "64:ff9b::c0a8:1/128", "1.2.3.0/24"]);
        let old = list(&[(WHITELIST, "10.0.0.0/8")]).unwrap();
        assert_eq!((old.annotation, texts(old)), (WHITELIST, vec!["10.0.0.0/8".to_owned()]));
        for nothing in ["", "  ", "192.168.10.5/64"] {
            assert!(list(&[(ALLOWLIST, nothing)]).unwrap().nets.is_empty(), "{nothing:?}");
        }
    }
}
