//! Denied and allowed domains of routers (docs/openshift.md#domains), as `ROUTER_DENIED_DOMAINS` and
//! `ROUTER_ALLOWED_DOMAINS` of OpenShift's router.

use router_model::names::{HostMatch, Hostname};

/// Denied and allowed domains. A domain covers itself and all names below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainLists {
    /// Never served; takes precedence over `allowed`.
    pub denied: Vec<String>,
    /// If not empty, only these are served.
    pub allowed: Vec<String>,
}

impl DomainLists {
    /// Hosts that every router closes: a denied name must not match a wider wildcard either.
    pub(crate) fn closed(&self) -> impl Iterator<Item = HostMatch> {
        let names = self.denied.iter().filter_map(|domain| Hostname::parse(domain).ok());
        names.flat_map(|name| [HostMatch::Exact(name.clone()), HostMatch::Suffix(name)])
    }

    /// Why a host may not be served; `None` if it may. For a wildcard, pass its domain. An empty host is checked
    /// elsewhere.
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
    fn a_domain_covers_itself_and_all_names_below_it() {
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
