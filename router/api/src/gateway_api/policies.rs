//! ReferenceGrant, BackendTLSPolicy, RouteSlot, and CustomResourceDefinition.

use std::sync::Arc;

use router_model::field::{FieldPath, Findings};
use router_model::object::{Manifest, Meta};
use router_table::rule::backend_tls::SubjectName;
use serde_json::Value;

use super::gateway::{SLOT, allowed_routes};
use super::read::{self, Unsupported};
use super::references;
use crate::fields::Fields;
use crate::gateway_api::types::{BUNDLE_VERSION, BackendTlsPolicy, GROUP, ObjectReference, ReferenceGrant, RouteSlot};
use crate::meta::Annotations;
use crate::object::{BundleVersion, CustomResourceDefinition};

const MAX_GRANTS: usize = 16;
const MAX_TARGETS: usize = 16;
const MAX_CERTIFICATES: usize = 8;
const MAX_NAMES: usize = 5;
const MAX_URI: usize = 253;

/// Reads a ReferenceGrant.
pub fn reference_grant(meta: Meta, spec: &mut Fields<'_>, findings: &mut Findings) -> ReferenceGrant {
    let mut from = Vec::new();
    for (path, item) in read::list(spec, "from", 1, MAX_GRANTS, findings) {
        let mut entry = Fields::of(Some(item), path, findings);
        let (group, kind) = group_and_kind(&mut entry, findings);
        let namespace = references::namespace(&mut entry, findings);
        if entry.value("namespace").is_none_or(|value| value == "") {
            findings
                .error(entry.path("namespace"), "Required value: write the namespace that may refer to objects here");
        }
        entry.finish(findings);
        if let (Some(group), Some(kind), Some(namespace)) = (group, kind, namespace) {
            from.push((group, kind, namespace));
        }
    }
    let mut to = Vec::new();
    for (path, item) in read::list(spec, "to", 1, MAX_GRANTS, findings) {
        let mut entry = Fields::of(Some(item), path, findings);
        let (group, kind) = group_and_kind(&mut entry, findings);
        let name = entry.text("name", findings);
        let fits = name.is_none_or(|name| read::fits(name, read::MAX_TEXT, entry.path("name"), findings));
        entry.finish(findings);
        if let (Some(group), Some(kind), true) = (group, kind, fits) {
            to.push((group, kind, name.map(Arc::from)));
        }
    }
    ReferenceGrant { meta, from, to }
}

fn group_and_kind(entry: &mut Fields<'_>, findings: &mut Findings) -> (Option<Arc<str>>, Option<Arc<str>>) {
    if entry.value("group").is_none() {
        findings.error(entry.path("group"), "Required value: write the group of the kind, \"\" for the core group");
    }
    (references::group(entry, findings), references::kind(entry, findings))
}

/// Reads a BackendTLSPolicy.
pub fn backend_tls(
    meta: Meta,
    spec: &mut Fields<'_>,
    manifest: Manifest,
    findings: &mut Findings,
) -> Option<BackendTlsPolicy> {
    let mut unsupported = Unsupported::default();
    let targets = targets(spec, findings);
    for name in spec.text_map("options", findings).keys() {
        unsupported.add(spec.path("options").key(name), "no TLS option is known; remove it");
    }
    let mut validation = spec.mapping("validation", findings);
    let mut ca_certificates: Vec<ObjectReference> = Vec::new();
    for (path, item) in read::list(&mut validation, "caCertificateRefs", 0, MAX_CERTIFICATES, findings) {
        let mut entry = Fields::of(Some(item), path, findings);
        ca_certificates.extend(references::local(&mut entry, findings));
        entry.finish(findings);
    }
    let has_references =
        validation.value("caCertificateRefs").and_then(Value::as_array).is_some_and(|it| !it.is_empty());
    let known = validation.text("wellKnownCACertificates", findings);
    match (has_references, known) {
        (true, Some(_)) => {
            let message = "Forbidden: caCertificateRefs says whom to trust already; remove one of the two";
            findings.error(validation.path("wellKnownCACertificates"), message);
        }
        (false, None) => {
            let message =
                "Required value: write references to ConfigMaps with a CA, or wellKnownCACertificates: System";
            findings.error(validation.path("caCertificateRefs"), message);
        }
        (_, Some(other)) if other != "System" && !other.contains('/') => {
            let message = format!("Unsupported value: {other:?}; write System");
            findings.error(validation.path("wellKnownCACertificates"), message);
        }
        (_, Some(other)) if other != "System" => {
            let message = format!("{other:?} is not known; write System, or caCertificateRefs");
            unsupported.add(validation.path("wellKnownCACertificates"), message);
        }
        _ => {}
    }
    let hostname = read::required(&mut validation, "hostname", "the name in the backend's certificate", findings)
        .and_then(|text| read::precise_host(text, text, &validation.path("hostname"), findings));
    let names = alternative_names(&mut validation, findings);
    validation.finish(findings);
    Some(BackendTlsPolicy {
        meta,
        manifest,
        targets,
        ca_certificates,
        system_roots: known == Some("System"),
        hostname: hostname?,
        names,
        unsupported: unsupported.into_texts(),
    })
}

