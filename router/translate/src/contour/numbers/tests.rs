//! Numbers of routes do not depend on history, and are unique.

use std::collections::BTreeSet;

use proptest::prelude::*;
use router_model::kind::Kind;
use router_model::names::Hostname;
use router_model::object::ObjectKey;

use super::*;

fn object() -> ObjectRef {
    ObjectRef { kind: Kind::HttpProxy, key: ObjectKey::new("a", "child") }
}

fn host(at: usize) -> HostMatch {
    HostMatch::Exact(Hostname::parse(&format!("h{at}.test")).expect("a name"))
}

fn firsts(numbers: &Numbers) -> Vec<(HostMatch, Parts)> {
    let spans = numbers.0.get(&object()).map_or(&[][..], |spans| spans);
    spans.iter().map(|span| (span.host.clone(), span.parts)).collect()
}

proptest! {
    /// For any history of hosts, the numbers depend on the present hosts alone, are unique, and each move is reported.
    #[test]
    fn numbers_follow_from_the_hosts_alone(history in prop::collection::vec((0..12_usize, 0..4_u32), 0..40)) {
        let mut counts = BTreeMap::new();
        let mut numbers = Numbers::default();
        for (at, count) in history {
            let count = count * 400_000_000;
            let predicted = numbers.first(&object(), &host(at));
            let before: BTreeMap<HostMatch, Parts> = firsts(&numbers).into_iter().collect();
            let moved: BTreeSet<HostMatch> = numbers.set(&object(), &host(at), count).into_iter().collect();
            counts.insert(at, count);
            let after = firsts(&numbers);
            for (known, parts) in &after {
                let first = before.get(known).map_or(predicted, |before| before.first);
                prop_assert_eq!(moved.contains(known), parts.first != first, "{}", known);
            }
            let mut fresh = Numbers::default();
            for (at, count) in &counts {
                fresh.set(&object(), &host(*at), *count);
            }
            prop_assert_eq!(&after, &firsts(&fresh));
            if counts.values().map(|count| u64::from(*count)).sum::<u64>() < 1 << 31 {
                let ends = after.iter().map(|(_, parts)| parts.first + parts.count);
                prop_assert!(after.iter().skip(1).zip(ends).all(|((_, parts), end)| end <= parts.first));
            }
        }
    }
}

#[test]
fn the_routes_of_an_object_of_one_host_are_numbered_from_0() {
    let mut numbers = Numbers::default();
    assert_eq!(numbers.first(&object(), &host(1)), 0);
    assert_eq!(numbers.set(&object(), &host(1), 3), []);
    assert_eq!(numbers.first(&object(), &host(1)), 0);
}
