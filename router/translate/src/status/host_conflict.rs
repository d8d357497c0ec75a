//! Conflicts on hosts: one value and one wording for all APIs.

use std::collections::{BTreeMap, BTreeSet};

use router_model::kind::Kind;
use router_model::object::{Created, ObjectRef, Seniority};

/// The owner of a host that objects of another API claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOwner {
    /// The object.
    pub object: ObjectRef,
    /// Its `creationTimestamp`.
    pub created: Created,
}

impl HostOwner {
    /// The conflict with an object that claims the host and was created later.
    pub fn conflict(&self, host: String, loser: ObjectRef, created: Created) -> HostConflict {
        let held = WinningClaim::Host(self.created.seniority(created));
        HostConflict { host, winner: self.object.clone(), loser, held }
    }
}

/// A host that an object claims and another one owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostConflict {
    /// The claimed host.
    pub host: String,
    /// The object that owns the host. For operators: it may be in a foreign namespace, and a status names it by
    /// [`HostConflict::message`] only.
    pub winner: ObjectRef,
    /// The object that was compared with it: the oldest one of its API that claims the host.
    pub loser: ObjectRef,
    /// What the winner owns.
    pub held: WinningClaim,
}

/// What the winner of a conflict owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WinningClaim {
    /// The host itself, and why it takes precedence.
    Host(Seniority),
    /// The host or one beside it, on a router that admits wildcards (docs/openshift.md#wildcard-claims).
    HostOfDomain,
    /// The wildcard of this domain, which covers the host.
    Wildcard(String),
}

impl HostConflict {
    /// The message for the status of `reader`. It does not name an object of another namespace than the reader's.
    /// Between Routes the wording is that of OpenShift's router, which tools search for (docs/openshift.md#reasons).
    pub fn message(&self, reader: &ObjectRef) -> String {
        let (before, after) = self.words(reader);
        format!("{before} {}{after}", self.host)
    }

    /// The words before the host and after it.
    fn words(&self, reader: &ObjectRef) -> (String, String) {
        let winner = name(&self.winner, reader);
        if self.winner.key.namespace != reader.key.namespace {
            return match &self.held {
                WinningClaim::Host(seniority) if self.loser == *reader => {
                    (format!("{winner} holds"), format!(" and {}", seniority.than(&reader.key.name)))
                }
                WinningClaim::Host(seniority) => (format!("{winner} holds"), format!(" and {}", seniority.words())),
                WinningClaim::HostOfDomain | WinningClaim::Wildcard(_) => {
                    (format!("{winner} holds host"), String::new())
                }
            };
        }
        let key = &self.winner.key;
        match &self.held {
            WinningClaim::Host(seniority) => {
                (format!("{winner} already exposes"), format!(" and {}", seniority.words()))
            }
            WinningClaim::HostOfDomain => (format!("route {key} has host"), String::new()),
            WinningClaim::Wildcard(domain) => {
                (format!("wildcard route {key} has host *.{domain}, blocking"), String::new())
            }
        }
    }
}

/// The messages for one reader; hosts with equal words share a message.
pub fn messages(conflicts: &[HostConflict], reader: &ObjectRef) -> Vec<String> {
    let mut hosts: BTreeMap<(String, String), BTreeSet<&str>> = BTreeMap::new();
    for conflict in conflicts {
        hosts.entry(conflict.words(reader)).or_default().insert(&conflict.host);
    }
    let message = |((before, after), hosts): ((String, String), BTreeSet<&str>)| {
        format!("{before} {}{after}", hosts.into_iter().collect::<Vec<_>>().join(", "))
    };
    hosts.into_iter().map(message).collect()
}

