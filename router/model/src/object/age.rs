//! Precedence of objects by age. An object without `creationTimestamp` is younger than all that have one: API servers
//! set it on every object, so such an object was written by hand, and must not displace existing ones. Objects without
//! one are ordered by namespace and name, regardless of their uid.

use std::cmp::Ordering;

use jiff::Timestamp;

use super::uid::Uid;

/// `creationTimestamp`, ordered from oldest to youngest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Created(pub Option<Timestamp>);

impl Ord for Created {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.0, other.0) {
            (Some(one), Some(other)) => one.cmp(&other),
            (one, other) => other.is_some().cmp(&one.is_some()),
        }
    }
}

impl Created {
    /// Why an object of this time precedes another one, given that it does.
    pub fn seniority(self, other: Created) -> Seniority {
        match self.cmp(&other) {
            Ordering::Equal if self.0.is_none() => Seniority::ByName,
            Ordering::Equal => Seniority::SameTime,
            _ => Seniority::Older,
        }
    }
}

impl PartialOrd for Created {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// See `Meta::age`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age<'m> {
    pub(super) created: Created,
    /// `metadata.uid`; `None` without a time.
    pub(super) uid: Option<&'m Uid>,
    pub(super) namespace: &'m str,
    pub(super) name: &'m str,
}

/// Why an object precedes another one, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seniority {
    /// It was created earlier, or the other one has no time.
    Older,
    /// Both have the same time.
    SameTime,
    /// Neither has a time; names decide.
    ByName,
}

impl Seniority {
    /// `is older`, or the wording of the other cases.
    pub const fn words(self) -> &'static str {
        match self {
            Seniority::Older => "is older",
            Seniority::SameTime => "comes first, as both were created at the same time",
            Seniority::ByName => "comes first by name, as neither has a creationTimestamp",
        }
    }

    /// `is older than other`, or the wording of the other cases.
    pub fn than(self, other: &str) -> String {
        match self {
            Seniority::Older => format!("is older than {other}"),
            Seniority::SameTime => format!("comes before {other}, as both were created at the same time"),
            Seniority::ByName => format!("comes before {other} by name, as neither has a creationTimestamp"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Meta, ObjectKey};

    fn meta(key: &str, second: Option<i64>, uid: &str) -> Meta {
        let (namespace, name) = key.split_once('/').expect("namespace/name");
        Meta {
            key: ObjectKey::new(namespace, name),
            labels: Default::default(),
            created: Created(second.map(|second| Timestamp::from_second(second).expect("a time"))),
            uid: uid.into(),
            generation: 0,
            origin: Default::default(),
        }
    }

    #[test]
    fn what_has_no_time_is_the_youngest_and_goes_by_name() {
        let in_order = [
            meta("z/z", Some(1), "9"),
            meta("z/z", Some(2), "1"),
            meta("a/a", Some(2), "2"),
            meta("a/b", Some(2), "2"),
            meta("z/z", Some(i64::from(u32::MAX)), ""),
            meta("a/a", None, "9"),
            meta("a/b", None, "1"),
            meta("b/a", None, ""),
            meta("b/b", None, "0"),
        ];
        for (i, one) in in_order.iter().enumerate() {
            for (j, other) in in_order.iter().enumerate() {
                assert_eq!(one.age().cmp(&other.age()), i.cmp(&j), "{} {}", one.key, other.key);
            }
        }
        assert!(Created(None) > Created(Some(Timestamp::MAX)));
    }

    #[test]
    fn words_are_true() {
        let (old, new, same) = (meta("a/a", Some(1), ""), meta("a/b", Some(2), ""), meta("a/c", Some(2), ""));
        let (undated, other) = (meta("a/d", None, ""), meta("a/e", None, ""));
        for (first, second, words) in [
            (&old, &new, "is older than x"),
            (&new, &undated, "is older than x"),
            (&new, &same, "comes before x, as both were created at the same time"),
            (&undated, &other, "comes before x by name, as neither has a creationTimestamp"),
        ] {
            assert!(first.age() < second.age());
            assert_eq!(first.seniority(second).than("x"), words);
            assert_eq!(first.seniority(second).words().contains("older"), words.contains("older"));
        }
    }
}
