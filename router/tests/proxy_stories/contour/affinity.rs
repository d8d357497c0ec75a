//! `Cookie` and `RequestHash`: affinity of clients to endpoints.

use super::*;

const COOKIE: &str = "X-Contour-Session-Affinity";

async fn four() -> Vec<SocketAddr> {
    let mut endpoints = Vec::new();
    for name in ["one", "two", "three", "four"] {
        endpoints.push(backends::http(name).await);
    }
    endpoints
}

/// `name=value` of the cookie that a response sets.
fn set(answer: &Answer) -> Option<String> {
    answer.field("set-cookie").map(|cookie| cookie.split(';').next().unwrap().to_owned())
}

async fn ask_with(world: &World, host: &str, path: &str, cookie: &str) -> Answer {
    ask(world, host, path, &[&format!("Cookie: a=1; {cookie}; b=2")]).await
}

#[tokio::test]
async fn a_cookie_keeps_a_client_with_its_endpoint() {
    let route = json!({ "services": to(&["app"]), "loadBalancerPolicy": { "strategy": "Cookie" } });
    let endpoints = four().await;
    let objects = |endpoints: &[SocketAddr]| [vec![proxy("cookie", route.clone())], service("app", endpoints)].concat();
    let mut world = World::of(objects(&endpoints)).await;
    let first = ask(&world, "cookie.test", "/", &[]).await;
    let (home, cookie) = (who(&first).to_owned(), set(&first).expect("a cookie"));
    let (name, value) = cookie.split_once('=').unwrap();
    assert_eq!((name, value.len()), (COOKIE, 32), "{}", first.head);
    // A session cookie for all paths of the host, as in Envoy.
    assert!(first.field("set-cookie").unwrap().ends_with("; Path=/; HttpOnly"), "{}", first.head);
    for _ in 0..20 {
        let again = ask_with(&world, "cookie.test", "/", &cookie).await;
        assert_eq!((who(&again), set(&again)), (&*home, None));
        assert!(again.body.contains(&format!("\ncookie: a=1; {cookie}; b=2\n")), "{}", again.body);
    }
    // Each client without a cookie gets its own, and clients are spread over the endpoints.
    let mut homes = Counts::new();
    let mut clients = BTreeMap::new();
    for _ in 0..80 {
        let answer = ask(&world, "cookie.test", "/", &[]).await;
        *homes.entry(who(&answer).to_owned()).or_default() += 1;
        clients.insert(set(&answer).unwrap(), who(&answer).to_owned());
    }
    assert!(homes.len() == 4 && clients.len() == 80 && homes.values().all(|count| *count >= 5), "{homes:?}");
    // Another proxy, without state, maps each cookie to the same endpoint: after a restart, on another node.
    let other = World::of(objects(&endpoints)).await;
    for (cookie, home) in &clients {
        assert_eq!(who(&ask_with(&other, "cookie.test", "/", cookie).await), home);
    }
    // Clients of a removed endpoint move, and all others stay.
    world.become_of(objects(&endpoints[1..]));
    crate::tables::eventually("three endpoints", async || {
        let lost = clients.iter().find(|(_, home)| **home == "one").unwrap();
        who(&ask_with(&world, "cookie.test", "/", lost.0).await) != "one"
    })
    .await;
    for (cookie, home) in clients.iter().filter(|(_, home)| **home != "one") {
        assert_eq!(who(&ask_with(&world, "cookie.test", "/", cookie).await), home);
    }
    assert_eq!(world.setting("http://cookie.test/", "affinity").unwrap(), format!("by cookie {COOKIE}"));
    assert_eq!(world.setting("http://cookie.test/", "balance").unwrap(), format!("by hash of cookie {COOKIE}"));
}

#[tokio::test]
async fn several_services_have_their_share_of_clients() {
    let services = json!([{ "name": "big", "port": 80, "weight": 90 }, { "name": "small", "port": 80, "weight": 10 }]);
    let route = json!({ "services": services, "loadBalancerPolicy": { "strategy": "Cookie" } });
    let [one, two, three] = [backends::http("one").await, backends::http("two").await, backends::http("three").await];
    let world =
        World::of([vec![proxy("shares", route)], service("big", &[one, two]), service("small", &[three])].concat())
            .await;
    let mut counts = Counts::new();
    for _ in 0..200 {
        let answer = ask(&world, "shares.test", "/", &[]).await;
        let again = ask_with(&world, "shares.test", "/", &set(&answer).unwrap()).await;
        assert_eq!((who(&again), set(&again)), (who(&answer), None));
        *counts.entry(who(&answer).to_owned()).or_default() += 1;
    }
    // Expected: 90, 90 and 20, each within five standard deviations.
    let within = |name: &str, range: std::ops::Range<usize>| range.contains(counts.get(name).unwrap_or(&0));
    assert!(within("one", 55..126) && within("two", 55..126) && within("three", 2..42), "{counts:?}");
}

