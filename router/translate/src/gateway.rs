//! Gateway API: translates GatewayClasses, Gateways, routes, grants and policies into host rules and statuses.
//!
//! `class` and `listeners` decide what is listened on, `claims` which routes attach to which listener, `inclusion`
//! expands routes with slots into flat rules, `serve` and `rules` build the virtual hosts, and `status` writes the
//! conditions.

pub mod backend_payload;
pub mod backend_tls;
mod claims;
pub mod class;
pub(crate) mod conditions;
mod domains;
pub mod gateway_state;
pub mod grants;
pub mod inclusion;
pub(crate) mod listeners;
mod route_validity;
mod rules;
mod serve;
mod status;
mod unserved;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use backend_tls::BackendTlsPolicies;
use class::Classes;
use domains::DomainPatterns;
use grants::{Grants, Referrer};
use router_api::gateway_api::types::{Filter, Gateway, GatewayRoute};
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use router_model::one_or_many::OneOrMany;
use router_table::host_pattern::HostPattern;
use router_table::table::VirtualHost;
use rules::Resolver;
pub use unserved::unserved;

use crate::endpoints::services::Services;
use crate::gateway::backend_payload::BackendPayload;
use crate::gateway::claims::{AttachedRoute, seniority};
use crate::gateway::gateway_state::GatewayState;
use crate::gateway::inclusion::types::{Context, EffectiveRule, Expanded, RootRoute, RuleOutcome};
use crate::gateway::listeners::ports::Ports;
use crate::gateway::route_validity::RouteValidity;
use crate::gateway::serve::{AttachedRules, GatewayHosts, ListenerAt};
use crate::status::condition::Condition;
use crate::status::object_status::ObjectStatus;
use crate::translator::{ApiTranslation, HostClaim, Inputs, LostHosts, RouterPorts, Translator};

/// All decisions about Gateway API objects, except which hosts other APIs have won.
#[derive(Debug)]
pub struct GatewayTranslator<'r> {
    inputs: Inputs<'r>,
    classes: Classes,
    gateways: Vec<GatewayState<'r>>,
    /// Routers created for ports that no configured router has.
    made: Vec<RouterPorts>,
    attached: Vec<AttachedRoute<'r>>,
    expanded: Expanded,
    hosts: GatewayHosts,
    domains: DomainPatterns,
    /// Validity of every route with a parent that is ours.
    validity: BTreeMap<ObjectRef, RouteValidity>,
    /// Status of each BackendTLSPolicy.
    policies: BTreeMap<ObjectRef, ObjectStatus>,
    /// Hosts of included routes (attached to another route), with the listener of their root route.
    included: BTreeMap<ObjectRef, BTreeSet<(ListenerAt, HostPattern)>>,
}

impl<'r> GatewayTranslator<'r> {
    /// Decides everything that does not depend on other APIs.
    pub fn new(inputs: &Inputs<'r>) -> Self {
        let resources = inputs.resources;
        let grants = Grants::new(resources);
        let services = Services::new(resources, inputs.endpoints);
        let tls = BackendTlsPolicies::new(resources);
        let resolver = Resolver { grants: &grants, services: &services, tls: &tls };
        let classes = Classes::new(resources);
        let mut ports = Ports::new(inputs.routers);
        let gateways = gateways(inputs, &classes, &grants, &mut ports);
        let made: Vec<_> = ports.made().cloned().collect();

        let refusal = |route: &GatewayRoute| RouteValidity::refusal(resources, route);
        let attached = claims::attach(resources, &gateways, &refusal);
        let (root_routes, places) = root_routes(&attached, &gateways);
        let keys: BTreeSet<ObjectKey> = gateways.iter().map(|state| state.gateway.meta.key.clone()).collect();
        let max_depth = inputs.settings.max_inclusion_depth;
        let context = Context { resources, max_depth, gateways: &keys, refusal: &refusal };
        let expanded = inclusion::expand(&context, &root_routes);

        let attached_rules = attached_rules(&root_routes, &places, &expanded);
        let routers: Vec<_> = inputs.routers.iter().chain(&made).cloned().collect();
        let domains = DomainPatterns::new(&inputs.settings.domains);
        let hosts = GatewayHosts::new(&gateways, &attached_rules, &routers, &resolver, &domains);
        let services_of = services_of(&attached_rules, &gateways, &grants);
        let policies = tls.statuses(&|service| services_of.get(service).cloned().unwrap_or_default());
        let included = included(&attached_rules);
        let included_routes = expanded.fragments.keys().filter_map(|object| resources.gateway_route(object));
        let routes = attached.iter().map(|attached| attached.route).chain(included_routes);
        let validity = routes.map(|route| (route.object(), RouteValidity::new(resources, route, &resolver))).collect();
        GatewayTranslator {
            inputs: *inputs,
            classes,
            gateways,
            made,
            attached,
            expanded,
            hosts,
            domains,
            validity,
            policies,
            included,
        }
    }
}

