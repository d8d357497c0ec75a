//! Which of two objects comes first. What has no `creationTimestamp` is younger than all that have one: API servers give
//! one to every object, so such an object was written by hand, and takes nothing from those that are there. Objects
//! without one come in order of namespace and name, whatever their uid.

use std::cmp::Ordering;

use jiff::Timestamp;

use super::{Kind, Meta, Uid};

/// `creationTimestamp`; orders from the oldest to the youngest.
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
    /// Why what was created then comes before another object, when it does.
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

/// See [`Meta::age`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age<'m> {
    created: Created,
    /// Of what has a time.
    uid: Option<&'m Uid>,
    namespace: &'m str,
    name: &'m str,
}

/// Why an object comes before another one, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seniority {
    /// It was created before it, or the other one has no time.
    Older,
    /// Both were created at the same time.
    SameTime,
    /// Neither has a time, and names decide.
    ByName,
}

impl Seniority {
    /// `is older`, or what is true instead.
    pub const fn words(self) -> &'static str {
        match self {
            Seniority::Older => "is older",
            Seniority::SameTime => "comes first, as both were created at the same time",
            Seniority::ByName => "comes first by name, as neither has a creationTimestamp",
        }
    }

    /// `an older Route`, or what is true instead.
    pub fn named(self, kind: Kind) -> String {
        let article = if matches!(kind, Kind::HttpRoute | Kind::HttpProxy | Kind::IngressRoute) { "an" } else { "a" };
        match self {
            Seniority::Older => format!("an older {kind}"),
            other => format!("{article} {kind} that {}", other.words()),
        }
    }

    /// `is older than other`, or what is true instead.
    pub fn than(self, other: &str) -> String {
        match self {
            Seniority::Older => format!("is older than {other}"),
            Seniority::SameTime => format!("comes before {other}, as both were created at the same time"),
            Seniority::ByName => format!("comes before {other} by name, as neither has a creationTimestamp"),
        }
    }
}

impl Meta {
    /// Order of age, oldest first: `creationTimestamp`, then `uid` (docs/openshift.md#age), then namespace and name, so
    /// that the order is total. Without a `creationTimestamp`: last, by namespace and name.
    pub fn age(&self) -> Age<'_> {
        let uid = self.created.0.map(|_| &self.uid);
        Age { created: self.created, uid, namespace: &self.key.namespace, name: &self.key.name }
    }

    /// Why the object comes before another one, when it does.
    pub fn seniority(&self, other: &Meta) -> Seniority {
        self.created.seniority(other.created)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::ObjectKey;

    fn meta(key: &str, second: Option<i64>, uid: &str) -> Meta {
        let (namespace, name) = key.split_once('/').expect("namespace/name");
        Meta {
            key: ObjectKey::new(namespace, name),
            labels: Default::default(),
            annotations: Default::default(),
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
