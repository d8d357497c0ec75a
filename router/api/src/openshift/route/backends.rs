//! `spec.to`, `spec.alternateBackends`, `spec.port` (docs/openshift.md#backends).

use std::sync::Arc;

use router_model::field::{FieldPath, Findings};
use serde_json::Value;

use crate::fields::{Fields, describe};

/// Default weight of a backend.
pub const DEFAULT_WEIGHT: u16 = 100;
/// Maximum number of `alternateBackends`.
const MAX_ALTERNATES: usize = 3;

/// A service with its share of the traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// Service name, in the route's namespace.
    pub service: Arc<str>,
    /// 0 – 256, relative to the other backends.
    pub weight: u16,
}

/// `spec.port.targetPort`: compared with the name and with the number of endpoint ports, never with service ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetPort(pub Arc<str>);

impl TargetPort {
    /// Whether it selects an endpoint port of this name and number.
    pub fn matches(&self, name: &str, number: u16) -> bool {
        *self.0 == *name || self.0.parse() == Ok(number)
    }
}

/// Reads the backends. A duplicate service keeps its first position and its last weight.
pub fn parse(spec: &mut Fields<'_>, findings: &mut Findings) -> Vec<Backend> {
    let mut backends: Vec<Backend> = Vec::new();
    let to = spec.mapping("to", findings);
    let alternates = spec.list("alternateBackends", findings);
    if alternates.len() > MAX_ALTERNATES {
        let message = format!("has {} items; use at most {MAX_ALTERNATES}", alternates.len());
        findings.error(spec.path("alternateBackends"), message);
    }
    let alternates: Vec<_> =
        alternates.into_iter().map(|(path, item)| Fields::of(Some(item), path, findings)).collect();
    for fields in std::iter::once(to).chain(alternates) {
        let Some(backend) = backend(fields, findings) else { continue };
        match backends.iter_mut().find(|known| known.service == backend.service) {
            Some(known) => known.weight = backend.weight,
            None => backends.push(backend),
        }
    }
    backends
}

fn backend(mut fields: Fields<'_>, findings: &mut Findings) -> Option<Backend> {
    if let Some(kind) = fields.text("kind", findings).filter(|kind| *kind != "Service") {
        findings.error(fields.path("kind"), format!("Unsupported value: {kind:?}; write Service"));
    }
    let name = fields.text("name", findings);
    if name.is_none() {
        findings.error(fields.path("name"), "Required value: write the name of a Service of this namespace");
    }
    let weight = fields.number("weight", 0, 256, findings).unwrap_or(i64::from(DEFAULT_WEIGHT));
    fields.finish(findings);
    Some(Backend { service: name?.into(), weight: u16::try_from(weight).unwrap_or(DEFAULT_WEIGHT) })
}

/// Reads `spec.port.targetPort`.
pub fn target_port(spec: &mut Fields<'_>, findings: &mut Findings) -> Option<TargetPort> {
    let mut port = spec.mapping("port", findings);
    let path = port.path("targetPort");
    let is_present = port.is_present();
    let target = read_target(port.value("targetPort"), is_present, path, findings);
    port.finish(findings);
    target
}

fn read_target(
    value: Option<&Value>,
    is_present: bool,
    path: FieldPath,
    findings: &mut Findings,
) -> Option<TargetPort> {
    const ADVICE: &str = "write the name or the number of an endpoint port";
    match value {
        None if is_present => findings.error(path, format!("Required value: {ADVICE}")),
        None => {}
        Some(Value::String(text)) if !text.is_empty() => return Some(TargetPort(text.as_str().into())),
        Some(Value::Number(number)) if number.as_u64().is_some_and(|number| (1..=65535).contains(&number)) => {
            return Some(TargetPort(number.to_string().into()));
        }
        Some(Value::Number(number)) => findings.error(path, format!("Invalid value: {number}; {ADVICE}, 1 to 65535")),
        Some(Value::String(_)) => findings.error(path, format!("Invalid value: \"\"; {ADVICE}")),
        Some(other) => findings.error(path, format!("is {}; {ADVICE}", describe(other))),
    }
    None
}
