//! Fights for a status: another writer changes our part of an object's status again and again, and writing it back would
//! not end.
//!
//! Only what this leader wrote counts, so neither an earlier version of Sluice nor an earlier leader is a rival. An agent
//! with another Lease is one: both write all the time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use router_model::object::ObjectRef;

/// Two changes by others within this time are a fight.
const INTERVAL: Duration = Duration::from_secs(180);
/// How long nothing is written for the object of a fight.
const SILENCE: Duration = Duration::from_secs(600);
/// Number of fights above which nothing is written at all for [`ALL_SILENCE`].
const MAX_FIGHTS: usize = 20;
const ALL_SILENCE: Duration = Duration::from_secs(360);

/// What this leader wrote, and who fights.
#[derive(Debug, Default)]
pub struct Fights {
    written: HashMap<ObjectRef, OwnWrite>,
    /// When somebody else last changed our part of an object's status.
    changed: HashMap<ObjectRef, Instant>,
    /// Objects of fights, and the end of their silence.
    contended: HashMap<ObjectRef, Instant>,
}

/// The last write of an object's status.
#[derive(Debug)]
struct OwnWrite {
    /// Resource version that it made.
    version: u64,
    intent: Intent,
}

/// What is to be in an object's status: a hash of our part, and the object's uid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Of our part of the status, without times.
    pub hash: u64,
    /// `metadata.uid`: an object that was created anew is another one.
    pub uid: String,
}

/// Whether to write an object's status, which differs from the stored one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Write it.
    Write,
    /// Do not write it until a time.
    Silent(Instant),
    /// The same, since now. The second time is until when nothing at all is to be written: there are too many fights.
    Contended(Instant, Option<Instant>),
}

impl Fights {
    /// Decides whether to write a status; `version` is the stored object's resource version.
    pub fn judge(&mut self, object: &ObjectRef, version: u64, intent: &Intent, now: Instant) -> Verdict {
        self.contended.retain(|_, until| *until > now);
        if let Some(until) = self.contended.get(object) {
            return Verdict::Silent(*until);
        }
        // With another intent, it is not known who made the difference.
        let is_foreign =
            self.written.get(object).is_some_and(|written| written.intent == *intent && version > written.version);
        if !is_foreign {
            return Verdict::Write;
        }
        // A change counts once, however often the write after it is repeated.
        self.written.remove(object);
        let before = self.changed.insert(object.clone(), now);
        if before.is_none_or(|before| now.duration_since(before) > INTERVAL) {
            return Verdict::Write;
        }
        let until = now + SILENCE;
        self.forget(object);
        self.contended.insert(object.clone(), until);
        Verdict::Contended(until, (self.contended.len() > MAX_FIGHTS).then_some(now + ALL_SILENCE))
    }

    /// Notes a successful write, and the resource version that it made.
    pub fn wrote(&mut self, object: ObjectRef, version: u64, intent: Intent) {
        self.written.insert(object, OwnWrite { version, intent });
    }

    /// Forgets what was written for an object.
    pub fn forget(&mut self, object: &ObjectRef) {
        self.written.remove(object);
        self.changed.remove(object);
    }
}

#[cfg(test)]
mod tests {
    use router_model::kind::Kind;
    use router_model::object::ObjectKey;

    use super::*;

    fn route(name: &str) -> ObjectRef {
        ObjectRef { kind: Kind::Route, key: ObjectKey::new("n", name) }
    }

    fn intent(hash: u64) -> Intent {
        Intent { hash, uid: "u".to_owned() }
    }

    /// Writes a status at a version, and judges what others wrote at the next.
    fn round(fights: &mut Fights, object: &ObjectRef, version: u64, now: Instant) -> Verdict {
        fights.wrote(object.clone(), version, intent(1));
        fights.judge(object, version + 1, &intent(1), now)
    }

    #[test]
    fn the_second_change_in_the_interval_is_a_fight_until_the_silence_ends() {
        let (mut fights, a, begin) = (Fights::default(), route("a"), Instant::now());
        assert_eq!(fights.judge(&a, 1, &intent(1), begin), Verdict::Write);
        assert_eq!(round(&mut fights, &a, 2, begin), Verdict::Write);
        let now = begin + INTERVAL;
        let until = now + SILENCE;
        assert_eq!(round(&mut fights, &a, 4, now), Verdict::Contended(until, None));
        assert_eq!(fights.judge(&a, 6, &intent(2), now + Duration::from_secs(1)), Verdict::Silent(until));
        assert_eq!(fights.judge(&route("b"), 7, &intent(1), now), Verdict::Write);
        // After it, the object is like any other.
        assert_eq!(fights.judge(&a, 8, &intent(1), until), Verdict::Write);
        assert_eq!(round(&mut fights, &a, 9, until), Verdict::Write);
    }

    #[test]
    fn rare_changes_are_no_fight() {
        let (mut fights, a, mut now) = (Fights::default(), route("a"), Instant::now());
        for version in [1, 3, 5, 7] {
            assert_eq!(round(&mut fights, &a, version, now), Verdict::Write);
            now += INTERVAL + Duration::from_secs(1);
        }
    }

    #[test]
    fn what_is_not_a_change_of_others_is_no_fight() {
        let (mut fights, a, now) = (Fights::default(), route("a"), Instant::now());
        for version in [2, 4, 6] {
            fights.wrote(a.clone(), version, intent(1));
            // An older version than our own write: the watch has not reported it yet.
            assert_eq!(fights.judge(&a, version - 1, &intent(1), now), Verdict::Write);
            // The API server stored less than was written.
            assert_eq!(fights.judge(&a, version, &intent(1), now), Verdict::Write);
            // We want something else than before.
            assert_eq!(fights.judge(&a, version + 1, &intent(version), now), Verdict::Write);
            // Another object of this name.
            let other = Intent { uid: "other".to_owned(), ..intent(1) };
            assert_eq!(fights.judge(&a, version + 1, &other, now), Verdict::Write);
        }
    }

    #[test]
    fn a_change_counts_once_while_the_write_after_it_fails() {
        let (mut fights, a, now) = (Fights::default(), route("a"), Instant::now());
        assert_eq!(round(&mut fights, &a, 1, now), Verdict::Write);
        for version in [2, 2, 3] {
            assert_eq!(fights.judge(&a, version, &intent(1), now), Verdict::Write);
        }
        assert_eq!(round(&mut fights, &a, 4, now), Verdict::Contended(now + SILENCE, None));
    }

    #[test]
    fn many_fights_silence_everything() {
        let (mut fights, now) = (Fights::default(), Instant::now());
        let all: Vec<ObjectRef> = (0..=MAX_FIGHTS).map(|number| route(&number.to_string())).collect();
        for (number, object) in all.iter().enumerate() {
            assert_eq!(round(&mut fights, object, 1, now), Verdict::Write);
            let everything = (number == MAX_FIGHTS).then_some(now + ALL_SILENCE);
            assert_eq!(round(&mut fights, object, 3, now), Verdict::Contended(now + SILENCE, everything));
        }
    }
}
