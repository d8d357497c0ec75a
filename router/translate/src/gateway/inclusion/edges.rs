//! Edges from child routes to slots, and whether a child may attach, as far as that does not depend on the parent's own
//! attachments.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use router_api::gateway_api::types::{GROUP, GatewayRoute, ParentRef};
use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};

use super::slots::{Slot, SlotResolver, may_be_slot};
use crate::gateway::inclusion::types::Context;

/// Why a child is not attached to a slot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChildRejection {
    /// The child is of another kind than the parent.
    Kind(String),
    /// The slot does not admit the child's namespace or kind.
    NotAllowed(String),
    /// `sectionName` names no rule with a slot, or the parent has no slot.
    NoSection(String),
    /// The child has an unsupported value: reason and message of `Accepted`.
    Unsupported(String, String),
    /// The hosts of the child and the slot do not intersect.
    Host(String),
    /// The filters of parent and child conflict in one rule.
    Filter(String),
    /// No request can match both parent and child.
    Match(String),
    /// The child exceeds the maximum depth below the listener.
    Depth(String),
    /// The child is its own ancestor.
    Cycle(String),
}

impl fmt::Display for ChildRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChildRejection::Kind(message)
            | ChildRejection::NotAllowed(message)
            | ChildRejection::NoSection(message)
            | ChildRejection::Unsupported(_, message)
            | ChildRejection::Host(message)
            | ChildRejection::Filter(message)
            | ChildRejection::Match(message)
            | ChildRejection::Depth(message)
            | ChildRejection::Cycle(message) => f.write_str(message),
        }
    }
}

impl ChildRejection {
    /// The message for the status of an object in another namespace; must not reveal the route's content.
    pub fn without_content(&self) -> &str {
        match self {
            ChildRejection::Kind(message)
            | ChildRejection::NotAllowed(message)
            | ChildRejection::NoSection(message)
            | ChildRejection::Depth(message)
            | ChildRejection::Cycle(message) => message,
            ChildRejection::Unsupported(..) => "it asks for what is not supported",
            ChildRejection::Host(_) => "they have no hostname in common",
            ChildRejection::Filter(_) => "their filters cannot be combined in one rule",
            ChildRejection::Match(_) => "no request is like both",
        }
    }
}

/// A route that may attach to a slot.
#[derive(Clone, Debug)]
pub struct ChildCandidate<'r> {
    /// The route.
    pub route: &'r Arc<GatewayRoute>,
    /// Indices of its `parentRefs` that name the slot.
    pub references: Vec<usize>,
}

/// A route that has slots, or that a child names as parent.
#[derive(Debug, Default)]
pub struct ParentRoute<'r> {
    /// For each rule: its slot, if any, and the candidates, the oldest first.
    pub slots: Vec<Option<(Slot<'r>, Vec<ChildCandidate<'r>>)>>,
    /// Rules that are invalid slots.
    pub invalid: BTreeSet<usize>,
    /// Routes that may not attach to a slot, with the slot's rule and the reason.
    pub rejected: Vec<(usize, ObjectKey, ChildRejection)>,
}

/// An edge that fails for every attachment of its parent.
#[derive(Clone, Debug)]
pub struct FailedEdge {
    /// Index in the child's `parentRefs`.
    pub reference: usize,
    /// Why it fails.
    pub rejection: ChildRejection,
}

/// All edges.
pub struct Edges<'r> {
    /// True if the HTTPRoute CRD has the fields `allowedRoutes` and `status.parents[].inclusions`.
    pub has_inclusion_fields: bool,
    /// Parents by route: only routes that have a slot or that a child references.
    pub parents: BTreeMap<ObjectRef, ParentRoute<'r>>,
    /// By child: its parent routes, with the index of the `parentRefs` entry; only parents that a Gateway of Sluice
    /// reaches.
    pub children: BTreeMap<ObjectRef, Vec<(usize, ObjectRef)>>,
    /// By child: edges that fail for every attachment of the parent.
    pub failed: BTreeMap<ObjectRef, Vec<FailedEdge>>,
}

