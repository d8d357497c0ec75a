//! Hand-made routing tables, and a proxy that serves them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use router_listener::{BindState, Protocol};
use router_model::certificate::{Certificate, TrustRoots};
use router_model::kind::Kind;
use router_model::names::{HostMatch, Hostname, PathMatch, RouteId, RouterName};
use router_proxy::{Proxy, ProxyConfig};
use router_table::policy::forwarded::ForwardedHeaders;
use router_table::policy::{RoutePolicy, RouterPolicy};
use router_table::rule::{BackendPolicy, RulePolicy};
use router_table::table::{
    Cluster, Endpoint, Endpoints, EndpointsKey, HostIndex, HttpTls, InsecurePolicy, PortChoice, RareSettings,
    Reencrypt, ResolvedRoute, RouteKind, RouterTable, RoutingTable, VirtualHost, WeightedService,
};
use rustls::RootCertStore;
use rustls::sign::CertifiedKey;
use tokio::sync::watch;

use crate::log;

pub const PATIENCE: Duration = Duration::from_secs(30);

/// A route under construction.
#[derive(Clone)]
pub struct Route {
    name: String,
    host: HostMatch,
    path: PathMatch,
    passthrough: bool,
    tls: bool,
    insecure: Option<InsecurePolicy>,
    certificate: Option<Certificate>,
    reencrypt: Option<Reencrypt>,
    services: Vec<WeightedService>,
    allow: Option<Vec<ipnet::IpNet>>,
    proxy_protocol: bool,
    tunnel_timeout: Option<Duration>,
    forwarded: ForwardedHeaders,
    policy: RoutePolicy,
    rule: Option<RulePolicy>,
}

impl Route {
    /// A clear-text route; `*.domain` is a wildcard.
    pub fn new(host: &str, path: &str) -> Route {
        let matched = match host.strip_prefix("*.") {
            Some(domain) => HostMatch::Wildcard(Hostname::parse(domain).unwrap()),
            None => HostMatch::Exact(Hostname::parse(host).unwrap()),
        };
        Route {
            name: format!("{host}{path}").replace(['/', '*'], "-"),
            host: matched,
            path: PathMatch::parse(path).unwrap(),
            passthrough: false,
            tls: false,
            insecure: None,
            certificate: None,
            reencrypt: None,
            services: Vec::new(),
            allow: None,
            proxy_protocol: false,
            tunnel_timeout: None,
            forwarded: ForwardedHeaders::default(),
            policy: RoutePolicy::default(),
            rule: None,
        }
    }

    pub fn to(self, address: SocketAddr) -> Route {
        self.service("app", &[address])
    }

    pub fn service(self, service: &str, addresses: &[SocketAddr]) -> Route {
        self.weighted(service, 100, addresses)
    }

    pub fn weighted(mut self, service: &str, weight: u16, addresses: &[SocketAddr]) -> Route {
        self.services.push(WeightedService {
            service: service.into(),
            port: None,
            weight: u32::from(weight),
            key: Some(key(addresses)),
            policy: None,
        });
        self
    }

    /// A route made from a rule of an HTTPRoute or TLSRoute.
    pub fn rule(mut self, rule: RulePolicy) -> Route {
        self.rule = Some(rule);
        self
    }

    /// A service of a rule, with its weight and policy.
    pub fn backend(mut self, service: &str, weight: u32, addresses: &[SocketAddr], policy: BackendPolicy) -> Route {
        self = self.service(service, addresses);
        if let Some(service) = self.services.last_mut() {
            (service.weight, service.policy) = (weight, Some(Arc::new(policy)));
        }
        self
    }

    /// The cluster of its services, for a mirror.
    pub fn cluster(&self) -> Cluster {
        Cluster { services: self.services.clone().into() }
    }

    /// Sets its policy.
    pub fn policy(mut self, policy: RoutePolicy) -> Route {
        self.policy = policy;
        self
    }

