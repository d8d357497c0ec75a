//! Finds Gateway API objects that this agent does not serve, so that [`crate::gateway::status`] omits them.

use router_api::gateway_api::types::{CONTROLLER_NAME, GROUP, Gateway, GatewayClass, GatewayRoute, ParentRef};
use router_api::resources::Resources;
use router_model::field::FieldPath;
use router_model::kind::Kind;
use router_model::object::ObjectRef;
use router_table::host_pattern::HostPattern;

use crate::gateway::claims::intersection;
use crate::gateway::inclusion::edges::{gateway_of, parent_of};
use crate::status::report::StatusReport;
use crate::warning::Unserved;

/// Why an object is not served, and what to change.
type WhyUnserved = (String, String);

/// Classes and Gateways of other controllers; routes attached only to these, or to no Gateway.
pub fn unserved(resources: &Resources, report: &StatusReport) -> Vec<Unserved> {
    let mut all = Vec::new();
    for class in resources.gateway_classes.iter().filter(|class| !is_of_sluice(class)) {
        all.push(Unserved {
            object: ObjectRef { kind: Kind::GatewayClass, key: class.meta.key.clone() },
            path: FieldPath::of(&["spec", "controllerName"]),
            hosts: Vec::new(),
            why: format!("it is of controller {}, so that nothing of its Gateways is served here", class.controller),
            advice: format!("write {CONTROLLER_NAME}, if it is meant for Sluice"),
        });
    }
    for gateway in resources.gateways.iter() {
        if let Some((why, advice)) = gateway_reason(resources, gateway) {
            let object = ObjectRef { kind: Kind::Gateway, key: gateway.meta.key.clone() };
            let path = FieldPath::of(&["spec", "gatewayClassName"]);
            all.push(Unserved { object, path, hosts: Vec::new(), why, advice });
        }
    }
    let Resources { http_routes, grpc_routes, tls_routes, .. } = resources;
    for route in http_routes.iter().chain(grpc_routes.iter()).chain(tls_routes.iter()) {
        let has_status = report.others.get(&route.object()).is_some_and(|status| !status.rows.is_empty());
        let parents = FieldPath::of(&["spec", "parentRefs"]);
        let unserved = |path, hosts, (why, advice)| Unserved { object: route.object(), path, hosts, why, advice };
        if route.parents.is_empty() && !has_status {
            let advice = format!("write spec.parentRefs with the name of a Gateway{}", gateway_advice(resources));
            let reason = ("it is attached to nothing: it has no parentRefs".to_owned(), advice);
            all.push(unserved(FieldPath::of(&["spec"]), hosts(route, None, None), reason));
        }
        for (i, parent) in route.parents.iter().enumerate() {
            let gateway = gateway_of(route, parent).and_then(|key| resources.gateways.get(&key));
            let reason = parent_reason(resources, route, parent, has_status);
            let hosts = || hosts(route, gateway.map(|gateway| &**gateway), Some(parent));
            all.extend(reason.map(|reason| unserved(parents.index(i), hosts(), reason)));
        }
    }
    all
}

fn is_of_sluice(class: &GatewayClass) -> bool {
    *class.controller == *CONTROLLER_NAME
}

/// Why a Gateway is not served; `None` if its class is Sluice's.
fn gateway_reason(resources: &Resources, gateway: &Gateway) -> Option<WhyUnserved> {
    let name = &gateway.class;
    let other = || {
        let own = resources.gateway_classes.iter().find(|class| is_of_sluice(class));
        own.map(|own| format!("write {}", own.meta.key.name))
    };
    match resources.gateway_classes.iter().find(|class| class.meta.key.name == *name) {
        Some(class) if is_of_sluice(class) => None,
        Some(class) => {
            let advice = || format!("name a GatewayClass of controller {CONTROLLER_NAME}");
            let why = format!("GatewayClass {name} is of controller {}, not of Sluice", class.controller);
            Some((why, other().unwrap_or_else(advice)))
        }
        None => {
            let advice = || format!("create it with spec.controllerName: {CONTROLLER_NAME}");
            Some((format!("there is no GatewayClass {name}"), other().unwrap_or_else(advice)))
        }
    }
}

/// Why a route does not attach to a `parentRefs` entry, if no status reports it. A parent of another controller is not
/// reported for a route that has another parent here.
fn parent_reason(
    resources: &Resources,
    route: &GatewayRoute,
    parent: &ParentRef,
    has_status: bool,
) -> Option<WhyUnserved> {
    if let Some(key) = gateway_of(route, parent) {
        return match resources.gateways.get(&key) {
            Some(gateway) => {
                let (why, _) = gateway_reason(resources, gateway).filter(|_| !has_status)?;
                let advice = format!(
                    "correct spec.gatewayClassName of the Gateway, or name another{}",
                    gateway_advice(resources)
                );
                Some((format!("its parent Gateway {key} is not served: {why}"), advice))
            }
            None if resources.gateways.versions_of(&key).is_some() => {
                Some((format!("its parent Gateway {key} is rejected"), "correct the Gateway".to_owned()))
            }
            None => {
                let advice = format!("create it, or name another{}", gateway_advice(resources));
                Some((format!("there is no Gateway {key}"), advice))
            }
        };
    }
    if has_status {
        return None;
    }
    match parent_of(route, parent) {
        // `slot_validation::warnings` reports parents that do not exist.
        Some(above) => resources
            .gateway_route(&above)
            .map(|_| (format!("its parent {above} is not served itself"), format!("look at {above} first"))),
        None => {
            let object = &parent.object;
            let group = if object.group.is_empty() { "core" } else { &*object.group };
            let why = format!("its parent {} {} of group {group} serves nothing here", object.kind, object.name);
            Some((why, format!("name a Gateway of group {GROUP}{}", gateway_advice(resources))))
        }
    }
}

/// Advice that names a Gateway of Sluice's classes, if there is one.
fn gateway_advice(resources: &Resources) -> String {
    let mut served = resources.gateways.iter().filter(|gateway| gateway_reason(resources, gateway).is_none());
    served.next().map(|gateway| format!(", such as {}", gateway.meta.key)).unwrap_or_default()
}

/// Hosts that a route claims, intersected with the hostnames of the listeners that `parent` names.
fn hosts(route: &GatewayRoute, gateway: Option<&Gateway>, parent: Option<&ParentRef>) -> Vec<String> {
    let section = parent.and_then(|parent| parent.section.as_ref());
    let listeners = gateway.into_iter().flat_map(|gateway| &gateway.listeners);
    let named = listeners.filter(|listener| section.is_none_or(|section| *section == listener.name));
    let mut hosts: Vec<HostPattern> =
        named.flat_map(|listener| intersection(&listener.hostname, &route.hostnames)).collect();
    if hosts.is_empty() {
        hosts = intersection(&HostPattern::Any, &route.hostnames);
    }
    let mut texts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    texts.sort();
    texts.dedup();
    texts
}
