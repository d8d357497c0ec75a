//! Whatever differs is not the same: what was there before would stay.

use std::time::Duration;

use router_model::kind::Kind;
use router_model::names::{HostMatch, Hostname, PathMatch};
use router_model::object::{ObjectKey, ObjectRef};
use router_model::one_or_many::OneOrMany;
use router_table::cors::Cors;
use router_table::header_modifier::HeaderModifier;
use router_table::path_form::PathForm;
use router_table::policy::forwarded::ForwardedHeaders;
use router_table::policy::tls_profile::TlsVersion;
use router_table::policy::{Balance, RoutePolicy};
use router_table::rule::{Action, HealthCheck, PathChange, Retry};
use router_table::table::{Derived, EndpointsKey, InsecurePolicy, PortChoice};

use super::*;

/// Each value is the same as one made like it, and as no other one.
fn check<T: std::fmt::Debug>(make: impl Fn() -> Vec<T>, same: impl Fn(&T, &T) -> bool) {
    let (ones, others) = (make(), make());
    for (i, one) in ones.iter().enumerate() {
        for (k, other) in others.iter().enumerate() {
            assert_eq!(same(one, other), i == k, "{i} {one:?} and {k} {other:?}");
        }
    }
}

fn host(name: &str) -> HostMatch {
    HostMatch::Exact(Hostname::parse(name).unwrap())
}

fn cluster(change: impl FnOnce(&mut ServiceEndpoints)) -> Cluster {
    let mut service = ServiceEndpoints { service: "web".into(), port: Some(80), weight: 1, key: None, policy: None };
    change(&mut service);
    Cluster { services: vec![service].into() }
}

fn route(change: impl FnOnce(&mut ResolvedRoute)) -> Arc<ResolvedRoute> {
    let mut route = ResolvedRoute {
        derived: Derived::default(),
        policy: RoutePolicy::shared_default(),
        rule: None,
        forwarded: ForwardedHeaders::Append,
        proxy_protocol: false,
        request_work: false,
        relay_only: false,
        is_plain: false,
        cluster: cluster(|_| {}),
        kind: RouteKind::Passthrough { redirect: false },
        allow: None,
        tunnel_timeout: None,
        id: RouteId::of_route("shop", "cart"),
        host: host("a.test"),
    };
    change(&mut route);
    Arc::new(route)
}

#[test]
fn kinds_of_routes_differ_in_each_of_their_parts() {
    let roots = || Some(Arc::new(RootCertStore::empty()));
    let http = |path: &str, tls: Option<HttpTls>| RouteKind::Http { path: PathMatch::parse(path).unwrap(), tls };
    let with = |insecure, reencrypt| Some(HttpTls { insecure, certificate: None, reencrypt });
    let to = |destination_ca| Some(Reencrypt { destination_ca });
    let kinds = [
        RouteKind::Passthrough { redirect: false },
        RouteKind::Passthrough { redirect: true },
        http("/", None),
        http("/a", None),
        http("/", with(InsecurePolicy::None, None)),
        http("/", with(InsecurePolicy::Allow, None)),
        http("/", with(InsecurePolicy::Allow, to(None))),
        http("/", with(InsecurePolicy::Allow, to(roots()))),
    ];
    for (i, one) in kinds.iter().enumerate() {
        for (k, other) in kinds.iter().enumerate() {
            assert_eq!(same_kind(one, other), i == k, "{one:?} and {other:?}");
        }
    }
}

