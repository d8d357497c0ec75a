//! Detects changes of a host's rules.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use super::evaluation::Harm;
use super::legacy;
use super::read::{RulesetReader, RulesetSnapshot};
use super::rules::Ruleset;
use crate::netfilter::firewall::Firewall;

/// Reads the rules if they have changed since the last reading.
#[derive(Debug, Default)]
pub struct RulesetWatch {
    reader: Option<RulesetReader>,
    /// Generation of nftables' rules at the last reading.
    generation: Option<u32>,
    last: Arc<Firewall>,
}

impl RulesetWatch {
    /// The last reading of the rules.
    pub fn last(&self) -> &Arc<Firewall> {
        &self.last
    }

    /// Reads the rules if they, or this host's addresses, have changed. `false` if nothing has.
    pub fn look(&mut self, local: &BTreeSet<IpAddr>) -> bool {
        let mut next = (*local != self.last.local).then(|| Firewall { local: local.clone(), ..(*self.last).clone() });
        if let Err(error) = self.read(&mut next) {
            let why: Harm = format!("the host's firewall cannot be read ({error})").into();
            if self.last.unreadable.as_ref() != Some(&why) {
                tracing::warn!(%error, "cannot read the rules of netfilter; connections are relayed");
                self.next(&mut next).unreadable = Some(why);
            }
            self.generation = None;
        } else if self.last.unreadable.is_some() {
            self.next(&mut next).unreadable = None;
        }
        next.map(|next| self.last = Arc::new(next)).is_some()
    }

    /// The next reading, which begins as a copy of the last one.
    fn next<'n>(&self, next: &'n mut Option<Firewall>) -> &'n mut Firewall {
        next.get_or_insert_with(|| (*self.last).clone())
    }

    fn read(&mut self, next: &mut Option<Firewall>) -> io::Result<()> {
        let legacy = legacy::active_table()?.map(Harm::from);
        if legacy != self.last.legacy {
            self.next(next).legacy = legacy;
        }
        if self.reader.is_none() {
            self.reader = RulesetReader::open()?;
        }
        let Some(reader) = &mut self.reader else { return Ok(()) };
        let generation = reader.generation()?;
        let rules = &self.last.rules;
        if generation.is_some() && generation == self.generation {
            // Contents of ipsets change without a new generation.
            if !rules.ipsets.is_empty() {
                let ipsets = reader.ipsets(rules.ipsets.keys().copied())?;
                if ipsets != rules.ipsets {
                    Arc::make_mut(&mut self.next(next).rules).ipsets = ipsets;
                }
            }
            return Ok(());
        }
        let begin = Instant::now();
        let (rules, generation) = match reader.read()? {
            Some(RulesetSnapshot { mut rules, generation }) => {
                rules.ipsets = reader.ipsets(rules.used_ipsets())?;
                (rules, Some(generation))
            }
            None => (Ruleset::default(), None),
        };
        tracing::debug!(target: "timing", took = ?begin.elapsed(), ?generation, "rules of netfilter read");
        if rules != *self.last.rules {
            self.next(next).rules = Arc::new(rules);
        }
        self.generation = generation;
        Ok(())
    }
}
