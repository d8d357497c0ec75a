//! Writes what inclusion adds to the statuses of parents, children and RouteSlots. A child may be accepted through one
//! Gateway and rejected through another, so it has a row for each of its own `parentRefs` and one for each listener
//! that reaches it. A parent has an entry for each of its slots under each listener. Statuses name routes of other
//! namespaces, but do not reveal their content.

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

use super::edges::{ChildRejection, Edges, gateway_of};
use super::walk::{InclusionPath, via};
use crate::gateway::conditions::condition;
use crate::gateway::inclusion::status::wording::{reason, rejected, sentence};
use crate::gateway::inclusion::types::{Context, Fragment, IncludedRow, RootRoute, RowParent};
use crate::status::condition::Condition;
use crate::status::object_status::ParentStatus;

/// Maximum length of `status.parents` (API schema), for all controllers together.
const MAX_ROWS: usize = 32;
/// Maximum length of `inclusionPaths`.
const MAX_PATHS: usize = 64;

/// Status fragments of the parents and children that are reported.
pub fn fragments(
    context: &Context<'_>,
    edges: &Edges<'_>,
    root_routes: &[RootRoute<'_>],
    paths: &[InclusionPath<'_>],
) -> BTreeMap<ObjectRef, Fragment> {
    let mut fragments: BTreeMap<ObjectRef, Fragment> = BTreeMap::new();
    let attached_children = AttachedChildren::new(context, edges, root_routes, paths);
    let mut by_child: BTreeMap<ObjectRef, Vec<&InclusionPath<'_>>> = BTreeMap::new();
    for path in paths.iter().filter(|path| (context.is_reported)(&path.child.object())) {
        by_child.entry(path.child.object()).or_default().push(path);
    }
    // Sorted by name, so that the result does not depend on the order of listeners.
    for paths in by_child.values_mut() {
        paths.sort_by_key(|path| path_order(root_routes, path));
    }
    for (child, references) in edges.children.iter().filter(|(child, _)| (context.is_reported)(child)) {
        let Some(route) = context.resources.gateway_route(child) else { continue };
        let paths = by_child.get(child).map_or(&[] as &[_], Vec::as_slice);
        let mut rows: Vec<_> =
            references.iter().map(|(i, parent)| direct_row(edges, root_routes, route, *i, parent, paths)).collect();
        rows.extend(listener_rows(root_routes, route, paths, &attached_children));
        fragments.entry(child.clone()).or_default().rows = rows;
    }
    attached_children.write(context, &mut fragments);
    fragments
}

/// Listener and slots of a path, by name.
type PathOrder<'w> = (Option<(ObjectKey, Arc<str>)>, Vec<(&'w ObjectKey, usize)>);

fn path_order<'w>(root_routes: &[RootRoute<'_>], path: &InclusionPath<'w>) -> PathOrder<'w> {
    let root =
        root_routes.get(path.root_route).map(|root_route| (root_route.gateway.clone(), root_route.section.clone()));
    (root, path.slots.iter().map(|(route, rule)| (&route.meta.key, *rule)).collect())
}

