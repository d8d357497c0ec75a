//! Statuses of Gateway API objects.

pub mod gateways;
pub mod host_outcome;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_api::gateway_api::types::{CONTROLLER_NAME, GatewayRoute};
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use router_model::parallel;
use router_table::host_pattern::HostPattern;
use serde::Serialize;
use serde_json::{Map, Value};

use super::GatewayTranslator;
use super::conditions::{WrittenCondition, conditions};
use crate::gateway::backend_payload::BackendPayload;
use crate::gateway::base::ListenerAt;
use crate::gateway::claims::{AttachedRoute, GatewayParent};
use crate::gateway::inclusion::types::{IncludedRow, RowParent};
use crate::gateway::written_parent::WrittenParent;
use crate::status::condition::Condition;
use crate::status::object_status::{ObjectStatus, ParentStatus};
use crate::translator::{HostClaim, LostHosts, RouterHost};

/// The `status` of a route, as it is written (Gateway API, RouteStatus).
#[derive(Serialize)]
struct RouteStatus<'s> {
    parents: Vec<RouteParentStatus<'s>>,
}

/// An entry of a route's `status.parents` (Gateway API, RouteParentStatus).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RouteParentStatus<'s> {
    parent_ref: Option<WrittenParent<'s>>,
    controller_name: &'static str,
    conditions: Vec<WrittenCondition<'s>>,
    #[serde(flatten)]
    members: &'s Map<String, Value>,
}

/// A row of a route's status.
struct StatusRow<'s> {
    parent: Option<WrittenParent<'s>>,
    /// What backends receive of connections through this parent.
    carried: BackendPayload,
    accepted: Condition,
    dropped: BTreeMap<usize, BTreeSet<String>>,
    members: Map<String, Value>,
    row: ParentStatus,
}

/// What is known of the contests with other APIs.
#[derive(Clone, Copy)]
pub struct Contests<'c> {
    /// All claimed hosts that another API has.
    pub lost: &'c LostHosts,
    /// All claims.
    pub claims: &'c BTreeMap<RouterHost, Arc<HostClaim>>,
}

