//! Statuses of parents, children and RouteSlots. A child may be accepted through one Gateway and rejected through
//! another, so it has a row for each of its own `parentRefs` and one for each listener that it is reached from. A
//! parent has an entry for each of its slots under each listener. Routes of other namespaces are named; their content
//! is not revealed.

mod parent;
pub(crate) mod wording;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parent::AttachedChildren;
use router_api::gateway_api::types::GatewayRoute;
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use serde_json::{Map, Value, json};

use super::edges::{Edges, Refusal, gateway_of, reference_of};
use super::walk::{InclusionPath, via};
use crate::gateway::conditions::condition;
use crate::gateway::inclusion::status::wording::{reason, refused, sentence};
use crate::gateway::inclusion::types::{Context, Fragment, IncludedRow, RootRoute, RowParent};
use crate::status::condition::Condition;
use crate::status::object_status::ParentStatus;

/// Maximum length of `status.parents` (API schema), for all controllers together.
const MOST_ROWS: usize = 32;
/// Maximum length of `inclusionPaths`.
const MOST_PATHS: usize = 64;
/// Fragments of status for all objects that inclusion concerns.
pub fn fragments(
    context: &Context<'_>,
    edges: &Edges<'_>,
    root_routes: &[RootRoute<'_>],
    ways: &[InclusionPath<'_>],
) -> BTreeMap<ObjectRef, Fragment> {
    let mut fragments: BTreeMap<ObjectRef, Fragment> = BTreeMap::new();
    let attached_children = AttachedChildren::new(context, edges, root_routes, ways);
    let mut by_child: BTreeMap<ObjectRef, Vec<&InclusionPath<'_>>> = BTreeMap::new();
    for way in ways {
        by_child.entry(reference_of(way.child)).or_default().push(way);
    }
    // Sorted by name, so that the order of listeners does not matter.
    for ways in by_child.values_mut() {
        ways.sort_by_key(|way| place(root_routes, way));
    }
    for (child, references) in &edges.children {
        let Some(route) = edges.routes.get(child) else { continue };
        let ways = by_child.get(child).map_or(&[] as &[_], Vec::as_slice);
        let mut rows: Vec<_> =
            references.iter().map(|(i, parent)| direct(edges, root_routes, route, *i, parent, ways)).collect();
        rows.extend(roots(root_routes, route, ways, &attached_children));
        fragments.entry(child.clone()).or_default().rows = rows;
    }
    attached_children.write(&mut fragments);
    fragments
}

/// Listener and slots of a way, by name.
type PathOrder<'w> = (Option<(ObjectKey, Arc<str>)>, Vec<(&'w ObjectKey, usize)>);

fn place<'w>(root_routes: &[RootRoute<'_>], way: &InclusionPath<'w>) -> PathOrder<'w> {
    let root =
        root_routes.get(way.root_route).map(|root_route| (root_route.gateway.clone(), root_route.section.clone()));
    (root, way.slots.iter().map(|(route, rule)| (&route.meta.key, *rule)).collect())
}