fn targets(spec: &mut Fields<'_>, findings: &mut Findings) -> Vec<(ObjectReference, Option<Arc<str>>)> {
    let mut targets: Vec<(ObjectReference, Option<Arc<str>>)> = Vec::new();
    for (path, item) in read::list(spec, "targetRefs", 1, MAX_TARGETS, findings) {
        let mut entry = Fields::of(Some(item), path.clone(), findings);
        let object = references::local(&mut entry, findings);
        let section = read::section(&mut entry, "sectionName", findings);
        entry.finish(findings);
        let Some(object) = object else { continue };
        let clashes = targets
            .iter()
            .any(|(known, other)| *known == object && (*other == section || other.is_some() != section.is_some()));
        if clashes {
            let message = "names a target that stands here twice; remove one, or write another sectionName in each";
            findings.error(path, message);
        }
        targets.push((object, section));
    }
    targets
}

fn alternative_names(validation: &mut Fields<'_>, findings: &mut Findings) -> Vec<SubjectName> {
    let mut names = Vec::new();
    for (path, item) in read::list(validation, "subjectAltNames", 0, MAX_NAMES, findings) {
        let mut entry = Fields::of(Some(item), path.clone(), findings);
        let kind = read::required_word(&mut entry, "type", &["Hostname", "URI"], findings);
        let hostname = entry.text("hostname", findings);
        let uri = entry.text("uri", findings);
        entry.finish(findings);
        let (needed, other) = match kind {
            Some("Hostname") => (("hostname", hostname), ("uri", uri)),
            Some(_) => (("uri", uri), ("hostname", hostname)),
            None => continue,
        };
        if needed.1.is_none() {
            findings.error(path.key(needed.0), format!("Required value: write a {}, or another type", needed.0));
        }
        if other.1.is_some() {
            findings.error(path.key(other.0), "Forbidden: the type is another; remove it, or write a name of its own");
        }
        let path = path.key(needed.0);
        match needed {
            ("hostname", Some(text)) => names.extend(read::host_pattern(text, &path, findings).map(SubjectName::Host)),
            (_, Some(text)) => names.extend(absolute_uri(text, path, findings).map(SubjectName::Uri)),
            _ => {}
        }
    }
    names
}

/// `AbsoluteURI`: a scheme, a colon and a rest of URI characters (RFC 3986 §4.3).
fn absolute_uri(text: &str, path: FieldPath, findings: &mut Findings) -> Option<Arc<str>> {
    let is_scheme = |scheme: &str| {
        let others = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(others)
    };
    let is_uri = text.bytes().all(|byte| byte.is_ascii_graphic())
        && text.split_once(':').is_some_and(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty());
    if !is_uri {
        let advice = "write a whole URI, such as spiffe://example.com/name";
        findings.error(path, format!("Invalid value: {text:?}: {advice}"));
        return None;
    }
    read::fits(text, MAX_URI, path, findings).then(|| text.into())
}

/// Reads a RouteSlot.
pub fn route_slot(meta: Meta, spec: &mut Fields<'_>, manifest: Manifest, findings: &mut Findings) -> RouteSlot {
    let allowed = allowed_routes(spec.mapping("allowedRoutes", findings), &SLOT, findings);
    RouteSlot { meta, manifest, allowed }
}

/// Reads a CustomResourceDefinition without checks.
pub fn definition(meta: Meta, annotations: &Annotations, object: &Value) -> CustomResourceDefinition {
    let is_http_route = *meta.key.name == *format!("httproutes.{GROUP}");
    let versions = object.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    let mut stored = versions.filter(|version| version.get("storage") == Some(&Value::Bool(true)));
    const RULE: &str = "/schema/openAPIV3Schema/properties/spec/properties/rules/items/properties/allowedRoutes";
    let has_inclusions = is_http_route && stored.any(|version| version.pointer(RULE).is_some_and(Value::is_object));
    let bundle_version = annotations.get(BUNDLE_VERSION).map(|text| BundleVersion::new(text));
    CustomResourceDefinition { meta, bundle_version, has_inclusions }
}
