//! Subject names of certificates.

use rustls::client::verify_server_name;
use rustls::pki_types::ServerName;
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// Whether the leaf is valid for a name, as clients check it (RFC 6125 §6.4); true if the text is not a name.
pub fn covers(pair: &CertifiedKey, name: &str) -> bool {
    Leaf::of(pair).covers(name)
}

/// A leaf, parsed once to be checked for many names.
pub struct Leaf<'p>(Option<ParsedCertificate<'p>>);

impl<'p> Leaf<'p> {
    /// The leaf of a chain.
    pub fn of(pair: &'p CertifiedKey) -> Self {
        Leaf(pair.cert.first().and_then(|leaf| ParsedCertificate::try_from(leaf).ok()))
    }

    /// See [`covers`].
    pub fn covers(&self, name: &str) -> bool {
        let Ok(name) = ServerName::try_from(name) else { return true };
        self.0.as_ref().is_some_and(|leaf| verify_server_name(leaf, &name).is_ok())
    }
}

/// Whether the leaf names the host exactly, not by a wildcard.
pub fn names(pair: &CertifiedKey, host: &str) -> bool {
    let leaf = pair.cert.first().and_then(|leaf| X509Certificate::from_der(leaf).ok());
    let names = leaf.as_ref().and_then(|(_, leaf)| leaf.subject_alternative_name().ok().flatten());
    names.is_some_and(|names| {
        let is_it =
            |name: &GeneralName<'_>| matches!(name, GeneralName::DNSName(name) if name.eq_ignore_ascii_case(host));
        names.value.general_names.iter().any(is_it)
    })
}
