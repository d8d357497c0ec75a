//! Objects that this agent does not serve and that no status reports, with the reason and the fix.

use router_api::contour::types::ContourProxy;
use router_api::openshift::ingress_controller::IngressController;
use router_api::openshift::route::{Route, WildcardPolicy};
use router_api::resources::Resources;
use router_model::field::FieldPath;
use router_model::kind::Kind;
use router_model::object::ObjectRef;

use crate::gateway;
use crate::status::ingress::Ingress;
use crate::status::report::StatusReport;
use crate::warning::Unserved;

/// All such objects, given the statuses.
pub fn unserved(resources: &Resources, report: &StatusReport) -> Vec<Unserved> {
    let mut all = gateway::unserved(resources, report);
    let Resources { ingress_routes, http_proxies, .. } = resources;
    all.extend(ingress_routes.iter().chain(http_proxies.iter()).filter_map(|proxy| of_another_class(proxy)));
    let is_selected =
        |route: &Route| report.routes.get(&route.meta.key).is_some_and(|entries| !Ingress::is_empty(entries));
    let others = resources.routes.iter().filter(|route| !is_selected(route));
    all.extend(others.map(|route| unselected(route, resources)));
    all
}

/// An IngressRoute or HTTPProxy of another controller's class.
fn of_another_class(proxy: &ContourProxy) -> Option<Unserved> {
    let class = proxy.foreign_class.as_ref()?;
    let fqdn = proxy.virtual_host.iter().map(|host| match host.fqdn.starts_with('.') {
        true => format!("*{}", host.fqdn),
        false => host.fqdn.to_string(),
    });
    Some(Unserved {
        object: proxy.object(),
        path: class.path.clone(),
        hosts: fqdn.collect(),
        why: format!("it is of ingress class {:?}, which other controllers serve", class.name),
        advice: "write contour, or leave the class out".to_owned(),
    })
}

/// A Route that no router selects.
fn unselected(route: &Route, resources: &Resources) -> Unserved {
    let namespace = &route.meta.key.namespace;
    let namespace_labels = resources.namespace_labels(namespace);
    let reason = |controller: &IngressController| {
        let name = &controller.meta.key.name;
        if !controller.route_selector.matches(&route.meta.labels) {
            Some(format!("its labels are not those of spec.routeSelector of IngressController {name}"))
        } else if !controller.namespace_selector.matches(&namespace_labels) {
            let selector = "spec.namespaceSelector";
            Some(format!("the labels of Namespace {namespace} are not those of {selector} of IngressController {name}"))
        } else {
            None
        }
    };
    let mut reasons = resources.ingress_controllers.iter().filter_map(|controller| reason(controller));
    let (why, advice) = match (reasons.next(), reasons.count()) {
        (None, _) => ("there is no router".to_owned(), "look at the conditions of the IngressControllers"),
        (Some(first), others) => {
            let others = if others == 0 { String::new() } else { format!(", and {others} more do not select it") };
            (format!("no router selects it: {first}{others}"), "correct the labels or the selector")
        }
    };
    let hosts = match route.wildcard_policy {
        WildcardPolicy::Subdomain => route.host.split_once('.').map(|(_, domain)| format!("*.{domain}")),
        WildcardPolicy::None => Some(route.host.to_string()).filter(|host| !host.is_empty()),
    };
    Unserved {
        object: ObjectRef { kind: Kind::Route, key: route.meta.key.clone() },
        path: FieldPath::root(),
        hosts: hosts.into_iter().collect(),
        why,
        advice: advice.to_owned(),
    }
}

#[cfg(test)]
mod tests;
