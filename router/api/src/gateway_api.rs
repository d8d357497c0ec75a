//! Gateway API objects (`gateway.networking.k8s.io`, as of 1.6.1) and Sluice's RouteSlot: defaults as the API server
//! sets them, and the checks of the API's CustomResourceDefinitions, including CEL rules. Valid values that Sluice does
//! not support are not errors: they are listed in `unsupported`, and a condition reports them.

mod defaults;
mod filters;
mod gateway;
mod matches;
mod policies;
mod read;
mod references;
mod route;
pub mod types;

use std::sync::Arc;

use router_model::field::{FieldPath, Findings};
use router_model::kind::Kind;
use router_model::object::{Interner, Manifest, Meta};
use serde_json::Value;

use super::fields::Fields;
use crate::meta::{Annotations, set_namespace};
use crate::object::Object;

/// Reads an object of one of these kinds; `None` for other kinds and on some errors.
pub(crate) fn parse(
    kind: Kind,
    meta: Meta,
    annotations: &Annotations,
    written: &Value,
    texts: &mut Interner,
    findings: &mut Findings,
) -> Option<Object> {
    // As in the API server: defaults first, then checks.
    let mut stored = written.clone();
    set_namespace(&mut stored, &meta.key);
    defaults::fill(kind, &mut stored);
    let mut object = Fields::of(Some(&stored), FieldPath::root(), findings);
    object.ignore(&["apiVersion", "kind", "metadata", "status"]);
    if kind == Kind::CustomResourceDefinition {
        return Some(Object::CustomResourceDefinition(Arc::new(policies::definition(meta, annotations, &stored))));
    }
    let mut spec = object.mapping("spec", findings);
    if object.value("spec").is_none() {
        findings.error(object.path("spec"), format!("Required value: write what the {kind} is to do"));
        return None;
    }
    object.finish(findings);
    let manifest = || Manifest::new(&stored);
    let parsed = match kind {
        Kind::GatewayClass => {
            gateway::class(meta, &mut spec, manifest(), findings).map(|it| Object::GatewayClass(Arc::new(it)))
        }
        Kind::Gateway => {
            let gateway = gateway::gateway(meta, annotations, &mut spec, manifest(), findings);
            gateway.map(|it| Object::Gateway(Arc::new(it)))
        }
        Kind::HttpRoute | Kind::GrpcRoute | Kind::TlsRoute => {
            let mut route = route::route(kind, meta, &mut spec, manifest(), findings);
            route.share(texts);
            let route = Arc::new(route);
            Some(match kind {
                Kind::HttpRoute => Object::HttpRoute(route),
                Kind::GrpcRoute => Object::GrpcRoute(route),
                _ => Object::TlsRoute(route),
            })
        }
        Kind::ReferenceGrant => {
            Some(Object::ReferenceGrant(Arc::new(policies::reference_grant(meta, &mut spec, findings))))
        }
        Kind::BackendTlsPolicy => {
            let policy = policies::backend_tls(meta, &mut spec, manifest(), findings);
            policy.map(|it| Object::BackendTlsPolicy(Arc::new(it)))
        }
        Kind::RouteSlot => {
            Some(Object::RouteSlot(Arc::new(policies::route_slot(meta, &mut spec, manifest(), findings))))
        }
        _ => None,
    };
    spec.finish(findings);
    parsed
}

#[cfg(test)]
mod tests;
