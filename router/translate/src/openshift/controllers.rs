//! From IngressControllers to routers: names, domains, ports, default certificates, and each controller's status.

mod policy;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use router_api::openshift::ingress_controller::{IngressController, NamespaceOwnership, WildcardAdmission};
use router_api::resources::Resources;
use router_model::certificate::Certificate;
use router_model::names::RouterName;
use router_model::object::ObjectKey;
use router_model::selector::LabelSelector;
use router_table::policy::RouterPolicy;

use crate::openshift::claims::AdmissionPolicy;
use crate::settings::Settings;
use crate::status::condition::{Condition, invalid_manifest, last_accepted_serves};
use crate::status::controller::ControllerStatus;
use crate::traffic_defaults::TrafficDefaults;
use crate::translator::RouterPorts;

/// Namespace of the Secrets that IngressControllers name, in OpenShift.
const CERTIFICATE_NAMESPACE: &str = "openshift-ingress";
/// Name of the implicit router if there is no IngressController.
const IMPLICIT: &str = "default";

/// A router to be served.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedRouter {
    /// The controller's name.
    pub name: RouterName,
    /// Fields that admission uses.
    pub policy: AdmissionPolicy,
    /// Selects namespaces by label.
    pub namespace_selector: LabelSelector,
    /// Selects Routes by label.
    pub route_selector: LabelSelector,
    /// Port for clear text.
    pub http_port: u16,
    /// Port for TLS.
    pub https_port: u16,
    /// Default certificate; `None` if the agent generates one.
    pub default_certificate: Option<Certificate>,
    /// Defaults for Routes that set nothing.
    pub traffic: TrafficDefaults,
    /// Policy for the traffic of all routes.
    pub served: Arc<RouterPolicy>,
    /// Why TLS is refused, if it is: the reason of condition `Available`.
    pub tls_fault: Option<&'static str>,
}

impl PlannedRouter {
    /// `status.ingress[].routerCanonicalHostname`.
    pub fn canonical_hostname(&self) -> String {
        format!("router-{}.{}", self.name, self.policy.domain)
    }

    /// The router as other APIs see it.
    pub fn ports(&self) -> RouterPorts {
        let (http, https) = (Some(self.http_port), Some(self.https_port));
        let (traffic, tls_fault) = (self.traffic, self.tls_fault);
        RouterPorts { name: self.name.clone(), http, https, traffic, tls_fault, gate: None }
    }
}

/// Routers in order of name, and the status of every controller.
#[derive(Debug)]
pub struct RouterPlan {
    /// The routers.
    pub routers: Vec<PlannedRouter>,
    /// By controller.
    pub statuses: BTreeMap<ObjectKey, ControllerStatus>,
}

/// Whether [`plan`] may differ from that of older objects.
pub fn may_differ(resources: &Resources, last: &Resources) -> bool {
    let mut config_maps = resources.config_maps.changes_since(&last.config_maps);
    let mut secrets = resources.secrets.changes_since(&last.secrets);
    resources.ingress_controllers.changes_since(&last.ingress_controllers).next().is_some()
        || config_maps.any(|changed| policy::uses(changed.key, resources))
        || secrets.any(|changed| {
            resources.ingress_controllers.iter().any(|controller| secrets_of(controller).any(|key| key == *changed.key))
        })
}

/// The Secrets that may be a controller's default certificate.
pub fn secrets_of(controller: &IngressController) -> impl Iterator<Item = ObjectKey> {
    let names = controller.default_certificate.iter();
    names.flat_map(|name| certificate_namespaces(controller).map(|namespace| ObjectKey::new(namespace, name)))
}

/// The ConfigMaps that a controller references.
pub fn config_maps_of(controller: &IngressController) -> impl Iterator<Item = ObjectKey> {
    policy::config_maps_of(controller)
}

