//! Gateway API: translates GatewayClasses, Gateways, routes, grants and policies into host rules and statuses.
//!
//! `class` and `listeners` decide which ports and hostnames are served, `claims` which routes attach to which listener,
//! `inclusion` expands routes with slots into flat rules, `serve` and `rules` build the virtual hosts, and `status`
//! writes the conditions.

pub mod backend_payload;
pub mod backend_tls;
mod base;
mod claims;
pub mod class;
pub(crate) mod conditions;
mod domains;
pub mod gateway_state;
pub mod grants;
pub mod inclusion;
pub mod incremental;
pub(crate) mod listeners;
mod pattern_map;
pub mod references;
mod route_validity;
mod rules;
mod serve;
mod status;
mod tree_rules;
mod unserved;
mod written_parent;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use base::{GatewayBase, HostScope, ListenerAt};
use grants::Referrer;
use router_api::gateway_api::types::{Filter, GatewayRoute};
use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::names::HostMatch;
use router_model::object::{ObjectKey, ObjectRef};
use router_model::one_or_many::OneOrMany;
use router_model::parallel;
use router_table::host_pattern::HostPattern;
use router_table::table::VirtualHost;
use rules::Resolver;
pub use unserved::unserved;

use crate::endpoints::services::Services;
use crate::gateway::backend_payload::BackendPayload;
use crate::gateway::claims::AttachedRoute;
use crate::gateway::gateway_state::GatewayState;
use crate::gateway::inclusion::types::{
    Context, EffectiveRule, Expanded, Fragment, RootRoute, RuleOutcome, WalkResult,
};
use crate::gateway::route_validity::RouteValidity;
use crate::gateway::serve::{AttachedRules, Built, GatewayHosts};
use crate::gateway::tree_rules::{RouteRules, rules_by_route};
use crate::translator::Inputs;

/// A translation of Gateway API objects, before hosts that other APIs own are removed.
#[derive(Debug)]
pub struct GatewayTranslator {
    resources: Resources,
    base: Arc<GatewayBase>,
    attached: Vec<AttachedRoute>,
    /// What inclusion adds to statuses, by object.
    fragments: BTreeMap<ObjectRef, Fragment>,
    hosts: GatewayHosts,
    /// Validity of the routes with a parent of Sluice that have faults.
    faults: BTreeMap<ObjectRef, Box<RouteValidity>>,
    /// For each Service that a selected BackendTLSPolicy targets, the Gateways that send requests to it.
    services: HashMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// Hosts of included routes (attached to another route), with the listener of their root route.
    included: BTreeMap<ObjectRef, BTreeSet<(ListenerAt, HostPattern)>>,
    /// What is below each root route, in the order of [`root_routes`].
    walks: Vec<WalkResult>,
}

/// The results to compute; everything else that is needed for them is in the objects or in `known`.
pub struct Selection<'s> {
    /// The hosts to build.
    pub hosts: &'s HostScope,
    /// Objects whose status is needed.
    pub objects: &'s BTreeSet<ObjectRef>,
    /// Services that the BackendTLSPolicies target whose status is needed.
    pub services: &'s BTreeSet<ObjectKey>,
    /// True for a route whose effective rules the objects determine; false if they are in `known`, or not needed.
    pub is_complete: &'s dyn Fn(&ObjectRef) -> bool,
    /// Effective rules of other routes.
    pub known: Vec<(&'s Arc<GatewayRoute>, &'s RouteRules)>,
}