/// The row for one of a child's own `parentRefs`.
fn direct(
    edges: &Edges<'_>,
    root_routes: &[RootRoute<'_>],
    route: &GatewayRoute,
    i: usize,
    parent: &ObjectRef,
    ways: &[&InclusionPath<'_>],
) -> IncludedRow {
    let ways: Vec<_> = ways.iter().copied().filter(|way| way.references.contains(&i)).collect();
    let failed = edges.failed.get(&reference_of(route)).into_iter().flatten().find(|failed| failed.reference == i);
    let live: Vec<_> = ways.iter().copied().filter(|way| way.result.is_ok()).collect();
    let refusals: Vec<_> = ways.iter().filter_map(|way| Some((way, way.result.as_ref().err()?))).collect();
    let accepted = match (failed, live.len()) {
        (Some(failed), _) => refused(&failed.refusal),
        (None, 0) if ways.is_empty() => {
            Condition::new("Accepted", false, "NoMatchingParent", format!("{} is accepted by no Gateway", parent.key))
        }
        (None, 0) => {
            let texts =
                refusals.iter().map(|(way, refusal)| format!("via {}: {}", via(&way.slots), words(way, refusal)));
            let message = sentence(texts);
            // If the reasons differ, the first one is used; the message lists all.
            Condition::new(
                "Accepted",
                false,
                refusals.first().map_or("NoMatchingParent", |(_, why)| reason(why)),
                message,
            )
        }
        (None, n) if n == ways.len() => Condition::new("Accepted", true, "Accepted", with_notes(count(n), &live)),
        (None, n) => {
            let message = with_notes(format!("{n} of {}", count(ways.len())), &live);
            Condition::new("Accepted", true, "PartiallyAccepted", message)
        }
    };
    let mut members = Vec::new();
    if edges.literal && route.kind == Kind::HttpRoute {
        let paths = ways.iter().take(MOST_PATHS).map(|way| path(root_routes, way));
        members.push(("inclusionPaths", Value::Array(paths.collect())));
    }
    let section = route.parents.get(i).and_then(|reference| reference.section.as_deref());
    let line = line(
        match section {
            Some(section) => format!("{parent}#{section}"),
            None => parent.to_string(),
        },
        &accepted,
        &live,
    );
    IncludedRow { parent: RowParent::Direct(i), accepted, dropped: dropped(&live), members, line }
}

/// The rows of listeners that reach a child only through other routes.
fn roots(
    root_routes: &[RootRoute<'_>],
    route: &GatewayRoute,
    ways: &[&InclusionPath<'_>],
    attached_children: &AttachedChildren<'_>,
) -> Vec<IncludedRow> {
    let mut by_root: BTreeMap<(ObjectKey, &str), Vec<&InclusionPath<'_>>> = BTreeMap::new();
    for way in ways {
        if let Some(root_route) = root_routes.get(way.root_route) {
            by_root.entry((root_route.gateway.clone(), &root_route.section)).or_default().push(way);
        }
    }
    by_root.retain(|(gateway, section), _| !names_listener(route, gateway, section));
    // Rows of all `parentRefs` come first, those of other controllers included.
    let room = MOST_ROWS.saturating_sub(route.parents.len());
    let left_out = by_root.len().saturating_sub(room);
    let mut rows: Vec<_> = by_root
        .into_iter()
        .take(room)
        .map(|((gateway, section), ways)| {
            let live: Vec<_> = ways.iter().copied().filter(|way| way.result.is_ok()).collect();
            let refusals: Vec<_> = ways.iter().filter_map(|way| way.result.as_ref().err()).collect();
            let texts = ways.iter().map(|way| match &way.result {
                Ok(_) => format!("via {}", via(&way.slots)),
                Err(refusal) if live.is_empty() => format!("via {}: {}", via(&way.slots), words(way, refusal)),
                Err(refusal) => format!("not via {}: {}", via(&way.slots), words(way, refusal)),
            });
            let message = with_notes(sentence(texts), &live);
            let accepted = match refusals.first() {
                Some(refusal) if live.is_empty() => Condition::new("Accepted", false, reason(refusal), message),
                _ => Condition::new("Accepted", true, "Accepted", message),
            };
            let line = line(format!("Gateway {gateway}#{section}"), &accepted, &live);
            let mut members = Vec::new();
            members
                .extend(attached_children.of_listener(route, &gateway, section).map(|entries| ("inclusions", entries)));
            let parent = RowParent::Root { gateway, section: section.into() };
            IncludedRow { parent, accepted, dropped: dropped(&live), members, line }
        })
        .collect();
    if let Some(last) = rows.last_mut().filter(|_| left_out > 0) {
        last.accepted.message += &format!("; {left_out} more listeners have no row here");
    }
    rows
}

/// True if one of the route's own `parentRefs` names this listener, so that its row is already written.
fn names_listener(route: &GatewayRoute, gateway: &ObjectKey, section: &str) -> bool {
    route.parents.iter().any(|reference| {
        reference.section.as_deref() == Some(section)
            && reference.port.is_none()
            && gateway_of(route, reference).as_ref() == Some(gateway)
    })
}

fn line(parent: String, accepted: &Condition, live: &[&InclusionPath<'_>]) -> ParentStatus {
    let hosts: BTreeSet<_> =
        live.iter().filter_map(|way| way.result.as_ref().ok()).flat_map(|hosts| &**hosts).collect();
    ParentStatus {
        parent,
        hosts: hosts.into_iter().map(ToString::to_string).collect(),
        admitted: accepted.holds,
        reason: accepted.reason.clone(),
        message: accepted.message.clone(),
        winners: Vec::new(),
    }
}

/// An entry of `inclusionPaths`.
fn path(root_routes: &[RootRoute<'_>], way: &InclusionPath<'_>) -> Value {
    let step = |kind: Kind, key: &ObjectKey, section: Option<&str>| {
        let mut step = Map::new();
        for (name, text) in [("kind", kind.name()), ("namespace", &key.namespace), ("name", &key.name)] {
            step.insert(name.to_owned(), json!(text));
        }
        step.extend(section.map(|section| ("sectionName".to_owned(), json!(section))));
        Value::Object(step)
    };
    let root_route = root_routes
        .get(way.root_route)
        .map(|root_route| step(Kind::Gateway, root_route.gateway, Some(&root_route.section)));
    let slots = way.slots.iter().map(|(route, rule)| {
        let section = route.rules.get(*rule).and_then(|rule| rule.name.as_deref());
        step(route.kind, &route.meta.key, section)
    });
    let steps: Vec<_> =
        root_route.into_iter().chain(slots).chain([step(way.child.kind, &way.child.meta.key, None)]).collect();
    let (accepted, hosts) = match &way.result {
        Ok(hosts) => (Condition::new("Accepted", true, "Accepted", way.notes.join("; ")), &**hosts),
        Err(refusal) => (Condition::new("Accepted", false, reason(refusal), words(way, refusal)), &[] as &[_]),
    };
    json!({
        "path": steps,
        "hostnames": hosts.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "conditions": [condition(&accepted, way.child.meta.generation)],
    })
}

/// Why a child is not attached, for its own status; it must not reveal routes of other namespaces.
fn words<'w>(way: &InclusionPath<'_>, refusal: &'w Refusal) -> Cow<'w, str> {
    let own = &way.child.meta.key.namespace;
    match refusal {
        Refusal::Host(_) | Refusal::Filter(_)
            if way.slots.iter().any(|(parent, _)| parent.meta.key.namespace != *own) =>
        {
            refusal.without_content().into()
        }
        _ => refusal.to_string().into(),
    }
}

fn count(ways: usize) -> String {
    if ways == 1 { "1 inclusion path".to_owned() } else { format!("{ways} inclusion paths") }
}

fn with_notes(message: String, live: &[&InclusionPath<'_>]) -> String {
    let notes: BTreeSet<_> = live.iter().flat_map(|way| &way.notes).cloned().collect();
    if notes.is_empty() { message } else { format!("{message}; {}", sentence(notes)) }
}

/// Rules dropped on some of these ways, with the reasons.
fn dropped(live: &[&InclusionPath<'_>]) -> BTreeMap<usize, BTreeSet<String>> {
    let mut dropped: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for way in live {
        for (rule, what) in &way.dropped {
            dropped.entry(*rule).or_default().insert(format!("via {}: {what}", via(&way.slots)));
        }
    }
    dropped
}
