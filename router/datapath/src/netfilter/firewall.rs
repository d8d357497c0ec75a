//! The last reading of the rules, and their effect on dials, listeners and connections.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::netfilter::evaluation::{EffectFilter, Harm, Loss, PacketState, arrive, pass};
use crate::netfilter::packet::{AddressClass, Device, Interface, RulePacket, SegmentKind, Tracked, class};
use crate::netfilter::rules::{Hook, Ruleset};

/// The last reading of the rules.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Firewall {
    pub(super) rules: Arc<Ruleset>,
    /// Why the rules cannot be read.
    pub(super) unreadable: Option<Harm>,
    /// A table of `iptables-legacy` with an effect; its rules are not read.
    pub(super) legacy: Option<Harm>,
    /// Addresses of this host.
    pub(super) local: BTreeSet<IpAddr>,
}

/// A dial of the kernel programs: the properties that rules can match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelDial {
    /// Source address.
    pub source: IpAddr,
    /// The endpoint's address and port.
    pub to: SocketAddr,
    /// The interface that packets leave by and arrive on.
    pub link: Interface,
}

/// One of the two TCP connections of a carried connection: the properties that rules can match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Leg {
    /// This host's address and port.
    pub ours: SocketAddr,
    /// The client's or the endpoint's address and port.
    pub theirs: SocketAddr,
    /// The interface towards that peer.
    pub interface: u32,
    /// True for a client's connection, which a listener has accepted; false for one to an endpoint, which was dialed.
    pub accepted: bool,
}

impl Leg {
    /// With any port (0) of the client, or of this host for a dialed one.
    pub fn of_any_port(self) -> Leg {
        if self.accepted {
            Leg { theirs: SocketAddr::new(self.theirs.ip(), 0), ..self }
        } else {
            Leg { ours: SocketAddr::new(self.ours.ip(), 0), ..self }
        }
    }
}

/// The effect of the rules on a leg.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LegOutcome {
    /// Its packets pass, or it is unknown whether they do.
    Passes,
    /// It depends on a port that is not known.
    DependsOnPort,
    /// Packets of one direction certainly do not pass.
    Lost {
        /// True for arriving packets.
        incoming: bool,
        /// The rule, and its effect.
        loss: Loss,
    },
}

impl Firewall {
    /// The effect that the host may have on packets of a dial, and the rule; `None` if they pass.
    pub fn concerns(&self, dial: KernelDial) -> Option<Arc<str>> {
        match self.unreadable.as_ref().or(self.legacy.as_ref()) {
            Some(why) => Some(Arc::clone(why)),
            None => judge_dial(&self.rules, dial, class(dial.to.ip(), &self.local)).err(),
        }
    }

    /// The rule by which the host may divert connections to a listening address from the listener, and its effect;
    /// `None` if there is none.
    pub fn diverts(&self, listener: SocketAddr) -> Option<Arc<str>> {
        match self.unreadable.as_ref().or(self.legacy.as_ref()) {
            Some(why) => Some(Arc::clone(why)),
            None => judge_listener(&self.rules, listener).err(),
        }
    }

    /// The rule by which the host certainly drops the acknowledgement of a SYN cookie, the first packet of its connection that
    /// the rules see; `None`: there is none. `picks_up`: connection tracking takes it for a new connection
    /// (`nf_conntrack_tcp_loose`).
    pub fn loses_cookies(&self, listener: SocketAddr, picks_up: bool) -> Option<Arc<str>> {
        let packet = RulePacket {
            tracked: if picks_up { Tracked::New } else { Tracked::Invalid },
            input: Device::Unknown,
            source: AddressClass::Elsewhere,
            destination: AddressClass::Local,
            ..RulePacket::new(None, listener, SegmentKind::Ack)
        };
        let mut state = PacketState::of(&packet);
        for hook in BACK {
            match arrive(&self.rules, *hook, &packet, state) {
                Ok(after) => state = after,
                Err(loss) => return Some(loss.why),
            }
        }
        None
    }

    /// The present effect on an established connection. Its first packets have passed, so it continues unless its next
    /// packets certainly do not pass.
    pub fn outcome(&self, leg: Leg, link: Interface) -> LegOutcome {
        judge_leg(&self.rules, leg, link, class(leg.theirs.ip(), &self.local))
    }
}

const OUT: &[Hook] = &[Hook::Output, Hook::Postrouting, Hook::Egress];

