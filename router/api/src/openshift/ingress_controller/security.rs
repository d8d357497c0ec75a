//! `tlsSecurityProfile` and `clientTLS` (docs/openshift.md#fields-of-ingresscontrollers).

use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use router_model::field::{FieldPath, Findings};
use router_table::policy::tls_profile::{CIPHERS, ProfileKind, TlsProfile, TlsVersion};

use crate::fields::Fields;

/// Reads `tlsSecurityProfile`. `None` after an error.
pub fn profile(spec: &mut Fields<'_>, findings: &mut Findings) -> Option<TlsProfile> {
    let mut fields = spec.mapping("tlsSecurityProfile", findings);
    let kind = match fields.text("type", findings) {
        None | Some("Intermediate") => Some(ProfileKind::Intermediate),
        Some("Old") => Some(ProfileKind::Old),
        Some("Modern") => Some(ProfileKind::Modern),
        Some("Custom") => Some(ProfileKind::Custom),
        Some(other) => {
            let message = format!("Unsupported value: {other:?}; write Old, Intermediate, Modern or Custom");
            findings.error(fields.path("type"), message);
            None
        }
    };
    fields.ignore(&["old", "intermediate", "modern"]);
    let custom = fields.mapping("custom", findings);
    let is_custom = kind == Some(ProfileKind::Custom);
    if custom.is_present() && kind.is_some() && !is_custom {
        findings.error(fields.path("custom"), "Forbidden: only for type Custom; remove it, or write type: Custom");
    }
    let profile = match kind? {
        ProfileKind::Custom if !custom.is_present() => {
            let message = "Required value: write custom.minTLSVersion and custom.ciphers, or another type";
            findings.error(fields.path("custom"), message);
            None
        }
        ProfileKind::Custom => read_custom(custom, findings),
        named => Some(TlsProfile::named(named)),
    };
    fields.finish(findings);
    profile
}

fn read_custom(mut custom: Fields<'_>, findings: &mut Findings) -> Option<TlsProfile> {
    let min_version = match custom.text("minTLSVersion", findings) {
        Some("VersionTLS10") => Some(TlsVersion::Tls10),
        Some("VersionTLS11") => Some(TlsVersion::Tls11),
        Some("VersionTLS12") => Some(TlsVersion::Tls12),
        Some("VersionTLS13") => Some(TlsVersion::Tls13),
        other => {
            let given = other.map_or("Required value".to_owned(), |other| format!("Unsupported value: {other:?}"));
            let message = format!("{given}; write VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13");
            findings.error(custom.path("minTLSVersion"), message);
            None
        }
    };
    let mut ciphers: Vec<Arc<str>> = Vec::new();
    for (path, name) in custom.texts("ciphers", findings) {
        if !CIPHERS.contains(&name) {
            let message = format!("{name:?} is not a supported cipher suite, ignored; write OpenSSL's name of one");
            findings.warn(path, message);
        } else if !ciphers.iter().any(|known| **known == *name) {
            ciphers.push(name.into());
        }
    }
    if ciphers.is_empty() {
        let message = "Required value: write at least one cipher suite, such as ECDHE-RSA-AES128-GCM-SHA256";
        findings.error(custom.path("ciphers"), message);
        return None;
    }
    custom.finish(findings);
    Some(TlsProfile { kind: ProfileKind::Custom, min_version: min_version?, ciphers })
}

/// `clientTLS`: requirements on clients' certificates.
#[derive(Clone, Debug)]
pub struct ClientTls {
    /// `clientCertificatePolicy: Required`; else the certificate is optional.
    pub required: bool,
    /// `clientCA.name`: a ConfigMap of `openshift-config` with `ca-bundle.pem`.
    pub ca: Arc<str>,
    /// `allowedSubjectPatterns`: regular expressions, one of which must match somewhere in the subject's distinguished
    /// name; empty: all do.
    pub subject_patterns: Vec<Regex>,
}

/// Reads `clientTLS`; an empty mapping counts as absent.
pub fn client_tls(spec: &mut Fields<'_>, findings: &mut Findings) -> Option<ClientTls> {
    let mut fields = spec.mapping("clientTLS", findings);
    let policy = fields.text("clientCertificatePolicy", findings);
    let mut ca = fields.mapping("clientCA", findings);
    let name = ca.text("name", findings);
    let ca_path = ca.path("name");
    ca.finish(findings);
    let patterns = fields.texts("allowedSubjectPatterns", findings);
    let is_filtered = !patterns.is_empty();
    let subject_patterns = patterns.into_iter().filter_map(|(path, text)| pattern(path, text, findings)).collect();
    let required = match policy {
        Some("Required") => Some(true),
        Some("Optional") => Some(false),
        Some(other) => {
            let message = format!("Unsupported value: {other:?}; write Required or Optional");
            findings.error(fields.path("clientCertificatePolicy"), message);
            None
        }
        None if name.is_some() || is_filtered => {
            findings.error(fields.path("clientCertificatePolicy"), "Required value: write Required or Optional");
            None
        }
        None => None,
    };
    if policy.is_some() && name.is_none() {
        let message = "Required value: write the name of a ConfigMap that has the clients' CA in ca-bundle.pem";
        findings.error(ca_path, message);
    }
    fields.finish(findings);
    Some(ClientTls { required: required?, ca: name?.into(), subject_patterns })
}

/// Maximum size of a compiled pattern, in bytes.
const MAX_PATTERN: usize = 1 << 20;

/// Compiles a pattern. Matching is linear in the length of the name.
fn pattern(path: FieldPath, text: &str, findings: &mut Findings) -> Option<Regex> {
    match RegexBuilder::new(text).size_limit(MAX_PATTERN).build() {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            let why = match error {
                regex::Error::CompiledTooBig(_) => "is too large; write a smaller one".to_owned(),
                // The last line of the parser's message is the fault.
                other => {
                    let text = other.to_string();
                    let last = text.lines().last().unwrap_or_default();
                    format!(
                        "{}; look-arounds and back-references are not supported",
                        last.trim_start_matches("error: ")
                    )
                }
            };
            findings.error(path, format!("Invalid value: {text:?}: is not a valid regular expression: {why}"));
            None
        }
    }
}
