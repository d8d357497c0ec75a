//! Writes `inclusions` of parents and RouteSlots: the children attached to each slot under each listener.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_api::gateway_api::types::{GROUP, GatewayRoute};
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use serde_json::{Map, Value, json};

use super::super::edges::{ChildRejection, Edges, ParentRoute, gateway_of};
use super::super::slots::Slot;
use super::super::walk::InclusionPath;
use crate::gateway::conditions::conditions as written;
use crate::gateway::inclusion::status::wording::MAX_NAMES;
use crate::gateway::inclusion::types::{Context, Fragment, RootRoute};
use crate::gateway::written_parent::WrittenParent;
use crate::settings::MaxDepth;
use crate::status::condition::Condition;

/// A listener: Gateway and name.
type ListenerKey = (ObjectKey, String);

/// Children of one slot, under one or more listeners.
#[derive(Clone, Debug, Default)]
struct SlotChildren {
    /// The parent's namespace.
    namespace: Arc<str>,
    attached: BTreeSet<ObjectRef>,
    rejected: BTreeSet<(ObjectKey, ChildRejection)>,
}

/// Children of all slots.
pub struct AttachedChildren<'e> {
    edges: &'e Edges<'e>,
    max_depth: MaxDepth,
    /// By parent: the listeners that reach it.
    roots: BTreeMap<ObjectRef, BTreeSet<ListenerKey>>,
    /// By parent and index in `parentRefs`: the listeners that the entry attaches it to.
    direct: BTreeMap<(ObjectRef, usize), BTreeSet<ListenerKey>>,
    by_slot: BTreeMap<(ObjectRef, usize), BTreeMap<ListenerKey, SlotChildren>>,
}

