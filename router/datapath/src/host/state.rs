//! What was read last of the host, and what follows from it for packets.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::netfilter::Link;
use crate::netfilter::firewall::{Firewall, Leg, Outcome};
use crate::netlink::{Direction, Policies, RoutingRules};
use crate::obstacles::{AgentAlone, Obstacle};

/// What was read last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Host {
    /// IPsec policies.
    pub policies: Policies,
    /// Rules of routing that look at more than addresses.
    pub routing: RoutingRules,
    /// Rules of netfilter; `None` if they are not looked at.
    pub firewall: Option<Arc<Firewall>>,
}

impl Host {
    /// What IPsec does with packets of a dial.
    pub fn ipsec(&self, source: IpAddr, endpoint: IpAddr) -> Option<Obstacle> {
        if self.policies.concern(Direction::Out, source, endpoint) {
            Some(Obstacle::Ipsec)
        } else if self.policies.concern(Direction::In, endpoint, source) {
            Some(Obstacle::IpsecBack)
        } else {
            self.policies.block_by_default().then_some(Obstacle::IpsecDefault)
        }
    }

    /// Why connections to a listener are the agent's, if the host may have others get them, or lead its answers by other
    /// ways than the programs do.
    pub fn takes(&self, listener: SocketAddr) -> Option<AgentAlone> {
        if self.policies.concern_source(listener.ip()) {
            return Some(AgentAlone::Ipsec);
        }
        if self.policies.block_by_default() {
            return Some(AgentAlone::IpsecDefault);
        }
        if self.routing.tell_answers_apart(listener) {
            return Some(AgentAlone::OtherRoute);
        }
        self.firewall.as_ref()?.diverts(listener).map(AgentAlone::HostRule)
    }

    /// What becomes of one side of a connection that is under way.
    pub(super) fn outcome(&self, leg: Leg, link: Link) -> Outcome {
        self.firewall.as_ref().map_or(Outcome::Passes, |firewall| firewall.outcome(leg, link))
    }

    /// Whether IPsec does not let packets of a connection that is under way pass as they are.
    pub(super) fn protects(&self, leg: Leg) -> bool {
        self.policies.stop(Direction::Out, leg.ours, leg.theirs)
            || self.policies.stop(Direction::In, leg.theirs, leg.ours)
    }
}
