//! `{{…}}` in manifests: certificates generated for the story. The text of the placeholder defines the certificate.

use std::collections::BTreeMap;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd,
};
use rustls::RootCertStore;
use rustls::sign::CertifiedKey;

/// The CA that clients of stories trust.
const TRUSTED: &str = "ca";

/// Certificates of a story, generated on first use.
#[derive(Default)]
pub struct Certificates {
    cas: BTreeMap<String, CertifiedIssuer<'static, KeyPair>>,
    leaves: BTreeMap<String, Leaf>,
}

struct Leaf {
    certificate: rcgen::Certificate,
    key: String,
}

impl Certificates {
    fn ca(&mut self, name: &str) -> &CertifiedIssuer<'static, KeyPair> {
        self.cas.entry(name.to_owned()).or_insert_with(|| {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.distinguished_name.push(DnType::CommonName, name);
            CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
        })
    }

    fn leaf(&mut self, what: &str) -> &Leaf {
        if !self.leaves.contains_key(what) {
            let leaf = self.made(what);
            self.leaves.insert(what.to_owned(), leaf);
        }
        &self.leaves[what]
    }

    fn made(&mut self, what: &str) -> Leaf {
        let (mut hosts, mut by, mut is_expired, mut subject) = (Vec::new(), TRUSTED, false, None);
        let mut words = what.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "by" => by = words.next().unwrap(),
                "expired" => is_expired = true,
                "cn" => subject = words.next(),
                host => hosts.push(host.to_owned()),
            }
        }
        let name = subject.map(str::to_owned).or_else(|| hosts.first().cloned()).unwrap();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        if is_expired {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, self.ca(by)).unwrap();
        Leaf { certificate, key: key.serialize_pem() }
    }

    /// The CAs of a placeholder, in the form of `--service-ca`.
    pub fn roots(&mut self, what: &str) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.ca(what).der().clone()).unwrap();
        Arc::new(roots)
    }

    /// Replaces all placeholders; `other` resolves those that are not certificates.
    pub fn fill(&mut self, text: &str, other: impl Fn(&str) -> Option<String>) -> String {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("{{") {
            let (what, after) = after.split_once("}}").unwrap();
            let what = what.trim();
            filled += before;
            filled += &other(what).unwrap_or_else(|| self.filling(what));
            rest = after;
        }
        filled + rest
    }

    fn filling(&mut self, what: &str) -> String {
        let (word, rest) = what.split_once(' ').unwrap_or((what, ""));
        let pem = match word {
            "filler" => return "x".repeat(rest.parse().unwrap()),
            "ca" => self.ca(if rest.is_empty() { TRUSTED } else { rest }).pem(),
            "cert" => self.leaf(rest).certificate.pem(),
            "key" => self.leaf(rest).key.clone(),
            other => panic!("{other:?} is no placeholder"),
        };
        // A quoted text is valid wherever a scalar is.
        format!("\"{}\"", pem.replace('\n', "\\n"))
    }

    /// The story's name for a certificate.
    pub fn name(&self, pair: &CertifiedKey) -> String {
        let of = |certificate: &[u8]| {
            let leaf = self.leaves.iter().find(|(_, leaf)| &**leaf.certificate.der() == certificate);
            let ca = self.cas.iter().find(|(_, ca)| **ca.der() == *certificate);
            let known =
                leaf.map(|(what, _)| format!("cert {what}")).or_else(|| ca.map(|(name, _)| format!("ca {name}")));
            known.unwrap_or_else(|| format!("certificate of {} bytes", certificate.len()))
        };
        pair.cert.iter().map(|certificate| of(certificate)).collect::<Vec<_>>().join(" + ")
    }

    /// The story's name for the CAs of a store.
    pub fn names(&self, roots: &RootCertStore) -> String {
        let subjects = roots.roots.iter().map(|anchor| String::from_utf8_lossy(&anchor.subject).into_owned());
        let name = |subject: String| {
            self.cas.keys().find(|name| subject.ends_with(&***name)).map_or(subject, |name| format!("ca {name}"))
        };
        let names: Vec<String> = subjects.map(name).collect();
        if names.is_empty() { "no CA".to_owned() } else { names.join(" + ") }
    }
}
