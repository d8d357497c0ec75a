//! A few objects that delegate to each other create many paths: limits on how many are followed.

use super::super::serve::Maker;
use super::super::walk::DelegationWalk;
use super::*;
use crate::contour::claims::types::Claim;
use crate::contour::status::Report;

/// `root` delegates to both objects of the first level, each of them to both of the next, and so on.
fn diamond(levels: usize) -> Vec<Value> {
    let both = |level: usize| {
        let to = |side: usize| json!({ "match": "/", "delegate": { "name": format!("l{level}-{side}") } });
        if level < levels { json!([to(0), to(1)]) } else { json!([]) }
    };
    let root = json!({ "virtualhost": { "fqdn": "a.test" }, "routes": both(0) });
    let below = (0..levels).flat_map(|level| [(level, 0), (level, 1)]);
    let below =
        below.map(|(level, side)| ingress_route(&format!("a/l{level}-{side}"), json!({ "routes": both(level + 1) })));
    [ingress_route("a/root", root)].into_iter().chain(below).collect()
}

/// Calls `call` with the translated objects and the claim of their root.
fn with_model<T>(levels: usize, call: impl FnOnce(&ContourTranslator<'_>, &Claim<'_>) -> T) -> T {
    let resources = resources(diamond(levels));
    let (endpoints, settings) = (EndpointIndex::new(&resources, EndpointAddresses::Filtered), Settings::default());
    let inputs =
        Inputs { resources: &resources, settings: &settings, endpoints: &endpoints, routers: &[], addresses: &[] };
    let model = ContourTranslator::new(&inputs);
    let [claim] = &*model.claims.granted else { panic!("one host") };
    call(&model, claim)
}

/// Number of proxies that a walk visits, and number of those that report the limit.
fn walked(levels: usize, entered: usize) -> (usize, usize) {
    with_model(levels, |model, claim| {
        let mut walk = DelegationWalk::new(&model.proxies, model.backends(), claim, entered);
        walk.routes(claim.start.expect("a root"));
        let refused = |visit: &&super::super::walk::ProxyVisit| {
            visit.faults.iter().any(|fault| fault.message.starts_with("too many delegations below a.test"))
        };
        (walk.visits.len() - 1, walk.visits.values().filter(refused).count())
    })
}

#[test]
fn ways_below_a_host_and_below_a_namespace_have_an_end() {
    assert_eq!(walked(9, 0), (1022, 0));
    let (entered, refused) = walked(20, 0);
    assert_eq!(entered, 2000);
    assert!(refused > 0);
    assert_eq!(walked(9, 99_000).0, 1000);
    let (entered, refused) = walked(9, 100_000);
    assert_eq!((entered, refused), (0, 1), "the root is told");
}

#[test]
fn what_is_entered_below_the_roots_of_a_namespace_adds_up() {
    with_model(9, |model, claim| {
        let mut report = Report::new(&model.claims);
        report.entered.insert("a".into(), 50);
        let mut maker = Maker::new(TrafficDefaults::default());
        model.host(claim, &[], &mut maker, &mut report).expect("a root");
        assert_eq!(report.entered["a"], 50 + 1022);
    });
}