impl GatewayTranslator {
    /// Translates the routes and RouteSlots of `inputs`, as far as the result does not depend on other APIs. `None`:
    /// all results.
    pub fn new(inputs: &Inputs<'_>, base: &Arc<GatewayBase>, selection: Option<&Selection<'_>>) -> Self {
        let resources = inputs.resources;
        let services = Services::new(resources, inputs.endpoints);
        let GatewayBase { gateways, grants, .. } = &**base;
        let resolver = Resolver { resources, grants, services: &services, tls: &base.policies };

        let rejection = |route: &GatewayRoute| RouteValidity::rejection(resources, route);
        let attached = claims::attach(resources, gateways, &base.by_key, &rejection);
        let (root_routes, listeners) = root_routes(&attached, gateways);
        let max_depth = inputs.settings.max_inclusion_depth;
        let is_reported = |object: &ObjectRef| selection.is_none_or(|selection| selection.objects.contains(object));
        let (gateways, rejection) = (&base.by_key, &rejection);
        let context = Context { resources, max_depth, gateways, rejection, is_reported: &is_reported };
        let expanded = inclusion::expand(&context, &root_routes);

        let attached_rules = attached_rules(&root_routes, &listeners, &expanded.walks, selection);
        let hosts = GatewayHosts::new(base, &attached_rules, &resolver, selection.map(|selection| selection.hosts));
        let all_services = || base.policies.iter().flat_map(|policy| backend_tls::services(policy)).collect();
        let targeted = selection.map_or_else(all_services, |selection| selection.services.clone());
        let services = gateways_by_service(&attached_rules, base, targeted);
        let included = included(&listeners, &expanded.walks, &is_reported);
        let included_routes = expanded.fragments.keys().filter_map(|object| resources.gateway_route(object));
        let routes = attached.iter().map(|attached| &attached.route).chain(included_routes);
        let routes: Vec<_> = routes.filter(|route| is_reported(&route.object())).collect();
        let faults = parallel::map_all(&routes, |route| RouteValidity::faults(resources, route, &resolver));
        let faults =
            routes.into_iter().zip(faults).filter_map(|(route, faults)| Some((route.object(), faults?))).collect();
        let Expanded { walks, fragments } = expanded;
        let (resources, base) = (resources.clone(), Arc::clone(base));
        GatewayTranslator { resources, base, attached, fragments, hosts, faults, services, included, walks }
    }

    /// Moves the effective rules of the selected routes out of the translation. Also returns whether a
    /// limit of a walk applied (see [`WalkResult::is_limited`]).
    pub fn take_rules(&mut self, is_selected: &dyn Fn(&ObjectRef) -> bool) -> (BTreeMap<ObjectRef, RouteRules>, bool) {
        let walks = std::mem::take(&mut self.walks);
        let is_limited = walks.iter().any(|walk| walk.is_limited);
        let (root_routes, listeners) = root_routes(&self.attached, &self.base.gateways);
        let walks = listeners.into_iter().zip(&root_routes).zip(walks);
        (rules_by_route(walks, &self.fragments, is_selected), is_limited)
    }
}

/// The virtual host of the routing table.
fn virtual_host(host: HostMatch, built: Built) -> VirtualHost {
    VirtualHost {
        host,
        passthrough: built.passthrough,
        terminated: OneOrMany::default(),
        cleartext: OneOrMany::default(),
        certificate: None,
        rules: Some(built.host_rules),
    }
}

/// Routes attached to accepted listeners, each with its listener.
fn root_routes<'a>(
    attached: &'a [AttachedRoute],
    gateways: &'a [GatewayState],
) -> (Vec<RootRoute<'a>>, Vec<ListenerAt>) {
    let mut found = Vec::with_capacity(attached.len());
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
                    hosts: &attachment.hosts,
                };
                found.push((root_route, (parent.gateway, attachment.listener)));
            }
        }
    }
    found.into_iter().unzip()
}

