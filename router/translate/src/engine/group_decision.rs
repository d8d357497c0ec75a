//! Decides on the routes of one group. Groups do not depend on each other, so they are decided in parallel.

use std::collections::BTreeMap;
use std::sync::Arc;

use router_api::kubernetes::secret::Secret;
use router_api::resources::Objects;
use router_model::names::{HostMatch, RouteId};
use router_model::object::{ObjectKey, Seniority};
use router_model::persistent::OrderedMap;
use router_table::table::{ResolvedRoute, VirtualHost};

use super::groups::{GroupEntry, routes_of};
use crate::engine::route_conditions::RouteConditions;
use crate::openshift::claims::cross_api::OtherApiClaims;
use crate::openshift::claims::{Admission, AdmissionPolicy, admit};
use crate::openshift::compile::{self, Shadow};
use crate::openshift::serve::resolve;
use crate::traffic_defaults::TrafficDefaults;

/// What a router's decisions depend on.
pub struct GroupDecider<'r> {
    /// Which claims it admits.
    pub policy: &'r AdmissionPolicy,
    /// Settings of routes without their own.
    pub traffic: &'r TrafficDefaults,
    /// Every selected route, by group.
    pub groups: &'r OrderedMap<GroupEntry, ()>,
    /// All Secrets.
    pub secrets: &'r Objects<Secret>,
    /// Claims of other APIs on hosts of the router.
    pub other_claims: &'r OtherApiClaims,
}

/// The decisions on a group's routes. Most groups have one route.
pub struct DecidedGroup {
    /// The admitted routes.
    pub routes: Vec<Arc<ResolvedRoute>>,
    /// Their hosts.
    pub hosts: Vec<Arc<VirtualHost>>,
    /// Every route of the group; `None`: it is admitted without remarks.
    pub conditions: Vec<(ObjectKey, Option<Box<RouteConditions>>)>,
    /// Hosts that other APIs' objects claim, and the Route that owns each.
    pub won: Vec<(HostMatch, ObjectKey)>,
}

impl GroupDecider<'_> {
    /// Admits the routes of a group, and compiles those that are admitted.
    pub fn decide(&self, group: &str) -> DecidedGroup {
        let routes = routes_of(self.groups, group);
        let Admission { decisions, won } = admit(self.policy, &routes, self.secrets, self.other_claims);
        let admitted = decisions.iter().filter_map(|decision| decision.outcome.as_ref().ok());
        let resolved: Vec<_> = admitted.map(|admitted| Arc::new(resolve(admitted, self.traffic))).collect();
        let hosts: Vec<_> = compile::virtual_hosts(&resolved).into_iter().map(Arc::new).collect();
        let seniority = |shadow: &Shadow<'_>| {
            let meta = |id: &RouteId| {
                let all = decisions.iter().map(|decision| &decision.route.meta);
                all.into_iter().find(|meta| meta.key.route_id() == *id)
            };
            meta(&shadow.by.id).zip(meta(&shadow.route.id)).map(|(by, route)| by.seniority(route))
        };
        let shadows: BTreeMap<&RouteId, (Shadow<'_>, Seniority)> = hosts
            .iter()
            .flat_map(|host| compile::shadows(host))
            .filter_map(|shadow| seniority(&shadow).map(|seniority| (&shadow.route.id, (shadow, seniority))))
            .collect();
        let conditions = decisions.into_iter().map(|decision| {
            let key = decision.route.meta.key.clone();
            let shadow = shadows.get(&key.route_id());
            (key, RouteConditions::of(decision, shadow).map(Box::new))
        });
        DecidedGroup { conditions: conditions.collect(), won, routes: resolved, hosts }
    }
}
