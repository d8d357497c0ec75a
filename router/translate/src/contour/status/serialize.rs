//! Serialises `status` as the APIs define it.

use router_api::contour::types::{ContourProxy, TlsCertificateDelegation, Violation};
use router_api::gateway_api::types::CONTROLLER_NAME;
use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::object::ObjectKey;
use serde_json::{Map, Value, json};

use super::super::walk::ProxyVisit;
use crate::contour::status::path_status::{PathStatus, Validity};
use crate::status::object_status::{ObjectStatus, ParentStatus};

/// Maximum length of `status.parents`.
const MAX_PARENTS: usize = 32;

/// The `status` of an object, with Sluice's `parents` for delegates.
pub fn status(proxy: &ContourProxy, path_status: &PathStatus, lines: &[(&ProxyVisit, &PathStatus)]) -> Value {
    let mut status = Map::new();
    let is_proxy = proxy.kind == Kind::HttpProxy;
    let description = match path_status.state {
        Validity::Invalid if is_proxy => "At least one error present, see Errors for details".to_owned(),
        Validity::Valid if is_proxy => path_status.description.replacen("valid", "Valid", 1),
        _ => path_status.description.clone(),
    };
    status.insert("currentStatus".to_owned(), json!(path_status.state.as_str()));
    status.insert("description".to_owned(), json!(description));
    if is_proxy {
        status.insert("conditions".to_owned(), json!([condition(proxy, path_status, &description)]));
    }
    let rows: Vec<Value> = lines.iter().filter_map(|(visit, path_status)| parent(visit, path_status)).collect();
    if !rows.is_empty() {
        let more = rows.len().saturating_sub(MAX_PARENTS);
        let mut rows: Vec<Value> = rows.into_iter().take(MAX_PARENTS).collect();
        if let Some(Value::Object(last)) = rows.last_mut().filter(|_| more > 0) {
            let text = last.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
            last.insert("description".to_owned(), json!(format!("{text} (and {more} more paths)")));
        }
        status.insert("parents".to_owned(), Value::Array(rows));
    }
    Value::Object(status)
}

/// One path to an object: the parent, the host and the result.
fn parent(visit: &ProxyVisit, path_status: &PathStatus) -> Option<Value> {
    let (parent, via) = visit.parent()?;
    let group = parent.kind.api_version().split('/').next().unwrap_or_default();
    let path = visit.path.iter().map(|element| match &*element.via {
        "" => element.object.key.to_string(),
        via => format!("{via} -> {}", element.object.key),
    });
    let mut reference = json!({
        "group": group,
        "kind": parent.kind.name(),
        "namespace": &*parent.key.namespace,
        "name": &*parent.key.name,
    });
    if !via.is_empty() {
        reference["sectionName"] = json!(via);
    }
    Some(json!({
        "parentRef": reference,
        "controllerName": CONTROLLER_NAME,
        "fqdn": &*visit.host,
        "path": path.collect::<Vec<_>>().join(" "),
        "currentStatus": path_status.state.as_str(),
        "description": path_status.description,
    }))
}

/// An HTTPProxy's condition `Valid`.
fn condition(proxy: &ContourProxy, path_status: &PathStatus, message: &str) -> Value {
    let is_valid = path_status.state == Validity::Valid;
    let reason = match path_status.state {
        Validity::Valid => "Valid",
        Validity::Orphaned => "Orphaned",
        Validity::Invalid => "ErrorPresent",
    };
    let mut condition = json!({
        "type": "Valid",
        "status": if is_valid { "True" } else { "False" },
        "reason": reason,
        "message": message,
        "observedGeneration": proxy.meta.generation,
    });
    if !is_valid {
        condition["errors"] = details(&path_status.faults);
    }
    if !path_status.warnings.is_empty() {
        condition["warnings"] = details(&path_status.warnings);
    }
    condition
}

/// Violations or warnings as `errors` or `warnings` entries.
fn details(faults: &[Violation]) -> Value {
    let details = faults
        .iter()
        .map(|fault| json!({ "type": fault.kind, "status": "True", "reason": fault.reason, "message": fault.message }));
    details.collect()
}

/// The status of a TLSCertificateDelegation.
pub fn certificate_delegation(object: &TlsCertificateDelegation, resources: &Resources) -> ObjectStatus {
    let mut problems = Vec::new();
    for (at, (secret, targets)) in object.delegations.iter().enumerate() {
        let key = ObjectKey { namespace: object.meta.key.namespace.clone(), name: secret.clone() };
        if targets.is_empty() {
            problems.push(format!("delegations[{at}]: targetNamespaces is empty, so no namespace may use the Secret"));
        } else if resources.secrets.get(&key).is_none_or(|secret| secret.pair.is_none() && secret.ca.is_none()) {
            problems.push(format!("delegations[{at}]: TLS Secret [{secret}] not found or is malformed"));
        }
    }
    let is_valid = problems.is_empty();
    let message = if is_valid { "Valid TLSCertificateDelegation".to_owned() } else { problems.join("; ") };
    let condition = json!({
        "type": "Valid",
        "status": if is_valid { "True" } else { "False" },
        "reason": if is_valid { "Valid" } else { "ErrorPresent" },
        "message": &message,
        "observedGeneration": object.meta.generation,
    });
    let reason = if is_valid { Validity::Valid } else { Validity::Invalid }.reason().to_owned();
    let row = ParentStatus { admitted: is_valid, reason, message, ..ParentStatus::default() };
    ObjectStatus::new(&json!({ "conditions": [condition] }), vec![row])
}