/// An object as the status of `reader` may name it: an object of another namespace by its kind only.
pub fn name(object: &ObjectRef, reader: &ObjectRef) -> String {
    // OpenShift's router writes this word in messages about Routes to Routes.
    let kind = if (object.kind, reader.kind) == (Kind::Route, Kind::Route) { "route" } else { object.kind.name() };
    if object.key.namespace == reader.key.namespace {
        return format!("{kind} {}", object.key.name);
    }
    format!("{} {kind} in another namespace", object.kind.article())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use router_model::object::ObjectKey;

    use super::*;

    fn object(kind: Kind, namespace: &str, name: &str) -> ObjectRef {
        ObjectRef { kind, key: ObjectKey::new(namespace, name) }
    }

    fn conflict(host: &str, winner: ObjectRef, loser: ObjectRef, held: WinningClaim) -> HostConflict {
        HostConflict { host: host.to_owned(), winner, loser, held }
    }

    #[test]
    fn between_routes_the_wording_is_openshifts() {
        let (near, far) = (object(Kind::Route, "shop", "near"), object(Kind::Route, "secret", "far"));
        let reader = object(Kind::Route, "shop", "own");
        for (winner, held, words) in [
            (&near, WinningClaim::Host(Seniority::Older), "route near already exposes h.test and is older"),
            (
                &far,
                WinningClaim::Host(Seniority::Older),
                "a route in another namespace holds h.test and is older than own",
            ),
            (
                &far,
                WinningClaim::Host(Seniority::SameTime),
                "a route in another namespace holds h.test and comes before own, as both were created at the same time",
            ),
            (&near, WinningClaim::HostOfDomain, "route shop/near has host h.test"),
            (
                &near,
                WinningClaim::Wildcard("test".to_owned()),
                "wildcard route shop/near has host *.test, blocking h.test",
            ),
            (&far, WinningClaim::HostOfDomain, "a route in another namespace holds host h.test"),
            (&far, WinningClaim::Wildcard("test".to_owned()), "a route in another namespace holds host h.test"),
        ] {
            assert_eq!(conflict("h.test", winner.clone(), reader.clone(), held).message(&reader), words);
        }
    }

    #[test]
    fn only_the_compared_object_is_named_as_younger() {
        let (winner, loser) = (object(Kind::HttpRoute, "secret", "web"), object(Kind::HttpProxy, "shop", "root"));
        let lost = conflict("h.test", winner, loser.clone(), WinningClaim::Host(Seniority::Older));
        let own = "an HTTPRoute in another namespace holds h.test and is older than root";
        let others = "an HTTPRoute in another namespace holds h.test and is older";
        assert_eq!(lost.message(&loser), own);
        assert_eq!(lost.message(&object(Kind::HttpProxy, "shop", "child")), others);
        let of_both = object(Kind::IngressRoute, "secret", "part");
        assert_eq!(lost.message(&of_both), "HTTPRoute web already exposes h.test and is older");
    }

    #[test]
    fn hosts_of_one_winner_share_a_message() {
        let reader = object(Kind::HttpRoute, "shop", "own");
        let lost = |host: &str, winner: &ObjectRef| {
            conflict(host, winner.clone(), reader.clone(), WinningClaim::Host(Seniority::Older))
        };
        let (near, far) = (object(Kind::Route, "shop", "near"), object(Kind::Route, "secret", "far"));
        let all = [lost("b.test", &near), lost("c.test", &far), lost("a.test", &near)];
        let expected = [
            "Route near already exposes a.test, b.test and is older",
            "a Route in another namespace holds c.test and is older than own",
        ];
        assert_eq!(messages(&all, &reader), expected);
        assert_eq!(messages(&[], &reader), Vec::<String>::new());
    }

    fn kind() -> impl Strategy<Value = Kind> {
        prop::sample::select(Kind::ALL.to_vec())
    }

    fn held() -> impl Strategy<Value = WinningClaim> {
        let order = prop::sample::select(&[Seniority::Older, Seniority::SameTime, Seniority::ByName][..]);
        prop_oneof![
            order.prop_map(WinningClaim::Host),
            Just(WinningClaim::HostOfDomain),
            Just(WinningClaim::Wildcard("domain.test".to_owned()))
        ]
    }

    proptest! {
        #[test]
        fn only_the_kind_of_a_foreign_object_is_named(kinds in [kind(), kind(), kind()], held in held(), own in any::<bool>()) {
            let winner = object(kinds[0], "winners-namespace", "winners-name");
            let reader = object(kinds[1], "readers", "reader");
            let loser = if own { reader.clone() } else { object(kinds[2], "losers-namespace", "losers-name") };
            let conflict = conflict("www.domain.test", winner, loser, held);
            for message in messages(std::slice::from_ref(&conflict), &reader).into_iter().chain([conflict.message(&reader)]) {
                prop_assert!(!message.contains("winners-") && !message.contains("losers-"), "{}", message);
                prop_assert!(message.contains(&conflict.host), "{}", message);
            }
        }
    }
}
