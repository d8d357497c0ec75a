//! A client's certificate, and the `X-SSL…` fields of OpenShift's router for endpoints (haproxy-config.template), with
//! the values of HAProxy's fetches.

use std::fmt;
use std::fmt::Write;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue};
use rustls_pki_types::CertificateDer;
use x509_parser::prelude::{ASN1Time, FromDer, X509Certificate, X509Name};

/// A client certificate that the handshake has verified.
pub struct ClientCertificate {
    der: CertificateDer<'static>,
    subject: String,
    not_after: i64,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl ClientCertificate {
    /// Parses a certificate; `None` if that fails.
    pub fn read(der: &CertificateDer<'_>) -> Option<Self> {
        let (_, parsed) = X509Certificate::from_der(der).ok()?;
        let subject = one_line(parsed.subject());
        let time = |time: &ASN1Time| utc_time(time).into_bytes();
        let values = [
            ("x-ssl", b"1".to_vec()),
            // Result of the verification: success.
            ("x-ssl-client-verify", b"0".to_vec()),
            ("x-ssl-client-serial", hex(magnitude(parsed.raw_serial())).into_bytes()),
            ("x-ssl-client-version", parsed.version().0.saturating_add(1).to_string().into_bytes()),
            ("x-ssl-client-sha1", hex(digest(&SHA1_FOR_LEGACY_USE_ONLY, der).as_ref()).into_bytes()),
            ("x-ssl-client-dn", subject.clone()),
            ("x-ssl-client-cn", common_name(parsed.subject()).to_vec()),
            ("x-ssl-issuer", one_line(parsed.issuer())),
            ("x-ssl-client-notbefore", time(&parsed.validity().not_before)),
            ("x-ssl-client-notafter", time(&parsed.validity().not_after)),
            ("x-ssl-client-der", STANDARD.encode(der).into_bytes()),
        ];
        let headers = values.into_iter().filter_map(|(name, value)| {
            Some((HeaderName::from_static(name), HeaderValue::from_bytes(&escape_controls(&value)).ok()?))
        });
        Some(ClientCertificate {
            headers: headers.collect(),
            subject: String::from_utf8_lossy(&subject).into_owned(),
            not_after: parsed.validity().not_after.timestamp(),
            der: der.clone().into_owned(),
        })
    }

    /// The certificate in DER.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The subject in the format of HAProxy's `ssl_c_s_dn`: `/C=US/O=Example/CN=client`, in the certificate's order.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// End of its validity, in seconds since 1970.
    pub fn not_after(&self) -> i64 {
        self.not_after
    }

    /// The fields for an endpoint.
    pub fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.headers
    }
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientCertificate({:?})", self.subject)
    }
}

fn one_line(name: &X509Name<'_>) -> Vec<u8> {
    let mut line = Vec::new();
    for attribute in name.iter_attributes() {
        let oid = attribute.attr_type().to_id_string();
        let short = SHORT_NAMES.iter().find(|(known, _)| *known == oid).map_or(oid.as_str(), |(_, short)| short);
        for part in [b"/", short.as_bytes(), b"=", attribute.as_slice()] {
            line.extend_from_slice(part);
        }
    }
    line
}

fn common_name<'n>(name: &'n X509Name<'_>) -> &'n [u8] {
    name.iter_common_name().next().map_or(b"", |attribute| attribute.as_slice())
}

/// OpenSSL's short names (obj_mac.h) of attribute types in subjects; others are written as OIDs.
const SHORT_NAMES: [(&str, &str); 22] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.13", "description"),
    ("2.5.4.15", "businessCategory"),
    ("2.5.4.17", "postalCode"),
    ("2.5.4.41", "name"),
    ("2.5.4.42", "GN"),
    ("2.5.4.43", "initials"),
    ("2.5.4.44", "generationQualifier"),
    ("2.5.4.46", "dnQualifier"),
    ("2.5.4.97", "organizationIdentifier"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
];

/// `YYMMDDhhmmssZ`, from either time format of X.509.
fn utc_time(time: &ASN1Time) -> String {
    let (date, at) = (time.to_datetime().date(), time.to_datetime().time());
    let year = date.year().rem_euclid(100);
    let (month, day) = (u8::from(date.month()), date.day());
    format!("{year:02}{month:02}{day:02}{:02}{:02}{:02}Z", at.hour(), at.minute(), at.second())
}

/// Without the leading zero that marks a positive number.
fn magnitude(integer: &[u8]) -> &[u8] {
    match integer {
        [0, rest @ ..] if !rest.is_empty() => rest,
        other => other,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02X}");
        text
    })
}

/// Encodes control characters as `%XX`, as HAProxy does.
fn escape_controls(value: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(value.len());
    for byte in value {
        match byte {
            0..=8 | 10..=31 | 127 => escaped.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            other => escaped.push(*other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
