//! Children attached to each slot under each listener: `inclusions` of parents and of RouteSlots.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_api::gateway_api::types::{GROUP, GatewayRoute};
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use serde_json::{Map, Value, json};

use super::super::edges::{Edges, ParentRoute, Refusal, gateway_of, reference_of};
use super::super::slots::Slot;
use super::super::walk::InclusionPath;
use crate::gateway::conditions::conditions as written;
use crate::gateway::inclusion::status::wording::MOST_NAMES;
use crate::gateway::inclusion::types::{Context, Fragment, RootRoute};
use crate::gateway::written_parent::WrittenParent;
use crate::settings::MaxDepth;
use crate::status::condition::Condition;

/// A listener: Gateway and name.
type Root = (ObjectKey, String);

/// Children of one slot, under one listener or several.
#[derive(Clone, Debug, Default)]
struct SlotChildren {
    /// The parent's namespace.
    home: Arc<str>,
    attached: BTreeSet<ObjectRef>,
    refused: BTreeSet<(ObjectKey, Refusal)>,
}

/// Children of all slots.
pub struct AttachedChildren<'e> {
    edges: &'e Edges<'e>,
    max_depth: MaxDepth,
    generations: BTreeMap<ObjectKey, i64>,
    /// Listeners that each parent is reached from.
    roots: BTreeMap<ObjectRef, BTreeSet<Root>>,
    /// Listeners that each parent is attached to by this entry of its `parentRefs`.
    direct: BTreeMap<(ObjectRef, usize), BTreeSet<Root>>,
    tallies: BTreeMap<(ObjectRef, usize), BTreeMap<Root, SlotChildren>>,
}