#[tokio::test]
async fn one_cookie_is_good_for_all_routes_of_a_host() {
    let stays = json!({ "strategy": "Cookie" });
    let route = |prefix: &str, name: &str| json!({ "conditions": [{ "prefix": prefix }], "services": to(&[name]), "loadBalancerPolicy": stays });
    let spec = json!({ "routes": [route("/", "app"), route("/api", "app"), route("/other", "other")] });
    let (app, other) = (four().await, four().await);
    let objects = [vec![crate::manifests::root("routes", spec)], service("app", &app), service("other", &other)];
    let world = World::of(objects.concat()).await;
    let first = ask(&world, "routes.test", "/", &[]).await;
    let (home, cookie) = (who(&first).to_owned(), set(&first).unwrap());
    let elsewhere = ask_with(&world, "routes.test", "/other", &cookie).await;
    assert_eq!(set(&elsewhere), None);
    let there = who(&elsewhere).to_owned();
    for _ in 0..10 {
        for (path, expected) in [("/", &home), ("/api", &home), ("/other", &there)] {
            let answer = ask_with(&world, "routes.test", path, &cookie).await;
            assert_eq!((who(&answer), set(&answer)), (&**expected, None), "{path}");
        }
    }
}

#[tokio::test]
async fn a_client_of_http2_and_one_of_an_ingress_route_stay_too() {
    let secret = pki::secret("tls", &["h2.test"]);
    let spec = json!({
        "virtualhost": { "fqdn": "h2.test", "tls": { "secretName": "tls" } },
        "routes": [{ "match": "/", "services": [{ "name": "app", "port": 80, "strategy": "Cookie" }] }],
    });
    let route = object("contour.heptio.com/v1beta1", "IngressRoute", "h2", spec);
    let world = World::of([vec![route, secret], service("app", &four().await)].concat()).await;
    let mut cookie = None;
    let mut home = None;
    for _ in 0..10 {
        let cookies: Vec<String> = ["a=1".to_owned()].into_iter().chain(cookie.clone()).collect();
        let fields: Vec<(&str, &str)> = cookies.iter().map(|cookie| ("cookie", cookie.as_str())).collect();
        let response = client::h2_answer(world.rig.https, "h2.test", "/", &fields).await;
        let backend = response.headers()["x-backend"].clone();
        assert_eq!(*home.get_or_insert(backend.clone()), backend);
        let set = response.headers().get("set-cookie").map(|set| set.to_str().unwrap().to_owned());
        assert_eq!(set.is_some(), cookie.is_none());
        cookie = cookie.or(set.map(|set| set.split(';').next().unwrap().to_owned()));
    }
}

#[tokio::test]
async fn each_service_of_an_ingress_route_has_a_strategy_of_its_own() {
    let services = json!([
        { "name": "sticky", "port": 80, "strategy": "Cookie" },
        { "name": "in-turn", "port": 80 },
    ]);
    let spec = json!({
        "virtualhost": { "fqdn": "mixed.test" },
        "routes": [{ "match": "/", "services": services }],
    });
    let [one, two] = [backends::http("one").await, backends::http("two").await];
    let [three, four] = [backends::http("three").await, backends::http("four").await];
    let route = object("contour.heptio.com/v1beta1", "IngressRoute", "mixed", spec);
    let objects = [vec![route], service("sticky", &[one, two]), service("in-turn", &[three, four])];
    let world = World::of(objects.concat()).await;
    let first = ask(&world, "mixed.test", "/", &[]).await;
    let cookie = set(&first).unwrap();
    let mut counts = Counts::new();
    for _ in 0..20 {
        *counts.entry(who(&ask_with(&world, "mixed.test", "/", &cookie).await).to_owned()).or_default() += 1;
    }
    let count = |name: &str| counts.get(name).copied().unwrap_or_default();
    assert_eq!((count("one") + count("two"), count("three"), count("four")), (10, 5, 5), "{counts:?}");
    assert!(count("one") == 0 || count("two") == 0, "{counts:?}");
    assert_eq!(
        world.setting("http://mixed.test/", "balance").unwrap(),
        format!("roundrobin between services, by hash of cookie {COOKIE} in sticky, roundrobin in in-turn")
    );
}

#[tokio::test]
async fn a_client_stays_with_an_endpoint_that_speaks_tls() {
    let mut endpoints = Vec::new();
    for name in ["one", "two", "three"] {
        let config = pki::server_config_for(pki::ca().leaf(&["app.test"]), &["h2", "http/1.1"]);
        endpoints.push(backends::https_any(name, config).await);
    }
    let validation = json!({ "caSecret": "ca", "subjectName": "app.test" });
    let services = json!([{ "name": "app", "port": 80, "protocol": "tls", "validation": validation }]);
    let route = json!({ "services": services, "loadBalancerPolicy": { "strategy": "Cookie" } });
    let objects = [vec![proxy("tls", route), pki::ca_secret("ca")], service("app", &endpoints)];
    let world = World::of(objects.concat()).await;
    let first = ask(&world, "tls.test", "/", &[]).await;
    let cookie = set(&first).unwrap();
    for _ in 0..20 {
        let again = ask_with(&world, "tls.test", "/", &cookie).await;
        assert_eq!((who(&again), set(&again)), (who(&first), None));
    }
}