    /// Its endpoints speak HTTP/2 in clear text.
    pub fn h2c(mut self) -> Route {
        for service in &mut self.services {
            let mut key = EndpointsKey::clone(service.key.as_ref().expect("it has endpoints"));
            key.namespace = H2C.into();
            service.key = Some(Arc::new(key));
        }
        self
    }

    pub fn passthrough(mut self) -> Route {
        self.passthrough = true;
        self
    }

    pub fn edge(mut self, certificate: Option<&Arc<CertifiedKey>>) -> Route {
        self.tls = true;
        self.certificate = certificate.cloned().map(Certificate::from);
        self
    }

    pub fn reencrypt(self, destination_ca: Option<Arc<RootCertStore>>) -> Route {
        let mut route = self.edge(None);
        route.reencrypt = Some(Reencrypt { destination_ca: destination_ca.map(TrustRoots::from) });
        route
    }

    pub fn insecure(mut self, policy: InsecurePolicy) -> Route {
        self.insecure = Some(policy);
        self
    }

    pub fn allow(mut self, nets: &[&str]) -> Route {
        self.allow = Some(nets.iter().map(|net| net.parse().unwrap()).collect());
        self
    }

    /// Sends a PROXY v2 header to its endpoints.
    pub fn proxy_protocol(mut self) -> Route {
        self.proxy_protocol = true;
        self
    }

    pub fn tunnel_timeout(mut self, timeout: Duration) -> Route {
        self.tunnel_timeout = Some(timeout);
        self
    }

    pub fn forwarded(mut self, policy: ForwardedHeaders) -> Route {
        self.forwarded = policy;
        self
    }

    fn resolve(&self) -> ResolvedRoute {
        let kind = if self.passthrough {
            RouteKind::Passthrough { redirect: self.insecure == Some(InsecurePolicy::Redirect) }
        } else {
            let tls = self.tls.then(|| HttpTls {
                insecure: self.insecure.unwrap_or(InsecurePolicy::None),
                certificate: self.certificate.clone(),
                reencrypt: self.reencrypt.clone(),
            });
            RouteKind::Http { path: self.path.clone(), tls }
        };
        let mut id = RouteId::of_route("shop", self.name.as_str());
        if self.rule.is_some() {
            id.kind = if self.passthrough { Kind::TlsRoute } else { Kind::HttpRoute };
        }
        ResolvedRoute {
            id,
            host: self.host.clone(),
            kind,
            cluster: self.cluster(),
            rare: RareSettings { allow: self.allow.clone().map(Into::into), tunnel_timeout: self.tunnel_timeout }
                .boxed(),
            proxy_protocol: self.proxy_protocol,
            forwarded: self.forwarded,
            request_work: false,
            is_plain: false,
            relay_only: false,
            policy: Arc::new(self.policy.clone()),
            rule: self.rule.clone().map(Arc::new),
            derived: Default::default(),
        }
    }
}

/// A table with one router, named `default`.
pub fn table(routes: &[Route], default_certificate: Option<&Arc<CertifiedKey>>) -> Arc<RoutingTable> {
    let router = router("default", routes, default_certificate, (0, 0));
    of_routers(vec![router])
}

/// A table with these routers.
pub fn of_routers(routers: Vec<RouterTable>) -> Arc<RoutingTable> {
    let routers: Vec<Arc<RouterTable>> = routers.into_iter().map(Arc::new).collect();
    let mut endpoints = Endpoints::default();
    endpoints.follow(&[], &routers, found);
    Arc::new(RoutingTable { revision: 1, routers, endpoints })
}

/// The namespace of keys whose endpoints speak HTTP/2 in clear text.
const H2C: &str = "h2c";

/// A key that encodes its endpoints.
pub fn key(addresses: &[SocketAddr]) -> Arc<EndpointsKey> {
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let ports = PortChoice::Target(Some(addresses.join(" ").into()));
    Arc::new(EndpointsKey { namespace: "shop".into(), service: "app".into(), ports })
}

fn found(key: &EndpointsKey) -> Arc<[Endpoint]> {
    let PortChoice::Target(Some(addresses)) = &key.ports else { return Arc::default() };
    let addresses = addresses.split_whitespace().map(|address| address.parse().unwrap());
    addresses.map(|address| Endpoint { address, target: None, h2c: *key.namespace == *H2C }).collect()
}

