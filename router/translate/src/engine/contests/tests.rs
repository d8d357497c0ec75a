//! Two APIs and Routes claim the same hosts, step by step.

use router_model::kind::Kind;
use router_model::names::Hostname;
use router_model::object::{ObjectKey, ObjectRef};

use super::*;
use crate::owned_age::OwnedAge;

fn object(kind: Kind, name: &str, age: u32) -> Arc<HostClaim> {
    let object =
        router_api::testing::good(router_api::testing::route(&format!("a/{name}"), age, serde_json::json!({})));
    Arc::new(HostClaim { kind, age: OwnedAge::of(object.meta()) })
}

fn http(name: &str, age: u32) -> Option<Arc<HostClaim>> {
    Some(object(Kind::HttpRoute, name, age))
}

fn proxy(name: &str, age: u32) -> Option<Arc<HostClaim>> {
    Some(object(Kind::HttpProxy, name, age))
}

fn router() -> RouterName {
    RouterName("default".into())
}

fn domain() -> Hostname {
    Hostname::parse("x.test").unwrap()
}

fn at(host: HostMatch) -> RouterHost {
    (router(), host)
}

fn exact() -> HostMatch {
    HostMatch::Exact(domain())
}

/// `API host: owner` of each host whose owner differs; `-` if the API owns it.
fn resolved(contests: &mut Contests) -> Vec<String> {
    let changed = contests.resolve();
    let line = |(api, at): (usize, &RouterHost)| {
        let owner = contests.lost(api).unwrap().get(at).map_or("-".to_owned(), |owner| owner.object.to_string());
        assert_eq!(contests.owns(api, at), contests.claims_of(api, at) && owner == "-");
        format!("{api} {}: {owner}", at.1)
    };
    changed.iter().enumerate().flat_map(|(api, hosts)| hosts.iter().map(move |at| (api, at))).map(line).collect()
}

impl Contests {
    fn claims_of(&self, api: usize, at: &RouterHost) -> bool {
        let claims = self.claims.get(&(at.0.clone(), contested(&at.1)));
        claims.is_some_and(|claims| claims.iter().any(|it| it.api == api && it.host == at.1))
    }
}

#[test]
fn the_oldest_claim_wins_and_only_what_differs_is_returned() {
    let mut contests = Contests::new(2);
    contests.claim(0, vec![(at(exact()), http("h", 5))]);
    assert_eq!(resolved(&mut contests), Vec::<String>::new());
    contests.claim(1, vec![(at(exact()), proxy("p", 6))]);
    assert_eq!(resolved(&mut contests), ["1 x.test: HTTPRoute a/h"]);
    contests.claim(1, vec![(at(exact()), proxy("p", 4))]);
    assert_eq!(resolved(&mut contests), ["0 x.test: HTTPProxy a/p", "1 x.test: -"]);
    contests.claim(1, vec![(at(exact()), proxy("p", 4))]);
    assert_eq!(resolved(&mut contests), Vec::<String>::new(), "the same claim");
    contests.claim(1, vec![(at(exact()), None)]);
    assert_eq!(resolved(&mut contests), ["0 x.test: -"]);
    contests.claim(0, vec![(at(exact()), None)]);
    assert_eq!(resolved(&mut contests), Vec::<String>::new());
    assert!(contests.is_empty() && contests.claims_on(&router()).is_empty() && contests.strongest.is_empty());
}

#[test]
fn of_equally_old_claims_that_of_the_first_api_wins_in_any_order_of_arrival() {
    for order in [[0, 1], [1, 0]] {
        let mut contests = Contests::new(2);
        for api in order {
            let kind = [Kind::HttpRoute, Kind::HttpProxy][api];
            contests.claim(api, vec![(at(exact()), Some(object(kind, "same", 5)))]);
        }
        assert_eq!(resolved(&mut contests), ["1 x.test: HTTPRoute a/same"], "{order:?}");
        assert_eq!(contests.claims_on(&router()).on(&exact()).unwrap().1.kind, Kind::HttpRoute);
    }
}

#[test]
fn wildcards_of_one_label_and_of_many_conflict() {
    let mut contests = Contests::new(2);
    contests.claim(0, vec![(at(HostMatch::Suffix(domain())), http("h", 5))]);
    contests.claim(1, vec![(at(HostMatch::Wildcard(domain())), proxy("p", 6)), (at(exact()), proxy("p", 6))]);
    assert_eq!(resolved(&mut contests), ["1 *.x.test: HTTPRoute a/h"]);
    contests.claim(0, vec![(at(HostMatch::Suffix(domain())), None)]);
    assert_eq!(resolved(&mut contests), ["1 *.x.test: -"]);
}

#[test]
fn a_route_that_owns_a_host_takes_precedence_over_every_api() {
    let mut contests = Contests::new(2);
    let route = |age| HostOwner {
        object: ObjectRef { kind: Kind::Route, key: ObjectKey::new("a", "r") },
        created: object(Kind::Route, "r", age).age.created(),
    };
    contests.claim(0, vec![(at(exact()), http("h", 5))]);
    contests.claim(1, vec![(at(exact()), proxy("p", 6))]);
    contests.set_route_owners(&router(), [(exact(), Some(route(1)))]);
    assert_eq!(resolved(&mut contests), ["0 x.test: Route a/r", "1 x.test: Route a/r"]);
    contests.set_route_owners(&router(), [(exact(), Some(route(1)))]);
    assert_eq!(resolved(&mut contests), Vec::<String>::new());
    contests.set_route_owners(&router(), [(exact(), Some(route(2)))]);
    assert_eq!(resolved(&mut contests).len(), 2, "created anew");
    contests.set_route_owners(&router(), [(exact(), None)]);
    assert_eq!(resolved(&mut contests), ["0 x.test: -", "1 x.test: HTTPRoute a/h"]);
}
