//! Attaches routes to listeners, and decides condition `Accepted` of each route for each of its parents.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use router_api::gateway_api::types::{FromNamespaces, GatewayRoute, ParentRef};
use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::object::{Meta, ObjectKey};
use router_model::parallel;
use router_table::host_pattern::{HostPattern, PatternSet};

use crate::gateway::gateway_state::GatewayState;
use crate::gateway::inclusion::edges::gateway_of;
use crate::gateway::listeners::placed_listener::PlacedListener;
use crate::status::condition::Condition;

/// A route and those of its `parentRefs` that name a Gateway of Sluice.
#[derive(Debug)]
pub struct AttachedRoute {
    /// The route.
    pub route: Arc<GatewayRoute>,
    /// In the order of `parentRefs`.
    pub parents: Vec<GatewayParent>,
}

/// An entry of a route's `parentRefs` that names a Gateway of Sluice.
#[derive(Debug)]
pub struct GatewayParent {
    /// Index in `parentRefs`.
    pub index: usize,
    /// Index of the Gateway in the list of [`GatewayState`]s.
    pub gateway: usize,
    /// Condition `Accepted`.
    pub accepted: Condition,
    /// The listeners that the route is attached to; empty if it is not accepted.
    pub attachments: Vec<Attachment>,
}

/// A listener that a route is attached to.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// Index of the listener in its Gateway.
    pub listener: usize,
    /// The intersection of the listener's hostname and the route's hostnames; not empty.
    pub hosts: Vec<HostPattern>,
}

/// Precedence by age in Gateway API: `creationTimestamp` (an object without one is the youngest), then namespace and
/// name.
pub fn age_order(one: &Meta, other: &Meta) -> Ordering {
    one.created.cmp(&other.created).then_with(|| one.key.cmp(&other.key))
}

/// Attaches all routes to listeners, the oldest first. If an HTTPRoute and a GRPCRoute have overlapping hosts on one
/// listener, the older one is accepted. `rejection`: reason and message if a route is rejected for every parent.
pub fn attach(
    resources: &Resources,
    gateways: &[GatewayState],
    by_key: &BTreeMap<ObjectKey, usize>,
    rejection: &(dyn Fn(&GatewayRoute) -> Option<(String, String)> + Sync),
) -> Vec<AttachedRoute> {
    let (http, grpc, tls) = (&resources.http_routes, &resources.grpc_routes, &resources.tls_routes);
    let mut routes: Vec<_> = http.iter().chain(grpc.iter()).chain(tls.iter()).collect();
    routes.sort_by(|one, other| age_order(&one.meta, &other.meta).then_with(|| one.kind.cmp(&other.kind)));
    let candidates = parallel::map_all(&routes, |route| {
        let rejection = rejection(route);
        let mut parents = Vec::with_capacity(route.parents.len());
        parents.extend(route.parents.iter().enumerate().filter_map(|(index, parent)| {
            let gateway = *by_key.get(&gateway_of(route, parent)?)?;
            let state = gateways.get(gateway)?;
            let found = match &rejection {
                Some((reason, message)) => Err(Condition::new("Accepted", false, reason.clone(), message.clone())),
                None => attachments(route, parent, state, resources),
            };
            Some((index, gateway, state, found))
        }));
        parents
    });
    // Without routes of both kinds there are no conflicts.
    let mut rivals = (!http.is_empty() && !grpc.is_empty()).then(HostnameConflicts::default);
    let mut attached = Vec::new();
    for (route, candidates) in routes.into_iter().zip(candidates) {
        let mut parents = Vec::with_capacity(candidates.len());
        for (index, gateway, state, found) in candidates {
            let found = found.and_then(|attachments| match &mut rivals {
                Some(rivals) => rivals.retain(route, gateway, state, attachments),
                None => Ok((attachments, String::new())),
            });
            let (accepted, attachments) = match found {
                Ok((attachments, note)) => (Condition::new("Accepted", true, "Accepted", note), attachments),
                Err(accepted) => (accepted, Vec::new()),
            };
            parents.push(GatewayParent { index, gateway, accepted, attachments });
        }
        if !parents.is_empty() {
            attached.push(AttachedRoute { route: Arc::clone(route), parents });
        }
    }
    attached
}