#[test]
fn backends_differ_in_each_of_their_parts() {
    let usual = BackendPolicy::default;
    let modifier = || vec![HeaderModifier { set: vec![("a".into(), "b".into())], ..HeaderModifier::default() }];
    let check = HealthCheck {
        request: None,
        interval: Duration::from_secs(1),
        timeout: Duration::from_secs(1),
        unhealthy: 1,
        healthy: 1,
    };
    let policies = [
        usual(),
        BackendPolicy { namespace: Some("a".into()), ..usual() },
        BackendPolicy { failure: Some(500), ..usual() },
        BackendPolicy { request_headers: modifier(), ..usual() },
        BackendPolicy { response_headers: modifier(), ..usual() },
        BackendPolicy { balance: Some(Balance::Random), ..usual() },
        BackendPolicy { health_check: Some(Arc::new(check.clone())), ..usual() },
        BackendPolicy { health_check: Some(Arc::new(HealthCheck { healthy: 2, ..check })), ..usual() },
    ];
    for (i, one) in policies.iter().enumerate() {
        for (k, other) in policies.iter().enumerate() {
            assert_eq!(same_backend(one, other), i == k, "{one:?} and {other:?}");
        }
    }
}

#[test]
fn clusters_differ_in_each_of_their_parts() {
    let key = |ports| {
        let (namespace, service) = ("shop".into(), "web".into());
        Some(Arc::new(EndpointsKey { namespace, service, ports }))
    };
    let policy = BackendPolicy { failure: Some(500), ..BackendPolicy::default() };
    let clusters = || {
        vec![
            Cluster::default(),
            Cluster {
                services: cluster(|_| {})
                    .services
                    .iter()
                    .chain(&*cluster(|_| {}).services)
                    .cloned()
                    .collect::<Vec<_>>()
                    .into(),
            },
            cluster(|_| {}),
            cluster(|it| it.service = "other".into()),
            cluster(|it| it.port = None),
            cluster(|it| it.port = Some(81)),
            cluster(|it| it.weight = 2),
            cluster(|it| it.key = key(PortChoice::Target(None))),
            cluster(|it| it.key = key(PortChoice::Target(Some("http".into())))),
            cluster(|it| it.policy = Some(Arc::default())),
            cluster(|it| it.policy = Some(Arc::new(policy.clone()))),
        ]
    };
    check(clusters, same_cluster);
}

#[test]
fn routes_differ_in_each_of_their_parts() {
    let seconds = Some(Duration::from_secs(1));
    let rule = || Some(Box::new(RulePolicy { request_timeout: seconds, ..RulePolicy::default() }));
    let routes = || {
        vec![
            route(|_| {}),
            route(|it| it.id = RouteId::of_route("shop", "other")),
            route(|it| it.host = host("b.test")),
            route(|it| it.kind = RouteKind::Passthrough { redirect: true }),
            route(|it| it.cluster = Cluster::default()),
            route(|it| it.allow = Some(Box::default())),
            route(|it| it.allow = Some(vec!["10.0.0.0/8".parse().unwrap()].into())),
            route(|it| it.proxy_protocol = true),
            route(|it| it.tunnel_timeout = seconds),
            route(|it| it.forwarded = ForwardedHeaders::Never),
            route(|it| it.request_work = true),
            route(|it| it.relay_only = true),
            route(|it| it.policy = Arc::new(RoutePolicy { adjust_case: true, ..RoutePolicy::default() })),
            route(|it| it.rule = Some(Box::default())),
            route(|it| it.rule = rule()),
        ]
    };
    check(routes, |a, b| same_route(a, b));
}

