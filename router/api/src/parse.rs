//! Objects from their manifests: API-server defaulting, validation with field paths, and types that cannot be wrong.
//!
//! An object is read once; what comes out is shared behind an `Arc` for as long as the manifest stays the same.

use std::sync::Arc;

use router_model::certificate::MaterialCache;
use router_model::field::{FieldError, FieldPath, Findings};
use router_model::kind::Kind;
use router_model::object::{Manifest, ObjectKey, Origin};
use serde_json::Value;

use crate::defaults::Defaults;
use crate::fields::Fields;
use crate::immutable::check_update;
use crate::kubernetes::{config_map, endpoints, secret};
use crate::meta::{self, set_namespace};
use crate::object::Object;
use crate::openshift::route::Route;
use crate::openshift::{ingress_controller, route};
use crate::{contour, gateway_api};

/// What came of one manifest.
#[derive(Debug)]
pub struct Parsed {
    /// What it is.
    pub outcome: Outcome,
    /// Oddities that stop nothing.
    pub warnings: Vec<FieldError>,
}

/// See [`Parsed`].
#[derive(Debug)]
pub enum Outcome {
    /// A good object.
    Good(Object),
    /// An object of a known kind and with a name that breaks the API's rules.
    Refused {
        /// Its kind.
        kind: Kind,
        /// Its key.
        key: ObjectKey,
        /// All that is wrong, in order of fields.
        errors: Vec<FieldError>,
        /// The object as it was written.
        manifest: Manifest,
    },
    /// A kind that is not read.
    UnknownKind {
        /// `apiVersion`.
        api_version: String,
        /// `kind`.
        kind: String,
    },
    /// No object at all: no `apiVersion`, `kind` or name.
    Unidentified(Vec<FieldError>),
}

/// Reads one object.
pub fn parse(value: Value, origin: Origin, defaults: &Defaults, materials: &mut MaterialCache) -> Parsed {
    parse_after(value, None, origin, defaults, materials)
}

/// Reads one object; `old` is the stored version that it is to replace.
pub(crate) fn parse_after(
    value: Value,
    old: Option<&Object>,
    origin: Origin,
    defaults: &Defaults,
    materials: &mut MaterialCache,
) -> Parsed {
    let mut findings = Findings::default();
    let outcome = parse_object(value, old, origin, defaults, materials, &mut findings);
    Parsed { outcome, warnings: findings.warnings }
}

fn parse_object(
    mut value: Value,
    old: Option<&Object>,
    origin: Origin,
    defaults: &Defaults,
    materials: &mut MaterialCache,
    findings: &mut Findings,
) -> Outcome {
    let mut fields = Fields::of(Some(&value), FieldPath::root(), findings);
    let api_version = fields.text("apiVersion", findings).unwrap_or_default().to_owned();
    let kind_name = fields.text("kind", findings).unwrap_or_default().to_owned();
    for (name, text) in [("apiVersion", &api_version), ("kind", &kind_name)] {
        if text.is_empty() && fields.is_present() {
            let message = "Required value: write what the object is, for example `apiVersion: route.openshift.io/v1` \
                           and `kind: Route`";
            findings.error(fields.path(name), message);
        }
    }
    if !findings.errors.is_empty() {
        return Outcome::Unidentified(std::mem::take(&mut findings.errors));
    }
    let Some(kind) = Kind::of(&api_version, &kind_name) else {
        return Outcome::UnknownKind { api_version, kind: kind_name };
    };
    let Some(meta) = meta::parse(&mut fields, kind, origin, findings) else {
        return Outcome::Unidentified(std::mem::take(&mut findings.errors));
    };
    fields.ignore(&["status"]);
    let key = meta.key.clone();
    let object = match kind {
        Kind::Route => {
            route::parse(meta, fields, old_route(old, &key), defaults, materials, findings).map(|mut route| {
                // What is refused, now or as an update, is kept as it was written.
                if findings.errors.is_empty() {
                    set_namespace(&mut value, &key);
                    let written = if old.is_some() { value.clone() } else { std::mem::take(&mut value) };
                    route.manifest = route::stored::stored(written, &route);
                }
                route.share(&mut materials.texts);
                Object::Route(Arc::new(route))
            })
        }
        Kind::IngressController => ingress_controller::parse(meta, fields, findings).map(|mut controller| {
            set_namespace(&mut value, &key);
            controller.manifest = Manifest::new(&value);
            Object::IngressController(Arc::new(controller))
        }),
        Kind::Service => {
            Some(Object::Service(Arc::new(endpoints::service(meta, fields, &mut materials.texts, findings))))
        }
        Kind::EndpointSlice => {
            endpoints::slice(meta, fields, findings).map(|slice| Object::EndpointSlice(Arc::new(slice)))
        }
        Kind::Secret => Some(Object::Secret(Arc::new(secret::secret(meta, fields, materials, findings)))),
        Kind::Namespace => Some(Object::Namespace(Arc::new(secret::namespace(meta, fields, findings)))),
        Kind::ConfigMap => Some(Object::ConfigMap(Arc::new(config_map::config_map(meta, fields, materials, findings)))),
        Kind::CustomResourceDefinition
        | Kind::GatewayClass
        | Kind::Gateway
        | Kind::HttpRoute
        | Kind::GrpcRoute
        | Kind::TlsRoute
        | Kind::ReferenceGrant
        | Kind::BackendTlsPolicy
        | Kind::RouteSlot => gateway_api::parse(kind, meta, &value, &mut materials.texts, findings),
        Kind::IngressRoute | Kind::HttpProxy | Kind::TlsCertificateDelegation => {
            contour::parse(kind, meta, &value, &mut materials.texts, findings)
        }
    };
    if let (Some(old), Some(new)) = (old, &object) {
        findings.errors.extend(check_update(old, new, defaults).errors);
    }
    match object {
        Some(object) if findings.errors.is_empty() => Outcome::Good(object),
        _ => {
            set_namespace(&mut value, &key);
            let errors = std::mem::take(&mut findings.errors);
            Outcome::Refused { kind, key, errors, manifest: Manifest::new(&value) }
        }
    }
}

fn old_route<'o>(old: Option<&'o Object>, key: &ObjectKey) -> Option<&'o Route> {
    match old {
        Some(Object::Route(route)) if route.meta.key == *key => Some(route),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
