//! TLS to the endpoints of a backend. Only settings that can be verified against a peer can be represented, so
//! connecting has nothing left to reject.

use std::sync::Arc;

use router_model::certificate::TrustRoots;
use router_model::names::Hostname;
use rustls::RootCertStore;
use rustls_pki_types::DnsName;

use crate::host_pattern::HostPattern;

/// TLS settings for endpoints, and their verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendTls {
    server_name: DnsName<'static>,
    roots: Option<TrustRoots>,
    names: Arc<[PeerName]>,
}

/// A name that a peer's certificate may have to be accepted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PeerName {
    /// This name, also if a wildcard of the certificate covers it.
    Host(DnsName<'static>),
    /// A name with one label or more before this domain, or the wildcard of the domain.
    Below(Hostname),
    /// This URI.
    Uri(Arc<str>),
}

/// A name that a TLS client cannot send or verify (RFC 6066 §3, RFC 9525 §6).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} cannot be the name of a TLS server; write a DNS name")]
pub struct NotAServerName(String);

/// `SubjectAltName` of a BackendTLSPolicy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubjectName {
    /// Type `Hostname`.
    Host(HostPattern),
    /// Type `URI`.
    Uri(Arc<str>),
}

impl BackendTls {
    /// `server_name` is sent as SNI. The certificate must have one of `subjects`, or `server_name` if there are none
    /// (Gateway API, `BackendTLSPolicyValidation.hostname`). The chain must end at one of `roots`; `None`: at one of
    /// the system's.
    ///
    /// # Errors
    /// One of the names cannot be that of a certificate.
    pub fn new(
        server_name: &Hostname,
        roots: Option<TrustRoots>,
        subjects: &[SubjectName],
    ) -> Result<Self, NotAServerName> {
        let server_name = dns_name(server_name)?;
        let names = subjects.iter().map(PeerName::of).collect::<Result<Vec<_>, _>>()?;
        let names = if names.is_empty() { vec![PeerName::Host(server_name.clone())] } else { names };
        Ok(BackendTls { server_name, roots, names: names.into() })
    }

    /// The name sent as SNI.
    pub fn server_name(&self) -> &DnsName<'static> {
        &self.server_name
    }

    /// The trust anchors, which may be the system's. `None`: there is no anchor to verify the chain with, so nothing
    /// may be sent.
    pub fn anchors<'a>(&'a self, system: Option<&'a Arc<RootCertStore>>) -> Option<&'a Arc<RootCertStore>> {
        self.roots.as_deref().or(system).filter(|store| !store.is_empty())
    }

    /// The configured trust anchors; `None`: the system's.
    pub fn roots(&self) -> Option<&TrustRoots> {
        self.roots.as_ref()
    }

    /// The certificate must have one of these names; there is at least one.
    pub fn names(&self) -> &Arc<[PeerName]> {
        &self.names
    }
}

impl PeerName {
    fn of(subject: &SubjectName) -> Result<Self, NotAServerName> {
        match subject {
            SubjectName::Host(HostPattern::Exact(name)) => dns_name(name).map(PeerName::Host),
            SubjectName::Host(HostPattern::Suffix(domain)) => Ok(PeerName::Below(domain.clone())),
            SubjectName::Host(HostPattern::Any) => Err(NotAServerName("*".to_owned())),
            SubjectName::Uri(uri) => Ok(PeerName::Uri(Arc::clone(uri))),
        }
    }
}

fn dns_name(name: &Hostname) -> Result<DnsName<'static>, NotAServerName> {
    DnsName::try_from(name.as_str().to_owned()).map_err(|_| NotAServerName(name.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> Hostname {
        Hostname::parse(name).unwrap()
    }

    #[test]
    fn the_server_name_is_verified_unless_another_name_is_configured() {
        let own = BackendTls::new(&host("app.test"), None, &[]).unwrap();
        assert_eq!(**own.names(), [PeerName::Host(own.server_name().clone())]);
        let subjects =
            [SubjectName::Host(HostPattern::Suffix(host("san.test"))), SubjectName::Uri("spiffe://a/b".into())];
        let other = BackendTls::new(&host("app.test"), None, &subjects).unwrap();
        assert_eq!(**other.names(), [PeerName::Below(host("san.test")), PeerName::Uri("spiffe://a/b".into())]);
        assert_ne!(own, other);
        assert_eq!(own, BackendTls::new(&host("APP.test"), None, &[]).unwrap());
    }

    #[test]
    fn what_no_certificate_has_is_refused() {
        let any = SubjectName::Host(HostPattern::Any);
        let hyphen = SubjectName::Host(HostPattern::Exact(host("-a.test")));
        assert!(BackendTls::new(&host("a-.test"), None, &[]).is_err());
        for subject in [any, hyphen] {
            assert!(BackendTls::new(&host("a.test"), None, std::slice::from_ref(&subject)).is_err(), "{subject:?}");
        }
    }
}
