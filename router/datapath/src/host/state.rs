//! The last reading of the host's rules, and its consequences for packets.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::netfilter::Link;
use crate::netfilter::firewall::{Firewall, Leg, Outcome};
use crate::netlink::{Direction, Policies, RoutingRules};
use crate::obstacles::{AgentAlone, Obstacle};

/// The last reading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Host {
    /// IPsec policies.
    pub policies: Policies,
    /// Routing rules that match more than addresses.
    pub routing: RoutingRules,
    /// Rules of netfilter; `None` if they are not read.
    pub firewall: Option<Arc<Firewall>>,
}

impl Host {
    /// The obstacle that IPsec is to a dial's packets, if any.
    pub fn ipsec(&self, source: IpAddr, endpoint: IpAddr) -> Option<Obstacle> {
        if self.policies.concern(Direction::Out, source, endpoint) {
            Some(Obstacle::Ipsec)
        } else if self.policies.concern(Direction::In, endpoint, source) {
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
        if self.routing.tell_answers_apart(listener) {
            return Some(AgentAlone::OtherRoute);
        }
        self.firewall.as_ref()?.diverts(listener).map(AgentAlone::HostRule)
    }

    /// The firewall's effect on one leg of a carried connection.
    pub(super) fn outcome(&self, leg: Leg, link: Link) -> Outcome {
        self.firewall.as_ref().map_or(Outcome::Passes, |firewall| firewall.outcome(leg, link))
    }

    /// True if IPsec transforms or blocks packets of a carried connection.
    pub(super) fn protects(&self, leg: Leg) -> bool {
        self.policies.stop(Direction::Out, leg.ours, leg.theirs)
            || self.policies.stop(Direction::In, leg.theirs, leg.ours)
    }
}