#[test]
fn policies_of_rules_differ_in_each_of_their_parts() {
    let usual = RulePolicy::default;
    let modifier = || vec![HeaderModifier { remove: vec!["a".into()], ..HeaderModifier::default() }];
    let mirror = |cluster, share| RulePolicy { mirrors: vec![Mirror { cluster, share }], ..usual() };
    let seconds = Some(Duration::from_secs(1));
    let retry = |count| {
        let backoff = Duration::from_millis(25);
        Some(Retry { count, statuses: vec![500..=599], unanswered: true, unreachable: false, backoff })
    };
    let policies = || {
        vec![
            usual(),
            RulePolicy { action: Action::Answer(404), ..usual() },
            RulePolicy { action: Action::Direct(404), ..usual() },
            RulePolicy { request_headers: modifier(), ..usual() },
            RulePolicy { response_headers: modifier(), ..usual() },
            RulePolicy { rewrite_host: Hostname::parse("a.test").ok(), ..usual() },
            RulePolicy { rewrite_path: Some(PathChange::Full("/a".into())), ..usual() },
            RulePolicy { rewrite_path: Some(PathChange::Prefix("/a".into())), ..usual() },
            mirror(cluster(|_| {}), (1, 1)),
            mirror(cluster(|_| {}), (1, 2)),
            mirror(Cluster::default(), (1, 1)),
            RulePolicy { cors: Some(Arc::default()), ..usual() },
            RulePolicy { cors: Some(Arc::new(Cors { credentials: true, ..Cors::default() })), ..usual() },
            RulePolicy { request_timeout: seconds, ..usual() },
            RulePolicy { backend_timeout: seconds, ..usual() },
            RulePolicy { idle_timeout: seconds, ..usual() },
            RulePolicy { keep_connections: seconds, ..usual() },
            RulePolicy { retry: retry(1), ..usual() },
            RulePolicy { retry: retry(2), ..usual() },
        ]
    };
    check(policies, same_policy);
}

#[test]
fn matchers_differ_in_each_of_their_parts() {
    let usual = RequestMatcher::default;
    let regex = |text: &str| regex::Regex::new(text).unwrap();
    let exact = |name: &str, value: &str| vec![(name.into(), ValueMatcher::Exact(value.into()))];
    let like = |name: &str, value: &str| vec![(name.into(), ValueMatcher::Regex(regex(value)))];
    let path = |path| RequestMatcher { path, ..usual() };
    let matchers = || {
        let mut all = vec![
            usual(),
            path(PathMatcher::Prefix("/a".into())),
            path(PathMatcher::Exact("/a".into())),
            path(PathMatcher::Exact("/b".into())),
            path(PathMatcher::Regex(regex("/a"))),
            path(PathMatcher::Regex(regex("/b"))),
            RequestMatcher { method: Some("GET".into()), ..usual() },
            RequestMatcher { method: Some("PUT".into()), ..usual() },
        ];
        for values in
            [exact("a", "b"), exact("a", "c"), exact("c", "b"), like("a", "b"), like("a", "c"), like("c", "b")]
        {
            all.push(RequestMatcher { headers: values.clone(), ..usual() });
            all.push(RequestMatcher { query: values, ..usual() });
        }
        all
    };
    check(matchers, same_matcher);
}

#[test]
fn rules_differ_in_each_of_their_parts() {
    let [one, other] = [route(|_| {}), route(|_| {})];
    let rule = |change: &dyn Fn(&mut Rule)| {
        let mut rule = Rule {
            matcher: RequestMatcher::default(),
            path_form: PathForm::default(),
            prefix: "/".into(),
            route: Arc::clone(&one),
            origin: "here".into(),
        };
        change(&mut rule);
        vec![Arc::new(rule)]
    };
    let rules = || {
        vec![
            Vec::new(),
            rule(&|_| {}),
            [rule(&|_| {}), rule(&|_| {})].concat(),
            rule(&|it| it.matcher.method = Some("GET".into())),
            rule(&|it| it.path_form = PathForm::Normal { merge_slashes: true }),
            rule(&|it| it.path_form = PathForm::Normal { merge_slashes: false }),
            rule(&|it| it.prefix = "/a".into()),
            rule(&|it| it.route = Arc::clone(&other)),
            rule(&|it| it.origin = "there".into()),
        ]
    };
    check(rules, |a, b| same_rules(a, b));
}

fn pair(name: &str) -> Arc<rustls::sign::CertifiedKey> {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap().pem();
    router_model::certificate::MaterialCache::new().pair(&certificate, Some(&key.serialize_pem()), None).unwrap()
}