const BACK: &[Hook] = &[Hook::Ingress, Hook::Prerouting, Hook::Input];

/// Judges both directions of a dial. Translation sees only the first packet.
fn judge_dial(rules: &Ruleset, dial: KernelDial, destination: AddressClass) -> Result<(), Harm> {
    if rules.bases.is_empty() {
        return Ok(());
    }
    let source = SocketAddr::new(dial.source, 0);
    let out = |segment, tracked| RulePacket {
        output: Device::Is(dial.link),
        tracked,
        source: AddressClass::Local,
        destination,
        ..RulePacket::new(Some(source), dial.to, segment)
    };
    let back = |segment, tracked| RulePacket {
        input: Device::Is(dial.link),
        tracked,
        reply: true,
        source: destination,
        destination: AddressClass::Local,
        ..RulePacket::new(Some(dial.to), source, segment)
    };
    let to = |harm: Harm| Harm::from(format!("{harm} to it"));
    let from = |harm: Harm| Harm::from(format!("{harm} from it"));
    let first = through(rules, OUT, &out(SegmentKind::Syn, Tracked::New)).map_err(to)?;
    let later = if first.is_tracked() { Tracked::Established } else { Tracked::Unknown };
    // One pass is enough if no rule matches the kind of segment.
    if through(rules, OUT, &out(SegmentKind::Unknown, later)).is_err() {
        for segment in [SegmentKind::Ack, SegmentKind::Reset] {
            through(rules, OUT, &out(segment, later)).map_err(to)?;
        }
    }
    if through(rules, BACK, &back(SegmentKind::Unknown, later)).is_err() {
        for segment in [SegmentKind::SynAck, SegmentKind::Ack, SegmentKind::Reset] {
            through(rules, BACK, &back(segment, later)).map_err(from)?;
        }
    }
    Ok(())
}

/// Judges clients' first packets, from other hosts and from this one.
fn judge_listener(rules: &Ruleset, listener: SocketAddr) -> Result<(), Harm> {
    let to = |harm: Harm| Harm::from(format!("{harm} to it"));
    let packet = RulePacket {
        tracked: Tracked::New,
        destination: AddressClass::Local,
        ..RulePacket::new(None, listener, SegmentKind::Syn)
    };
    let outside = RulePacket { input: Device::Unknown, ..packet };
    let inside = RulePacket { output: Device::Unknown, source: AddressClass::Local, ..packet };
    for (hooks, packet) in [(BACK, outside), (&[Hook::Output][..], inside)] {
        let mut state = PacketState::of(&packet);
        for hook in hooks {
            state = pass(rules, *hook, &packet, state, EffectFilter::Diverted).map_err(to)?;
        }
    }
    Ok(())
}

/// Judges packets with data in both directions.
fn judge_leg(rules: &Ruleset, leg: Leg, link: Interface, theirs: AddressClass) -> LegOutcome {
    if rules.bases.is_empty() {
        return LegOutcome::Passes;
    }
    let tracked = Tracked::Established;
    let packet = |from, to, reply| RulePacket { tracked, reply, ..RulePacket::new(Some(from), to, SegmentKind::Ack) };
    let (device, ours) = (Device::Is(link), AddressClass::Local);
    let coming =
        RulePacket { input: device, source: theirs, destination: ours, ..packet(leg.theirs, leg.ours, !leg.accepted) };
    let going =
        RulePacket { output: device, source: ours, destination: theirs, ..packet(leg.ours, leg.theirs, leg.accepted) };
    let mut decided = true;
    for (incoming, hooks, packet) in [(true, BACK, coming), (false, OUT, going)] {
        let mut state = PacketState::of(&packet);
        for hook in hooks {
            match arrive(rules, *hook, &packet, state) {
                Ok(after) => state = after,
                Err(loss) => return LegOutcome::Lost { incoming, loss },
            }
        }
        decided &= through(rules, hooks, &packet).is_ok();
    }
    let port_is_missing = leg.theirs.port() == 0 || leg.ours.port() == 0;
    if port_is_missing && !decided { LegOutcome::DependsOnPort } else { LegOutcome::Passes }
}

fn through(rules: &Ruleset, hooks: &[Hook], packet: &RulePacket) -> Result<PacketState, Harm> {
    let mut state = PacketState::of(packet);
    for hook in hooks {
        state = pass(rules, *hook, packet, state, EffectFilter::Anything)?;
    }
    Ok(state)
}

#[cfg(test)]
pub(super) mod tests;
