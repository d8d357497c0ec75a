//! Hand-made host rules, as Gateway API and Contour objects produce them.

use std::net::SocketAddr;
use std::sync::Arc;

use router_model::certificate::Certificate;
use router_model::kind::Kind;
use router_model::names::{HostMatch, Hostname, PathMatch, RouteId};
use router_model::object::{ObjectKey, ObjectRef};
use router_table::matchers::{PathMatcher, RequestMatcher, ValueMatcher};
use router_table::path_form::PathForm;
use router_table::policy::tls_profile::TlsVersion;
use router_table::rule::{Action, HostRules, HostRulesTls, Rule, RulePolicy};
use router_table::table::{Cluster, ResolvedRoute, RouteKind, RoutingTable, VirtualHost, WeightedService};
use rustls::sign::CertifiedKey;

use crate::tables::{Route, key, of_routers, router};

/// A rule: its action and its requests.
#[derive(Clone)]
pub struct RuleOf {
    name: String,
    matcher: RequestMatcher,
    prefix: String,
    policy: RulePolicy,
    endpoints: Vec<SocketAddr>,
}

/// A rule for all requests under a path, of an object with this name.
pub fn rule(name: &str, prefix: &str) -> RuleOf {
    let matcher = RequestMatcher { path: PathMatcher::Prefix(prefix.into()), ..RequestMatcher::default() };
    let (name, prefix) = (name.to_owned(), prefix.to_owned());
    RuleOf { name, matcher, prefix, policy: RulePolicy::default(), endpoints: Vec::new() }
}

impl RuleOf {
    pub fn to(mut self, address: SocketAddr) -> RuleOf {
        self.endpoints.push(address);
        self
    }

    pub fn exact(mut self, path: &str) -> RuleOf {
        self.matcher.path = PathMatcher::Exact(path.into());
        self
    }

    pub fn method(mut self, method: &str) -> RuleOf {
        self.matcher.method = Some(method.into());
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> RuleOf {
        self.matcher.headers.push((name.into(), ValueMatcher::Exact(value.into())));
        self
    }

    pub fn query(mut self, name: &str, value: &str) -> RuleOf {
        self.matcher.query.push((name.into(), ValueMatcher::Exact(value.into())));
        self
    }

    pub fn doing(mut self, action: Action) -> RuleOf {
        self.policy.action = action;
        self
    }

    pub fn policy(mut self, policy: RulePolicy) -> RuleOf {
        self.policy = policy;
        self
    }

    fn made(&self) -> Arc<Rule> {
        let serves = RouteKind::Http { path: PathMatch::any(), tls: None };
        let route = route(Kind::HttpRoute, &self.name, HostMatch::Any, serves, &self.endpoints);
        let route = Arc::new(ResolvedRoute { rule: Some(Arc::new(self.policy.clone())), ..route });
        let origin = format!("HTTPRoute shop/{}/0", self.name).into();
        let (matcher, prefix) = (self.matcher.clone(), self.prefix.as_str().into());
        Arc::new(Rule { matcher, path_form: PathForm::AsSent, prefix, route, origin })
    }
}

fn route(kind: Kind, name: &str, host: HostMatch, serves: RouteKind, endpoints: &[SocketAddr]) -> ResolvedRoute {
    let key = Some(key(endpoints));
    let services = vec![WeightedService { service: "app".into(), port: None, weight: 1, key, policy: None }];
    ResolvedRoute {
        id: RouteId { kind, ..RouteId::of_route("shop", name) },
        host,
        kind: serves,
        cluster: Cluster { services: services.into() },
        rare: None,
        proxy_protocol: false,
        forwarded: Default::default(),
        request_work: false,
        is_plain: false,
        relay_only: false,
        policy: Arc::default(),
        rule: Some(Arc::default()),
        derived: Default::default(),
    }
}

/// Host rules of a host.
pub struct HostRulesOf {
    host: HostMatch,
    listener: &'static str,
    cleartext: Option<Vec<RuleOf>>,
    tls: Option<HostRulesTls>,
    passthrough: Option<SocketAddr>,
}

/// Host rules without rules; `*.domain` covers one label or more, `*` every host.
pub fn rules_for(host: &str) -> HostRulesOf {
    let host = match (host, host.strip_prefix("*.")) {
        ("*", _) => HostMatch::Any,
        (_, Some(domain)) => HostMatch::Suffix(Hostname::parse(domain).unwrap()),
        (name, None) => HostMatch::Exact(Hostname::parse(name).unwrap()),
    };
    HostRulesOf { host, listener: "Gateway shop/g#l", cleartext: None, tls: None, passthrough: None }
}

impl HostRulesOf {
    pub fn listener(mut self, listener: &'static str) -> HostRulesOf {
        self.listener = listener;
        self
    }

