//! Edges from child routes to slots, and whether a child may attach: what is the same wherever the parent is attached.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use router_api::gateway_api::types::{GROUP, GatewayRoute, ParentRef};
use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};

use super::slots::{Slot, SlotResolver};
use crate::gateway::inclusion::types::Context;

/// Why a child is not attached to a slot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
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

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Kind(message)
            | Refusal::NotAllowed(message)
            | Refusal::NoSection(message)
            | Refusal::Unsupported(_, message)
            | Refusal::Host(message)
            | Refusal::Filter(message)
            | Refusal::Match(message)
            | Refusal::Depth(message)
            | Refusal::Cycle(message) => f.write_str(message),
        }
    }
}

impl Refusal {
    /// The message for an object in another namespace; it must not reveal the route's content.
    pub fn without_content(&self) -> &str {
        match self {
            Refusal::Kind(message)
            | Refusal::NotAllowed(message)
            | Refusal::NoSection(message)
            | Refusal::Depth(message)
            | Refusal::Cycle(message) => message,
            Refusal::Unsupported(..) => "it asks for what is not supported",
            Refusal::Host(_) => "they have no hostname in common",
            Refusal::Filter(_) => "their filters cannot be combined in one rule",
            Refusal::Match(_) => "no request is like both",
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
    pub broken: BTreeSet<usize>,
    /// Routes that may not attach to a slot, with the slot's rule and the reason.
    pub refused: Vec<(usize, ObjectKey, Refusal)>,
}

/// An edge that fails wherever its parent is attached.
#[derive(Clone, Debug)]
pub struct Failed {
    /// Index in the child's `parentRefs`.
    pub reference: usize,
    /// Why.
    pub refusal: Refusal,
}

/// All edges.
pub struct Edges<'r> {
    /// True if the HTTPRoute CRD has `status.parents[].inclusions`.
    pub literal: bool,
    /// All routes.
    pub routes: BTreeMap<ObjectRef, &'r Arc<GatewayRoute>>,
    /// Parents by route: only routes that have a slot or that a child names.
    pub parents: BTreeMap<ObjectRef, ParentRoute<'r>>,
    /// By parent route: children, with the index of the `parentRefs` entry, where the parent leads to a Gateway of
    /// ours.
    pub children: BTreeMap<ObjectRef, Vec<(usize, ObjectRef)>>,
    /// By child: edges that fail wherever the parent is attached.
    pub failed: BTreeMap<ObjectRef, Vec<Failed>>,
}

impl<'r> Edges<'r> {
    /// Collects parents and children among all routes.
    pub fn new(context: &Context<'r>, slots: &SlotResolver<'r>) -> Self {
        let by_key: BTreeMap<ObjectRef, &'r Arc<GatewayRoute>> =
            routes(context.resources).map(|route| (reference_of(route), route)).collect();
        let mut edges = Edges {
            literal: slots.literal,
            routes: BTreeMap::new(),
            parents: BTreeMap::new(),
            children: BTreeMap::new(),
            failed: BTreeMap::new(),
        };
        let mut below: BTreeMap<ObjectRef, Vec<(&'r Arc<GatewayRoute>, usize)>> = BTreeMap::new();
        for route in by_key.values().copied() {
            for (i, reference) in route.parents.iter().enumerate() {
                if let Some(parent) = parent_of(route, reference).filter(|parent| by_key.contains_key(parent)) {
                    below.entry(parent).or_default().push((route, i));
                }
            }
            let found: Vec<_> = route.rules.iter().map(|rule| slots.slot(route, rule)).collect();
            if found.iter().any(|slot| !matches!(slot, Ok(None))) {
                let broken = found.iter().enumerate().filter(|(_, slot)| slot.is_err()).map(|(rule, _)| rule).collect();
                let slots = found.into_iter().map(|slot| slot.ok().flatten().map(|slot| (slot, Vec::new())));
                let parent = ParentRoute { slots: slots.collect(), broken, refused: Vec::new() };
                edges.parents.insert(reference_of(route), parent);
            }
        }
        let ours = reaching(context, &by_key, &below);
        for (parent, mut children) in below {
            if !ours.contains(&parent) {
                continue;
            }
            let Some(above) = by_key.get(&parent).copied() else { continue };
            // By age, so that precedence and messages do not depend on names alone.
            children.sort_by_key(|(child, i)| (child.meta.created, child.meta.key.clone(), child.kind, *i));
            for (child, i) in children {
                edges.children.entry(reference_of(child)).or_default().push((i, parent.clone()));
                let own = edges.parents.entry(parent.clone()).or_default();
                if let Err(refusal) = own.attach(context, slots, above, child, i) {
                    edges.failed.entry(reference_of(child)).or_default().push(Failed { reference: i, refusal });
                }
            }
        }
        edges.children.values_mut().for_each(|references| references.sort());
        edges.routes = by_key;
        edges
    }

    /// The route's slots and children; `None` if it is no parent.
    pub fn parent(&self, route: &GatewayRoute) -> Option<&ParentRoute<'r>> {
        self.parents.get(&reference_of(route))
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
    ) -> Result<(), Refusal> {
        let Some(reference) = child.parents.get(i) else { return Ok(()) };
        let key = &child.meta.key;
        let named = |(rule, _): &(usize, &mut Option<_>)| match &reference.section {
            Some(section) => above.rules.get(*rule).and_then(|rule| rule.name.as_ref()) == Some(section),
            None => true,
        };
        let refusal = if child.kind != above.kind {
            Some(Refusal::Kind(format!("{} cannot attach to {}", a(child.kind), a(above.kind))))
        } else if reference.port.is_some() {
            let message = "port of a parentRef that names a route; leave it out".to_owned();
            Some(Refusal::Unsupported("UnsupportedValue".to_owned(), message))
        } else {
            (context.refusal)(child).map(|(reason, message)| Refusal::Unsupported(reason, message))
        };
        let meant = self.slots.iter_mut().enumerate().filter(named);
        let mut meant: Vec<_> = meant.filter_map(|(rule, slot)| Some((rule, slot.as_mut()?))).collect();
        if refusal.is_none() {
            let admits = |slot: &Slot<'_>| slot.takes_own_kind && slots.admits(slot, above, &key.namespace);
            let mut found = false;
            for (_, (_, candidates)) in meant.iter_mut().filter(|(_, (slot, _))| admits(slot)) {
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
        let mut hearing: Vec<usize> = meant.iter().map(|(rule, _)| *rule).collect();
        let refusal = refusal.unwrap_or_else(|| not_taken(above, reference, child, !hearing.is_empty()));
        if hearing.is_empty() {
            let all = self.slots.iter().enumerate().filter(|(_, slot)| slot.is_some());
            hearing.extend(all.map(|(rule, _)| rule));
        }
        self.refused.extend(hearing.into_iter().map(|rule| (rule, key.clone(), refusal.clone())));
        Err(refusal)
    }
}

/// Refusal of a child that names no slot of the parent. `means_slots`: the parent has slots of the name that the child
/// gives. A child in another namespace gets no details: they would reveal the parent's rules.
fn not_taken(above: &GatewayRoute, reference: &ParentRef, child: &GatewayRoute, means_slots: bool) -> Refusal {
    let (parent, namespace) = (name(above), &child.meta.key.namespace);
    let is_own = *namespace == above.meta.key.namespace;
    match &reference.section {
        Some(section) if !is_own => {
            let message =
                format!("{parent} has no rule {section} that admits {} of namespace {namespace}", a(child.kind));
            Refusal::NotAllowed(message)
        }
        Some(section) if !means_slots && above.rules.iter().any(|rule| rule.name.as_ref() == Some(section)) => {
            Refusal::NoSection(format!("rule {section} of {parent} is no slot"))
        }
        Some(section) if !means_slots => Refusal::NoSection(format!("{parent} has no rule named {section}")),
        None if !means_slots => Refusal::NoSection(format!("{parent} has no slot")),
        _ => Refusal::NotAllowed(format!("{parent} admits no {} of namespace {namespace}", child.kind)),
    }
}

/// Routes with a chain of parents that leads to a Gateway of ours, whether they may attach or not.
fn reaching<'r>(
    context: &Context<'r>,
    by_key: &BTreeMap<ObjectRef, &'r Arc<GatewayRoute>>,
    below: &BTreeMap<ObjectRef, Vec<(&'r Arc<GatewayRoute>, usize)>>,
) -> BTreeSet<ObjectRef> {
    let on_gateway = |route: &GatewayRoute| {
        route
            .parents
            .iter()
            .filter_map(|parent| gateway_of(route, parent))
            .any(|key| context.gateways.contains_key(&key))
    };
    let root_routes = by_key.iter().filter(|(_, route)| on_gateway(route));
    let mut found: BTreeSet<_> = root_routes.map(|(key, _)| key.clone()).collect();
    let mut rest: Vec<_> = found.iter().cloned().collect();
    while let Some(next) = rest.pop() {
        for (child, _) in below.get(&next).into_iter().flatten() {
            let child = reference_of(child);
            if found.insert(child.clone()) {
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

/// The route as an object.
pub fn reference_of(route: &GatewayRoute) -> ObjectRef {
    ObjectRef { kind: route.kind, key: route.meta.key.clone() }
}

/// The route that a parentRef names, if it names one.
pub fn parent_of(route: &GatewayRoute, reference: &ParentRef) -> Option<ObjectRef> {
    let kinds = [Kind::HttpRoute, Kind::GrpcRoute, Kind::TlsRoute];
    let kind = kinds.into_iter().find(|kind| *reference.object.kind == *kind.name())?;
    (*reference.object.group == *GROUP).then(|| ObjectRef { kind, key: key_of(route, reference) })
}

/// The Gateway that a parentRef names, if it names one.
pub fn gateway_of(route: &GatewayRoute, reference: &ParentRef) -> Option<ObjectKey> {
    let is_gateway = *reference.object.group == *GROUP && *reference.object.kind == *Kind::Gateway.name();
    is_gateway.then(|| key_of(route, reference))
}

fn key_of(route: &GatewayRoute, reference: &ParentRef) -> ObjectKey {
    let namespace = reference.object.namespace.as_ref().unwrap_or(&route.meta.key.namespace);
    ObjectKey { namespace: namespace.clone(), name: reference.object.name.clone() }
}

/// A route in a message.
pub fn name(route: &GatewayRoute) -> String {
    route.meta.key.to_string()
}

/// A rule in a message: `shop/store#teams`, or by position when it has no name.
pub fn rule_name(route: &GatewayRoute, rule: usize) -> String {
    match route.rules.get(rule).and_then(|rule| rule.name.as_ref()) {
        Some(section) => format!("{}#{section}", route.meta.key),
        None => format!("{}[{rule}]", route.meta.key),
    }
}

fn a(kind: Kind) -> String {
    format!("{} {kind}", kind.article())
}