impl<'r> Edges<'r> {
    /// Collects parents and children among all routes.
    pub fn new(context: &Context<'r>, slots: &SlotResolver<'r>) -> Self {
        let mut edges = Edges {
            has_inclusion_fields: slots.has_inclusion_fields,
            parents: BTreeMap::new(),
            children: BTreeMap::new(),
            failed: BTreeMap::new(),
        };
        let mut children_of: BTreeMap<ObjectRef, Vec<(&'r Arc<GatewayRoute>, usize)>> = BTreeMap::new();
        for route in routes(context.resources) {
            for (i, reference) in route.parents.iter().enumerate() {
                let exists = |parent: &ObjectRef| context.resources.gateway_route(parent).is_some();
                if let Some(parent) = parent_of(route, reference).filter(exists) {
                    children_of.entry(parent).or_default().push((route, i));
                }
            }
            // Most routes have none.
            if route.rules.iter().any(may_be_slot) {
                let found: Vec<_> = route.rules.iter().map(|rule| slots.slot(route, rule)).collect();
                if found.iter().all(|slot| matches!(slot, Ok(None))) {
                    continue;
                }
                let invalid =
                    found.iter().enumerate().filter(|(_, slot)| slot.is_err()).map(|(rule, _)| rule).collect();
                let slots = found.into_iter().map(|slot| slot.ok().flatten().map(|slot| (slot, Vec::new())));
                let parent = ParentRoute { slots: slots.collect(), invalid, rejected: Vec::new() };
                edges.parents.insert(route.object(), parent);
            }
        }
        let reachable = reachable_parents(context, &children_of);
        for (parent, mut children) in children_of {
            if !reachable.contains(&parent) {
                continue;
            }
            let Some(above) = context.resources.gateway_route(&parent) else { continue };
            // By age, so that precedence and messages do not depend on names alone.
            children.sort_by_key(|(child, i)| (child.meta.created, child.meta.key.clone(), child.kind, *i));
            for (child, i) in children {
                edges.children.entry(child.object()).or_default().push((i, parent.clone()));
                let own = edges.parents.entry(parent.clone()).or_default();
                if let Err(rejection) = own.attach(context, slots, above, child, i) {
                    edges.failed.entry(child.object()).or_default().push(FailedEdge { reference: i, rejection });
                }
            }
        }
        edges.children.values_mut().for_each(|references| references.sort());
        edges
    }

    /// The route's slots and children; `None` if it is not a parent.
    pub fn parent(&self, route: &GatewayRoute) -> Option<&ParentRoute<'r>> {
        self.parents.get(&route.object())
    }
}

impl<'r> ParentRoute<'r> {
    fn attach(
        &mut self,
        context: &Context<'r>,
        slots: &SlotResolver<'r>,
        above: &GatewayRoute,
        child: &'r Arc<GatewayRoute>,
        i: usize,
    ) -> Result<(), ChildRejection> {
        let Some(reference) = child.parents.get(i) else { return Ok(()) };
        let key = &child.meta.key;
        let is_named = |(rule, _): &(usize, &mut Option<_>)| match &reference.section {
            Some(section) => above.rules.get(*rule).and_then(|rule| rule.name.as_ref()) == Some(section),
            None => true,
        };
        let rejection = if child.kind != above.kind {
            Some(ChildRejection::Kind(format!(
                "{} cannot attach to {}",
                with_article(child.kind),
                with_article(above.kind)
            )))
        } else if reference.port.is_some() {
            let message = "port of a parentRef that names a route; leave it out".to_owned();
            Some(ChildRejection::Unsupported("UnsupportedValue".to_owned(), message))
        } else {
            (context.rejection)(child).map(|(reason, message)| ChildRejection::Unsupported(reason, message))
        };
        let named_slots = self.slots.iter_mut().enumerate().filter(is_named);
        let mut named_slots: Vec<_> = named_slots.filter_map(|(rule, slot)| Some((rule, slot.as_mut()?))).collect();
        if rejection.is_none() {
            let admits = |slot: &Slot<'_>| slot.admits_own_kind && slots.admits(slot, above, &key.namespace);
            let mut found = false;
            for (_, (_, candidates)) in named_slots.iter_mut().filter(|(_, (slot, _))| admits(slot)) {
                found = true;
                // Edges are sorted by child, so a repeated child can only be the last one.
                match candidates.last_mut() {
                    Some(known) if known.route.meta.key == *key => known.references.push(i),
                    _ => candidates.push(ChildCandidate { route: child, references: vec![i] }),
                }
            }
            if found {
                return Ok(());
            }
        }
        let mut reporting_rules: Vec<usize> = named_slots.iter().map(|(rule, _)| *rule).collect();
        let rejection = rejection.unwrap_or_else(|| not_admitted(above, reference, child, !reporting_rules.is_empty()));
        if reporting_rules.is_empty() {
            let all = self.slots.iter().enumerate().filter(|(_, slot)| slot.is_some());
            reporting_rules.extend(all.map(|(rule, _)| rule));
        }
        self.rejected.extend(reporting_rules.into_iter().map(|rule| (rule, key.clone(), rejection.clone())));
        Err(rejection)
    }
}