    pub fn cleartext(mut self, rules: &[RuleOf]) -> HostRulesOf {
        self.cleartext = Some(rules.to_vec());
        self
    }

    pub fn tls(mut self, certificates: &[&Arc<CertifiedKey>], rules: &[RuleOf]) -> HostRulesOf {
        let certificates = certificates.iter().map(|&key| Certificate::from(Arc::clone(key))).collect();
        let rules = rules.iter().map(RuleOf::made).collect();
        let shown_by = ObjectRef { kind: Kind::Gateway, key: ObjectKey::new("shop", "g") };
        self.tls = Some(HostRulesTls { shown_by, certificates, minimum: None, rules, tcp: None });
        self
    }

    /// Sets the minimum TLS version.
    pub fn minimum(mut self, minimum: TlsVersion) -> HostRulesOf {
        self.tls.as_mut().expect("TLS").minimum = Some(minimum);
        self
    }

    /// Forwards the terminated bytes to this address.
    pub fn tcp(mut self, address: SocketAddr) -> HostRulesOf {
        let serves = RouteKind::Passthrough { redirect: false };
        let route = route(Kind::TlsRoute, &format!("tcp-{}", self.host), self.host.clone(), serves, &[address]);
        self.tls.as_mut().expect("TLS").tcp = Some(Arc::new(route));
        self
    }

    /// Passes TLS through to this address.
    pub fn passthrough(mut self, address: SocketAddr) -> HostRulesOf {
        self.passthrough = Some(address);
        self
    }

    fn made(self) -> VirtualHost {
        let owner = ObjectRef { kind: Kind::HttpRoute, key: ObjectKey::new("shop", "owner") };
        let rules = |rules: Vec<RuleOf>| rules.iter().map(RuleOf::made).collect();
        let has_rules = self.cleartext.is_some() || self.tls.is_some();
        let host_rules = HostRules {
            owner,
            listener: self.listener.into(),
            cleartext_listener: None,
            cleartext: self.cleartext.map(rules),
            tls: self.tls,
        };
        let passthrough = self.passthrough.map(|address| {
            let serves = RouteKind::Passthrough { redirect: false };
            Arc::new(route(Kind::TlsRoute, &format!("tls-{}", self.host), self.host.clone(), serves, &[address]))
        });
        VirtualHost {
            host: self.host,
            passthrough,
            terminated: Default::default(),
            cleartext: Default::default(),
            certificate: None,
            rules: has_rules.then(|| Box::new(host_rules)),
        }
    }
}

/// A table with one router that has host rules beside Routes.
pub fn table(hosts: Vec<HostRulesOf>, routes: &[Route]) -> Arc<RoutingTable> {
    let default = crate::pki::ca().leaf(&["*.apps.test"]);
    let mut router = router("default", routes, Some(&default), (0, 0));
    let hosts: Vec<_> = hosts.into_iter().map(|host_rules| Arc::new(host_rules.made())).collect();
    let routes = hosts.iter().flat_map(|host| {
        let host_rules = host.rules.as_deref();
        let tls = host_rules.and_then(|host_rules| host_rules.tls.as_ref());
        let rules = host_rules
            .and_then(|host_rules| host_rules.cleartext.as_ref())
            .into_iter()
            .chain(tls.map(|tls| &tls.rules));
        let served = rules.flat_map(|rules| rules.iter()).map(|rule| &rule.route);
        served.chain(&host.passthrough).chain(tls.and_then(|tls| tls.tcp.as_ref()))
    });
    let routes: Vec<_> = routes.cloned().collect();
    router.routes.extend(routes);
    router.hosts.extend(hosts);
    of_routers(vec![router])
}