impl Translator for GatewayTranslator<'_> {
    fn claims(&self) -> Vec<HostClaim> {
        let claim = |((router, host), built): (&(_, _), &serve::Built)| {
            let (router, host): (&router_model::names::RouterName, &router_model::names::HostMatch) = (router, host);
            HostClaim {
                router: router.clone(),
                host: host.clone(),
                owner: built.site.owner.clone(),
                age: built.age.clone(),
            }
        };
        self.hosts.built.iter().map(claim).collect()
    }

    fn translate(&self, lost: &LostHosts) -> ApiTranslation {
        let kept = self.hosts.built.iter().filter(|(key, _)| !lost.contains_key(key));
        let hosts = kept.map(|((router, host), built)| {
            let host = VirtualHost {
                host: host.clone(),
                passthrough: built.passthrough.clone(),
                terminated: OneOrMany::default(),
                cleartext: OneOrMany::default(),
                certificate: None,
                rules: Some(Box::new(built.site.clone())),
            };
            (router.clone(), host)
        });
        ApiTranslation {
            routers: self.made.clone(),
            hosts: hosts.collect(),
            statuses: self.statuses(lost),
            ..ApiTranslation::default()
        }
    }
}

/// Gateways of accepted classes, the oldest first, with their listeners placed on routers.
fn gateways<'r>(
    inputs: &Inputs<'r>,
    classes: &Classes,
    grants: &Grants,
    ports: &mut Ports<'r>,
) -> Vec<GatewayState<'r>> {
    let ours = inputs.resources.gateways.iter().filter_map(|gateway| Some((gateway, classes.accepts(&gateway.class)?)));
    let mut ours: Vec<_> = ours.collect();
    ours.sort_by(|(one, _), (other, _)| seniority(&one.meta, &other.meta));
    ours.into_iter()
        .map(|(gateway, is_class_good)| {
            let refusal = refusal(gateway, is_class_good, inputs);
            let listeners = listeners::place(gateway, refusal.is_some(), inputs, grants, ports);
            GatewayState { gateway, refusal, listeners }
        })
        .collect()
}

/// Condition `Accepted` of a Gateway that is rejected as a whole; `None` if it is accepted.
fn refusal(gateway: &Gateway, is_class_good: bool, inputs: &Inputs<'_>) -> Option<Condition> {
    let refused = |reason: &str, message: String| Some(Condition::new("Accepted", false, reason, message));
    if !is_class_good {
        return refused("Pending", format!("GatewayClass {} is not accepted", gateway.class));
    }
    if gateway.has_parameters {
        let message = "spec.infrastructure.parametersRef: no kind of parameters is known; remove the field";
        return refused("InvalidParameters", message.to_owned());
    }
    if !gateway.unsupported.is_empty() {
        return refused("Invalid", gateway.unsupported.join("; "));
    }
    let is_ours = |(kind, value): &&(Arc<str>, Arc<str>)| {
        let is_own = || value.parse().is_ok_and(|address| inputs.addresses.contains(&address));
        **kind == *"IPAddress" && (value.is_empty() || is_own())
    };
    let foreign: Vec<_> = gateway.addresses.iter().filter(|address| !is_ours(address)).collect();
    if foreign.is_empty() {
        return None;
    }
    let foreign: Vec<_> = foreign.iter().map(|(kind, value)| format!("{kind} {value}")).collect();
    let own: Vec<_> = inputs.addresses.iter().map(ToString::to_string).collect();
    let message = format!(
        "spec.addresses: not addresses of this router: {}; it has {}",
        foreign.join(", "),
        if own.is_empty() { "none that is known".to_owned() } else { own.join(", ") }
    );
    refused("UnsupportedAddress", message)
}