/// The table with this as the policy of its routers.
pub fn under(policy: RouterPolicy, mut table: Arc<RoutingTable>) -> Arc<RoutingTable> {
    let policy = Arc::new(policy);
    for router in &mut Arc::get_mut(&mut table).expect("a table of one's own").routers {
        Arc::get_mut(router).expect("a router of one's own").policy = Arc::clone(&policy);
    }
    table
}

pub fn router(
    name: &str,
    routes: &[Route],
    default_certificate: Option<&Arc<CertifiedKey>>,
    (http_port, https_port): (u16, u16),
) -> RouterTable {
    let routes: Vec<Arc<ResolvedRoute>> = routes.iter().map(|route| Arc::new(route.resolve())).collect();
    let mut by_host: BTreeMap<HostMatch, Vec<Arc<ResolvedRoute>>> = BTreeMap::new();
    for route in &routes {
        by_host.entry(route.host.clone()).or_default().push(Arc::clone(route));
    }
    let mut hosts = HostIndex::default();
    for (host, mut routes) in by_host {
        routes.sort_by_key(|route| std::cmp::Reverse(route.path().len()));
        hosts.extend(vec![Arc::new(virtual_host(host, routes))]);
    }
    RouterTable {
        name: RouterName(name.into()),
        id: 1,
        domain: "apps.test".into(),
        http_port: Some(http_port),
        https_port: Some(https_port),
        default_certificate: default_certificate.cloned().map(Certificate::from),
        policy: Arc::default(),
        hosts,
        routes: routes.into_iter().collect(),
        common_allow: None,
    }
}

fn virtual_host(host: HostMatch, routes: Vec<Arc<ResolvedRoute>>) -> VirtualHost {
    let tls_of = |route: &Arc<ResolvedRoute>| match &route.kind {
        RouteKind::Http { tls, .. } => tls.as_ref().map(|tls| tls.certificate.clone()),
        RouteKind::Passthrough { .. } => None,
    };
    let is_passthrough = |route: &&Arc<ResolvedRoute>| matches!(route.kind, RouteKind::Passthrough { .. });
    VirtualHost {
        host,
        passthrough: routes.iter().find(is_passthrough).cloned(),
        terminated: routes.iter().filter(|route| tls_of(route).is_some()).cloned().collect(),
        certificate: routes.iter().find_map(|route| tls_of(route).flatten()),
        cleartext: routes.into(),
        rules: None,
    }
}

/// A proxy under test.
pub struct Rig {
    pub proxy: Proxy,
    pub tables: watch::Sender<Arc<RoutingTable>>,
    pub http: SocketAddr,
    pub https: SocketAddr,
}

impl Rig {
    /// A proxy on 127.0.0.1 that serves these routes, with the default certificate of the tests' CA.
    pub async fn serve(routes: &[Route]) -> Rig {
        let default = crate::pki::ca().leaf(&["*.apps.test"]);
        Rig::start(ProxyConfig::default(), table(routes, Some(&default))).await
    }

    pub async fn start(config: ProxyConfig, table: Arc<RoutingTable>) -> Rig {
        log::capture();
        let (tables, receiver) = watch::channel(table);
        let config = ProxyConfig { listen: vec![[127, 0, 0, 1].into()], ..config };
        let proxy = Proxy::start(config, receiver);
        let mut listeners = proxy.listeners();
        let bound =
            listeners.wait_for(|states| states.len() >= 2 && states.iter().all(|s| s.state == BindState::Bound));
        let states = Arc::clone(&tokio::time::timeout(PATIENCE, bound).await.expect("listeners").unwrap());
        let address = |protocol| states.iter().find(|s| s.protocol == protocol).unwrap().address;
        Rig { proxy, tables, http: address(Protocol::Http), https: address(Protocol::Https) }
    }
}

/// Polls a condition.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !holds().await {
        assert!(tokio::time::Instant::now() < deadline, "{what} does not come to hold");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
