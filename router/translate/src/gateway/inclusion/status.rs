//! What parents, children and RouteSlots are told. A child may be taken through one Gateway and refused through another,
//! so there are rows for its own `parentRefs` and one for each listener that it is reached from; and a parent has an entry
//! for each of its slots under each listener. Foreign routes are named, and nothing is said of what is in them.

mod parent;
pub(crate) mod words;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parent::Hanging;
use router_api::gateway_api::types::GatewayRoute;
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use serde_json::{Map, Value, json};

use super::edges::{Edges, Refusal, gateway_of, reference_of};
use super::walk::{Way, via};
use crate::gateway::conditions::condition;
use crate::gateway::inclusion::status::words::{reason, refused, sentence};
use crate::gateway::inclusion::types::{Context, Fragment, IncludedRow, RootRoute, RowParent};
use crate::status::condition::Condition;
use crate::status::object_status::ParentStatus;

/// `status.parents` has 32 items at most, of all controllers together.
const MOST_ROWS: usize = 32;
/// `inclusionPaths` has this many items at most.
const MOST_PATHS: usize = 64;
/// Everything that is told.
pub fn told(
    context: &Context<'_>,
    edges: &Edges<'_>,
    tops: &[RootRoute<'_>],
    ways: &[Way<'_>],
) -> BTreeMap<ObjectRef, Fragment> {
    let mut told: BTreeMap<ObjectRef, Fragment> = BTreeMap::new();
    let hanging = Hanging::new(context, edges, tops, ways);
    let mut by_child: BTreeMap<ObjectRef, Vec<&Way<'_>>> = BTreeMap::new();
    for way in ways {
        by_child.entry(reference_of(way.child)).or_default().push(way);
    }
    // By name, so that it does not matter in which order listeners have been asked.
    for ways in by_child.values_mut() {
        ways.sort_by_key(|way| place(tops, way));
    }
    for (child, references) in &edges.children {
        let Some(route) = edges.routes.get(child) else { continue };
        let ways = by_child.get(child).map_or(&[] as &[_], Vec::as_slice);
        let mut rows: Vec<_> =
            references.iter().map(|(i, parent)| direct(edges, tops, route, *i, parent, ways)).collect();
        rows.extend(roots(tops, route, ways, &hanging));
        told.entry(child.clone()).or_default().rows = rows;
    }
    hanging.tell(&mut told);
    told
}

/// Listener and slots of a way, by name.
type Place<'w> = (Option<(ObjectKey, Arc<str>)>, Vec<(&'w ObjectKey, usize)>);

fn place<'w>(tops: &[RootRoute<'_>], way: &Way<'w>) -> Place<'w> {
    let root = tops.get(way.top).map(|top| (top.gateway.clone(), top.section.clone()));
    (root, way.slots.iter().map(|(route, rule)| (&route.meta.key, *rule)).collect())
}

/// The row of one of a child's own `parentRefs`.
fn direct(
    edges: &Edges<'_>,
    tops: &[RootRoute<'_>],
    route: &GatewayRoute,
    i: usize,
    parent: &ObjectRef,
    ways: &[&Way<'_>],
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
            // Where the reasons differ, the first one's: the message has them all.
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
        let paths = ways.iter().take(MOST_PATHS).map(|way| path(tops, way));
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

/// The rows of the listeners that a child is reached from only through other routes.
fn roots(tops: &[RootRoute<'_>], route: &GatewayRoute, ways: &[&Way<'_>], hanging: &Hanging<'_>) -> Vec<IncludedRow> {
    let mut by_root: BTreeMap<(ObjectKey, &str), Vec<&Way<'_>>> = BTreeMap::new();
    for way in ways {
        if let Some(top) = tops.get(way.top) {
            by_root.entry((top.gateway.clone(), &top.section)).or_default().push(way);
        }
    }
    by_root.retain(|(gateway, section), _| !names_listener(route, gateway, section));
    // Rows of all `parentRefs` come first, whoever's they are.
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
            members.extend(hanging.of_listener(route, &gateway, section).map(|entries| ("inclusions", entries)));
            let parent = RowParent::Root { gateway, section: section.into() };
            IncludedRow { parent, accepted, dropped: dropped(&live), members, line }
        })
        .collect();
    if let Some(last) = rows.last_mut().filter(|_| left_out > 0) {
        last.accepted.message += &format!("; {left_out} more listeners have no row here");
    }
    rows
}

/// Whether one of the route's own `parentRefs` is this very listener: then that row is for it.
fn names_listener(route: &GatewayRoute, gateway: &ObjectKey, section: &str) -> bool {
    route.parents.iter().any(|reference| {
        reference.section.as_deref() == Some(section)
            && reference.port.is_none()
            && gateway_of(route, reference).as_ref() == Some(gateway)
    })
}

fn line(parent: String, accepted: &Condition, live: &[&Way<'_>]) -> ParentStatus {
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

/// One of `inclusionPaths`.
fn path(tops: &[RootRoute<'_>], way: &Way<'_>) -> Value {
    let step = |kind: Kind, key: &ObjectKey, section: Option<&str>| {
        let mut step = Map::new();
        for (name, text) in [("kind", kind.name()), ("namespace", &key.namespace), ("name", &key.name)] {
            step.insert(name.to_owned(), json!(text));
        }
        step.extend(section.map(|section| ("sectionName".to_owned(), json!(section))));
        Value::Object(step)
    };
    let top = tops.get(way.top).map(|top| step(Kind::Gateway, top.gateway, Some(&top.section)));
    let slots = way.slots.iter().map(|(route, rule)| {
        let section = route.rules.get(*rule).and_then(|rule| rule.name.as_deref());
        step(route.kind, &route.meta.key, section)
    });
    let steps: Vec<_> = top.into_iter().chain(slots).chain([step(way.child.kind, &way.child.meta.key, None)]).collect();
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

/// Why a child does not hang somewhere, in its own status: nothing of what is in routes of other namespaces.
fn words<'w>(way: &Way<'_>, refusal: &'w Refusal) -> Cow<'w, str> {
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

fn with_notes(message: String, live: &[&Way<'_>]) -> String {
    let notes: BTreeSet<_> = live.iter().flat_map(|way| &way.notes).cloned().collect();
    if notes.is_empty() { message } else { format!("{message}; {}", sentence(notes)) }
}

/// What rules are not served on some of these ways, and why.
fn dropped(live: &[&Way<'_>]) -> BTreeMap<usize, BTreeSet<String>> {
    let mut dropped: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for way in live {
        for (rule, what) in &way.dropped {
            dropped.entry(*rule).or_default().insert(format!("via {}: {what}", via(&way.slots)));
        }
    }
    dropped
}
