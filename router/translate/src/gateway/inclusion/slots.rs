//! Finds the slots among rules, and the routes that they admit. A slot is written either as a `RouteSlot` that is the
//! only backend of a rule, or, if the HTTPRoute CRD has the field, as `allowedRoutes` of the rule.

use std::sync::Arc;

use router_api::gateway_api::types::{
    AllowedRoutes, BackendRef, Filter, FromNamespaces, GROUP, GatewayRoute, RouteRule, SLUICE_GROUP,
};
use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::object::ObjectKey;

use crate::gateway::inclusion::slot_problem::SlotProblem;

/// A rule that child routes attach to.
#[derive(Clone, Debug)]
pub struct Slot<'r> {
    /// The routes that it admits.
    pub allowed: &'r AllowedRoutes,
    /// The RouteSlot, if the rule names one.
    pub object: Option<ObjectKey>,
    /// True if routes of the parent's own kind may attach; no other kind can.
    pub admits_own_kind: bool,
    /// Entries of `allowedRoutes.kinds` that are ignored.
    pub invalid_kinds: Vec<String>,
    /// The rule has a RequestRedirect filter, so nothing can attach.
    pub redirects: bool,
}

/// Finds slots.
#[derive(Clone, Copy)]
pub struct SlotResolver<'r> {
    resources: &'r Resources,
    /// True if the HTTPRoute CRD has `allowedRoutes` and `inclusions`.
    pub has_inclusion_fields: bool,
}

impl<'r> SlotResolver<'r> {
    /// Slots of routes among these objects.
    pub fn new(resources: &'r Resources) -> Self {
        SlotResolver {
            resources,
            has_inclusion_fields: resources.definitions.iter().any(|definition| definition.has_inclusions),
        }
    }

    /// The slot of this rule, if it is one.
    ///
    /// # Errors
    /// The rule is an invalid slot.
    pub fn slot(&self, route: &GatewayRoute, rule: &'r RouteRule) -> Result<Option<Slot<'r>>, SlotProblem> {
        let named: Vec<_> = rule.backends.iter().filter(|backend| is_slot(backend)).collect();
        let allowed = rule.allowed.as_ref().filter(|_| route.kind == Kind::HttpRoute);
        match (named.as_slice(), allowed) {
            ([], None) => Ok(None),
            ([], Some(_)) if !self.has_inclusion_fields => Err(SlotProblem::unsupported(
                "allowedRoutes counts only where the CRD of HTTPRoute has it; install Sluice's, or name a RouteSlot in backendRefs",
            )),
            ([], Some(_)) if !rule.backends.is_empty() => {
                Err(SlotProblem::unsupported("a rule has either allowedRoutes or backendRefs; leave one of them out"))
            }
            ([], Some(allowed)) => Ok(Some(slot(route, rule, allowed, None))),
            (_, Some(_)) => {
                Err(SlotProblem::unsupported("a rule has either allowedRoutes or backendRefs; leave one of them out"))
            }
            ([backend], None) if rule.backends.len() == 1 => self.object(route, rule, backend).map(Some),
            _ => Err(SlotProblem::unsupported(
                "a RouteSlot is the only backend of its rule; make further rules for the others",
            )),
        }
    }

    fn object(&self, route: &GatewayRoute, rule: &RouteRule, backend: &BackendRef) -> Result<Slot<'r>, SlotProblem> {
        let own = &route.meta.key.namespace;
        let reference = &backend.object;
        if reference.namespace.as_ref().is_some_and(|namespace| namespace != own) {
            return Err(SlotProblem::unresolved(
                "RefNotPermitted",
                "a RouteSlot is in the namespace of the route that names it",
            ));
        }
        if !backend.filters.is_empty() {
            return Err(SlotProblem::unsupported("filters of a RouteSlot's backendRef; write them into the rule"));
        }
        let key = ObjectKey { namespace: own.clone(), name: reference.name.clone() };
        match self.resources.route_slots.get(&key) {
            Some(found) => Ok(slot(route, rule, &found.allowed, Some(key))),
            None => Err(SlotProblem::unresolved("BackendNotFound", &format!("there is no RouteSlot {key}"))),
        }
    }

    /// True if a slot admits routes of this namespace; `Same` means the namespace of the slot's own route, not of those
    /// above it.
    pub fn admits(&self, slot: &Slot<'_>, parent: &GatewayRoute, namespace: &Arc<str>) -> bool {
        match &slot.allowed.from {
            FromNamespaces::Same => *namespace == parent.meta.key.namespace,
            FromNamespaces::All => true,
            FromNamespaces::None => false,
            FromNamespaces::Selector(selector) => selector.matches(&self.resources.namespace_labels(namespace)),
        }
    }
}

/// False if the rule is certainly not a slot.
pub fn may_be_slot(rule: &RouteRule) -> bool {
    rule.allowed.is_some() || rule.backends.iter().any(is_slot)
}

/// True if the reference names a RouteSlot.
pub fn is_slot(backend: &BackendRef) -> bool {
    *backend.object.group == *SLUICE_GROUP && *backend.object.kind == *Kind::RouteSlot.name()
}

fn slot<'r>(route: &GatewayRoute, rule: &RouteRule, allowed: &'r AllowedRoutes, object: Option<ObjectKey>) -> Slot<'r> {
    let own = (GROUP, route.kind.name());
    let kinds = allowed.kinds.as_deref();
    let is_own = |(group, kind): &&(Arc<str>, Arc<str>)| (&**group, &**kind) == own;
    let others = kinds.unwrap_or_default().iter().filter(|kind| !is_own(kind));
    Slot {
        allowed,
        object,
        admits_own_kind: kinds.is_none_or(|kinds| kinds.is_empty() || kinds.iter().any(|kind| is_own(&kind))),
        invalid_kinds: others.map(|(group, kind)| format!("{group}/{kind}")).collect(),
        redirects: rule.filters.iter().any(|filter| matches!(filter, Filter::Redirect(_))),
    }
}
