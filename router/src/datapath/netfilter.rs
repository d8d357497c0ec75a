//! The host's own firewall: what the rules of netfilter may do with the packets of connections that the kernel programs
//! carry. Those packets go past it, so a connection that a rule is for is relayed.
//!
//! A rule counts if it cannot be ruled out that it matches. What is not known of a packet (its source port, and for
//! listeners its source) leaves it open.

mod bits;
mod conditions;
mod expressions;
mod ipsets;
mod judge;
mod legacy;
mod packet;
mod read;
mod rules;
mod sets;
mod xt;

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use judge::{Asked, Harm, State, pass};
use packet::{Class, Device, Packet, Segment, Tracked, class};
use read::{Reader, Reading};
use rules::{Hook, Ruleset};

pub use packet::Link;

/// Whether rules of the host hold for connections that the kernel programs could carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum HostFirewall {
    /// A connection that a rule may be for is relayed.
    #[default]
    Respect,
    /// Rules are not looked at.
    Bypass,
}

/// The rules, as they were read last.
#[derive(Debug, Default)]
pub struct Firewall {
    reader: Option<Reader>,
    /// As of this change of nftables' rules.
    generation: Option<u32>,
    rules: Ruleset,
    /// Why they cannot be read.
    unreadable: Option<Harm>,
    /// A table of `iptables-legacy` that does something: its rules are not read.
    legacy: Option<Harm>,
    /// Addresses of this host.
    local: BTreeSet<IpAddr>,
}

/// A dial of the kernel programs, as far as rules can see it.
#[derive(Clone, Copy, Debug)]
pub struct Dial {
    /// Our address.
    pub source: IpAddr,
    /// Where the endpoint is.
    pub to: SocketAddr,
    /// The interface that packets leave by, and come back by.
    pub link: Link,
}

impl Firewall {
    /// Reads the rules if they have changed, or this host's addresses. `false` if nothing has.
    pub fn look(&mut self, local: &BTreeSet<IpAddr>) -> bool {
        let mut changed = *local != self.local;
        if changed {
            self.local.clone_from(local);
        }
        match self.read() {
            Ok(read) => changed |= read | self.unreadable.take().is_some(),
            Err(error) => {
                let why: Harm = format!("the host's firewall cannot be read ({error})").into();
                if self.unreadable.as_ref() != Some(&why) {
                    tracing::warn!(%error, "cannot read the rules of netfilter; connections are relayed");
                    changed = true;
                }
                (self.unreadable, self.generation) = (Some(why), None);
            }
        }
        changed
    }

    /// Whether the rules are others now.
    fn read(&mut self) -> io::Result<bool> {
        let legacy = legacy::active_table()?.map(Harm::from);
        let mut changed = legacy != self.legacy;
        self.legacy = legacy;
        if self.reader.is_none() {
            self.reader = Reader::open()?;
        }
        let Some(reader) = &mut self.reader else { return Ok(changed) };
        let generation = reader.generation()?;
        if generation.is_some() && generation == self.generation {
            // What is in ipsets changes without a word.
            if !self.rules.ipsets.is_empty() {
                let ipsets = reader.ipsets(self.rules.ipsets.keys().copied())?;
                changed |= ipsets != self.rules.ipsets;
                self.rules.ipsets = ipsets;
            }
            return Ok(changed);
        }
        let begin = Instant::now();
        let (rules, generation) = match reader.read()? {
            Some(Reading { mut rules, generation }) => {
                rules.ipsets = reader.ipsets(rules.asked_ipsets())?;
                (rules, Some(generation))
            }
            None => (Ruleset::default(), None),
        };
        tracing::debug!(target: "timing", took = ?begin.elapsed(), ?generation, "rules of netfilter read");
        changed |= self.rules != rules;
        (self.rules, self.generation) = (rules, generation);
        Ok(changed)
    }

    /// What the host may do with packets of a dial, and by which rule.
    pub fn concerns(&self, dial: Dial) -> Option<Arc<str>> {
        match self.unreadable.as_ref().or(self.legacy.as_ref()) {
            Some(why) => Some(Arc::clone(why)),
            None => judge_dial(&self.rules, dial, class(dial.to.ip(), &self.local)).err(),
        }
    }

    /// What the host may do with connections to an address where it is listened, so that others than the listener get
    /// them, and by which rule.
    pub fn diverts(&self, listener: SocketAddr) -> Option<Arc<str>> {
        match self.unreadable.as_ref().or(self.legacy.as_ref()) {
            Some(why) => Some(Arc::clone(why)),
            None => judge_listener(&self.rules, listener).err(),
        }
    }
}

/// Both directions of a dial. Translation sees the first packet alone.
fn judge_dial(rules: &Ruleset, dial: Dial, destination: Class) -> Result<(), Harm> {
    if rules.bases.is_empty() {
        return Ok(());
    }
    let source = SocketAddr::new(dial.source, 0);
    let out = |segment, tracked| Packet {
        output: Device::Is(dial.link),
        tracked,
        source: Class::Local,
        destination,
        ..Packet::new(Some(source), dial.to, segment)
    };
    let back = |segment, tracked| Packet {
        input: Device::Is(dial.link),
        tracked,
        reply: true,
        source: destination,
        destination: Class::Local,
        ..Packet::new(Some(dial.to), source, segment)
    };
    let to = |harm: Harm| Harm::from(format!("{harm} to it"));
    let from = |harm: Harm| Harm::from(format!("{harm} from it"));
    const OUT: &[Hook] = &[Hook::Output, Hook::Postrouting];
    const BACK: &[Hook] = &[Hook::Ingress, Hook::Prerouting, Hook::Input];
    let first = through(rules, OUT, &out(Segment::Syn, Tracked::New)).map_err(to)?;
    let later = if first.is_tracked() { Tracked::Established } else { Tracked::Unknown };
    // If no kind of segment is asked for, one pass is enough.
    if through(rules, OUT, &out(Segment::Unknown, later)).is_err() {
        for segment in [Segment::Ack, Segment::Reset] {
            through(rules, OUT, &out(segment, later)).map_err(to)?;
        }
    }
    if through(rules, BACK, &back(Segment::Unknown, later)).is_err() {
        for segment in [Segment::SynAck, Segment::Ack, Segment::Reset] {
            through(rules, BACK, &back(segment, later)).map_err(from)?;
        }
    }
    Ok(())
}

/// Clients' first packets: of other hosts, and of this one.
fn judge_listener(rules: &Ruleset, listener: SocketAddr) -> Result<(), Harm> {
    let to = |harm: Harm| Harm::from(format!("{harm} to it"));
    let packet =
        Packet { tracked: Tracked::New, destination: Class::Local, ..Packet::new(None, listener, Segment::Syn) };
    let outside = Packet { input: Device::Unknown, ..packet };
    let inside = Packet { output: Device::Unknown, source: Class::Local, ..packet };
    for (hooks, packet) in [(&[Hook::Prerouting, Hook::Input][..], outside), (&[Hook::Output], inside)] {
        let mut state = State::of(&packet);
        for hook in hooks {
            state = pass(rules, *hook, &packet, state, Asked::Diverted).map_err(to)?;
        }
    }
    Ok(())
}

fn through(rules: &Ruleset, hooks: &[Hook], packet: &Packet) -> Result<State, Harm> {
    let mut state = State::of(packet);
    for hook in hooks {
        state = pass(rules, *hook, packet, state, Asked::Anything)?;
    }
    Ok(state)
}

#[cfg(test)]
mod tests;