/// The row for one of a child's own `parentRefs`.
fn direct_row(
    edges: &Edges<'_>,
    root_routes: &[RootRoute<'_>],
    route: &GatewayRoute,
    i: usize,
    parent: &ObjectRef,
    paths: &[&InclusionPath<'_>],
) -> IncludedRow {
    let paths: Vec<_> = paths.iter().copied().filter(|path| path.references.contains(&i)).collect();
    let failed = edges.failed.get(&route.object()).into_iter().flatten().find(|failed| failed.reference == i);
    let attached: Vec<_> = paths.iter().copied().filter(|path| path.result.is_ok()).collect();
    let rejections: Vec<_> = paths.iter().filter_map(|path| Some((path, path.result.as_ref().err()?))).collect();
    let accepted = match (failed, attached.len()) {
        (Some(failed), _) => rejected(&failed.rejection),
        (None, 0) if paths.is_empty() => {
            Condition::new("Accepted", false, "NoMatchingParent", format!("{} is accepted by no Gateway", parent.key))
        }
        (None, 0) => {
            let texts = rejections
                .iter()
                .map(|(path, rejection)| format!("via {}: {}", via(&path.slots), message_for_child(path, rejection)));
            let message = sentence(texts);
            // If the reasons differ, the first one is used; the message lists all.
            Condition::new(
                "Accepted",
                false,
                rejections.first().map_or("NoMatchingParent", |(_, why)| reason(why)),
                message,
            )
        }
        (None, n) if n == paths.len() => Condition::new("Accepted", true, "Accepted", with_notes(count(n), &attached)),
        (None, n) => {
            let message = with_notes(format!("{n} of {}", count(paths.len())), &attached);
            Condition::new("Accepted", true, "PartiallyAccepted", message)
        }
    };
    let mut members = Vec::new();
    if edges.has_inclusion_fields && route.kind == Kind::HttpRoute {
        let entries = paths.iter().take(MAX_PATHS).map(|path| path_entry(root_routes, path));
        members.push(("inclusionPaths", Value::Array(entries.collect())));
    }
    let section = route.parents.get(i).and_then(|reference| reference.section.as_deref());
    let summary = summary(
        match section {
            Some(section) => format!("{parent}#{section}"),
            None => parent.to_string(),
        },
        &accepted,
        &attached,
    );
    IncludedRow { parent: RowParent::Direct(i), accepted, dropped: dropped(&attached), members, summary }
}

/// The rows of listeners that reach a child only through other routes.
fn listener_rows(
    root_routes: &[RootRoute<'_>],
    route: &GatewayRoute,
    paths: &[&InclusionPath<'_>],
    attached_children: &AttachedChildren<'_>,
) -> Vec<IncludedRow> {
    let mut by_root: BTreeMap<(ObjectKey, &str), Vec<&InclusionPath<'_>>> = BTreeMap::new();
    for path in paths {
        if let Some(root_route) = root_routes.get(path.root_route) {
            by_root.entry((root_route.gateway.clone(), &root_route.section)).or_default().push(path);
        }
    }
    by_root.retain(|(gateway, section), _| !names_listener(route, gateway, section));
    // Rows of all `parentRefs` come first, those of other controllers included.
    let room = MAX_ROWS.saturating_sub(route.parents.len());
    let left_out = by_root.len().saturating_sub(room);
    let mut rows: Vec<_> = by_root
        .into_iter()
        .take(room)
        .map(|((gateway, section), paths)| {
            let attached: Vec<_> = paths.iter().copied().filter(|path| path.result.is_ok()).collect();
            let rejections: Vec<_> = paths.iter().filter_map(|path| path.result.as_ref().err()).collect();
            let texts = paths.iter().map(|path| match &path.result {
                Ok(_) => format!("via {}", via(&path.slots)),
                Err(rejection) if attached.is_empty() => {
                    format!("via {}: {}", via(&path.slots), message_for_child(path, rejection))
                }
                Err(rejection) => format!("not via {}: {}", via(&path.slots), message_for_child(path, rejection)),
            });
            let message = with_notes(sentence(texts), &attached);
            let accepted = match rejections.first() {
                Some(rejection) if attached.is_empty() => Condition::new("Accepted", false, reason(rejection), message),
                _ => Condition::new("Accepted", true, "Accepted", message),
            };
            let summary = summary(format!("Gateway {gateway}#{section}"), &accepted, &attached);
            let mut members = Vec::new();
            members.extend(
                attached_children
                    .inclusions_of_listener(route, &gateway, section)
                    .map(|entries| ("inclusions", entries)),
            );
            let parent = RowParent::Listener { gateway, section: section.into() };
            IncludedRow { parent, accepted, dropped: dropped(&attached), members, summary }
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

fn summary(parent: String, accepted: &Condition, attached: &[&InclusionPath<'_>]) -> ParentStatus {
    let hosts: BTreeSet<_> =
        attached.iter().filter_map(|path| path.result.as_ref().ok()).flat_map(|hosts| &**hosts).collect();
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
fn path_entry(root_routes: &[RootRoute<'_>], path: &InclusionPath<'_>) -> Value {
    let step = |kind: Kind, key: &ObjectKey, section: Option<&str>| {
        let mut step = Map::new();
        for (name, text) in [("kind", kind.name()), ("namespace", &key.namespace), ("name", &key.name)] {
            step.insert(name.to_owned(), json!(text));
        }
        step.extend(section.map(|section| ("sectionName".to_owned(), json!(section))));
        Value::Object(step)
    };
    let root_route = root_routes
        .get(path.root_route)
        .map(|root_route| step(Kind::Gateway, root_route.gateway, Some(&root_route.section)));
    let slots = path.slots.iter().map(|(route, rule)| {
        let section = route.rules.get(*rule).and_then(|rule| rule.name.as_deref());
        step(route.kind, &route.meta.key, section)
    });
    let steps: Vec<_> =
        root_route.into_iter().chain(slots).chain([step(path.child.kind, &path.child.meta.key, None)]).collect();
    let (accepted, hosts) = match &path.result {
        Ok(hosts) => (Condition::new("Accepted", true, "Accepted", path.notes.join("; ")), &**hosts),
        Err(rejection) => {
            (Condition::new("Accepted", false, reason(rejection), message_for_child(path, rejection)), &[] as &[_])
        }
    };
    json!({
        "path": steps,
        "hostnames": hosts.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "conditions": [condition(&accepted, path.child.meta.generation)],
    })
}

/// Why a child is not attached, for its own status; must not reveal content of routes in other namespaces.
fn message_for_child<'w>(path: &InclusionPath<'_>, rejection: &'w ChildRejection) -> Cow<'w, str> {
    let own = &path.child.meta.key.namespace;
    match rejection {
        ChildRejection::Host(_) | ChildRejection::Filter(_)
            if path.slots.iter().any(|(parent, _)| parent.meta.key.namespace != *own) =>
        {
            rejection.without_content().into()
        }
        _ => rejection.to_string().into(),
    }
}

fn count(paths: usize) -> String {
    if paths == 1 { "1 inclusion path".to_owned() } else { format!("{paths} inclusion paths") }
}

fn with_notes(message: String, attached: &[&InclusionPath<'_>]) -> String {
    let notes: BTreeSet<_> = attached.iter().flat_map(|path| &path.notes).cloned().collect();
    if notes.is_empty() { message } else { format!("{message}; {}", sentence(notes)) }
}

/// Rules dropped on any of these paths, with the reasons.
fn dropped(attached: &[&InclusionPath<'_>]) -> BTreeMap<usize, BTreeSet<String>> {
    let mut dropped: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for path in attached {
        for (rule, what) in &path.dropped {
            dropped.entry(*rule).or_default().insert(format!("via {}: {what}", via(&path.slots)));
        }
    }
    dropped
}
