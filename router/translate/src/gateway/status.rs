//! Statuses of Gateway API objects.

mod gateways;
mod host_outcome;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use router_api::gateway_api::types::{CONTROLLER_NAME, GatewayRoute};
use router_model::kind::Kind;
use router_model::object::ObjectRef;
use router_table::host_pattern::HostPattern;
use serde_json::{Map, Value, json};

use super::GatewayTranslator;
use super::conditions::conditions;
use crate::gateway::backend_payload::BackendPayload;
use crate::gateway::claims::{AttachedRoute, GatewayParent};
use crate::gateway::inclusion::status::wording::listener_reference;
use crate::gateway::inclusion::types::{IncludedRow, RowParent};
use crate::gateway::route_validity::RouteValidity;
use crate::gateway::serve::ListenerAt;
use crate::status::condition::Condition;
use crate::status::object_status::{ObjectStatus, ParentStatus};
use crate::translator::LostHosts;

/// A row of a route's status.
struct StatusRow {
    parent: Value,
    /// What backends receive of connections through this parent.
    carried: BackendPayload,
    accepted: Condition,
    dropped: BTreeMap<usize, BTreeSet<String>>,
    members: Vec<(&'static str, Value)>,
    row: ParentStatus,
}

/// Routes counted in `attachedRoutes`, by listener.
type Counts = HashMap<ListenerAt, BTreeSet<ObjectRef>>;

impl GatewayTranslator<'_> {
    /// Statuses of all objects, given the hosts that other APIs have won.
    pub(super) fn statuses(&self, lost: &LostHosts) -> BTreeMap<ObjectRef, ObjectStatus> {
        let mut statuses = self.classes.statuses.clone();
        statuses.extend(self.policies.clone());
        let mut counts = Counts::new();
        let mut lines: BTreeMap<ObjectRef, BTreeMap<PlaceKey, StatusRow>> = BTreeMap::new();
        for attached in &self.attached {
            let object = attached.route.object();
            let written = attached.route.manifest.value();
            for parent in &attached.parents {
                let line = self.line(attached, parent, &written, lost);
                if line.accepted.holds {
                    for attachment in &parent.attachments {
                        counts.entry((parent.gateway, attachment.listener)).or_default().insert(object.clone());
                    }
                }
                lines.entry(object.clone()).or_default().insert(PlaceKey::direct(parent.index), line);
            }
        }
        for (object, fragment) in &self.expanded.fragments {
            if let Some(slot) = &fragment.slot {
                statuses.insert(object.clone(), ObjectStatus { status: slot.clone(), rows: Vec::new() });
            }
            let Some(route) = self.inputs.resources.gateway_route(object) else { continue };
            let written = route.manifest.value();
            let of_route = lines.entry(object.clone()).or_default();
            for (index, inclusions) in &fragment.inclusions {
                if let Some(line) = of_route.get_mut(&PlaceKey::direct(*index)) {
                    line.members.push(("inclusions", inclusions.clone()));
                }
            }
            for (nth, row) in fragment.rows.iter().enumerate() {
                let (key, line) = self.included_line(route, row, nth, &written, lost);
                of_route.entry(key).or_insert(line);
            }
        }
        for (object, lines) in lines {
            let route = self.inputs.resources.gateway_route(&object);
            if let Some((route, validity)) = route.zip(self.validity.get(&object)) {
                statuses.insert(object, status_of(route, validity, lines));
            }
        }
        for (i, state) in self.gateways.iter().enumerate() {
            let object = ObjectRef { kind: Kind::Gateway, key: state.gateway.meta.key.clone() };
            statuses.insert(object, self.gateway(i, state, &counts, lost));
        }
        statuses
    }

    /// The row for a Gateway that the route names.
    fn line(
        &self,
        attached: &AttachedRoute<'_>,
        parent: &GatewayParent,
        written: &Value,
        lost: &LostHosts,
    ) -> StatusRow {
        let route = attached.route;
        let hosts: BTreeSet<(ListenerAt, &HostPattern)> = parent
            .attachments
            .iter()
            .flat_map(|attachment| {
                attachment.hosts.iter().map(move |host| ((parent.gateway, attachment.listener), host))
            })
            .collect();
        let own: BTreeSet<ListenerAt> = attached
            .parents
            .iter()
            .flat_map(|parent| parent.attachments.iter().map(|attachment| (parent.gateway, attachment.listener)))
            .collect();
        let host_outcome = self.host_outcome(hosts.iter().copied(), &route.object(), &own, lost);
        let mut accepted = parent.accepted.clone();
        if accepted.holds {
            accepted = host_outcome.accepted(accepted, self.hosts.notes.get(&route.object()));
        }
        let section = route.parents.get(parent.index).and_then(|parent| parent.section.as_ref());
        let gateway = self.gateways.get(parent.gateway).map(|state| &state.gateway.meta.key);
        let names = gateway.map(|key| match section {
            Some(section) => format!("{} {key}#{section}", Kind::Gateway),
            None => format!("{} {key}", Kind::Gateway),
        });
        let texts: BTreeSet<String> = match hosts.is_empty() {
            false => hosts.iter().map(|(_, host)| host.to_string()).collect(),
            true => crate::gateway::claims::common(&HostPattern::Any, &route.hostnames)
                .iter()
                .map(ToString::to_string)
                .collect(),
        };
        let row = ParentStatus {
            parent: names.unwrap_or_default(),
            hosts: texts.into_iter().collect(),
            admitted: accepted.holds,
            reason: accepted.reason.clone(),
            message: accepted.message.clone(),
            winners: host_outcome.winners,
        };
        let parent = reference(route, parent.index, written);
        let of = |at: &ListenerAt| self.gateways.get(at.0)?.listeners.get(at.1)?.protocol;
        let carries_content =
            |(at, _): &(ListenerAt, _)| of(at).is_some_and(|it| it.carried() == BackendPayload::Content);
        let is_passed_through = route.kind == Kind::TlsRoute && !hosts.iter().any(carries_content);
        let carried = if is_passed_through { BackendPayload::AsItCame } else { BackendPayload::Content };
        StatusRow { parent, carried, accepted, dropped: BTreeMap::new(), members: Vec::new(), row }
    }