impl<'e> AttachedChildren<'e> {
    /// Collects the results of a walk.
    pub fn new(
        context: &Context<'_>,
        edges: &'e Edges<'e>,
        root_routes: &[RootRoute<'_>],
        ways: &[InclusionPath<'_>],
    ) -> Self {
        let slots = context.resources.route_slots.iter();
        let mut attached_children = AttachedChildren {
            edges,
            max_depth: context.max_depth,
            generations: slots.map(|slot| (slot.meta.key.clone(), slot.meta.generation)).collect(),
            roots: BTreeMap::new(),
            direct: BTreeMap::new(),
            tallies: BTreeMap::new(),
        };
        let root_of = |root_route: &RootRoute<'_>| (root_route.gateway.clone(), root_route.section.to_string());
        for root_route in root_routes.iter().filter(|root_route| edges.parent(root_route.route).is_some()) {
            let route = reference_of(root_route.route);
            attached_children.roots.entry(route.clone()).or_default().insert(root_of(root_route));
            attached_children.direct.entry((route, root_route.parent)).or_default().insert(root_of(root_route));
        }
        for way in ways {
            let (Some(root_route), Some((parent, rule))) = (root_routes.get(way.root_route), way.slots.last()) else {
                continue;
            };
            let root = root_of(root_route);
            if way.result.is_ok() && edges.parent(way.child).is_some() {
                attached_children.roots.entry(reference_of(way.child)).or_default().insert(root.clone());
            }
            let slot = attached_children.tallies.entry((reference_of(parent), *rule)).or_default();
            let tally = slot.entry(root).or_default();
            match &way.result {
                Ok(_) => drop(tally.attached.insert(reference_of(way.child))),
                Err(refusal) => drop(tally.refused.insert((way.child.meta.key.clone(), refusal.clone()))),
            }
        }
        attached_children
    }

    /// Writes `inclusions` for parents' own `parentRefs` and for RouteSlots.
    pub fn write(&self, fragments: &mut BTreeMap<ObjectRef, Fragment>) {
        for key in self.generations.keys() {
            let slot = ObjectRef { kind: Kind::RouteSlot, key: key.clone() };
            fragments.entry(slot).or_default().slot = Some(json!({ "inclusions": [] }));
        }
        for (reference, parent) in &self.edges.parents {
            let Some(route) = self.edges.routes.get(reference) else { continue };
            if self.has_field(route) {
                for (i, entries) in self.of_references(route, parent) {
                    fragments.entry(reference.clone()).or_default().inclusions.insert(i, entries);
                }
            }
            for (rule, slot) in slots(parent) {
                let Some(key) = &slot.object else { continue };
                let object = ObjectRef { kind: Kind::RouteSlot, key: key.clone() };
                let Some(Value::Array(list)) =
                    fragments.get_mut(&object).and_then(|fragment| fragment.slot.as_mut()?.get_mut("inclusions"))
                else {
                    continue;
                };
                let generation = self.generations.get(key).copied().unwrap_or_default();
                for root in self.roots.get(reference).into_iter().flatten() {
                    let mut entry = Map::new();
                    let listener = WrittenParent::listener(&key.namespace, &root.0, &root.1);
                    entry.insert("parentRef".to_owned(), json!(listener));
                    let (kind, name) = (route.kind.name(), &*route.meta.key.name);
                    entry.insert("routeRef".to_owned(), json!({ "group": GROUP, "kind": kind, "name": name }));
                    entry.extend(self.entry(route, parent, rule, slot, &[root], generation));
                    list.push(Value::Object(entry));
                }
            }
        }
    }

    /// `inclusions` for a listener that a route is reached from; `None` if the route has no slot or the CRD lacks the
    /// field.
    pub fn of_listener(&self, route: &GatewayRoute, gateway: &ObjectKey, section: &str) -> Option<Value> {
        let parent = self.edges.parent(route).filter(|_| self.has_field(route))?;
        let root = (gateway.clone(), section.to_owned());
        let attaches = self.roots.get(&reference_of(route)).is_some_and(|roots| roots.contains(&root));
        let roots: Vec<_> = [&root].into_iter().filter(|_| attaches).collect();
        self.entries(route, parent, &roots)
    }

    /// `inclusions` for those of a route's own `parentRefs` that name Gateways.
    fn of_references(&self, route: &GatewayRoute, parent: &ParentRoute<'_>) -> Vec<(usize, Value)> {
        let key = reference_of(route);
        let references = route.parents.iter().enumerate();
        let gateways = references.filter_map(|(i, reference)| Some((i, reference, gateway_of(route, reference)?)));
        let entries = gateways.filter_map(|(i, reference, gateway)| {
            let direct = self.direct.get(&(key.clone(), i));
            // A listener named by `sectionName` also lists what is reached from it through other routes.
            let named = self.roots.get(&key).into_iter().flatten().filter(|(known, section)| {
                reference.section.as_deref() == Some(section) && reference.port.is_none() && *known == gateway
            });
            let roots: BTreeSet<&Root> = direct.into_iter().flatten().chain(named).collect();
            let roots: Vec<_> = roots.into_iter().collect();
            Some((i, self.entries(route, parent, &roots)?))
        });
        entries.collect()
    }

    fn has_field(&self, route: &GatewayRoute) -> bool {
        self.edges.literal && route.kind == Kind::HttpRoute
    }

    /// An entry for each slot; `None` if there is none.
    fn entries(&self, route: &GatewayRoute, parent: &ParentRoute<'_>, roots: &[&Root]) -> Option<Value> {
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
        roots: &[&Root],
        generation: i64,
    ) -> Map<String, Value> {
        let mut tally = SlotChildren { home: Arc::clone(&route.meta.key.namespace), ..SlotChildren::default() };
        let known = self.tallies.get(&(reference_of(route), rule));
        for found in roots.iter().filter_map(|root| known?.get(*root)) {
            tally.attached.extend(found.attached.iter().cloned());
            tally.refused.extend(found.refused.iter().cloned());
        }
        let everywhere = parent.refused.iter().filter(|(refused, ..)| *refused == rule);
        tally.refused.extend(everywhere.map(|(_, child, refusal)| (child.clone(), refusal.clone())));

        let mut entry = Map::new();
        let section = route.rules.get(rule).and_then(|rule| rule.name.as_deref());
        entry.extend(section.map(|section| ("sectionName".to_owned(), json!(section))));
        let own = slot.takes_own_kind.then(|| json!({ "group": GROUP, "kind": route.kind.name() }));
        entry.insert("supportedKinds".to_owned(), own.into_iter().collect());
        entry.insert("attachedRoutes".to_owned(), json!(tally.attached.len()));
        let conditions = [
            attached(&tally, roots.is_empty(), self.max_depth),
            conflicted(&tally, slot),
            resolved(&tally, slot),
            not_supported(&tally, self.max_depth),
        ];
        entry.insert("conditions".to_owned(), json!(written(&conditions, generation)));
        entry
    }
}

fn slots<'p>(parent: &'p ParentRoute<'_>) -> impl Iterator<Item = (usize, &'p Slot<'p>)> {
    parent.slots.iter().enumerate().filter_map(|(rule, slot)| Some((rule, &slot.as_ref()?.0)))
}

fn attached(tally: &SlotChildren, nowhere: bool, depth: MaxDepth) -> Condition {
    let condition = |holds, reason: &str, message: String| Condition::new("Attached", holds, reason, message);
    // A child whose `sectionName` names no slot was not meant for this one.
    let is_meant = |(_, refusal): &&(ObjectKey, Refusal)| !matches!(refusal, Refusal::NoSection(_));
    let refused: Vec<_> = tally.refused.iter().filter(is_meant).collect();
    let reasons: BTreeSet<_> = refused.iter().map(|(_, refusal)| reason(refusal, depth)).collect();
    match (tally.attached.len(), reasons.first()) {
        (0, _) if nowhere => {
            condition(false, "NoRoutesAttached", "the route is attached to no listener here".to_owned())
        }
        (0, None) => condition(false, "NoRoutesAttached", "no route names this slot".to_owned()),
        (0, Some(reason)) if reasons.len() == 1 => condition(false, reason, tally.names(refused)),
        (0, Some(_)) => condition(false, "NoRoutesAttached", tally.names(refused)),
        (_, None) => condition(true, "Attached", String::new()),
        (_, Some(_)) => condition(true, "PartiallyAttached", tally.names(refused)),
    }
}

fn conflicted(tally: &SlotChildren, slot: &Slot<'_>) -> Condition {
    let found = pick(tally, |refusal| matches!(refusal, Refusal::Filter(_) | Refusal::Match(_)));
    match found.first() {
        _ if slot.redirects => {
            let message = "RequestRedirect in a rule with a slot: no route can attach to it; leave it out";
            Condition::new("Conflicted", true, "FilterConflict", message)
        }
        Some((_, Refusal::Match(_))) => Condition::new("Conflicted", true, "MatchConflict", tally.names(found)),
        Some(_) => Condition::new("Conflicted", true, "FilterConflict", tally.names(found)),
        None => Condition::new("Conflicted", false, "NoConflicts", ""),
    }
}

fn resolved(tally: &SlotChildren, slot: &Slot<'_>) -> Condition {
    if !slot.invalid_kinds.is_empty() {
        let message = format!("only routes of the same kind can attach to a route: {}", slot.invalid_kinds.join(", "));
        return Condition::new("ResolvedRefs", false, "InvalidRouteKinds", message);
    }
    let found = pick(tally, |refusal| matches!(refusal, Refusal::NoSection(_) | Refusal::NotAllowed(_)));
    match found.first() {
        Some((_, Refusal::NoSection(_))) => {
            Condition::new("ResolvedRefs", false, "SectionNotFound", tally.names(found))
        }
        Some(_) => Condition::new("ResolvedRefs", false, "RefNotPermitted", tally.names(found)),
        None => Condition::new("ResolvedRefs", true, "ResolvedRefs", ""),
    }
}

fn not_supported(tally: &SlotChildren, depth: MaxDepth) -> Condition {
    let is = |refusal: &Refusal| {
        matches!(refusal, Refusal::Kind(_) | Refusal::Unsupported(..) | Refusal::Depth(_) | Refusal::Cycle(_))
    };
    let found = pick(tally, is);
    match found.first() {
        Some((_, refusal)) => {
            let reason = reason(refusal, depth).to_owned();
            Condition::new("NotSupported", true, reason, tally.names(found))
        }
        None => Condition::new("NotSupported", false, "Supported", ""),
    }
}

fn pick(tally: &SlotChildren, is: impl Fn(&Refusal) -> bool) -> Vec<&(ObjectKey, Refusal)> {
    tally.refused.iter().filter(|(_, refusal)| is(refusal)).collect()
}

/// Reason of a refusal in the parent's status.
fn reason(refusal: &Refusal, depth: MaxDepth) -> &str {
    match refusal {
        Refusal::Kind(_) => "UnsupportedKind",
        Refusal::NotAllowed(_) => "RefNotPermitted",
        Refusal::NoSection(_) => "SectionNotFound",
        Refusal::Unsupported(..) => "UnsupportedValue",
        Refusal::Host(_) => "HostnameMismatch",
        Refusal::Filter(_) => "FilterConflict",
        Refusal::Match(_) => "MatchConflict",
        // With a maximum depth of two, a route is a parent or a child, never both.
        Refusal::Depth(_) if depth.routes() == 2 => "ParentIsChild",
        Refusal::Depth(_) => "MaxDepthExceeded",
        Refusal::Cycle(_) => "InclusionCycle",
    }
}

impl SlotChildren {
    /// Children with the reason of each; for one in another namespace, the reason without content.
    fn names<'t>(&self, refused: impl IntoIterator<Item = &'t (ObjectKey, Refusal)>) -> String {
        let mut refused = refused.into_iter();
        let words = |(child, why): &(ObjectKey, Refusal)| match child.namespace == self.home {
            true => format!("{child}: {why}"),
            false => format!("{child}: {}", why.without_content()),
        };
        let shown: Vec<_> = refused.by_ref().take(MOST_NAMES).map(words).collect();
        match refused.count() {
            0 => shown.join("; "),
            more => format!("{}; and {more} more", shown.join("; ")),
        }
    }
}
