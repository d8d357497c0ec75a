//! Statuses of Gateway API objects.

pub mod gateways;
pub mod host_outcome;

use std::collections::{BTreeMap, BTreeSet};

use router_api::gateway_api::types::{CONTROLLER_NAME, GatewayRoute};
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use router_table::host_pattern::HostPattern;
use serde_json::{Map, Value, json};

use super::GatewayTranslator;
use super::conditions::conditions;
use crate::gateway::backend_payload::BackendPayload;
use crate::gateway::base::ListenerAt;
use crate::gateway::claims::{AttachedRoute, GatewayParent};
use crate::gateway::inclusion::status::wording::listener_reference;
use crate::gateway::inclusion::types::{IncludedRow, RowParent};
use crate::gateway::route_validity::RouteValidity;
use crate::status::condition::Condition;
use crate::status::object_status::{ObjectStatus, ParentStatus};
use crate::translator::{HostClaim, LostHosts, RouterHost};

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

/// What is known of the contests with other APIs.
#[derive(Clone, Copy)]
pub struct Contests<'c> {
    /// All claimed hosts that another API has.
    pub lost: &'c LostHosts,
    /// All claims.
    pub claims: &'c BTreeMap<RouterHost, HostClaim>,
}

/// Listeners that count a route in `attachedRoutes`, by route.
pub type Counted = BTreeMap<ObjectRef, BTreeSet<ListenerAt>>;

impl GatewayTranslator {
    /// Statuses of these BackendTLSPolicies.
    pub(super) fn policy_statuses(&self, is_wanted: &dyn Fn(&ObjectKey) -> bool) -> BTreeMap<ObjectRef, ObjectStatus> {
        let gateways_of = |service: &ObjectKey| self.services.get(service).cloned().unwrap_or_default();
        self.base.policies.statuses(&self.resources, is_wanted, &gateways_of)
    }

    /// Statuses of these routes and RouteSlots, and the listeners that count the routes.
    pub(super) fn route_statuses(
        &self,
        is_wanted: &dyn Fn(&ObjectRef) -> bool,
        contests: Contests<'_>,
    ) -> (BTreeMap<ObjectRef, ObjectStatus>, Counted) {
        let (mut statuses, mut counted) = (BTreeMap::new(), Counted::new());
        let mut lines: BTreeMap<ObjectRef, BTreeMap<PlaceKey, StatusRow>> = BTreeMap::new();
        for attached in &self.attached {
            let object = attached.route.object();
            if !is_wanted(&object) {
                continue;
            }
            let written = attached.route.manifest.parent_references();
            for parent in &attached.parents {
                let line = self.line(attached, parent, &written, contests);
                if line.accepted.holds {
                    let listeners = parent.attachments.iter().map(|attachment| (parent.gateway, attachment.listener));
                    counted.entry(object.clone()).or_default().extend(listeners);
                }
                lines.entry(object.clone()).or_default().insert(PlaceKey::direct(parent.index), line);
            }
        }
        for (object, fragment) in self.expanded.fragments.iter().filter(|(object, _)| is_wanted(object)) {
            if let Some(slot) = &fragment.slot {
                statuses.insert(object.clone(), ObjectStatus { status: slot.clone(), rows: Vec::new() });
            }
            let Some(route) = self.resources.gateway_route(object) else { continue };
            let written = route.manifest.parent_references();
            let of_route = lines.entry(object.clone()).or_default();
            for (index, inclusions) in &fragment.inclusions {
                if let Some(line) = of_route.get_mut(&PlaceKey::direct(*index)) {
                    line.members.push(("inclusions", inclusions.clone()));
                }
            }
            for (nth, row) in fragment.rows.iter().enumerate() {
                let (key, line) = self.included_line(route, row, nth, &written, contests);
                of_route.entry(key).or_insert(line);
            }
        }
        for (object, lines) in lines {
            let route = self.resources.gateway_route(&object);
            if let Some((route, validity)) = route.zip(self.validity.get(&object)) {
                statuses.insert(object, status_of(route, validity, lines));
            }
        }
        (statuses, counted)
    }

    /// The row for a Gateway that the route names.
    fn line(
        &self,
        attached: &AttachedRoute,
        parent: &GatewayParent,
        written: &[Value],
        contests: Contests<'_>,
    ) -> StatusRow {
        let route = &attached.route;
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
        let host_outcome = self.host_outcome(hosts.iter().copied(), &route.object(), &own, contests);
        let mut accepted = parent.accepted.clone();
        if accepted.holds {
            accepted = host_outcome.accepted(accepted, self.hosts.notes.get(&route.object()));
        }
        let section = route.parents.get(parent.index).and_then(|parent| parent.section.as_ref());
        let gateway = self.base.gateways.get(parent.gateway).map(|state| &state.gateway.meta.key);
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
        let of = |at: &ListenerAt| self.base.listener(*at)?.protocol;
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
        written: &[Value],
        contests: Contests<'_>,
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
            let host_outcome = self.host_outcome(hosts.into_iter(), &object, &all, contests);
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
            RowParent::Root { gateway, section } => self.base.gateways.get(at.0).is_some_and(|state| {
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
fn reference(route: &GatewayRoute, index: usize, written: &[Value]) -> Value {
    if let Some(reference) = written.get(index) {
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