#[test]
fn sites_and_hosts_differ_in_each_of_their_parts() {
    let object = |name: &str| ObjectRef { kind: Kind::Gateway, key: ObjectKey::new("shop", name) };
    let [one, other] = [route(|_| {}), route(|_| {})];
    let [own, foreign] = [pair("a.test"), pair("b.test")];
    let list: Arc<[Arc<Rule>]> = vec![Arc::new(Rule {
        matcher: RequestMatcher::default(),
        path_form: PathForm::default(),
        prefix: "/".into(),
        route: Arc::clone(&one),
        origin: "here".into(),
    })]
    .into();
    let tls = |change: &dyn Fn(&mut HostRulesTls)| {
        let mut tls = HostRulesTls {
            shown_by: object("public"),
            certificates: vec![Arc::clone(&own)],
            minimum: None,
            rules: Arc::default(),
            tcp: None,
        };
        change(&mut tls);
        Some(tls)
    };
    let site = |change: &dyn Fn(&mut HostRules)| {
        let mut site = HostRules {
            owner: object("public"),
            listener: "web".into(),
            cleartext_listener: None,
            cleartext: None,
            tls: None,
        };
        change(&mut site);
        site
    };
    let sites = || {
        vec![
            site(&|_| {}),
            site(&|it| it.owner = object("other")),
            site(&|it| it.listener = "other".into()),
            site(&|it| it.cleartext = Some(Arc::default())),
            site(&|it| it.cleartext = Some(Arc::clone(&list))),
            site(&|it| it.tls = tls(&|_| {})),
            site(&|it| it.tls = tls(&|it| it.shown_by = object("other"))),
            site(&|it| it.tls = tls(&|it| it.certificates = Vec::new())),
            site(&|it| it.tls = tls(&|it| it.certificates = vec![Arc::clone(&foreign)])),
            site(&|it| it.tls = tls(&|it| it.minimum = Some(TlsVersion::Tls13))),
            site(&|it| it.tls = tls(&|it| it.rules = Arc::clone(&list))),
            site(&|it| it.tls = tls(&|it| it.tcp = Some(Arc::clone(&one)))),
            site(&|it| it.tls = tls(&|it| it.tcp = Some(Arc::clone(&other)))),
        ]
    };
    check(sites, same_site);

    let virtual_host = |change: &dyn Fn(&mut VirtualHost)| {
        let mut made = VirtualHost {
            host: host("a.test"),
            site: None,
            cleartext: OneOrMany::default(),
            terminated: OneOrMany::default(),
            passthrough: None,
            certificate: None,
        };
        change(&mut made);
        made
    };
    let few = |route: &Arc<ResolvedRoute>| OneOrMany::from(vec![Arc::clone(route)]);
    let hosts = || {
        vec![
            virtual_host(&|_| {}),
            virtual_host(&|it| it.host = host("b.test")),
            virtual_host(&|it| it.passthrough = Some(Arc::clone(&one))),
            virtual_host(&|it| it.passthrough = Some(Arc::clone(&other))),
            virtual_host(&|it| it.terminated = few(&one)),
            virtual_host(&|it| it.terminated = few(&other)),
            virtual_host(&|it| it.cleartext = few(&one)),
            virtual_host(&|it| it.cleartext = few(&other)),
            virtual_host(&|it| it.certificate = Some(Arc::clone(&own))),
            virtual_host(&|it| it.certificate = Some(Arc::clone(&foreign))),
            virtual_host(&|it| it.site = Some(Box::new(site(&|_| {})))),
            virtual_host(&|it| it.site = Some(Box::new(site(&|it| it.listener = "other".into())))),
        ]
    };
    check(hosts, same_host);
}

#[test]
fn trust_is_the_same_where_its_anchors_are() {
    let store = |pem: &str| router_model::certificate::MaterialCache::new().roots(pem).unwrap();
    let [one, other] = [router_api::testing::authority("one"), router_api::testing::authority("other")];
    assert!(same_roots(&store(&one), &store(&one)));
    assert!(!same_roots(&store(&one), &store(&other)));
}
