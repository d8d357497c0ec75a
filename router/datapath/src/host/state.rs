//! The last reading of the host's rules, and its consequences for packets.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::netfilter::Interface;
use crate::netfilter::firewall::{Firewall, Leg, LegOutcome};
use crate::netlink::{Policies, RoutingRules, XfrmDirection};
use crate::obstacles::{AgentAlone, Obstacle};

/// The last reading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostState {
    /// IPsec policies.
    pub policies: Policies,
    /// Routing rules that match more than addresses.
    pub routing: RoutingRules,
    /// Rules of netfilter; `None` if they are not read.
    pub firewall: Option<Arc<Firewall>>,
}

impl HostState {
    /// The obstacle that IPsec is to a dial's packets, if any.
    pub fn ipsec(&self, source: IpAddr, endpoint: IpAddr) -> Option<Obstacle> {
        if self.policies.concern(XfrmDirection::Out, source, endpoint) {
            Some(Obstacle::Ipsec)
        } else if self.policies.concern(XfrmDirection::In, endpoint, source) {
            Some(Obstacle::IpsecBack)
        } else {
            self.policies.block_by_default().then_some(Obstacle::IpsecDefault)
        }
    }

    /// Why connections to a listener are relayed: the host may redirect them, or route its answers differently than the
    /// programs do.
    pub fn takes(&self, listener: SocketAddr) -> Option<AgentAlone> {
        if self.policies.concern_source(listener.ip()) {
            return Some(AgentAlone::Ipsec);
        }
        if self.policies.block_by_default() {
            return Some(AgentAlone::IpsecDefault);
        }
        if self.routing.distinguish_answers(listener) {
            return Some(AgentAlone::OtherRoute);
        }
        self.firewall.as_ref()?.diverts(listener).map(AgentAlone::HostRule)
    }

    /// Why acknowledgements of SYN cookies do not reach a listener. `picks_up` as of [`Firewall::loses_cookies`].
    pub fn loses_cookies(&self, listener: SocketAddr, picks_up: bool) -> Option<Arc<str>> {
        self.firewall.as_ref()?.loses_cookies(listener, picks_up)
    }

    /// The firewall's effect on one leg of a carried connection.
    pub(super) fn outcome(&self, leg: Leg, link: Interface) -> LegOutcome {
        self.firewall.as_ref().map_or(LegOutcome::Passes, |firewall| firewall.outcome(leg, link))
    }

    /// True if IPsec transforms or blocks packets of a carried connection.
    pub(super) fn protects(&self, leg: Leg) -> bool {
        self.policies.stop(XfrmDirection::Out, leg.ours, leg.theirs)
            || self.policies.stop(XfrmDirection::In, leg.theirs, leg.ours)
    }
}
