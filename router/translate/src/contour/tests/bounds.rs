//! Limits on the number of paths: a few objects that delegate to each other create many.

use super::super::backends;
use super::super::walk::{DelegationWalk, ProxyVisit};
use super::batch::Model;
use super::histories::step;
use super::*;
use crate::contour::claims::types::{Contest, proxy as found};

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

/// Calls `call` with the translated objects and the claims on the host of their root.
fn with_model<T>(levels: usize, call: impl FnOnce(&Model<'_>, &Contest) -> T) -> T {
    let resources = resources(diamond(levels));
    let (endpoints, settings) = (EndpointIndex::new(&resources, EndpointAddresses::Filtered), Settings::default());
    let routers = [router_ports("default")];
    let inputs =
        Inputs { resources: &resources, settings: &settings, endpoints: &endpoints, routers: &routers, addresses: &[] };
    let model = Model::new(&inputs);
    assert_eq!(model.claims.contests.len(), 1);
    call(&model, model.claims.contests.values().next().expect("a host"))
}

/// Number of proxies that a walk visits, and number of those that report the limit.
fn walked(levels: usize, visited: usize) -> (usize, usize) {
    with_model(levels, |model, contest| {
        let claim = contest.granted().expect("a claim");
        let mut walk = DelegationWalk::new(backends(&model.inputs), claim, visited);
        walk.routes(found(model.inputs.resources, &claim.start).expect("a root"));
        let rejected = |visit: &&ProxyVisit| {
            visit.faults.iter().any(|fault| fault.message.starts_with("too many delegations below a.test"))
        };
        (walk.visits.len() - 1, walk.visits.values().filter(rejected).count())
    })
}

#[test]
fn visits_below_a_host_and_below_a_namespace_are_limited() {
    assert_eq!(walked(9, 0), (1022, 0));
    let (visited, rejected) = walked(20, 0);
    assert_eq!(visited, 2000);
    assert!(rejected > 0);
    assert_eq!(walked(9, 99_000).0, 1000);
    let (visited, rejected) = walked(9, 100_000);
    assert_eq!((visited, rejected), (0, 1), "the root reports it");
}

/// Roots of one namespace with 1022 visits each: the limit allows 97 of them and a part.
fn crowd(roots: usize) -> Resources {
    let mut resources = resources(diamond(9));
    for at in 1..roots {
        let routes =
            json!([{ "match": "/", "delegate": { "name": "l0-0" } }, { "match": "/", "delegate": { "name": "l0-1" } }]);
        let root = json!({ "virtualhost": { "fqdn": format!("a{at:03}.test") }, "routes": routes });
        resources.insert(&router_api::testing::good(ingress_route(&format!("a/root{at}"), root)));
    }
    resources
}

#[test]
fn visits_below_the_roots_of_a_namespace_add_up() {
    let (settings, mut run) = (Settings::default(), Run::new(&Settings::default()));
    let small = json!({ "virtualhost": { "fqdn": "a000.test" }, "routes": [{ "match": "/", "services": to("web") }] });
    let small = router_api::testing::good(ingress_route("a/small", small));
    for (roots, more, exceeds) in [(97, false, false), (98, false, true), (98, true, true), (97, true, false)] {
        let mut resources = crowd(roots);
        if more {
            resources.insert(&small);
        }
        step(&mut run, &resources, &settings, &LostHosts::new(), &[router_ports("default")])
            .expect("the same as a batch");
        let mut rows = run.outcome.statuses.values().flat_map(|status| &status.rows);
        assert_eq!(rows.any(|row| row.message.contains("too many delegations below a097.test")), exceeds);
    }
}