    /// A row added by inclusion.
    fn included_line(
        &self,
        route: &GatewayRoute,
        included: &IncludedRow,
        nth: usize,
        written: &Value,
        lost: &LostHosts,
    ) -> (PlaceKey, StatusRow) {
        let (key, parent) = match &included.parent {
            RowParent::Direct(index) => (PlaceKey::direct(*index), reference(route, *index, written)),
            RowParent::Root { gateway, section } => {
                let parent = listener_reference(&route.meta.key.namespace, gateway, section);
                (PlaceKey::root(nth), parent)
            }
        };
        let object = route.object();
        let (mut accepted, mut row) = (included.accepted.clone(), included.line.clone());
        if accepted.holds {
            let of_route = self.included.get(&object).into_iter().flatten();
            let hosts: BTreeSet<_> =
                of_route.map(|(at, host)| (*at, host)).filter(|(at, _)| self.is_of(*at, included)).collect();
            let all = hosts.iter().map(|(at, _)| *at).collect();
            let host_outcome = self.host_outcome(hosts.into_iter(), &object, &all, lost);
            accepted = host_outcome.accepted(accepted, self.hosts.notes.get(&object));
            row.winners.extend(host_outcome.winners);
            (row.admitted, row.reason, row.message) =
                (accepted.holds, accepted.reason.clone(), accepted.message.clone());
        }
        let (dropped, members) = (included.dropped.clone(), included.members.clone());
        (key, StatusRow { parent, carried: BackendPayload::Content, accepted, dropped, members, row })
    }

    /// True if a row covers this listener.
    fn is_of(&self, at: ListenerAt, included: &IncludedRow) -> bool {
        match &included.parent {
            RowParent::Direct(_) => true,
            RowParent::Root { gateway, section } => self.gateways.get(at.0).is_some_and(|state| {
                state.gateway.meta.key == *gateway
                    && state.listeners.get(at.1).is_some_and(|placed| placed.listener.name == *section)
            }),
        }
    }
}

/// Sort key of a route's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PlaceKey(bool, usize);

impl PlaceKey {
    fn direct(index: usize) -> Self {
        PlaceKey(false, index)
    }

    fn root(nth: usize) -> Self {
        PlaceKey(true, nth)
    }
}

/// A parent reference as written.
fn reference(route: &GatewayRoute, index: usize, written: &Value) -> Value {
    if let Some(reference) = written.pointer(&format!("/spec/parentRefs/{index}")) {
        return reference.clone();
    }
    let mut reference = Map::new();
    if let Some(parent) = route.parents.get(index) {
        let object = &parent.object;
        reference.insert("group".to_owned(), json!(&*object.group));
        reference.insert("kind".to_owned(), json!(&*object.kind));
        reference.extend(object.namespace.iter().map(|namespace| ("namespace".to_owned(), json!(&**namespace))));
        reference.insert("name".to_owned(), json!(&*object.name));
        reference.extend(parent.section.iter().map(|section| ("sectionName".to_owned(), json!(&**section))));
        reference.extend(parent.port.iter().map(|port| ("port".to_owned(), json!(port))));
    }
    Value::Object(reference)
}

fn status_of(route: &GatewayRoute, validity: &RouteValidity, lines: BTreeMap<PlaceKey, StatusRow>) -> ObjectStatus {
    let generation = route.meta.generation;
    let (mut parents, mut rows) = (Vec::new(), Vec::new());
    for line in lines.into_values() {
        let partial = validity.partial(&line.dropped);
        let list = [&line.accepted, validity.resolved(line.carried)].into_iter().chain(&partial);
        let mut parent = Map::new();
        parent.insert("parentRef".to_owned(), line.parent);
        parent.insert("controllerName".to_owned(), json!(CONTROLLER_NAME));
        parent.insert("conditions".to_owned(), conditions(list, generation));
        parent.extend(line.members.into_iter().map(|(name, value)| (name.to_owned(), value)));
        parents.push(Value::Object(parent));
        rows.push(line.row);
    }
    ObjectStatus { status: json!({ "parents": parents }), rows }
}
