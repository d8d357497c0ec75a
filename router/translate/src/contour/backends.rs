//! Resolves the services of a route to clusters, with their TLS and balancing.

use std::sync::Arc;

use router_api::contour::types::{ContourProxy, ServiceSpec, Strategy, Violation};
use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::names::Hostname;
use router_model::object::ObjectKey;
use router_table::header_modifier::HeaderModifier;
use router_table::host_pattern::HostPattern;
use router_table::policy::{Affinity, Balance, RoutePolicy};
use router_table::rule::backend_tls::SubjectName;
use router_table::rule::{BackendPolicy, BackendTls};
use router_table::table::WeightedService;

use super::tls;
use crate::endpoints::services::Services;

/// Why a service is not usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceProblem {
    /// The port number is invalid.
    Port,
    /// The Service, or its port, does not exist.
    Missing,
    /// The CA for upstream validation is missing or invalid.
    Ca,
    /// The subject name for upstream validation is missing or invalid.
    SubjectName,
    /// The service uses TLS without `validation`.
    Unverified,
}

impl ServiceProblem {
    /// The violation in the status of an IngressRoute.
    pub fn of_ingress_route(self, route: &str, service: &ServiceSpec) -> Violation {
        let ServiceSpec { name, port, .. } = service;
        let place = format!("route {route:?}: service {name:?}");
        Violation::new(
            "ServiceError",
            self.reason(),
            match self {
                ServiceProblem::Port => format!("{place}: port must be in the range 1-65535"),
                ServiceProblem::Missing => format!("Service [{name}:{port}] is invalid or missing"),
                ServiceProblem::Ca => {
                    format!("{place}: upstreamValidation requested but secret not found or misconfigured")
                }
                ServiceProblem::SubjectName => {
                    format!("{place}: upstreamValidation requested but subject alt name not found or misconfigured")
                }
                ServiceProblem::Unverified => {
                    format!("{place}: TLS without validation is not supported; add {VALIDATION}")
                }
            },
        )
    }

    /// The violation in the status of an HTTPProxy; `place` names its routes or its `tcpproxy`.
    pub fn of_http_proxy(self, place: &str, service: &ServiceSpec, namespace: &str) -> Violation {
        let ServiceSpec { name, port, .. } = service;
        let kind = if place == TCP { "TCPProxyError" } else { "ServiceError" };
        Violation::new(
            kind,
            self.reason(),
            match self {
                ServiceProblem::Port => format!("service {name:?}: port must be in the range 1-65535"),
                ServiceProblem::Missing => {
                    format!(
                        "{place} unresolved service reference: service \"{namespace}/{name}\" has no port {port}, or is \
                         missing"
                    )
                }
                ServiceProblem::Ca => format!(
                    "Service [{name}:{port}] TLS upstream validation policy error: secret not found or misconfigured"
                ),
                ServiceProblem::SubjectName => {
                    format!(
                        "Service [{name}:{port}] TLS upstream validation policy error: subject name not found or \
                         misconfigured"
                    )
                }
                ServiceProblem::Unverified => {
                    format!("Service [{name}:{port}] TLS without validation is not supported; add {VALIDATION}")
                }
            },
        )
    }

    fn reason(self) -> &'static str {
        match self {
            ServiceProblem::Port => "ServicePortInvalid",
            ServiceProblem::Missing => "ServiceUnresolvedReference",
            ServiceProblem::Ca | ServiceProblem::SubjectName => "TLSUpstreamValidation",
            ServiceProblem::Unverified => "UnsupportedField",
        }
    }
}

const VALIDATION: &str = "validation with caSecret and subjectName";
/// Name of an HTTPProxy's `tcpproxy` in messages.
pub const TCP: &str = "Spec.TCPProxy";

/// Resolves Services and CAs.
#[derive(Clone, Copy, Debug)]
pub struct Backends<'r> {
    pub resources: &'r Resources,
    pub services: Services<'r>,
}

