//! Owners of hosts in an explanation: objects with source, age and conditions.

use router_api::object::Object;
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use router_table::table::RouterTable;

use crate::explain::explanation::{Owner, OwnerCondition};
use crate::explain::facts::Facts;
use crate::status::ingress::Ingress;
use crate::status::object_status::ParentStatus;

/// A Route, with its conditions on a router.
pub fn owner(facts: Facts<'_>, router: Option<&RouterTable>, key: &ObjectKey) -> Owner {
    let entries = facts.report.routes.get(key).map(Ingress::to_vec).unwrap_or_default();
    let conditions = entries
        .iter()
        .filter(|entry| router.is_none_or(|router| router.name == entry.router_name))
        .flat_map(|entry| entry.conditions.iter())
        .map(|condition| OwnerCondition {
            r#type: condition.kind.to_owned(),
            status: condition.status().to_owned(),
            reason: condition.reason.to_string(),
            message: condition.message.to_string(),
        })
        .collect();
    object(facts, &ObjectRef { kind: Kind::Route, key: key.clone() }, conditions)
}

/// An object, with its conditions on a router (a Route) or for all parents (other kinds).
pub fn owner_of(facts: Facts<'_>, router: Option<&RouterTable>, who: &ObjectRef) -> Owner {
    match who.kind {
        Kind::Route => owner(facts, router, &who.key),
        _ => object(facts, who, object_conditions(facts, who, None)),
    }
}

/// Conditions of a Gateway API or Contour object, for one parent or for all.
pub fn object_conditions(facts: Facts<'_>, who: &ObjectRef, parent: Option<&str>) -> Vec<OwnerCondition> {
    let status = facts.report.others.get(who);
    let rows =
        status.iter().flat_map(|status| &status.rows).filter(|row| parent.is_none_or(|parent| *row.parent == *parent));
    let condition = |row: &ParentStatus| OwnerCondition {
        r#type: if row.parent.is_empty() { "Accepted".to_owned() } else { format!("Accepted by {}", row.parent) },
        status: if row.admitted { "True" } else { "False" }.to_owned(),
        reason: row.reason.clone(),
        message: row.message.clone(),
    };
    rows.map(condition).collect()
}

/// An object with these conditions.
pub fn object(facts: Facts<'_>, who: &ObjectRef, conditions: Vec<OwnerCondition>) -> Owner {
    let object = facts.resources.object(who.kind, &who.key);
    let meta = object.as_ref().map(Object::meta);
    let source = meta.filter(|meta| !meta.origin.file.is_empty());
    Owner {
        kind: who.kind.to_string(),
        namespace: who.key.namespace.to_string(),
        name: who.key.name.to_string(),
        source: source.map(|meta| format!("{}:{}", meta.origin.file, meta.origin.line)),
        created: meta.and_then(|meta| meta.created.0),
        conditions,
    }
}