/// Plans the routers. If controllers have the same name, domain or port, the oldest one gets it.
pub fn plan(resources: &Resources, settings: &Settings) -> RouterPlan {
    if resources.ingress_controllers.is_empty() {
        return RouterPlan { routers: vec![implicit(settings)], statuses: BTreeMap::new() };
    }
    let mut controllers: Vec<_> = resources.ingress_controllers.iter().collect();
    controllers.sort_by(|a, b| a.meta.age().cmp(&b.meta.age()));
    let mut taken = TakenValues::default();
    let mut plan = RouterPlan { routers: Vec::new(), statuses: BTreeMap::new() };
    for controller in controllers {
        let domain = controller.domain.clone().unwrap_or_else(|| settings.cluster_domain.clone());
        let mut status = ControllerStatus::new(controller, domain.clone(), ports(controller, settings));
        if let Some(router) = decide(controller, domain, resources, settings, &mut taken, &mut status) {
            plan.routers.push(router);
        }
        plan.statuses.insert(controller.meta.key.clone(), status);
    }
    for (key, versions) in resources.ingress_controllers.versions() {
        let Some(refused) = &versions.rejected else { continue };
        match plan.statuses.get_mut(key) {
            Some(status) => status.conditions.push(last_accepted_serves(refused)),
            None => {
                let status = ControllerStatus::rejected(invalid_manifest(refused));
                plan.statuses.insert(key.clone(), status);
            }
        }
    }
    plan.routers.sort_by(|a, b| a.name.cmp(&b.name));
    plan
}

fn implicit(settings: &Settings) -> PlannedRouter {
    PlannedRouter {
        name: RouterName(IMPLICIT.into()),
        policy: AdmissionPolicy {
            domain: settings.cluster_domain.clone(),
            ownership: NamespaceOwnership::default(),
            wildcards: WildcardAdmission::default(),
            domains: settings.domains.clone(),
        },
        namespace_selector: LabelSelector::default(),
        route_selector: LabelSelector::default(),
        http_port: settings.http_port,
        https_port: settings.https_port,
        default_certificate: None,
        traffic: TrafficDefaults::default(),
        served: Arc::default(),
        tls_fault: None,
    }
}

#[derive(Default)]
struct TakenValues<'r> {
    names: BTreeMap<Arc<str>, &'r IngressController>,
    domains: HashMap<String, &'r IngressController>,
    ports: HashMap<u16, &'r IngressController>,
}

fn decide<'r>(
    controller: &'r IngressController,
    domain: String,
    resources: &Resources,
    settings: &Settings,
    taken: &mut TakenValues<'r>,
    status: &mut ControllerStatus,
) -> Option<PlannedRouter> {
    let name = &controller.meta.key.name;
    if let Err(message) = take_identity(controller, &domain, taken) {
        status.conditions = vec![
            Condition::new("Admitted", false, "Invalid", message),
            Condition::new("Available", false, "NotAdmitted", "the IngressController is not admitted"),
        ];
        return None;
    }
    let (http_port, https_port) = ports(controller, settings);
    if let Err(message) = take_ports(controller, http_port, https_port, &mut taken.ports) {
        status.conditions = vec![
            Condition::new("Admitted", true, "Valid", ""),
            Condition::new("Available", false, "PortConflict", message.clone()),
            Condition::new("Degraded", true, "PortConflict", message),
        ];
        return None;
    }
    let mut degraded = Vec::new();
    let default_certificate = default_certificate(controller, resources).unwrap_or_else(|message| {
        degraded.push(("DefaultCertificateUnusable", message));
        None
    });
    let (served, faults) = policy::policy(controller, resources);
    let refuses_tls = faults.iter().find(|fault| fault.refuses_tls);
    let tls_fault = refuses_tls.map(|fault| fault.reason);
    let available = match refuses_tls {
        Some(fault) => Condition::new("Available", false, fault.reason, fault.message.clone()),
        None => Condition::new("Available", true, "", ""),
    };
    degraded.extend(faults.into_iter().map(|fault| (fault.reason, fault.message)));
    if !controller.without_effect.is_empty() {
        let fields: Vec<String> = controller.without_effect.iter().map(ToString::to_string).collect();
        let message = format!("these fields have no effect yet: {}", fields.join(", "));
        degraded.push(("FieldsWithoutEffect", message));
    }
    status.conditions = vec![Condition::new("Admitted", true, "Valid", ""), available, degraded_condition(&degraded)];
    Some(PlannedRouter {
        name: RouterName(name.clone()),
        policy: AdmissionPolicy {
            domain,
            ownership: controller.namespace_ownership,
            wildcards: controller.wildcard_admission,
            domains: settings.domains.clone(),
        },
        namespace_selector: controller.namespace_selector.clone(),
        route_selector: controller.route_selector.clone(),
        http_port,
        https_port,
        default_certificate,
        traffic: TrafficDefaults::of(controller),
        served: Arc::new(served),
        tls_fault,
    })
}

