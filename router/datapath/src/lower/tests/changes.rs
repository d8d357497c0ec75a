//! Incremental lowering of a new table, and adoption by a new agent.

use std::collections::BTreeMap;

use router_api::object::Object;
use router_translate::engine::Engine;

use super::*;

/// A table whose routers `others` make from the first route's.
fn routers(others: &[fn(&mut RouterTable)]) -> RoutingTable {
    let plain = table(&[route("plain", "plain.test", None, json!({}))]);
    let of = |change: &fn(&mut RouterTable)| {
        let whole = &plain.routers[0];
        let mut router = whole.with(whole.hosts.clone(), whole.routes.clone());
        change(&mut router);
        Arc::new(router)
    };
    RoutingTable { revision: 1, routers: others.iter().map(of).collect(), endpoints: plain.endpoints.clone() }
}

#[test]
fn added_removed_and_changed_routers_need_a_full_image() {
    fn same(_: &mut RouterTable) {}
    fn other_id(router: &mut RouterTable) {
        router.id += 1;
    }
    fn other_name(router: &mut RouterTable) {
        router.name = RouterName("other".into());
    }
    fn with_header(router: &mut RouterTable) {
        Arc::make_mut(&mut router.policy).accept_proxy = true;
    }
    let small = |old: &[fn(&mut RouterTable)], new: &[fn(&mut RouterTable)]| {
        lower_changes(&routers(old), &routers(new), &mut RouteIds::default(), &mut pools()).is_some()
    };
    assert!(small(&[same], &[same]) && small(&[same, other_id], &[same, other_id]));
    for other in [other_id, other_name, with_header] {
        assert!(!small(&[same], &[other]) && !small(&[same, same], &[same, other]));
    }
    assert!(!small(&[same], &[same, other_id]) && !small(&[same, other_id], &[same]));
}

#[test]
fn connections_that_begin_with_a_proxy_header_are_the_agents() {
    let plain = |router: &mut RouterTable| router.name = RouterName("plain".into());
    let with_header = |router: &mut RouterTable| {
        router.id += 1;
        Arc::make_mut(&mut router.policy).accept_proxy = true;
    };
    let table = routers(&[plain, with_header]);
    let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut listeners = [8080, 8443].map(|port| listener(&table, Protocol::Https, address(port), BindState::Bound));
    listeners[1].router_id = table.routers[1].id;
    let image = lower(&table, &listeners, &[], &RouteIds::default(), &mut pools());
    let steered: Vec<_> = image.listeners.iter().map(|((_, port), entry)| (*port, entry.router)).collect();
    assert_eq!(steered, [(8080, table.routers[0].id)]);
    let left: Vec<_> =
        image.unsteered.iter().map(|((_, port), entry)| (*port, entry.router, entry.why.text())).collect();
    assert_eq!(left, [(8443, table.routers[1].id, "its connections begin with a PROXY header")]);
}

#[test]
fn a_route_that_is_steered_no_more_has_no_pool() {
    let tcp = |balance: &str| {
        let annotations = json!({"haproxy.router.openshift.io/balance": balance});
        let route = route("tcp", "tcp.test", Some(json!({"termination": "passthrough"})), annotations);
        table(&[vec![route], service("web", &["10.0.0.5"]).to_vec()].concat())
    };
    let (mut ids, mut pools) = (RouteIds::default(), pools());
    let (random, source) = (tcp("random"), tcp("source"));
    ids.assign(&random);
    assert_eq!(lower(&random, &[], &[], &ids, &mut pools).pools.len(), 1);
    let image = lower(&source, &[], &[], &ids, &mut pools);
    assert_eq!((image.pools.len(), image.slots.len(), image.endpoints.len()), (0, 0, 0));
}

#[test]
fn a_new_agent_goes_on_with_the_ids_of_routes() {
    let label = |name: &str| RouteLabel { router: 1, route: RouteId::of_route("shop", name) };
    let mut ids = RouteIds::default();
    ids.adopt(&BTreeMap::from([(3, label("a")), (5, label("b"))]), 4);
    ids.add(1, &RouteId::of_route("shop", "a"));
    ids.add(1, &RouteId::of_route("shop", "new"));
    let of = |ids: &RouteIds, name: &str| ids.of(1, &RouteId::of_route("shop", name));
    assert_eq!((of(&ids, "a"), of(&ids, "b"), of(&ids, "new")), (3, 5, 6));
    // A remaining entry has a higher id.
    ids.adopt(&BTreeMap::new(), 9);
    ids.add(1, &RouteId::of_route("shop", "newer"));
    assert_eq!(of(&ids, "newer"), 10);
    ids.adopt(&BTreeMap::new(), 2);
    ids.add(1, &RouteId::of_route("shop", "newest"));
    assert_eq!(of(&ids, "newest"), 11);
}

#[test]
fn new_endpoints_change_the_slots_of_their_routes_alone() {
    let tls = || Some(json!({"termination": "passthrough"}));
    let mut other = route("other", "other.test", tls(), json!({}));
    other["spec"]["to"]["name"] = json!("api");
    let mut objects = vec![route("pass", "pass.test", tls(), json!({})), other];
    objects.extend(service("web", &["10.0.0.1"]));
    objects.extend(service("api", &["10.0.0.9"]));
    let mut present = resources(&objects);
    let mut engine = Engine::new(Settings::default());
    let (old, _) = engine.apply(&present);
    let (mut ids, mut pools) = (RouteIds::default(), pools());
    ids.assign(&old);
    let whole = lower(&old, &[], &[], &ids, &mut pools);
    let [_, slice] = service("web", &["10.0.0.2", "10.0.0.3"]);
    for slice in resources(&[slice]).endpoint_slices.iter() {
        present.insert(&Object::EndpointSlice(Arc::clone(slice)));
    }
    let (new, _) = engine.apply(&present);
    let (gone, come) = lower_changes(&old, &new, &mut ids, &mut pools).unwrap();
    let pass = ids.of(new.routers[0].id, &RouteId::of_route("shop", "pass"));
    let addresses =
        |image: &MapImage| image.endpoints.values().map(|entry| entry.address.ip().to_string()).collect::<Vec<_>>();
    for (image, expected) in [(&gone, vec!["10.0.0.1"]), (&come, vec!["10.0.0.2", "10.0.0.3"])] {
        assert_eq!(image.pools.keys().copied().collect::<Vec<_>>(), [pass]);
        assert_eq!(addresses(image), expected);
        assert!(image.hosts.keys().all(|(_, _, host)| host == "pass.test") && image.routes.is_empty());
    }
    assert_eq!((gone.hosts == come.hosts, whole.pools.len()), (true, 2));
    assert_eq!(dump(&lower(&new, &[], &[], &ids, &mut pools)).len(), dump(&whole).len());
}
