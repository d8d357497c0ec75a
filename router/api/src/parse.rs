//! Parses manifests: API-server defaulting, validation with field paths, and validated types.
//!
//! An object is parsed once per version of its manifest, and shared behind an `Arc`.

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

/// The result of parsing one manifest.
#[derive(Debug)]
pub struct Parsed {
    /// The object, or why there is none.
    pub outcome: ParseOutcome,
    /// Warnings; they do not reject the object.
    pub warnings: Vec<FieldError>,
}

/// The object, or why there is none.
#[derive(Debug)]
pub enum ParseOutcome {
    /// A valid object.
    Good(Object),
    /// An invalid object of a supported kind, with a name.
    Refused {
        /// Its kind.
        kind: Kind,
        /// Its key.
        key: ObjectKey,
        /// The errors, in order of fields.
        errors: Vec<FieldError>,
        /// The manifest as written.
        manifest: Manifest,
    },
    /// An object of an unsupported kind.
    UnknownKind {
        /// `apiVersion`.
        api_version: String,
        /// `kind`.
        kind: String,
    },
    /// An object without `apiVersion`, `kind` or name.
    Unidentified(Vec<FieldError>),
}

/// Parses one object.
pub fn parse(value: Value, origin: Origin, defaults: &Defaults, materials: &mut MaterialCache) -> Parsed {
    parse_after(value, None, origin, defaults, materials)
}

/// Parses one object; `old` is the stored version that it replaces.
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
) -> ParseOutcome {
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
        return ParseOutcome::Unidentified(std::mem::take(&mut findings.errors));
    }
    let Some(kind) = Kind::of(&api_version, &kind_name) else {
        return ParseOutcome::UnknownKind { api_version, kind: kind_name };
    };
    let Some((mut meta, annotations)) = meta::parse(&mut fields, kind, origin, findings) else {
        return ParseOutcome::Unidentified(std::mem::take(&mut findings.errors));
    };
    meta.share(&mut materials.texts);
    fields.ignore(&["status"]);
    let key = meta.key.clone();
    let object = match kind {
        Kind::Route => route::parse(meta, &annotations, fields, old_route(old, &key), defaults, materials, findings)
            .map(|mut route| {
                // What is rejected, now or as an update, is kept as it was written.
                if findings.errors.is_empty() {
                    set_namespace(&mut value, &key);
                    let written = if old.is_some() { value.clone() } else { std::mem::take(&mut value) };
                    route.manifest = route::stored::stored(written, &route);
                }
                route.share(&mut materials.texts);
                Object::Route(Arc::new(route))
            }),
        Kind::IngressController => {
            ingress_controller::parse(meta, &annotations, fields, findings).map(|mut controller| {
                set_namespace(&mut value, &key);
                controller.manifest = Manifest::new(&value);
                Object::IngressController(Arc::new(controller))
            })
        }
        Kind::Service => Some(Object::Service(Arc::new(endpoints::service(
            meta,
            &annotations,
            fields,
            &mut materials.texts,
            findings,
        )))),
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
        | Kind::RouteSlot => gateway_api::parse(kind, meta, &annotations, &value, &mut materials.texts, findings),
        Kind::IngressRoute | Kind::HttpProxy | Kind::TlsCertificateDelegation => {
            contour::parse(kind, meta, &annotations, &value, findings)
        }
    };
    if let (Some(old), Some(new)) = (old, &object) {
        findings.errors.extend(check_update(old, new, defaults).errors);
    }
    match object {
        Some(object) if findings.errors.is_empty() => ParseOutcome::Good(object),
        _ => {
            set_namespace(&mut value, &key);
            let errors = std::mem::take(&mut findings.errors);
            ParseOutcome::Refused { kind, key, errors, manifest: Manifest::new(&value) }
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