#[tokio::test]
async fn requests_with_the_same_hash_go_to_the_same_endpoint() {
    let policies = json!([
        { "headerHashOptions": { "headerName": "X-User" }, "terminal": true },
        { "queryParameterHashOptions": { "parameterName": "Shard" } },
    ]);
    let balance = json!({ "strategy": "RequestHash", "requestHashPolicies": policies });
    let route = json!({ "services": to(&["app"]), "loadBalancerPolicy": balance });
    let endpoints = four().await;
    let objects = |endpoints: &[SocketAddr]| [vec![proxy("hash", route.clone())], service("app", endpoints)].concat();
    let world = World::of(objects(&endpoints)).await;
    let by = async |world: &World, user: &str, shard: &str| {
        let path = if shard.is_empty() { "/".to_owned() } else { format!("/?x=1&shard={shard}") };
        let user = format!("x-user: {user}");
        let lines: &[&str] = if user == "x-user: " { &[] } else { &[&user] };
        let answer = ask(world, "hash.test", &path, lines).await;
        assert_eq!(set(&answer), None);
        who(&answer).to_owned()
    };
    let (mut users, mut shards) = (BTreeMap::new(), BTreeMap::new());
    for number in 0..40 {
        let value = format!("v{number}");
        users.insert(value.clone(), by(&world, &value, "").await);
        shards.insert(value.clone(), by(&world, "", &value).await);
    }
    let spread = |homes: &BTreeMap<String, String>| homes.values().collect::<std::collections::BTreeSet<_>>().len();
    assert_eq!((spread(&users), spread(&shards)), (4, 4));
    let other = World::of(objects(&endpoints)).await;
    for (value, home) in &users {
        assert_eq!(by(&world, value, "").await, *home);
        assert_eq!(by(&other, value, "").await, *home, "the same after a restart");
        // A terminal field decides alone, if it is present.
        assert_eq!(by(&world, value, "whatever").await, *home);
        assert_eq!(by(&world, "", value).await, shards[value]);
    }
    // With three endpoints, only the clients of the fourth one move.
    let fewer = World::of(objects(&endpoints[..3])).await;
    for (value, home) in &users {
        assert_eq!(by(&fewer, value, "").await == *home, home != "four");
    }
    // Without a value to hash, endpoints are chosen at random.
    let mut by_chance = std::collections::BTreeSet::new();
    for _ in 0..60 {
        by_chance.insert(by(&world, "", "").await);
    }
    assert_eq!(by_chance.len(), 4);
    assert_eq!(
        world.setting("http://hash.test/", "balance").unwrap(),
        "by hash of header x-user alone if it is there, query parameter shard"
    );
}

#[tokio::test]
async fn the_clients_address_can_be_hashed_and_what_is_no_good_is_left_out() {
    let balance = |policies: Value| json!({ "strategy": "RequestHash", "requestHashPolicies": policies });
    let route = |policies| json!({ "services": to(&["app"]), "loadBalancerPolicy": balance(policies) });
    let source = json!([{ "hashSourceIP": true }, { "hashSourceIP": true }, { "terminal": true }]);
    let named = json!([{ "headerHashOptions": { "headerName": "no name" } }]);
    let objects = [vec![proxy("source", route(source)), proxy("none", route(named))], service("app", &four().await)];
    let world = World::of(objects.concat()).await;
    let home = who(&ask(&world, "source.test", "/", &[]).await).to_owned();
    for _ in 0..20 {
        assert_eq!(who(&ask(&world, "source.test", "/", &[]).await), home);
    }
    assert_eq!(
        world.messages("test/source", "warnings"),
        [
            "ignoring spec.routes[0].loadBalancerPolicy.requestHashPolicies[1]: the same is hashed before; remove it",
            "ignoring spec.routes[0].loadBalancerPolicy.requestHashPolicies[2]: write exactly one of hashSourceIP, \
             headerHashOptions and queryParameterHashOptions",
        ]
    );
    assert_eq!(world.setting("http://none.test/", "balance").unwrap(), "roundrobin");
    assert_eq!(
        world.messages("test/none", "warnings"),
        [
            "ignoring spec.routes[0].loadBalancerPolicy.requestHashPolicies[0]: \"no name\" is not a valid header name; use \
             letters, digits and -",
            "spec.routes[0].loadBalancerPolicy.requestHashPolicies: ignoring strategy RequestHash, which needs at least \
             one; endpoints are chosen by RoundRobin",
        ]
    );
}
