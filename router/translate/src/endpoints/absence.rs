//! Why a service has no usable endpoint, in one wording for all APIs.

use std::collections::{BTreeSet, HashMap};

use router_api::kubernetes::endpoints::EndpointSlice;
use router_api::resources::Resources;
use router_model::object::ObjectKey;
use router_table::table::PortChoice;

use crate::endpoints::is_chosen;

/// Slices by namespace and name of their Service.
pub type SlicesOf<'r> = HashMap<(&'r str, &'r str), Vec<&'r EndpointSlice>>;

/// Indexes all slices.
pub fn slices_of(resources: &Resources) -> SlicesOf<'_> {
    let mut all = SlicesOf::new();
    for slice in resources.endpoint_slices.iter() {
        if let Some(service) = &slice.service {
            all.entry((&*slice.meta.key.namespace, &**service)).or_default().push(slice);
        }
    }
    all
}

/// Why a service has no usable endpoint for these ports, and the fix; `number` is that of the Service's port. The
/// caller has checked that there is none; so if nothing else is wrong, all addresses were filtered out.
pub fn absence(
    resources: &Resources,
    slices: &SlicesOf<'_>,
    service: &ObjectKey,
    (choice, number): (&PortChoice, Option<u16>),
) -> String {
    let known = resources.services.get(service);
    if known.is_some_and(|known| known.is_external) {
        return format!(
            "Service {service} is of type ExternalName, which has no endpoints; write EndpointSlices for it"
        );
    }
    let slices = slices.get(&(&*service.namespace, &*service.name)).map_or(&[][..], Vec::as_slice);
    let [first, ..] = slices else {
        return match resources.services.versions_of(service) {
            None => format!("Service {service} does not exist; create it, or name another"),
            Some(_) => format!(
                "Service {service} has no EndpointSlice; one needs the label kubernetes.io/service-name: {}",
                service.name
            ),
        };
    };
    if slices.iter().all(|slice| slice.is_of_names) {
        return format!(
            "the endpoints of EndpointSlice {} are names (addressType FQDN), which are not used; write addresses",
            first.meta.key
        );
    }
    // A port counts only in slices that have endpoints.
    let with_endpoints = || slices.iter().filter(|slice| !slice.endpoints.is_empty());
    if with_endpoints().next().is_none() {
        return match slices.iter().map(|slice| slice.unready).sum::<u32>() {
            0 => format!("the EndpointSlices of Service {service} list no endpoint; look at its selector and its pods"),
            _ => format!("no endpoint of Service {service} is ready; look at its pods"),
        };
    }
    let ports = || with_endpoints().flat_map(|slice| &slice.ports);
    if !ports().any(|port| is_chosen(choice, port)) {
        let numbers: BTreeSet<(u16, &str)> = ports().map(|port| (port.number, &*port.name)).collect();
        let list: Vec<String> =
            numbers.iter().map(|(number, name)| format!("{number} {name}").trim().to_owned()).collect();
        let list = if list.is_empty() { "no TCP port".to_owned() } else { list.join(", ") };
        return match choice {
            PortChoice::Target(target) => {
                let target = target.as_deref().unwrap_or("of TCP");
                format!("Service {service} has no port {target}; its ports are {list}: correct spec.port.targetPort")
            }
            PortChoice::Service { name, target, .. } => {
                format!(
                    "{} of Service {service} is none of its EndpointSlices', which have {list}: {}",
                    named(number.unwrap_or_default(), name, target.as_deref()),
                    hint(name)
                )
            }
        };
    }
    format!(
        "the endpoint addresses of Service {service} are loopback, link-local or metadata addresses, which are left out; \
         --endpoint-addresses any admits them"
    )
}

/// The port, with the name or target by which slices refer to it.
fn named(number: u16, name: &str, target: Option<&str>) -> String {
    match target {
        _ if !name.is_empty() => format!("port {number} (name {name:?})"),
        Some(target) if *target != *number.to_string() => format!("port {number} (targetPort {target})"),
        _ => format!("port {number}"),
    }
}

fn hint(name: &str) -> &'static str {
    if name.is_empty() {
        "correct its targetPort, or the slices' port"
    } else {
        "give the port of the Service and that of its slices one name"
    }
}