fn ports(controller: &IngressController, settings: &Settings) -> (u16, u16) {
    let publishing = &controller.publishing;
    (publishing.http_port.unwrap_or(settings.http_port), publishing.https_port.unwrap_or(settings.https_port))
}

/// Condition `Degraded`: the first reason, and all messages.
fn degraded_condition(degraded: &[(&'static str, String)]) -> Condition {
    let messages: Vec<&str> = degraded.iter().map(|(_, message)| message.as_str()).collect();
    let reason = degraded.first().map_or("", |(reason, _)| *reason);
    Condition::new("Degraded", !degraded.is_empty(), reason, messages.join("; "))
}

/// Why a controller takes precedence over another one.
fn words(owner: &IngressController, other: &IngressController) -> &'static str {
    owner.meta.seniority(&other.meta).words()
}

fn take_identity<'r>(
    controller: &'r IngressController,
    domain: &str,
    taken: &mut TakenValues<'r>,
) -> Result<(), String> {
    let name = &controller.meta.key.name;
    if is_made(name) {
        return Err(format!(
            "the name {name:?} is kept for the router of a port that only Gateways have; choose another"
        ));
    }
    if let Some(owner) = taken.names.get(name) {
        return Err(format!(
            "an IngressController of another namespace, which {}, has the name {name:?}; choose another",
            words(owner, controller)
        ));
    }
    if let Some(owner) = taken.domains.get(domain) {
        return Err(format!(
            "domain {domain:?} is that of IngressController {:?}, which {}; a domain cannot be changed: delete this one \
             and create it anew with another",
            owner.meta.key.name,
            words(owner, controller)
        ));
    }
    taken.names.insert(name.clone(), controller);
    taken.domains.insert(domain.to_owned(), controller);
    Ok(())
}

/// True if the name is reserved for routers created for listeners of Gateways.
pub fn is_made(name: &str) -> bool {
    name.strip_prefix("gateway-").is_some_and(|port| port.parse::<u16>().is_ok())
}

fn take_ports<'r>(
    controller: &'r IngressController,
    http_port: u16,
    https_port: u16,
    taken: &mut HashMap<u16, &'r IngressController>,
) -> Result<(), String> {
    const ADVICE: &str = "set spec.endpointPublishingStrategy.hostNetwork.httpPort and httpsPort";
    if http_port == https_port {
        return Err(format!("port {http_port} is wanted for both HTTP and HTTPS; {ADVICE}"));
    }
    for port in [http_port, https_port] {
        if let Some(owner) = taken.get(&port) {
            return Err(format!(
                "port {port} is that of IngressController {:?}, which {}; {ADVICE}",
                owner.meta.key.name,
                words(owner, controller)
            ));
        }
    }
    taken.insert(http_port, controller);
    taken.insert(https_port, controller);
    Ok(())
}

/// The namespaces in which the Secret of a controller is looked up, in order.
fn certificate_namespaces(controller: &IngressController) -> [&str; 2] {
    [CERTIFICATE_NAMESPACE, &controller.meta.key.namespace]
}

fn default_certificate(controller: &IngressController, resources: &Resources) -> Result<Option<Certificate>, String> {
    let Some(name) = &controller.default_certificate else { return Ok(None) };
    let namespaces = certificate_namespaces(controller);
    let secret = namespaces.iter().find_map(|namespace| resources.secrets.get(&ObjectKey::new(namespace, name)));
    let without = "a generated certificate is served";
    match secret.map(|secret| &secret.pair) {
        Some(Some(pair)) => Ok(Some(pair.clone())),
        Some(None) => {
            Err(format!("Secret {name:?} of spec.defaultCertificate has not type kubernetes.io/tls; {without}"))
        }
        None => Err(format!(
            "Secret {name:?} of spec.defaultCertificate is neither in {} nor in {}, or cannot be used; {without}",
            namespaces[0], namespaces[1]
        )),
    }
}

#[cfg(test)]
mod tests;
