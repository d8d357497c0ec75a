//! BackendTLSPolicy: TLS to the endpoints of Services, and verification of their certificates.
//!
//! A policy for one port of a Service takes precedence over one for the whole Service. If several policies have the
//! same target, the oldest one is in force (`creationTimestamp`, then namespace and name) and the others are
//! `Conflicted`. If the policy in force is invalid, requests to the Service fail: clear text would ignore its owner's
//! intent.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use router_api::gateway_api::types::{BackendTlsPolicy, CONTROLLER_NAME, GROUP, ObjectReference};
use router_api::kubernetes::config_map::CA_CERTIFICATE;
use router_api::resources::Resources;
use router_model::certificate::TrustRoots;
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef, Seniority};
use router_table::rule::BackendTls;
use rustls::RootCertStore;
use serde_json::{Value, json};

use super::conditions::{ReferenceErrors, conditions};
use crate::gateway::claims::age_order;
use crate::status::condition::Condition;
use crate::status::object_status::{ObjectStatus, ParentStatus};

/// Maximum length of `status.ancestors` (API schema).
const MAX_ANCESTORS: usize = 16;

/// A Service and the name of one of its ports; `None` for the whole Service.
type PolicyTarget = (ObjectKey, Option<Arc<str>>);

/// A target within the policy's namespace: the Service's name and the name of one of its ports; `None` for all ports.
type TargetName<'p> = (&'p Arc<str>, Option<&'p Arc<str>>);

/// All policies, resolved.
#[derive(Debug)]
pub struct BackendTlsPolicies {
    /// All policies, the oldest first.
    policies: Vec<Arc<BackendTlsPolicy>>,
    /// The policy in force for each target.
    winners: HashMap<PolicyTarget, Arc<BackendTlsPolicy>>,
    resolved: HashMap<ObjectKey, Resolved>,
}

/// The result of resolving one policy.
#[derive(Debug)]
struct Resolved {
    tls: Result<BackendTls, String>,
    accepted: Condition,
    references: Condition,
}