/// Routes attached to listeners that are served, with the index of each listener.
fn root_routes<'a>(
    attached: &'a [AttachedRoute<'_>],
    gateways: &'a [GatewayState<'_>],
) -> (Vec<RootRoute<'a>>, Vec<ListenerAt>) {
    let mut found = Vec::new();
    for AttachedRoute { route, parents } in attached {
        for parent in parents {
            let Some(state) = gateways.get(parent.gateway) else { continue };
            for attachment in &parent.attachments {
                let Some(placed) = state.listeners.get(attachment.listener).filter(|placed| placed.router.is_some())
                else {
                    continue;
                };
                let root_route = RootRoute {
                    gateway: &state.gateway.meta.key,
                    section: Arc::clone(&placed.listener.name),
                    route,
                    parent: parent.index,
                    hosts: attachment.hosts.clone(),
                };
                found.push((root_route, (parent.gateway, attachment.listener)));
            }
        }
    }
    found.into_iter().unzip()
}

/// Routes attached to each listener, deduplicated.
fn attached_rules<'m>(
    root_routes: &'m [RootRoute<'m>],
    places: &[ListenerAt],
    expanded: &'m Expanded,
) -> Vec<AttachedRules<'m>> {
    let mut seen: HashSet<(ListenerAt, Kind, &ObjectKey)> = HashSet::new();
    let all = root_routes.iter().zip(places).zip(&expanded.rules);
    all.filter(|((root_route, at), _)| seen.insert((**at, root_route.route.kind, &root_route.route.meta.key)))
        .map(|((root_route, at), rules)| AttachedRules { at: *at, root_route, rules })
        .collect()
}

/// For each Service, the Gateways that send requests or mirrored requests to it: the ancestors of its
/// BackendTLSPolicies. Passthrough connections do not count, as they carry the client's own TLS; nor does a Service
/// that the route may not reference.
fn services_of(
    attached_rules: &[AttachedRules<'_>],
    gateways: &[GatewayState<'_>],
    grants: &Grants,
) -> HashMap<ObjectKey, BTreeSet<ObjectKey>> {
    let mut services: HashMap<_, BTreeSet<_>> = HashMap::new();
    let protocol_of = |at: ListenerAt| gateways.get(at.0)?.listeners.get(at.1)?.protocol;
    let sees_content =
        |one: &&AttachedRules<'_>| protocol_of(one.at).is_some_and(|it| it.carried() == BackendPayload::Content);
    for one in attached_rules.iter().filter(sees_content) {
        for rule in one.rules.iter().filter(|rule| rule.outcome == RuleOutcome::Serve) {
            let leaf = rule.leaf().and_then(|leaf| Some((&leaf.route, &leaf.rule()?.backends)));
            let backends = leaf.into_iter().flat_map(|(route, all)| all.iter().map(move |it| (route, &it.object)));
            let mirrors = rule.filters.iter().filter_map(|authored| match &authored.filter {
                Filter::Mirror(mirror) => Some((&authored.author, &mirror.object)),
                _ => None,
            });
            for (author, object) in backends.chain(mirrors) {
                let referrer = Referrer::of(author.kind, &author.meta.key);
                let service = rules::service_of(author, object)
                    .filter(|service| grants.allows(&referrer, Kind::Service, service));
                if let Some(service) = service {
                    services.entry(service).or_default().insert(one.root_route.gateway.clone());
                }
            }
        }
    }
    services
}

/// Hosts of included routes (attached to another route).
fn included(attached_rules: &[AttachedRules<'_>]) -> BTreeMap<ObjectRef, BTreeSet<(ListenerAt, HostPattern)>> {
    let mut included: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for one in attached_rules {
        let leaves = one.rules.iter().filter(|rule| rule.levels.len() > 1).filter_map(EffectiveRule::leaf);
        for leaf in leaves {
            let hosts = leaf.hosts.iter().map(|host| (one.at, host.clone()));
            included.entry(leaf.object()).or_default().extend(hosts);
        }
    }
    included
}
