//! Writes the statuses of Gateway API objects.

pub mod gateways;
pub mod host_outcome;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use router_api::gateway_api::types::{CONTROLLER_NAME, GatewayRoute};
use router_model::kind::Kind;
use router_model::object::{CompactJson, ObjectKey, ObjectRef};
use router_model::parallel;
use router_table::host_pattern::HostPattern;
use router_table::recent::Recent;
use serde::Serialize;
use serde_json::{Map, Value};

use super::GatewayTranslator;
use super::conditions::{WrittenCondition, conditions};
use crate::gateway::backend_payload::BackendPayload;
use crate::gateway::base::ListenerAt;
use crate::gateway::claims::{AttachedRoute, GatewayParent};
use crate::gateway::inclusion::types::{IncludedRow, RowParent};
use crate::gateway::route_validity::RouteValidity;
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
#[derive(PartialEq)]
struct StatusRow<'s> {
    parent: Option<WrittenParent<'s>>,
    /// Payload that backends receive through this parent.
    payload: BackendPayload,
    accepted: Condition,
    dropped: BTreeMap<usize, BTreeSet<String>>,
    members: Map<String, Value>,
    summary: ParentStatus,
}

/// A route's status. Most routes of a Gateway have the same one, which is written once.
struct WrittenStatus<'s> {
    /// Without their summaries.
    rows: Vec<(RowKey, StatusRow<'s>)>,
    validity: &'s RouteValidity,
    generation: i64,
    json: OnceLock<CompactJson>,
}

/// Compares all that is written.
impl PartialEq for WrittenStatus<'_> {
    fn eq(&self, other: &Self) -> bool {
        (&self.rows, self.validity, self.generation) == (&other.rows, other.validity, other.generation)
    }
}

impl WrittenStatus<'_> {
    fn json(&self) -> CompactJson {
        let parents: Vec<_> = self.rows.iter().map(|(_, row)| (row, self.validity.partial(&row.dropped))).collect();
        let parents = parents.iter().map(|(row, partial)| RouteParentStatus {
            parent_ref: row.parent,
            controller_name: CONTROLLER_NAME,
            conditions: conditions(
                [&row.accepted, self.validity.resolved(row.payload)].into_iter().chain(partial),
                self.generation,
            ),
            members: &row.members,
        });
        CompactJson::new(&RouteStatus { parents: parents.collect() })
    }
}

/// Claims of hosts, and those lost to other APIs.
#[derive(Clone, Copy)]
pub struct CrossApiClaims<'c> {
    /// All claimed hosts that an object of another API owns.
    pub lost: &'c LostHosts,
    /// All claims.
    pub claims: &'c BTreeMap<RouterHost, Arc<HostClaim>>,
}

/// By route: the listeners that count it in `attachedRoutes`.
pub type CountedRoutes = BTreeMap<ObjectRef, Box<[ListenerAt]>>;

impl GatewayTranslator {
    /// Statuses of these BackendTLSPolicies.
    pub(super) fn policy_statuses(
        &self,
        is_selected: &dyn Fn(&ObjectKey) -> bool,
    ) -> BTreeMap<ObjectRef, ObjectStatus> {
        let gateways_of = |service: &ObjectKey| self.services.get(service).cloned().unwrap_or_default();
        self.base.policies.statuses(&self.resources, is_selected, &gateways_of)
    }

    /// Statuses of these routes, and the listeners that count them.
    pub(super) fn route_statuses(
        &self,
        is_selected: &dyn Fn(&ObjectRef) -> bool,
        cross_api: CrossApiClaims<'_>,
    ) -> (Vec<(ObjectRef, ObjectStatus)>, CountedRoutes) {
        let attached = self.attached.iter().map(|attached| (attached.route.object(), attached));
        let attached: Vec<_> = attached.filter(|(object, _)| is_selected(object)).collect();
        let recent = Recent::new();
        let statuses_of_attached = parallel::map_all(&attached, |(object, attached)| {
            self.status_of_attached(object, attached, cross_api, &recent)
        });
        let in_tree = attached.iter().map(|(object, _)| object).filter(|object| self.fragments.contains_key(*object));
        let in_tree: BTreeSet<ObjectRef> = in_tree.cloned().collect();
        // Routes are in the order of age: maps of many are built at once.
        let (mut statuses, mut counted) = (Vec::with_capacity(attached.len()), Vec::with_capacity(attached.len()));
        for ((object, _), (listeners, status)) in attached.into_iter().zip(statuses_of_attached) {
            if !listeners.is_empty() {
                counted.push((object.clone(), listeners));
            }
            statuses.push((object, status));
        }
        for object in self.fragments.keys().filter(|object| is_selected(object) && !in_tree.contains(*object)) {
            let route = self.resources.gateway_route(object);
            let status = route.map(|route| self.status_of(route, object, Vec::new(), cross_api, &recent));
            statuses.extend(status.map(|status| (object.clone(), status)));
        }
        (statuses, counted.into_iter().collect())
    }