/// The listeners of a Gateway that the route attaches to.
///
/// # Errors
/// Condition `Accepted` if there is none.
fn attachments(
    route: &GatewayRoute,
    parent: &ParentRef,
    state: &GatewayState,
    resources: &Resources,
) -> Result<Vec<Attachment>, Condition> {
    let rejected = |reason: &str, message: String| Err(Condition::new("Accepted", false, reason, message));
    let is_named = |placed: &&(usize, &PlacedListener)| {
        let listener = &placed.1.listener;
        parent.section.as_ref().is_none_or(|section| *section == listener.name)
            && parent.port.is_none_or(|port| port == listener.port)
    };
    let named: Vec<_> = state.listeners.iter().enumerate().filter(|placed| is_named(&placed)).collect();
    if named.is_empty() {
        let message = format!("Gateway {} has no listener {}", state.gateway.meta.key, listener_text(parent));
        return rejected("NoMatchingParent", message);
    }
    let supports =
        |placed: &PlacedListener| placed.protocol.is_some_and(|protocol| protocol.kinds().contains(&route.kind));
    if route.kind == Kind::TlsRoute && !named.iter().any(|(_, placed)| supports(placed)) {
        let message = "a TLSRoute needs a listener of protocol TLS; name one in parentRefs".to_owned();
        return rejected("UnsupportedValue", message);
    }
    let allowed: Vec<_> = named.into_iter().filter(|(_, placed)| admits(placed, route, state, resources)).collect();
    if allowed.is_empty() {
        let message = format!(
            "allowedRoutes of the listeners of Gateway {} admit no {} of namespace {}",
            state.gateway.meta.key, route.kind, route.meta.key.namespace
        );
        return rejected("NotAllowedByListeners", message);
    }
    let mut attachments = Vec::with_capacity(allowed.len());
    attachments.extend(
        allowed
            .iter()
            .map(|(i, placed)| Attachment {
                listener: *i,
                hosts: intersection(&placed.listener.hostname, &route.hostnames),
            })
            .filter(|attachment| !attachment.hosts.is_empty()),
    );
    if attachments.is_empty() {
        let theirs: Vec<_> = allowed.iter().map(|(_, placed)| placed.listener.hostname.to_string()).collect();
        let own: Vec<_> = route.hostnames.iter().map(ToString::to_string).collect();
        let message =
            format!("hostnames {} do not intersect those of the listeners: {}", own.join(", "), theirs.join(", "));
        return rejected("NoMatchingListenerHostname", message);
    }
    let placed = |attachment: &Attachment| state.listeners.get(attachment.listener);
    let is_ready = |attachment: &Attachment| placed(attachment).is_some_and(|placed| placed.router.is_some());
    if !attachments.iter().any(is_ready) {
        let names: Vec<_> = attachments.iter().filter_map(placed).collect();
        let names: Vec<_> = names.iter().map(|placed| &*placed.listener.name).collect();
        let message = match &state.rejection {
            Some(rejection) => format!("Gateway {} is not accepted: {}", state.gateway.meta.key, rejection.message),
            None => format!("no listener that takes the route is accepted itself: {}", names.join(", ")),
        };
        return rejected("NoReadyListeners", message);
    }
    // A route also counts in `attachedRoutes` of listeners that are not accepted.
    attachments.sort_by_key(|attachment| !is_ready(attachment));
    Ok(attachments)
}

fn listener_text(parent: &ParentRef) -> String {
    match (&parent.section, parent.port) {
        (Some(section), Some(port)) => format!("named {section} on port {port}"),
        (Some(section), None) => format!("named {section}"),
        (None, Some(port)) => format!("on port {port}"),
        (None, None) => "at all".to_owned(),
    }
}

/// True if `allowedRoutes` of the listener admits the route's kind and namespace.
pub fn admits(placed: &PlacedListener, route: &GatewayRoute, state: &GatewayState, resources: &Resources) -> bool {
    let namespace = &route.meta.key.namespace;
    placed.kinds.contains(&route.kind)
        && match &placed.listener.allowed.from {
            FromNamespaces::Same => *namespace == state.gateway.meta.key.namespace,
            FromNamespaces::All => true,
            FromNamespaces::None => false,
            FromNamespaces::Selector(selector) => selector.matches(&resources.namespace_labels(namespace)),
        }
}

/// The intersection of a listener's hostname and a route's hostnames, deduplicated, in order. A route without hostnames
/// matches every host.
pub fn intersection(listener: &HostPattern, hostnames: &[HostPattern]) -> Vec<HostPattern> {
    let any = [HostPattern::Any];
    let own = if hostnames.is_empty() { &any[..] } else { hostnames };
    let mut hosts: Vec<HostPattern> = Vec::with_capacity(own.len());
    for host in own.iter().filter_map(|host| host.intersect(listener)) {
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    hosts
}

/// Hosts of accepted HTTPRoutes and GRPCRoutes, by Gateway and listener.
#[derive(Default)]
struct HostnameConflicts(HashMap<(usize, usize), [PatternSet; 2]>);

impl HostnameConflicts {
    /// Drops listeners where an earlier route of the other kind has an overlapping host, and returns a note that names
    /// them. Records the hosts on the others.
    fn retain(
        &mut self,
        route: &GatewayRoute,
        gateway: usize,
        state: &GatewayState,
        attachments: Vec<Attachment>,
    ) -> Result<(Vec<Attachment>, String), Condition> {
        let (own, other, rival) = match route.kind {
            Kind::HttpRoute => (0, 1, Kind::GrpcRoute),
            Kind::GrpcRoute => (1, 0, Kind::HttpRoute),
            _ => return Ok((attachments, String::new())),
        };
        let (mut kept, mut lost) = (Vec::new(), Vec::new());
        for attachment in attachments {
            let sets = self.0.entry((gateway, attachment.listener)).or_default();
            if attachment.hosts.iter().any(|host| sets[other].meets(host)) {
                lost.extend(state.listeners.get(attachment.listener).map(|placed| &*placed.listener.name));
            } else {
                attachment.hosts.iter().for_each(|host| sets[own].insert(host));
                kept.push(attachment);
            }
        }
        if kept.is_empty() {
            let message = format!(
                "{} has one of the hostnames on the same listener, which cannot be shared; choose another",
                describe_winner(rival)
            );
            return Err(Condition::new("Accepted", false, "HostnameConflict", message));
        }
        let note = match lost.is_empty() {
            true => String::new(),
            false => format!("not on {}, where {} has one of the hostnames", lost.join(", "), describe_winner(rival)),
        };
        Ok((kept, note))
    }
}

/// Describes, for a message, a route of this kind that takes precedence.
fn describe_winner(kind: Kind) -> String {
    format!("{} {kind} of higher precedence", kind.article())
}