impl BackendTlsPolicies {
    /// All policies, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<BackendTlsPolicy>> {
        self.policies.iter()
    }

    /// Resolves the policies among these objects.
    pub fn new(resources: &Resources) -> Self {
        let mut policies: Vec<_> = resources.backend_tls_policies.iter().cloned().collect();
        policies.sort_by(|one, other| age_order(&one.meta, &other.meta));
        let mut winners = HashMap::new();
        for policy in &policies {
            for (service, port) in targets(policy) {
                winners.entry((service, port.cloned())).or_insert_with(|| Arc::clone(policy));
            }
        }
        let resolved = policies.iter().map(|policy| (policy.meta.key.clone(), resolve(policy, resources))).collect();
        BackendTlsPolicies { policies, winners, resolved }
    }

    /// TLS settings for the endpoints of a Service's port; `None` if no policy targets it.
    ///
    /// # Errors
    /// The policy in force is invalid, and why; nothing may be sent to these endpoints.
    pub fn tls_for(&self, resources: &Resources, service: &ObjectKey, port: u16) -> Option<Result<BackendTls, String>> {
        if self.winners.is_empty() {
            return None;
        }
        let ports = resources.services.get(service).map(|service| &service.ports);
        let name = ports.and_then(|ports| ports.iter().find(|known| known.number == port)).map(|port| &port.name);
        let port_policy = name.and_then(|name| self.winners.get(&(service.clone(), Some(name.clone()))));
        let policy = port_policy.or_else(|| self.winners.get(&(service.clone(), None)))?;
        self.resolved.get(&policy.meta.key).map(|resolved| resolved.tls.clone())
    }

    /// Statuses of the selected policies, with one entry of `status.ancestors` for each Gateway that reaches a targeted
    /// Service, at most 16. A policy without such a Gateway gets no status.
    pub fn statuses(
        &self,
        resources: &Resources,
        is_selected: &dyn Fn(&ObjectKey) -> bool,
        gateways_of: &dyn Fn(&ObjectKey) -> BTreeSet<ObjectKey>,
    ) -> BTreeMap<ObjectRef, ObjectStatus> {
        let status = |policy: &Arc<BackendTlsPolicy>| {
            let mut ancestors: BTreeMap<ObjectKey, Vec<TargetName<'_>>> = BTreeMap::new();
            for (target, section) in targets_of(policy) {
                for gateway in gateways_of(&service(policy, target)) {
                    ancestors.entry(gateway).or_default().push((&target.name, section.as_ref()));
                }
            }
            let resolved = self.resolved.get(&policy.meta.key).filter(|_| !ancestors.is_empty())?;
            let object = ObjectRef { kind: Kind::BackendTlsPolicy, key: policy.meta.key.clone() };
            Some((object, self.status_of(resources, policy, resolved, &ancestors)))
        };
        self.policies.iter().filter(|policy| is_selected(&policy.meta.key)).filter_map(status).collect()
    }

    fn status_of(
        &self,
        resources: &Resources,
        policy: &BackendTlsPolicy,
        resolved: &Resolved,
        ancestors: &BTreeMap<ObjectKey, Vec<TargetName<'_>>>,
    ) -> ObjectStatus {
        let (mut entries, mut rows): (Vec<Value>, _) = (Vec::new(), Vec::new());
        for (gateway, targets) in ancestors.iter().take(MAX_ANCESTORS) {
            let (accepted, winners) = self.accepted(resources, policy, resolved, targets);
            let conditions = conditions([&accepted, &resolved.references], policy.meta.generation);
            entries.push(json!({
                "ancestorRef": {
                    "group": GROUP,
                    "kind": Kind::Gateway.name(),
                    "namespace": &*gateway.namespace,
                    "name": &*gateway.name,
                },
                "controllerName": CONTROLLER_NAME,
                "conditions": conditions,
            }));
            rows.push(ParentStatus {
                parent: format!("{} {gateway}", Kind::Gateway),
                hosts: Vec::new(),
                admitted: accepted.holds,
                reason: accepted.reason,
                message: accepted.message,
                winners,
            });
        }
        ObjectStatus::new(&json!({ "ancestors": entries }), rows)
    }

    /// Condition `Accepted` for these targets of a policy, and the policies in force for its conflicted targets.
    fn accepted(
        &self,
        resources: &Resources,
        policy: &BackendTlsPolicy,
        resolved: &Resolved,
        targets: &[TargetName<'_>],
    ) -> (Condition, Vec<ObjectRef>) {
        let rejected = |reason: &str, message: String| Condition::new("Accepted", false, reason, message);
        let (mut conflicts, mut missing, mut in_force, mut winners) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for &(name, section) in targets {
            let service = ObjectKey { namespace: policy.meta.key.namespace.clone(), name: name.clone() };
            let text = section.map_or_else(|| name.to_string(), |port| format!("{name}#{port}"));
            match (resources.services.get(&service), section) {
                (None, _) => {
                    missing.push(format!("there is no Service {name}"));
                    continue;
                }
                (Some(known), Some(port)) if known.ports.iter().all(|known| known.name != *port) => {
                    missing.push(format!("no port of that name: {text}; write a port's name, or none"));
                    continue;
                }
                _ => {}
            }
            let winner = self.winners.get(&(service, section.cloned())).filter(|it| it.meta.key != policy.meta.key);
            if let Some(winner) = winner {
                let name = &winner.meta.key.name;
                conflicts.push(match winner.meta.seniority(&policy.meta) {
                    Seniority::Older => format!("{text} has the older policy {name}"),
                    other => format!("{text} has policy {name}, which {}", other.words()),
                });
                winners.push(ObjectRef { kind: Kind::BackendTlsPolicy, key: winner.meta.key.clone() });
            } else {
                in_force.push(text);
            }
        }
        // One condition covers all targets, so the message lists those for which the policy is in force.
        let still_in_force = match in_force.is_empty() {
            true => String::new(),
            false => format!("; in force for Service {}", in_force.join(", Service ")),
        };
        let condition = if !conflicts.is_empty() {
            rejected("Conflicted", format!("spec.targetRefs: Service {}{still_in_force}", conflicts.join(", Service ")))
        } else if !missing.is_empty() {
            rejected("TargetNotFound", format!("spec.targetRefs: {}{still_in_force}", missing.join("; ")))
        } else {
            resolved.accepted.clone()
        };
        (condition, winners)
    }
}

