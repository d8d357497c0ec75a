//! The operator's lists of denied and allowed domains, applied to hosts of listeners and routes.

use router_model::names::Hostname;
use router_table::host_pattern::HostPattern;

use crate::domain_lists::DomainLists;

/// The lists as patterns: a domain covers itself and all its subdomains.
#[derive(Clone, Debug, Default)]
pub struct DomainPatterns {
    denied: Vec<HostPattern>,
    allowed: Vec<HostPattern>,
}

impl DomainPatterns {
    /// Patterns of these lists.
    pub fn new(lists: &DomainLists) -> Self {
        DomainPatterns { denied: patterns(&lists.denied), allowed: patterns(&lists.allowed) }
    }

    /// Why no part of a host may be served; `None` if at least one may.
    pub fn denial(&self, host: &HostPattern) -> Option<&'static str> {
        if self.is_denied(host) {
            return Some("in the list of denied domains");
        }
        self.narrowed(host).is_empty().then_some("not in the list of allowed domains")
    }

    /// The parts of a host that may be served: the host itself, or the allowed domains that it covers. Denied
    /// subdomains of these are not served.
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