/// Listeners that count a route in `attachedRoutes`, by route.
pub type Counted = BTreeMap<ObjectRef, Box<[ListenerAt]>>;

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
        let attached = self.attached.iter().map(|attached| (attached.route.object(), attached));
        let attached: Vec<_> = attached.filter(|(object, _)| is_wanted(object)).collect();
        let told =
            parallel::map_all(&attached, |(object, attached)| self.status_of_attached(object, attached, contests));
        for ((object, _), (listeners, status)) in attached.into_iter().zip(told) {
            if !listeners.is_empty() {
                counted.insert(object.clone(), listeners);
            }
            statuses.extend(status.map(|status| (object, status)));
        }
        for (object, fragment) in self.fragments.iter().filter(|(object, _)| is_wanted(object)) {
            if let Some(slot) = &fragment.slot {
                statuses.insert(object.clone(), ObjectStatus::new(slot, Vec::new()));
            }
            let route = self.resources.gateway_route(object).filter(|_| !statuses.contains_key(object));
            let status = route.and_then(|route| self.status_of(route, object, Vec::new(), contests));
            statuses.extend(status.map(|status| (object.clone(), status)));
        }
        (statuses, counted)
    }

    /// The listeners that count a route, and its status.
    fn status_of_attached(
        &self,
        object: &ObjectRef,
        attached: &AttachedRoute,
        contests: Contests<'_>,
    ) -> (Box<[ListenerAt]>, Option<ObjectStatus>) {
        let mut rows = Vec::with_capacity(attached.parents.len());
        let mut listeners = Vec::new();
        for parent in &attached.parents {
            let row = self.row(attached, parent, contests);
            if row.accepted.holds {
                listeners.extend(parent.attachments.iter().map(|it| (parent.gateway, it.listener)));
            }
            rows.push((PlaceKey::direct(parent.index), row));
        }
        listeners.sort_unstable();
        listeners.dedup();
        (listeners.into(), self.status_of(&attached.route, object, rows, contests))
    }

    /// The status of a route with these rows, for the Gateways that it names, and those that inclusion adds; `None` if its
    /// validity is not known.
    fn status_of<'s>(
        &'s self,
        route: &'s GatewayRoute,
        object: &ObjectRef,
        mut rows: Vec<(PlaceKey, StatusRow<'s>)>,
        contests: Contests<'_>,
    ) -> Option<ObjectStatus> {
        let validity = self.validity.get(object)?;
        if let Some(fragment) = self.fragments.get(object) {
            for (PlaceKey(_, index), row) in &mut rows {
                let inclusions = fragment.inclusions.get(index).cloned();
                row.members.extend(inclusions.map(|inclusions| ("inclusions".to_owned(), inclusions)));
            }
            for (nth, included) in fragment.rows.iter().enumerate() {
                let (key, row) = self.included_row(route, included, nth, contests);
                if rows.iter().all(|(known, _)| *known != key) {
                    rows.push((key, row));
                }
            }
            rows.sort_by_key(|(key, _)| *key);
        }
        let summary = rows.iter_mut().map(|(_, row)| std::mem::take(&mut row.row)).collect();
        let parents: Vec<_> = rows.iter().map(|(_, row)| (row, validity.partial(&row.dropped))).collect();
        let parents = parents.iter().map(|(row, partial)| RouteParentStatus {
            parent_ref: row.parent,
            controller_name: CONTROLLER_NAME,
            conditions: conditions(
                [&row.accepted, validity.resolved(row.carried)].into_iter().chain(partial),
                route.meta.generation,
            ),
            members: &row.members,
        });
        Some(ObjectStatus::new(&RouteStatus { parents: parents.collect() }, summary))
    }

    /// The row for a Gateway that the route names.
    fn row<'s>(&self, attached: &'s AttachedRoute, parent: &GatewayParent, contests: Contests<'_>) -> StatusRow<'s> {
        let route = &attached.route;
        let mut hosts: Vec<(ListenerAt, &HostPattern)> = parent
            .attachments
            .iter()
            .flat_map(|attachment| {
                attachment.hosts.iter().map(move |host| ((parent.gateway, attachment.listener), host))
            })
            .collect();
        hosts.sort_unstable();
        let own: Vec<ListenerAt> = attached
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
        let mut texts: Vec<String> = match hosts.is_empty() {
            false => hosts.iter().map(|(_, host)| host.to_string()).collect(),
            true => crate::gateway::claims::common(&HostPattern::Any, &route.hostnames)
                .iter()
                .map(ToString::to_string)
                .collect(),
        };
        texts.sort_unstable();
        texts.dedup();
        let row = ParentStatus {
            parent: names.unwrap_or_default(),
            hosts: texts,
            admitted: accepted.holds,
            reason: accepted.reason.clone(),
            message: accepted.message.clone(),
            winners: host_outcome.winners,
        };
        let parent = route.parents.get(parent.index).map(WrittenParent::named);
        let of = |at: &ListenerAt| self.base.listener(*at)?.protocol;
        let carries_content =
            |(at, _): &(ListenerAt, _)| of(at).is_some_and(|it| it.carried() == BackendPayload::Content);
        let is_passed_through = route.kind == Kind::TlsRoute && !hosts.iter().any(carries_content);
        let carried = if is_passed_through { BackendPayload::AsItCame } else { BackendPayload::Content };
        StatusRow { parent, carried, accepted, dropped: BTreeMap::new(), members: Map::new(), row }
    }

    /// A row added by inclusion.
    fn included_row<'s>(
        &self,
        route: &'s GatewayRoute,
        included: &'s IncludedRow,
        nth: usize,
        contests: Contests<'_>,
    ) -> (PlaceKey, StatusRow<'s>) {
        let (key, parent) = match &included.parent {
            RowParent::Direct(index) => (PlaceKey::direct(*index), route.parents.get(*index).map(WrittenParent::named)),
            RowParent::Root { gateway, section } => {
                let parent = WrittenParent::listener(&route.meta.key.namespace, gateway, section);
                (PlaceKey::root(nth), Some(parent))
            }
        };
        let object = route.object();
        let (mut accepted, mut row) = (included.accepted.clone(), included.line.clone());
        if accepted.holds {
            let of_route = self.included.get(&object).into_iter().flatten();
            let hosts: BTreeSet<_> =
                of_route.map(|(at, host)| (*at, host)).filter(|(at, _)| self.is_of(*at, included)).collect();
            let all: Vec<_> = hosts.iter().map(|(at, _)| *at).collect();
            let host_outcome = self.host_outcome(hosts.into_iter(), &object, &all, contests);
            accepted = host_outcome.accepted(accepted, self.hosts.notes.get(&object));
            row.winners.extend(host_outcome.winners);
            (row.admitted, row.reason, row.message) =
                (accepted.holds, accepted.reason.clone(), accepted.message.clone());
        }
        let members = included.members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let dropped = included.dropped.clone();
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