impl Backends<'_> {
    /// A service of a proxy, with its weight as written.
    pub fn find(&self, proxy: &ContourProxy, service: &ServiceSpec) -> Result<WeightedService, ServiceProblem> {
        let port = u16::try_from(service.port).ok().filter(|port| *port > 0).ok_or(ServiceProblem::Port)?;
        let key = ObjectKey { namespace: Arc::clone(&proxy.meta.key.namespace), name: Arc::clone(&service.name) };
        let protocol = match &*service.protocol {
            "" => self.annotated(&key, port),
            written => Some(written),
        };
        let endpoints = self.services.key(&key, port, protocol == Some("h2c")).map_err(|_| ServiceProblem::Missing)?;
        let tls = match protocol {
            Some("tls" | "h2") => Some(self.verification(proxy, service)?),
            _ => None,
        };
        let policy = BackendPolicy {
            request_headers: modifier_list(&service.request_headers),
            response_headers: modifier_list(&service.response_headers),
            tls,
            health_check: service.health_check.clone(),
            ..BackendPolicy::default()
        };
        let is_plain = policy.tls.is_none()
            && policy.request_headers.is_empty()
            && policy.response_headers.is_empty()
            && policy.health_check.is_none();
        Ok(WeightedService {
            service: Arc::clone(&service.name),
            port: Some(port),
            weight: service.weight,
            key: Some(endpoints),
            policy: (!is_plain).then(|| Arc::new(policy)),
        })
    }

    /// The protocol of a port, from the annotations of its Service.
    fn annotated(&self, service: &ObjectKey, port: u16) -> Option<&'static str> {
        let protocols = self.resources.services.get(service)?.upstream_protocols.as_ref()?;
        protocols.of(&self.services.port_name(service, port).unwrap_or_default(), port)
    }

    fn verification(&self, proxy: &ContourProxy, service: &ServiceSpec) -> Result<BackendTls, ServiceProblem> {
        let (secret, names) = service.validation.as_ref().ok_or(ServiceProblem::Unverified)?;
        let found = tls::secret_for(secret, &proxy.meta.key.namespace, self.resources);
        let (_, secret) = found.map_err(|_| ServiceProblem::Ca)?;
        let roots = secret.and_then(|secret| secret.ca.clone()).ok_or(ServiceProblem::Ca)?;
        let names: Option<Vec<Hostname>> = names.iter().map(|name| Hostname::parse(name).ok()).collect();
        let names = names.ok_or(ServiceProblem::SubjectName)?;
        let server_name = names.first().ok_or(ServiceProblem::SubjectName)?;
        let subjects: Vec<_> = names.iter().cloned().map(HostPattern::Exact).map(SubjectName::Host).collect();
        BackendTls::new(server_name, Some(roots), &subjects).map_err(|_| ServiceProblem::SubjectName)
    }
}

/// Services with effective weights: those of non-zero weight, or all with equal weight if none has one.
pub fn weighted(mut services: Vec<WeightedService>) -> Vec<WeightedService> {
    if services.iter().all(|service| service.weight == 0) {
        services.iter_mut().for_each(|service| service.weight = 1);
    }
    services.retain(|service| service.weight > 0);
    services
}

/// The strategy of a route with these services: the common one of all services, or else weighted selection between
/// services, with each service's own strategy inside. `found` are the resolved services.
pub fn strategy(services: &[ServiceSpec], found: &mut [WeightedService]) -> Strategy {
    let strategies = || services.iter().map(|service| &service.strategy);
    let Some(first) = strategies().next() else { return Strategy::default() };
    if strategies().all(|other| other == first) {
        return first.clone();
    }
    for (service, own) in found.iter_mut().zip(strategies()) {
        let policy = service.policy.get_or_insert_default();
        Arc::make_mut(policy).balance = Some(own.balance);
    }
    let hash = strategies().find(|own| own.balance == Balance::Hash).map(|own| own.hash.clone());
    Strategy { hash: hash.unwrap_or_default(), ..Strategy::default() }
}

/// The policy of a route with this strategy, without the affinity cookie that Routes have.
pub fn policy(strategy: &Strategy) -> RoutePolicy {
    let affinity = Affinity { disabled: true, ..Affinity::default() };
    let Strategy { balance, hash } = strategy.clone();
    RoutePolicy { balance: Some(balance), hash, affinity, ..RoutePolicy::default() }
}

/// The modifier as a list; empty if it changes nothing.
pub fn modifier_list(modifier: &HeaderModifier) -> Vec<HeaderModifier> {
    if *modifier == HeaderModifier::default() { Vec::new() } else { vec![modifier.clone()] }
}

/// True if the proxy is an IngressRoute, whose statuses have a wording of their own.
pub fn is_ingress_route(proxy: &ContourProxy) -> bool {
    proxy.kind == Kind::IngressRoute
}
