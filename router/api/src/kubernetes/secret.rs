//! Secrets and Namespaces.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use router_model::certificate::{Certificate, MaterialCache, PemText, TrustRoots};
use router_model::field::{FieldPath, Findings};
use router_model::object::{Meta, REDACTED};
use serde_json::Value;

use crate::fields::{Fields, describe};

const TLS_TYPE: &str = "kubernetes.io/tls";

/// A Secret.
#[derive(Clone, Debug)]
pub struct Secret {
    /// Metadata.
    pub meta: Meta,
    /// `type`.
    pub kind: Arc<str>,
    /// Certificate and key, when the type is `kubernetes.io/tls`.
    pub pair: Option<Certificate>,
    /// The certificates of `ca.crt`, if they can be trusted: what backends of IngressRoutes and HTTPProxies are
    /// verified with.
    pub ca: Option<TrustRoots>,
}

/// A Namespace; only its labels are used.
#[derive(Clone, Debug)]
pub struct Namespace {
    /// Metadata.
    pub meta: Meta,
}

/// Reads a Secret. Of other types than `kubernetes.io/tls` only `ca.crt` is read.
pub(crate) fn secret(
    meta: Meta,
    mut object: Fields<'_>,
    materials: &mut MaterialCache,
    findings: &mut Findings,
) -> Secret {
    let kind: Arc<str> = object.text("type", findings).unwrap_or("Opaque").into();
    object.ignore(&["immutable", "data", "stringData"]);
    let mut data = object.mapping("data", findings);
    let mut texts = object.mapping("stringData", findings);
    let ca = ca(&mut data, &mut texts, materials);
    if *kind != *TLS_TYPE {
        object.finish(findings);
        return Secret { meta, kind, pair: None, ca };
    }
    let mut part = |name: &'static str| {
        // `stringData` overrides `data`, as the API server merges them.
        let plain = texts.value(name).and_then(Value::as_str).map(str::to_owned);
        let in_data = data.value(name);
        let path = if in_data.is_none() && texts.is_present() { texts.path(name) } else { data.path(name) };
        if plain.is_none() && in_data.is_none() {
            let message = "Required value: a Secret of type kubernetes.io/tls has tls.crt and tls.key";
            findings.error(path.clone(), message);
        }
        (plain.or_else(|| decode(in_data, path.clone(), findings)), path)
    };
    let (certificate, certificate_path) = part("tls.crt");
    let (key, key_path) = part("tls.key");
    object.finish(findings);
    let pair = match (certificate, key) {
        (Some(certificate), Some(key)) => match materials.pair(&certificate, Some(&key), None) {
            Ok(pair) => Some(pair),
            Err(error) => {
                let path = if error.part == PemText::Key { key_path } else { certificate_path };
                findings.error(path, format!("Invalid value: {REDACTED}: {}", error.message));
                None
            }
        },
        _ => None,
    };
    Secret { meta, kind, pair, ca }
}

/// The CA of a Secret. An invalid one counts as absent; the objects that refer to it report it.
fn ca(data: &mut Fields<'_>, texts: &mut Fields<'_>, materials: &mut MaterialCache) -> Option<TrustRoots> {
    const NAME: &str = "ca.crt";
    let mut unheard = Findings::default();
    let plain = texts.value(NAME).and_then(Value::as_str).map(str::to_owned);
    let text = plain.or_else(|| decode(data.value(NAME), data.path(NAME), &mut unheard))?;
    materials.roots(&text).ok()
}

fn decode(value: Option<&Value>, path: FieldPath, findings: &mut Findings) -> Option<String> {
    let text = match value? {
        Value::String(text) => text,
        other => {
            findings.error(path, format!("is {}; write base64 text", describe(other)));
            return None;
        }
    };
    let compact: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let decoded = STANDARD.decode(compact).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    if decoded.is_none() {
        let message = format!("Invalid value: {REDACTED}: is not valid base64; encode the PEM text, or use stringData");
        findings.error(path, message);
    }
    decoded
}

/// Reads a Namespace.
pub(crate) fn namespace(meta: Meta, mut object: Fields<'_>, findings: &mut Findings) -> Namespace {
    object.ignore(&["spec"]);
    object.finish(findings);
    Namespace { meta }
}
