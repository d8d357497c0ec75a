//! Domains that a router may or may not serve (openshift.md b.2), as OpenShift's router takes them from
//! `ROUTER_DENIED_DOMAINS` and `ROUTER_ALLOWED_DOMAINS`.

use super::{RejectReason, Rejection, reject};

/// Domains that are denied, and the only ones that are allowed. A domain stands for itself and all names under it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainLists {
    /// Never served; beats `allowed`.
    pub denied: Vec<String>,
    /// When not empty, only these are served.
    pub allowed: Vec<String>,
}

impl DomainLists {
    /// Whether a host may be served. An empty host is left to other checks.
    pub(super) fn check(&self, host: &str) -> Result<(), Rejection> {
        if host.is_empty() {
            return Ok(());
        }
        if contains(&self.denied, host) {
            return Err(reject(RejectReason::RouteNotAdmitted, "host in list of denied domains"));
        }
        if !self.allowed.is_empty() && !contains(&self.allowed, host) {
            return Err(reject(RejectReason::RouteNotAdmitted, "host not in the allowed list of domains"));
        }
        Ok(())
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
        let message = |host: &str| lists.check(host).err().map(|rejection| rejection.message);
        for denied in ["bad.test", "www.bad.test", "a.b.bad.test"] {
            assert_eq!(message(denied).as_deref(), Some("host in list of denied domains"), "{denied}");
        }
        assert_eq!(message("www.example").as_deref(), Some("host not in the allowed list of domains"));
        for allowed in ["test", "notbad.test", ""] {
            assert_eq!(message(allowed), None, "{allowed}");
        }
        assert!(DomainLists::default().check("any.host").is_ok());
    }
}