/// Why the parent does not admit a child that no slot accepts. `names_slot`: the child's reference selects a slot. A
/// child in another namespace gets no details, as they would reveal the parent's rules.
fn not_admitted(above: &GatewayRoute, reference: &ParentRef, child: &GatewayRoute, names_slot: bool) -> ChildRejection {
    let (parent, namespace) = (route_name(above), &child.meta.key.namespace);
    let is_own = *namespace == above.meta.key.namespace;
    match &reference.section {
        Some(section) if !is_own => {
            let message = format!(
                "{parent} has no rule {section} that admits {} of namespace {namespace}",
                with_article(child.kind)
            );
            ChildRejection::NotAllowed(message)
        }
        Some(section) if !names_slot && above.rules.iter().any(|rule| rule.name.as_ref() == Some(section)) => {
            ChildRejection::NoSection(format!("rule {section} of {parent} is no slot"))
        }
        Some(section) if !names_slot => ChildRejection::NoSection(format!("{parent} has no rule named {section}")),
        None if !names_slot => ChildRejection::NoSection(format!("{parent} has no slot")),
        _ => ChildRejection::NotAllowed(format!("{parent} admits no {} of namespace {namespace}", child.kind)),
    }
}

/// Routes with children and a chain of parents up to a Gateway of Sluice, whether or not they may attach.
fn reachable_parents<'r>(
    context: &Context<'r>,
    children_of: &BTreeMap<ObjectRef, Vec<(&'r Arc<GatewayRoute>, usize)>>,
) -> BTreeSet<ObjectRef> {
    let is_root = |route: &Arc<GatewayRoute>| {
        route
            .parents
            .iter()
            .filter_map(|parent| gateway_of(route, parent))
            .any(|key| context.gateways.contains_key(&key))
    };
    let root_routes = children_of.keys().filter(|parent| context.resources.gateway_route(parent).is_some_and(is_root));
    let mut found: BTreeSet<_> = root_routes.cloned().collect();
    let mut rest: Vec<_> = found.iter().cloned().collect();
    while let Some(next) = rest.pop() {
        for (child, _) in children_of.get(&next).into_iter().flatten() {
            let child = child.object();
            if children_of.contains_key(&child) && found.insert(child.clone()) {
                rest.push(child);
            }
        }
    }
    found
}

/// All routes of the three kinds.
pub fn routes(resources: &Resources) -> impl Iterator<Item = &Arc<GatewayRoute>> {
    let Resources { http_routes, grpc_routes, tls_routes, .. } = resources;
    http_routes.iter().chain(grpc_routes.iter()).chain(tls_routes.iter())
}

/// The route that a `parentRefs` entry names; `None` if it names another kind.
pub fn parent_of(route: &GatewayRoute, reference: &ParentRef) -> Option<ObjectRef> {
    let kinds = [Kind::HttpRoute, Kind::GrpcRoute, Kind::TlsRoute];
    let kind = kinds.into_iter().find(|kind| *reference.object.kind == *kind.name())?;
    (*reference.object.group == *GROUP).then(|| ObjectRef { kind, key: key_of(route, reference) })
}

/// The Gateway that a `parentRefs` entry names; `None` if it names another kind.
pub fn gateway_of(route: &GatewayRoute, reference: &ParentRef) -> Option<ObjectKey> {
    let is_gateway = *reference.object.group == *GROUP && *reference.object.kind == *Kind::Gateway.name();
    is_gateway.then(|| key_of(route, reference))
}

fn key_of(route: &GatewayRoute, reference: &ParentRef) -> ObjectKey {
    let namespace = reference.object.namespace.as_ref().unwrap_or(&route.meta.key.namespace);
    ObjectKey { namespace: namespace.clone(), name: reference.object.name.clone() }
}

/// A route in a message.
pub fn route_name(route: &GatewayRoute) -> String {
    route.meta.key.to_string()
}

/// A rule in a message: `shop/store#teams`, or `shop/store[0]` if it has no name.
pub fn rule_name(route: &GatewayRoute, rule: usize) -> String {
    match route.rules.get(rule).and_then(|rule| rule.name.as_ref()) {
        Some(section) => format!("{}#{section}", route.meta.key),
        None => format!("{}[{rule}]", route.meta.key),
    }
}

fn with_article(kind: Kind) -> String {
    format!("{} {kind}", kind.article())
}
