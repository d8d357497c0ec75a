//! Why the kernel programs leave connections to the agent, as `sluice` prints it, and the remedy.

use std::sync::Arc;

/// Remedy for IPsec policies because of which connections are relayed.
const IPSEC_REMEDY: &str = "`ip xfrm policy` shows it; if it is not intended, narrow its selector";
/// Remedy for IPsec's default without a policy.
const DEFAULT_REMEDY: &str =
    "`ip xfrm policy getdefault` shows it; if it is not intended, change it by `ip xfrm policy setdefault`";
/// Remedy for routing rules.
const ROUTING_REMEDY: &str = "`ip rule` shows it; if it is not intended, restrict it to addresses";
/// Remedy for rules of netfilter.
const RULE_REMEDY: &str = "`nft -a list ruleset` shows rules with their handles, `iptables-legacy -S` older ones; if \
     it is not intended, narrow it, or bypass all rules with --host-firewall bypass";

/// Why the kernel programs do not carry connections to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// There is no route to it: the relay cannot reach it either.
    NoRoute,
    /// Its route uses an interface that no programs are attached to.
    Interface,
    /// Its route encapsulates packets (ip-route(8), `encap`), which packets redirected past the stack would not be.
    Encapsulated,
    /// An IPsec policy (ip-xfrm(8), direction `out`) transforms or blocks packets to it.
    Ipsec,
    /// The same for packets from it (direction `in`).
    IpsecBack,
    /// IPsec blocks packets that no policy allows (`ip xfrm policy setdefault`).
    IpsecDefault,
    /// A routing rule (ip-rule(8)) may route a socket's packets to it differently from those of the programs.
    OtherRoute,
    /// A rule of the host's firewall may concern packets to it or from it; the rule and its effect.
    HostRule(Arc<str>),
    /// The path's MTU leaves too little room for a segment.
    SmallMtu,
    /// The kernel did not answer.
    Unknown,
}

impl Obstacle {
    /// The reason as `sluice` prints it.
    pub fn text(&self) -> &str {
        match self {
            Obstacle::NoRoute => "there is no route to it",
            Obstacle::Interface => "its route leaves by an interface that no kernel program is attached to",
            Obstacle::Encapsulated => "its route encapsulates packets",
            Obstacle::Ipsec => "an IPsec policy applies to packets to it",
            Obstacle::IpsecBack => "an IPsec policy applies to packets from it",
            Obstacle::IpsecDefault => "IPsec blocks packets that no policy allows",
            Obstacle::OtherRoute => "a routing rule matches packets to it by more than their addresses",
            Obstacle::HostRule(rule) => rule,
            Obstacle::SmallMtu => "the MTU on the way to it is too small",
            Obstacle::Unknown => "the kernel did not return the route to it",
        }
    }

    /// The remedy, after which the programs carry its connections.
    pub const fn remedy(&self) -> &'static str {
        match self {
            Obstacle::NoRoute => "add a route",
            Obstacle::Interface => {
                "`ip route get` shows the interface; the programs need one with Ethernet headers and no master"
            }
            Obstacle::Encapsulated => "`ip route get` shows the route; nothing, if the encapsulation is intended",
            Obstacle::Ipsec | Obstacle::IpsecBack => IPSEC_REMEDY,
            Obstacle::IpsecDefault => DEFAULT_REMEDY,
            Obstacle::OtherRoute => ROUTING_REMEDY,
            Obstacle::HostRule(_) => RULE_REMEDY,
            Obstacle::SmallMtu => "raise the MTU of the route or of its interface",
            Obstacle::Unknown => "see the agent's log",
        }
    }
}

/// Why the programs ignore a listener's connections.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentAlone {
    /// Its connections begin with a PROXY header.
    ProxyHeader,
    /// An IPsec policy (ip-xfrm(8), direction `out`) selects packets from its address.
    Ipsec,
    /// IPsec blocks packets that no policy allows (`ip xfrm policy setdefault`).
    IpsecDefault,
    /// A routing rule (ip-rule(8)) matches its answers by port or mark.
    OtherRoute,
    /// A rule of the host's firewall may divert its clients; the rule and its effect.
    HostRule(Arc<str>),
}

impl AgentAlone {
    /// The reason as `sluice` prints it.
    pub fn text(&self) -> &str {
        match self {
            AgentAlone::ProxyHeader => "its connections begin with a PROXY header",
            AgentAlone::Ipsec => "an IPsec policy applies to packets from its address",
            AgentAlone::IpsecDefault => Obstacle::IpsecDefault.text(),
            AgentAlone::OtherRoute => "a routing rule matches its answers by port or mark",
            AgentAlone::HostRule(rule) => rule,
        }
    }

    /// The remedy, after which the programs handle them.
    pub const fn remedy(&self) -> &'static str {
        match self {
            AgentAlone::ProxyHeader => "nothing: only the agent can read the client's address",
            AgentAlone::Ipsec => IPSEC_REMEDY,
            AgentAlone::IpsecDefault => DEFAULT_REMEDY,
            AgentAlone::OtherRoute => ROUTING_REMEDY,
            AgentAlone::HostRule(_) => RULE_REMEDY,
        }
    }
}