    /// The listeners that count a route, and its status.
    fn status_of_attached<'s>(
        &'s self,
        object: &ObjectRef,
        attached: &'s AttachedRoute,
        cross_api: CrossApiClaims<'_>,
        recent: &Recent<WrittenStatus<'s>>,
    ) -> (Box<[ListenerAt]>, ObjectStatus) {
        let mut rows = Vec::with_capacity(attached.parents.len());
        let mut listeners = Vec::new();
        let own: Vec<ListenerAt> = attached.parents.iter().flat_map(listeners_of).collect();
        for parent in &attached.parents {
            let row = self.direct_row(object, &attached.route, parent, &own, cross_api);
            if row.accepted.holds {
                listeners.extend(listeners_of(parent));
            }
            rows.push((RowKey::direct(parent.index), row));
        }
        listeners.sort_unstable();
        listeners.dedup();
        (listeners.into(), self.status_of(&attached.route, object, rows, cross_api, recent))
    }

    /// The status of a route with these rows, for the Gateways that it names, and those that inclusion adds.
    fn status_of<'s>(
        &'s self,
        route: &'s GatewayRoute,
        object: &ObjectRef,
        mut rows: Vec<(RowKey, StatusRow<'s>)>,
        cross_api: CrossApiClaims<'_>,
        recent: &Recent<WrittenStatus<'s>>,
    ) -> ObjectStatus {
        if let Some(fragment) = self.fragments.get(object) {
            for (RowKey(_, index), row) in &mut rows {
                let inclusions = fragment.inclusions.get(index).cloned();
                row.members.extend(inclusions.map(|inclusions| ("inclusions".to_owned(), inclusions)));
            }
            for (nth, included) in fragment.rows.iter().enumerate() {
                let (key, row) = self.included_row(route, included, nth, cross_api);
                if rows.iter().all(|(known, _)| *known != key) {
                    rows.push((key, row));
                }
            }
            rows.sort_by_key(|(key, _)| *key);
        }
        let summaries = rows.iter_mut().map(|(_, row)| std::mem::take(&mut row.summary)).collect();
        let validity = self.faults.get(object).map_or(RouteValidity::good(), |faults| &**faults);
        let written = WrittenStatus { rows, validity, generation: route.meta.generation, json: OnceLock::new() };
        let written = recent.share(written);
        ObjectStatus::of(written.json.get_or_init(|| written.json()).clone(), summaries)
    }

    /// The row for a Gateway that the route's `parentRefs` name. `own`: the listeners of all such rows.
    fn direct_row<'s>(
        &self,
        object: &ObjectRef,
        route: &'s GatewayRoute,
        parent: &GatewayParent,
        own: &[ListenerAt],
        cross_api: CrossApiClaims<'_>,
    ) -> StatusRow<'s> {
        let mut hosts: Vec<(ListenerAt, &HostPattern)> = parent
            .attachments
            .iter()
            .flat_map(|attachment| {
                attachment.hosts.iter().map(move |host| ((parent.gateway, attachment.listener), host))
            })
            .collect();
        hosts.sort_unstable();
        let host_outcome = self.host_outcome(hosts.iter().copied(), object, own, cross_api);
        let mut accepted = parent.accepted.clone();
        if accepted.holds {
            accepted = host_outcome.accepted(accepted, self.hosts.notes.get(object));
        }
        let section = route.parents.get(parent.index).and_then(|parent| parent.section.as_ref());
        let gateway = self.base.gateways.get(parent.gateway).map(|state| &state.gateway.meta.key);
        let parent_name = gateway.map(|key| match section {
            Some(section) => format!("{} {key}#{section}", Kind::Gateway),
            None => format!("{} {key}", Kind::Gateway),
        });
        let mut host_names: Vec<String> = match hosts.is_empty() {
            false => hosts.iter().map(|(_, host)| host.to_string()).collect(),
            true => crate::gateway::claims::intersection(&HostPattern::Any, &route.hostnames)
                .iter()
                .map(ToString::to_string)
                .collect(),
        };
        host_names.sort_unstable();
        host_names.dedup();
        let summary = ParentStatus {
            parent: parent_name.unwrap_or_default(),
            hosts: host_names,
            admitted: accepted.holds,
            reason: accepted.reason.clone(),
            message: accepted.message.clone(),
            winners: host_outcome.winners,
        };
        let parent = route.parents.get(parent.index).map(WrittenParent::named);
        let protocol_of = |at: &ListenerAt| self.base.listener(*at)?.protocol;
        let has_content =
            |(at, _): &(ListenerAt, _)| protocol_of(at).is_some_and(|it| it.payload() == BackendPayload::Content);
        let is_passed_through = route.kind == Kind::TlsRoute && !hosts.iter().any(has_content);
        let payload = if is_passed_through { BackendPayload::Passthrough } else { BackendPayload::Content };
        StatusRow { parent, payload, accepted, dropped: BTreeMap::new(), members: Map::new(), summary }
    }

    /// A row added by inclusion.
    fn included_row<'s>(
        &self,
        route: &'s GatewayRoute,
        included: &'s IncludedRow,
        nth: usize,
        cross_api: CrossApiClaims<'_>,
    ) -> (RowKey, StatusRow<'s>) {
        let (key, parent) = match &included.parent {
            RowParent::Direct(index) => (RowKey::direct(*index), route.parents.get(*index).map(WrittenParent::named)),
            RowParent::Listener { gateway, section } => {
                let parent = WrittenParent::listener(&route.meta.key.namespace, gateway, section);
                (RowKey::listener(nth), Some(parent))
            }
        };
        let object = route.object();
        let (mut accepted, mut summary) = (included.accepted.clone(), included.summary.clone());
        if accepted.holds {
            let route_hosts = self.included.get(&object).into_iter().flatten();
            let hosts: BTreeSet<_> =
                route_hosts.map(|(at, host)| (*at, host)).filter(|(at, _)| self.is_row_for(*at, included)).collect();
            let all: Vec<_> = hosts.iter().map(|(at, _)| *at).collect();
            let host_outcome = self.host_outcome(hosts.into_iter(), &object, &all, cross_api);
            accepted = host_outcome.accepted(accepted, self.hosts.notes.get(&object));
            summary.winners.extend(host_outcome.winners);
            (summary.admitted, summary.reason, summary.message) =
                (accepted.holds, accepted.reason.clone(), accepted.message.clone());
        }
        let members = included.members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let dropped = included.dropped.clone();
        (key, StatusRow { parent, payload: BackendPayload::Content, accepted, dropped, members, summary })
    }

    /// True if a row is for this listener.
    fn is_row_for(&self, at: ListenerAt, included: &IncludedRow) -> bool {
        match &included.parent {
            RowParent::Direct(_) => true,
            RowParent::Listener { gateway, section } => self.base.gateways.get(at.0).is_some_and(|state| {
                state.gateway.meta.key == *gateway
                    && state.listeners.get(at.1).is_some_and(|placed| placed.listener.name == *section)
            }),
        }
    }
}

/// The listeners that a route is attached to through a parent.
fn listeners_of(parent: &GatewayParent) -> impl Iterator<Item = ListenerAt> {
    parent.attachments.iter().map(|attachment| (parent.gateway, attachment.listener))
}

/// Sort key of a route's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RowKey(bool, usize);

impl RowKey {
    fn direct(index: usize) -> Self {
        RowKey(false, index)
    }

    fn listener(nth: usize) -> Self {
        RowKey(true, nth)
    }
}