impl<'e> AttachedChildren<'e> {
    /// Collects the results of a walk.
    pub fn new(
        context: &Context<'_>,
        edges: &'e Edges<'e>,
        root_routes: &[RootRoute<'_>],
        paths: &[InclusionPath<'_>],
    ) -> Self {
        let mut attached_children = AttachedChildren {
            edges,
            max_depth: context.max_depth,
            roots: BTreeMap::new(),
            direct: BTreeMap::new(),
            by_slot: BTreeMap::new(),
        };
        let root_of = |root_route: &RootRoute<'_>| (root_route.gateway.clone(), root_route.section.to_string());
        for root_route in root_routes.iter().filter(|root_route| edges.parent(root_route.route).is_some()) {
            let route = root_route.route.object();
            attached_children.roots.entry(route.clone()).or_default().insert(root_of(root_route));
            attached_children.direct.entry((route, root_route.parent)).or_default().insert(root_of(root_route));
        }
        for path in paths {
            let (Some(root_route), Some((parent, rule))) = (root_routes.get(path.root_route), path.slots.last()) else {
                continue;
            };
            let root = root_of(root_route);
            if path.result.is_ok() && edges.parent(path.child).is_some() {
                attached_children.roots.entry(path.child.object()).or_default().insert(root.clone());
            }
            let slot = attached_children.by_slot.entry((parent.object(), *rule)).or_default();
            let children = slot.entry(root).or_default();
            match &path.result {
                Ok(_) => drop(children.attached.insert(path.child.object())),
                Err(rejection) => drop(children.rejected.insert((path.child.meta.key.clone(), rejection.clone()))),
            }
        }
        attached_children
    }

    /// Writes `inclusions` for parents' own `parentRefs` and for the RouteSlots that they name.
    pub fn write(&self, context: &Context<'_>, fragments: &mut BTreeMap<ObjectRef, Fragment>) {
        for (reference, parent) in self.edges.parents.iter().filter(|(route, _)| (context.is_reported)(route)) {
            let Some(route) = context.resources.gateway_route(reference) else { continue };
            if self.has_field(route) {
                for (i, entries) in self.inclusions_of_references(route, parent) {
                    fragments.entry(reference.clone()).or_default().inclusions.insert(i, entries);
                }
            }
            for (rule, slot) in slots(parent) {
                let Some(key) = &slot.object else { continue };
                let generation = context.resources.route_slots.get(key).map_or(0, |slot| slot.meta.generation);
                for root in self.roots.get(reference).into_iter().flatten() {
                    let mut entry = Map::new();
                    let listener = WrittenParent::listener(&key.namespace, &root.0, &root.1);
                    entry.insert("parentRef".to_owned(), json!(listener));
                    let (kind, name) = (route.kind.name(), &*route.meta.key.name);
                    entry.insert("routeRef".to_owned(), json!({ "group": GROUP, "kind": kind, "name": name }));
                    entry.extend(self.entry(route, parent, rule, slot, &[root], generation));
                    let written = &mut fragments.entry(reference.clone()).or_default().slots;
                    written.entry(key.clone()).or_default().push(Value::Object(entry));
                }
            }
        }
    }

    /// `inclusions` for a listener that reaches a route; `None` if the route has no slot or the CRD lacks the field.
    pub fn inclusions_of_listener(&self, route: &GatewayRoute, gateway: &ObjectKey, section: &str) -> Option<Value> {
        let parent = self.edges.parent(route).filter(|_| self.has_field(route))?;
        let root = (gateway.clone(), section.to_owned());
        let attaches = self.roots.get(&route.object()).is_some_and(|roots| roots.contains(&root));
        let roots: Vec<_> = [&root].into_iter().filter(|_| attaches).collect();
        self.entries(route, parent, &roots)
    }

    /// `inclusions` for those of a route's own `parentRefs` that name Gateways.
    fn inclusions_of_references(&self, route: &GatewayRoute, parent: &ParentRoute<'_>) -> Vec<(usize, Value)> {
        let key = route.object();
        let references = route.parents.iter().enumerate();
        let gateways = references.filter_map(|(i, reference)| Some((i, reference, gateway_of(route, reference)?)));
        let entries = gateways.filter_map(|(i, reference, gateway)| {
            let direct = self.direct.get(&(key.clone(), i));
            // A listener named by `sectionName` also lists children that it reaches through other routes.
            let named = self.roots.get(&key).into_iter().flatten().filter(|(known, section)| {
                reference.section.as_deref() == Some(section) && reference.port.is_none() && *known == gateway
            });
            let roots: BTreeSet<&ListenerKey> = direct.into_iter().flatten().chain(named).collect();
            let roots: Vec<_> = roots.into_iter().collect();
            Some((i, self.entries(route, parent, &roots)?))
        });
        entries.collect()
    }

    fn has_field(&self, route: &GatewayRoute) -> bool {
        self.edges.has_inclusion_fields && route.kind == Kind::HttpRoute
    }

    /// An entry for each slot; `None` if there is none.
    fn entries(&self, route: &GatewayRoute, parent: &ParentRoute<'_>, roots: &[&ListenerKey]) -> Option<Value> {
        let generation = route.meta.generation;
        let entries: Vec<_> = slots(parent)
            .map(|(rule, slot)| Value::Object(self.entry(route, parent, rule, slot, roots, generation)))
            .collect();
        (!entries.is_empty()).then_some(Value::Array(entries))
    }

    fn entry(
        &self,
        route: &GatewayRoute,
        parent: &ParentRoute<'_>,
        rule: usize,
        slot: &Slot<'_>,
        roots: &[&ListenerKey],
        generation: i64,
    ) -> Map<String, Value> {
        let mut children = SlotChildren { namespace: Arc::clone(&route.meta.key.namespace), ..SlotChildren::default() };
        let known = self.by_slot.get(&(route.object(), rule));
        for found in roots.iter().filter_map(|root| known?.get(*root)) {
            children.attached.extend(found.attached.iter().cloned());
            children.rejected.extend(found.rejected.iter().cloned());
        }
        let everywhere = parent.rejected.iter().filter(|(rejected, ..)| *rejected == rule);
        children.rejected.extend(everywhere.map(|(_, child, rejection)| (child.clone(), rejection.clone())));

        let mut entry = Map::new();
        let section = route.rules.get(rule).and_then(|rule| rule.name.as_deref());
        entry.extend(section.map(|section| ("sectionName".to_owned(), json!(section))));
        let own = slot.admits_own_kind.then(|| json!({ "group": GROUP, "kind": route.kind.name() }));
        entry.insert("supportedKinds".to_owned(), own.into_iter().collect());
        entry.insert("attachedRoutes".to_owned(), json!(children.attached.len()));
        let conditions = [
            attached(&children, roots.is_empty(), self.max_depth),
            conflicted(&children, slot),
            resolved(&children, slot),
            not_supported(&children, self.max_depth),
        ];
        entry.insert("conditions".to_owned(), json!(written(&conditions, generation)));
        entry
    }
}

fn slots<'p>(parent: &'p ParentRoute<'_>) -> impl Iterator<Item = (usize, &'p Slot<'p>)> {
    parent.slots.iter().enumerate().filter_map(|(rule, slot)| Some((rule, &slot.as_ref()?.0)))
}

fn attached(children: &SlotChildren, is_detached: bool, depth: MaxDepth) -> Condition {
    let condition = |holds, reason: &str, message: String| Condition::new("Attached", holds, reason, message);
    // A child whose `sectionName` names no slot does not count for this one.
    let is_meant = |(_, rejection): &&(ObjectKey, ChildRejection)| !matches!(rejection, ChildRejection::NoSection(_));
    let rejected: Vec<_> = children.rejected.iter().filter(is_meant).collect();
    let reasons: BTreeSet<_> = rejected.iter().map(|(_, rejection)| reason(rejection, depth)).collect();
    match (children.attached.len(), reasons.first()) {
        (0, _) if is_detached => {
            condition(false, "NoRoutesAttached", "the route is attached to no listener here".to_owned())
        }
        (0, None) => condition(false, "NoRoutesAttached", "no route names this slot".to_owned()),
        (0, Some(reason)) if reasons.len() == 1 => condition(false, reason, children.names(rejected)),
        (0, Some(_)) => condition(false, "NoRoutesAttached", children.names(rejected)),
        (_, None) => condition(true, "Attached", String::new()),
        (_, Some(_)) => condition(true, "PartiallyAttached", children.names(rejected)),
    }
}

fn conflicted(children: &SlotChildren, slot: &Slot<'_>) -> Condition {
    let found = pick(children, |rejection| matches!(rejection, ChildRejection::Filter(_) | ChildRejection::Match(_)));
    match found.first() {
        _ if slot.redirects => {
            let message = "RequestRedirect in a rule with a slot: no route can attach to it; leave it out";
            Condition::new("Conflicted", true, "FilterConflict", message)
        }
        Some((_, ChildRejection::Match(_))) => {
            Condition::new("Conflicted", true, "MatchConflict", children.names(found))
        }
        Some(_) => Condition::new("Conflicted", true, "FilterConflict", children.names(found)),
        None => Condition::new("Conflicted", false, "NoConflicts", ""),
    }
}

fn resolved(children: &SlotChildren, slot: &Slot<'_>) -> Condition {
    if !slot.invalid_kinds.is_empty() {
        let message = format!("only routes of the same kind can attach to a route: {}", slot.invalid_kinds.join(", "));
        return Condition::new("ResolvedRefs", false, "InvalidRouteKinds", message);
    }
    let found =
        pick(children, |rejection| matches!(rejection, ChildRejection::NoSection(_) | ChildRejection::NotAllowed(_)));
    match found.first() {
        Some((_, ChildRejection::NoSection(_))) => {
            Condition::new("ResolvedRefs", false, "SectionNotFound", children.names(found))
        }
        Some(_) => Condition::new("ResolvedRefs", false, "RefNotPermitted", children.names(found)),
        None => Condition::new("ResolvedRefs", true, "ResolvedRefs", ""),
    }
}

fn not_supported(children: &SlotChildren, depth: MaxDepth) -> Condition {
    let is = |rejection: &ChildRejection| {
        matches!(
            rejection,
            ChildRejection::Kind(_)
                | ChildRejection::Unsupported(..)
                | ChildRejection::Depth(_)
                | ChildRejection::Cycle(_)
        )
    };
    let found = pick(children, is);
    match found.first() {
        Some((_, rejection)) => {
            let reason = reason(rejection, depth).to_owned();
            Condition::new("NotSupported", true, reason, children.names(found))
        }
        None => Condition::new("NotSupported", false, "Supported", ""),
    }
}

fn pick(children: &SlotChildren, is: impl Fn(&ChildRejection) -> bool) -> Vec<&(ObjectKey, ChildRejection)> {
    children.rejected.iter().filter(|(_, rejection)| is(rejection)).collect()
}

/// Reason of a rejected child in the parent's status.
fn reason(rejection: &ChildRejection, depth: MaxDepth) -> &str {
    match rejection {
        ChildRejection::Kind(_) => "UnsupportedKind",
        ChildRejection::NotAllowed(_) => "RefNotPermitted",
        ChildRejection::NoSection(_) => "SectionNotFound",
        ChildRejection::Unsupported(..) => "UnsupportedValue",
        ChildRejection::Host(_) => "HostnameMismatch",
        ChildRejection::Filter(_) => "FilterConflict",
        ChildRejection::Match(_) => "MatchConflict",
        // With a maximum depth of two, a route is a parent or a child, never both.
        ChildRejection::Depth(_) if depth.routes() == 2 => "ParentIsChild",
        ChildRejection::Depth(_) => "MaxDepthExceeded",
        ChildRejection::Cycle(_) => "InclusionCycle",
    }
}

impl SlotChildren {
    /// Children with the reason of each; for one in another namespace, the reason without content.
    fn names<'t>(&self, rejected: impl IntoIterator<Item = &'t (ObjectKey, ChildRejection)>) -> String {
        let mut rejected = rejected.into_iter();
        let words = |(child, why): &(ObjectKey, ChildRejection)| match child.namespace == self.namespace {
            true => format!("{child}: {why}"),
            false => format!("{child}: {}", why.without_content()),
        };
        let shown: Vec<_> = rejected.by_ref().take(MAX_NAMES).map(words).collect();
        match rejected.count() {
            0 => shown.join("; "),
            more => format!("{}; and {more} more", shown.join("; ")),
        }
    }
}
