//! Replaces the current agent: it releases the kernel's maps, the new one starts, and once that is ready, the old one
//! drains. At most one upgrade at a time.

use tokio::time::Instant;

use super::{BEYOND_DRAIN, Keeper, PendingUpgrade, YIELD};
use crate::keep::child::Number;
use crate::keep::control::{UpgradeReply, UpgradeResult};
use crate::keep::messages::say;
use crate::keep::wire;

impl Keeper {
    /// The new agent of an upgrade.
    pub(super) fn successor(&self) -> Option<Number> {
        self.upgrade.as_ref().and_then(|upgrade| upgrade.new)
    }

    /// Starts an upgrade; one in progress is not disturbed.
    pub(super) fn upgrade(&mut self, asker: Option<UpgradeReply>) {
        let refusal = if self.stopping {
            Some("the keeper is ending")
        } else {
            self.upgrade.is_some().then_some("another upgrade is under way")
        };
        if let Some(why) = refusal {
            say(&format!("no upgrade: {why}"));
            if let Some(asker) = asker {
                // The client may have disconnected.
                let _ = asker.send(Err(why.to_owned()));
            }
            return;
        }
        let current = self.current.and_then(|number| self.children.get(&number));
        if let Some(child) = current {
            child.send(wire::YIELD);
            self.upgrade = Some(PendingUpgrade { new: None, deadline: Instant::now() + YIELD, asker });
        } else {
            let deadline = Instant::now() + self.settings.ready_within;
            self.upgrade = Some(PendingUpgrade { new: None, deadline, asker });
            self.start_current();
            let new = self.current;
            if let Some(upgrade) = &mut self.upgrade {
                upgrade.new = new;
            }
        }
    }

    /// The current agent has released the maps.
    pub(super) fn start_successor(&mut self) {
        match self.start(true) {
            Ok(number) => {
                if let Some(upgrade) = &mut self.upgrade {
                    upgrade.new = Some(number);
                    upgrade.deadline = Instant::now() + self.settings.ready_within;
                }
            }
            Err(error) => self.fail_upgrade(&format!("{} cannot be run: {error}", self.settings.program.display())),
        }
    }

    /// The new agent serves.
    pub(super) fn complete_upgrade(&mut self, number: Number) {
        let old = self.current.replace(number).filter(|old| *old != number);
        let pid = |number: Number| self.children.get(&number).map_or(0, |child| child.pid);
        let outcome = match old {
            Some(old) => {
                if let Some(child) = self.children.get(&old) {
                    child.send(wire::LEAVE);
                    child.kill_in(self.settings.drain + BEYOND_DRAIN);
                }
                format!("process {} serves; process {} drains", pid(number), pid(old))
            }
            None => format!("process {} serves", pid(number)),
        };
        say(&outcome);
        self.end_upgrade(Ok(outcome));
    }

    /// The deadline has expired.
    pub(super) fn upgrade_too_late(&mut self) {
        let why = match self.successor().and_then(|number| self.children.get(&number)) {
            Some(child) => {
                let status = child.status.as_ref().map_or_else(String::new, |status| format!(": {status}"));
                let within = self.settings.ready_within.as_secs_f64();
                format!("the new agent (process {}) was not ready within {within} s{status}", child.pid)
            }
            None => {
                let pid = self.current.and_then(|number| self.children.get(&number)).map_or(0, |child| child.pid);
                format!("the running agent (process {pid}) does not answer; end it, and it is started anew")
            }
        };
        self.fail_upgrade(&why);
    }

    /// The old agent stays, or keeps being restarted.
    pub(super) fn fail_upgrade(&mut self, why: &str) {
        say(&format!("the upgrade failed: {why}"));
        let new = self.successor();
        if new != self.current {
            if let Some(child) = new.and_then(|number| self.children.get(&number)) {
                // The new agent may have accepted connections, but must not take the maps from the one that stays.
                child.send(wire::LEAVE);
                child.kill_in(self.settings.drain + BEYOND_DRAIN);
            }
            if let Some(child) = self.current.and_then(|number| self.children.get(&number)) {
                child.send(wire::RESUME);
            }
        }
        self.end_upgrade(Err(why.to_owned()));
    }

    /// Reports the result to the client.
    pub(super) fn end_upgrade(&mut self, outcome: UpgradeResult) {
        if let Some(asker) = self.upgrade.take().and_then(|upgrade| upgrade.asker) {
            // The client may have disconnected.
            let _ = asker.send(outcome);
        }
    }
}
