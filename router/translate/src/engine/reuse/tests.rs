//! Only equal values keep their `Arc`: otherwise a change would not reach the data paths.

use router_model::certificate::{Certificate, MaterialCache};
use router_model::kind::Kind;
use router_model::names::{HostMatch, Hostname, RouteId};
use router_model::object::{ObjectKey, ObjectRef};
use router_model::one_or_many::OneOrMany;
use router_table::matchers::{PathMatcher, RequestMatcher};
use router_table::path_form::PathForm;
use router_table::pattern::{Flags, Pattern};
use router_table::policy::RoutePolicy;
use router_table::policy::forwarded::ForwardedHeaders;
use router_table::table::{Cluster, Derived, EndpointsKey, PortChoice, RouteKind, WeightedService};

use super::*;

fn host(name: &str) -> HostMatch {
    HostMatch::Exact(Hostname::parse(name).unwrap())
}

/// A route to this port of a Service.
fn route(name: &str, port: u16) -> Arc<ResolvedRoute> {
    let ports = PortChoice::Target(Some(port.to_string().into()));
    let key = Some(Arc::new(EndpointsKey { namespace: "shop".into(), service: "web".into(), ports }));
    let service = WeightedService { service: "web".into(), port: None, weight: 1, key, policy: None };
    Arc::new(ResolvedRoute {
        derived: Derived::default(),
        policy: RoutePolicy::shared_default(),
        rule: Some(Arc::default()),
        forwarded: ForwardedHeaders::Append,
        proxy_protocol: false,
        request_work: false,
        relay_only: false,
        is_plain: false,
        cluster: Cluster { services: OneOrMany::One(service) },
        kind: RouteKind::Passthrough { redirect: false },
        rare: None,
        id: RouteId { kind: Kind::HttpRoute, ..RouteId::of_route("shop", name) },
        host: host("a.test"),
    })
}

/// A rule that sends paths of this expression to a route.
fn rule(path: &str, route: &Arc<ResolvedRoute>) -> Arc<Rule> {
    let path = PathMatcher::Regex(Pattern::new(path, Flags::default(), 1 << 18).unwrap());
    Arc::new(Rule {
        matcher: RequestMatcher { path, ..RequestMatcher::default() },
        path_form: PathForm::default(),
        prefix: "/".into(),
        route: Arc::clone(route),
        origin: "here".into(),
    })
}

fn certificate(name: &str) -> Certificate {
    let key = rcgen::KeyPair::generate().unwrap();
    let pem = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap().pem();
    MaterialCache::new().pair(&pem, Some(&key.serialize_pem()), None).unwrap()
}

/// A host with the same rules for clear text and for TLS.
fn virtual_host(name: &str, rules: &Arc<[Arc<Rule>]>, certificate: &Certificate) -> VirtualHost {
    let object = || ObjectRef { kind: Kind::Gateway, key: ObjectKey::new("shop", "public") };
    let tls = HostRulesTls {
        shown_by: object(),
        certificates: vec![certificate.clone()],
        minimum: None,
        rules: Arc::clone(rules),
        tcp: None,
    };
    let host_rules = HostRules {
        owner: object(),
        listener: "web".into(),
        cleartext_listener: None,
        cleartext: Some(Arc::clone(rules)),
        tls: Some(tls),
    };
    VirtualHost {
        host: host(name),
        rules: Some(Box::new(host_rules)),
        cleartext: OneOrMany::default(),
        terminated: OneOrMany::default(),
        passthrough: None,
        certificate: None,
    }
}

fn routes(of: &[&Arc<ResolvedRoute>]) -> KeyedMap<ResolvedRoute> {
    of.iter().copied().cloned().collect()
}

#[test]
fn an_equal_host_is_the_earlier_one() {
    let shown = certificate("a.test");
    let list = |path: &str, port| -> Arc<[Arc<Rule>]> { [rule(path, &route("one", port))].into() };
    let list_before = list("/a", 80);
    let before = Arc::new(virtual_host("a.test", &list_before, &shown));
    let routes = routes(&[&list_before[0].route]);
    let is_reused = |host: VirtualHost| Arc::ptr_eq(&Reuse::new(&routes).host(host, Some(&before)), &before);

    assert!(is_reused(virtual_host("a.test", &list("/a", 80), &shown)));
    assert!(!is_reused(virtual_host("a.test", &list("/b", 80), &shown)), "another path");
    assert!(!is_reused(virtual_host("a.test", &list("/a", 81), &shown)), "another port");
    assert!(!is_reused(virtual_host("a.test", &list("/a", 80), &certificate("a.test"))), "another certificate");
    assert!(!is_reused(virtual_host("a.test", &Arc::default(), &shown)), "no rules");
    assert!(!is_reused(VirtualHost { rules: None, ..virtual_host("a.test", &list("/a", 80), &shown) }));
    let passed =
        |port| VirtualHost { passthrough: Some(route("one", port)), ..virtual_host("a.test", &list("/a", 80), &shown) };
    assert!(!is_reused(passed(80)));
    let before = Arc::new(passed(80));
    let reused = Reuse::new(&routes).host(passed(80), Some(&before));
    assert!(
        Arc::ptr_eq(&reused, &before) && !Arc::ptr_eq(&reused, &Reuse::new(&routes).host(passed(81), Some(&before)))
    );
}

#[test]
fn a_host_that_differs_keeps_its_equal_routes_and_shares_its_rules() {
    let shown = certificate("a.test");
    let (one, other) = (route("one", 80), route("other", 80));
    let routes = routes(&[&one, &other]);
    // Of three routes one is equal to an earlier one; the rules of both hosts are one list.
    let list: Arc<[Arc<Rule>]> =
        [rule("/1", &route("one", 80)), rule("/2", &route("other", 81)), rule("/3", &route("third", 80))].into();
    let mut reuse = Reuse::new(&routes);
    let made = ["a.test", "b.test"].map(|name| reuse.host(virtual_host(name, &list, &shown), None));
    let lists = made.iter().flat_map(|host| {
        let host_rules = host.rules.as_ref().unwrap();
        [host_rules.cleartext.as_ref().unwrap(), &host_rules.tls.as_ref().unwrap().rules]
    });
    let lists: Vec<&Arc<[Arc<Rule>]>> = lists.collect();
    assert!(lists.len() == 4 && lists.iter().all(|rules| Arc::ptr_eq(rules, lists[0])));
    let [first, second, third] = &**lists[0] else { panic!("three rules") };
    assert!(Arc::ptr_eq(&first.route, &one));
    assert!(Arc::ptr_eq(second, &list[1]) && Arc::ptr_eq(third, &list[2]));
    assert!(made.iter().all(|host| routes_of(host).count() == 6));
}