/// Routes attached to each listener, deduplicated, with the selected rules; then those that are known.
fn attached_rules<'m>(
    root_routes: &'m [RootRoute<'m>],
    listeners: &[ListenerAt],
    walks: &'m [WalkResult],
    selection: Option<&Selection<'m>>,
) -> Vec<AttachedRules<'m>> {
    // All entries of a route are adjacent.
    let (mut last, mut seen): (Option<&GatewayRoute>, Vec<ListenerAt>) = (None, Vec::new());
    let mut is_first = |route: &'m GatewayRoute, at: ListenerAt| {
        if last.replace(route).is_none_or(|last| !std::ptr::eq(last, route)) {
            seen.clear();
        }
        let is_first = !seen.contains(&at);
        seen.push(at);
        is_first
    };
    let is_complete = |object: &ObjectRef| selection.is_none_or(|selection| (selection.is_complete)(object));
    let all = root_routes.iter().zip(listeners).zip(walks);
    let all = all.filter(|((root, at), _)| is_first(root.route, **at));
    let attached = all.map(|((root, at), walk)| {
        let is_selected =
            |rule: &&EffectiveRule| selection.is_none() || rule.leaf().is_some_and(|leaf| is_complete(&leaf.object()));
        let hosts = if is_complete(&root.route.object()) { root.hosts } else { &[] };
        let rules = walk.rules.iter().filter(is_selected).collect();
        AttachedRules { at: *at, route: root.route, hosts, rules, is_resolved: false }
    });
    let known = selection.iter().flat_map(|selection| &selection.known);
    let known = known.flat_map(|(route, rules)| rules.attached(route));
    attached.chain(known).collect()
}

/// For each of these Services, which BackendTLSPolicies target, the Gateways that send requests or mirrored requests to
/// it: the ancestors of the policies. Passthrough connections do not count, as they contain the client's own TLS; nor
/// does a Service that the route may not reference.
fn gateways_by_service(
    attached_rules: &[AttachedRules<'_>],
    base: &GatewayBase,
    targeted: BTreeSet<ObjectKey>,
) -> HashMap<ObjectKey, BTreeSet<ObjectKey>> {
    let mut services: HashMap<_, BTreeSet<_>> = targeted.into_iter().map(|it| (it, BTreeSet::new())).collect();
    if services.is_empty() {
        return services;
    }
    let protocol_of = |at: ListenerAt| base.listener(at)?.protocol;
    let receives_content =
        |one: &&AttachedRules<'_>| protocol_of(one.at).is_some_and(|it| it.payload() == BackendPayload::Content);
    for one in attached_rules.iter().filter(receives_content) {
        for rule in one.rules.iter().filter(|rule| rule.outcome == RuleOutcome::Serve) {
            let leaf = rule.leaf().and_then(|leaf| Some((&leaf.route, &leaf.rule()?.backends)));
            let backends = leaf.into_iter().flat_map(|(route, all)| all.iter().map(move |it| (route, &it.object)));
            let mirrors = rule.filters.iter().filter_map(|authored| match &authored.filter {
                Filter::Mirror(mirror) => Some((&authored.author, &mirror.object)),
                _ => None,
            });
            for (author, object) in backends.chain(mirrors) {
                let referrer = Referrer::new(author.kind, &author.meta.key);
                let service = rules::service_of(author, object)
                    .filter(|service| base.grants.allows(&referrer, Kind::Service, service));
                if let Some(found) = service.and_then(|service| services.get_mut(&service)) {
                    found.extend(base.gateways.get(one.at.0).map(|state| state.gateway.meta.key.clone()));
                }
            }
        }
    }
    services
}

/// Hosts of included routes (attached to another route) that are reported.
fn included(
    listeners: &[ListenerAt],
    walks: &[WalkResult],
    is_reported: &dyn Fn(&ObjectRef) -> bool,
) -> BTreeMap<ObjectRef, BTreeSet<(ListenerAt, HostPattern)>> {
    let mut included: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (at, walk) in listeners.iter().zip(walks) {
        let leaves = walk.rules.iter().filter(|rule| rule.levels.len() > 1).filter_map(EffectiveRule::leaf);
        for (object, leaf) in leaves.map(|leaf| (leaf.object(), leaf)).filter(|(object, _)| is_reported(object)) {
            let hosts = leaf.hosts.iter().map(|host| (*at, host.clone()));
            included.entry(object).or_default().extend(hosts);
        }
    }
    included
}
