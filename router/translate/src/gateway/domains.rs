//! Domains that the operator has denied, or that alone are allowed, where hosts of listeners and routes meet them.

use router_model::names::Hostname;
use router_table::host_pattern::HostPattern;

use crate::domain_lists::DomainLists;

/// The lists as patterns: a domain stands for itself and for all names under it.
#[derive(Clone, Debug, Default)]
pub struct Domains {
    denied: Vec<HostPattern>,
    allowed: Vec<HostPattern>,
}

impl Domains {
    /// Those of these lists.
    pub fn new(lists: &DomainLists) -> Self {
        Domains { denied: patterns(&lists.denied), allowed: patterns(&lists.allowed) }
    }

    /// Why nothing of a host is served.
    pub fn fault(&self, host: &HostPattern) -> Option<&'static str> {
        if self.is_denied(host) {
            return Some("in the list of denied domains");
        }
        self.narrowed(host).is_empty().then_some("not in the list of allowed domains")
    }

    /// What may be served of a host: itself, or where only a part of it is allowed, that. Routers close the parts that
    /// are denied.
    pub fn narrowed(&self, host: &HostPattern) -> Vec<HostPattern> {
        let allowed = match self.allowed.is_empty() {
            true => vec![host.clone()],
            false => self.allowed.iter().filter_map(|allowed| allowed.intersect(host)).collect(),
        };
        allowed.into_iter().filter(|host| !self.is_denied(host)).collect()
    }

    fn is_denied(&self, host: &HostPattern) -> bool {
        self.denied.iter().any(|denied| denied.covers(host))
    }
}

fn patterns(domains: &[String]) -> Vec<HostPattern> {
    let names = domains.iter().filter_map(|domain| Hostname::parse(domain).ok());
    names.flat_map(|name| [HostPattern::Exact(name.clone()), HostPattern::Suffix(name)]).collect()
}
