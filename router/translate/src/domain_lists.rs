//! Domains that a router may or may not serve (docs/openshift.md#domains), as OpenShift's router takes them from
//! `ROUTER_DENIED_DOMAINS` and `ROUTER_ALLOWED_DOMAINS`.

use router_model::names::{HostMatch, Hostname};

/// Domains that are denied, and the only ones that are allowed. A domain stands for itself and all names under it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainLists {
    /// Never served; beats `allowed`.
    pub denied: Vec<String>,
    /// When not empty, only these are served.
    pub allowed: Vec<String>,
}

impl DomainLists {
    /// The hosts that every router closes: what is denied is not found below a wildcard either.
    pub(crate) fn closed(&self) -> impl Iterator<Item = HostMatch> {
        let names = self.denied.iter().filter_map(|domain| Hostname::parse(domain).ok());
        names.flat_map(|name| [HostMatch::Exact(name.clone()), HostMatch::Suffix(name)])
    }

    /// Why a host may not be served; `None`: it may. For a wildcard, its domain is asked for. An empty host is left to
    /// other checks.
    pub(crate) fn fault(&self, host: &str) -> Option<&'static str> {
        if host.is_empty() {
            return None;
        }
        if contains(&self.denied, host) {
            return Some("host in list of denied domains");
        }
        let is_left_out = !self.allowed.is_empty() && !contains(&self.allowed, host);
        is_left_out.then_some("host not in the allowed list of domains")
    }
}

fn contains(domains: &[String], host: &str) -> bool {
    domains.iter().any(|domain| {
        host.strip_suffix(domain.as_str()).is_some_and(|labels| labels.is_empty() || labels.ends_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_stands_for_itself_and_what_is_under_it() {
        let text = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let lists = DomainLists { denied: text(&["bad.test"]), allowed: text(&["test"]) };
        let message = |host: &str| lists.fault(host);
        for denied in ["bad.test", "www.bad.test", "a.b.bad.test"] {
            assert_eq!(message(denied), Some("host in list of denied domains"), "{denied}");
        }
        assert_eq!(message("www.example"), Some("host not in the allowed list of domains"));
        for allowed in ["test", "notbad.test", ""] {
            assert_eq!(message(allowed), None, "{allowed}");
        }
        assert_eq!(DomainLists::default().fault("any.host"), None);
    }
}