/// The Services among a policy's targets; other kinds have no endpoints to connect to.
fn targets_of(policy: &BackendTlsPolicy) -> impl Iterator<Item = (&ObjectReference, &Option<Arc<str>>)> {
    let is_service = |object: &ObjectReference| object.group.is_empty() && &*object.kind == Kind::Service.name();
    policy.targets.iter().filter(move |(object, _)| is_service(object)).map(|(object, section)| (object, section))
}

/// The Services that a policy targets.
pub fn services(policy: &BackendTlsPolicy) -> impl Iterator<Item = ObjectKey> {
    targets(policy).map(|(service, _)| service)
}

/// The ConfigMaps that a policy references for CA certificates.
pub fn config_maps(policy: &BackendTlsPolicy) -> impl Iterator<Item = ObjectKey> {
    let namespace = &policy.meta.key.namespace;
    let is_map =
        |reference: &&ObjectReference| reference.group.is_empty() && *reference.kind == *Kind::ConfigMap.name();
    let maps = policy.ca_certificates.iter().filter(is_map);
    maps.map(|map| ObjectKey { namespace: namespace.clone(), name: map.name.clone() })
}

fn targets(policy: &BackendTlsPolicy) -> impl Iterator<Item = (ObjectKey, Option<&Arc<str>>)> {
    targets_of(policy).map(|(object, section)| (service(policy, object), section.as_ref()))
}

fn service(policy: &BackendTlsPolicy, target: &ObjectReference) -> ObjectKey {
    ObjectKey { namespace: policy.meta.key.namespace.clone(), name: target.name.clone() }
}

fn resolve(policy: &BackendTlsPolicy, resources: &Resources) -> Resolved {
    let (roots, errors) = trust_roots(policy, resources);
    let references = errors.condition("ResolvedRefs", "ResolvedRefs");
    let rejected = |reason: &str, message: String| Condition::new("Accepted", false, reason, message);
    let usable = if !policy.unsupported.is_empty() {
        Err(rejected("Invalid", policy.unsupported.join("; ")))
    } else if roots.is_none() && !policy.system_roots {
        let message = "spec.validation.caCertificateRefs: none of them can be used, so requests are answered 5xx";
        Err(rejected("NoValidCACertificate", message.to_owned()))
    } else {
        let tls = BackendTls::new(&policy.hostname, roots, &policy.names);
        tls.map_err(|error| rejected("Invalid", format!("spec.validation: {error}")))
    };
    let accepted = match &usable {
        Ok(_) => Condition::new("Accepted", true, "Accepted", ""),
        Err(rejection) => rejection.clone(),
    };
    Resolved { tls: usable.map_err(|rejection| rejection.message), accepted, references }
}

/// CA certificates of all valid references, and the errors of the others.
fn trust_roots(policy: &BackendTlsPolicy, resources: &Resources) -> (Option<TrustRoots>, ReferenceErrors) {
    const INVALID: &str = "InvalidCACertificateRef";
    let (mut stores, mut errors) = (Vec::new(), ReferenceErrors::default());
    for (i, reference) in policy.ca_certificates.iter().enumerate() {
        let mut add_error = |reason, text: String| {
            errors.add(reason, format!("spec.validation.caCertificateRefs[{i}]: {text}"));
        };
        if !reference.group.is_empty() || &*reference.kind != Kind::ConfigMap.name() {
            add_error("InvalidKind", format!("{} is not read; write a reference to a ConfigMap", reference.kind));
            continue;
        }
        let name = &reference.name;
        let key = ObjectKey { namespace: policy.meta.key.namespace.clone(), name: name.clone() };
        match resources.config_maps.get(&key).map(|map| &map.ca) {
            None => add_error(INVALID, format!("there is no ConfigMap {name}; create it, or write another")),
            Some(None) => {
                add_error(INVALID, format!("ConfigMap {name} has no key {CA_CERTIFICATE}; write the CA there"))
            }
            Some(Some(Err(problem))) => add_error(INVALID, format!("ConfigMap {name}: {CA_CERTIFICATE} {problem}")),
            Some(Some(Ok(roots))) => stores.push(roots),
        }
    }
    let roots = match stores.as_slice() {
        [] => None,
        [only] => Some(TrustRoots::clone(only)),
        several => {
            let mut roots = RootCertStore::empty();
            roots.roots.extend(several.iter().flat_map(|store| store.roots.iter().cloned()));
            Some(Arc::new(roots).into())
        }
    };
    (roots, errors)
}

#[cfg(test)]
mod tests;
