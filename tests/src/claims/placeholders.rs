//! `{{…}}` in manifests and commands: certificates generated for the story, and addresses of its backends.
//!
//! | placeholder | in a manifest | in a command |
//! |---|---|---|
//! | `{{ca}}`, `{{ca NAME}}` | the CA's certificate as a quoted text | the path of a file with it |
//! | `{{cert HOST}}`, `{{cert HOST by CA}}`, `{{cert HOST expired}}`, `{{cert HOST v1}}` | the certificate, likewise | likewise |
//! | `{{key HOST}}` and so on | the key of that certificate | likewise |
//! | `{{filler 1000}}` | a text of this length | likewise |
//! | `{{address BACKEND}}`, `{{port BACKEND}}` | the backend's listening address | likewise |

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, date_time_ymd};

use crate::pki::{Ca, Leaf};

/// The CA that clients of stories trust.
pub const TRUSTED: &str = "ca";

/// Certificates of a story, generated on first use.
pub struct Certificates {
    cas: BTreeMap<String, Ca>,
    leaves: BTreeMap<String, Leaf>,
}

impl Certificates {
    /// Only the trusted CA.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new() -> Result<Certificates> {
        let cas = [(TRUSTED.to_owned(), Ca::new()?)].into();
        Ok(Certificates { cas, leaves: BTreeMap::new() })
    }

    /// The CA of this name.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn ca(&mut self, name: &str) -> Result<&Ca> {
        if !self.cas.contains_key(name) {
            self.cas.insert(name.to_owned(), Ca::named(name)?);
        }
        self.cas.get(name).context("a CA that was just made")
    }

    /// A certificate as described after `cert`: hosts, then `by CA`, `expired` and `v1` in any order.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn leaf(&mut self, what: &str) -> Result<&Leaf> {
        if !self.leaves.contains_key(what) {
            let leaf = self.made(what).with_context(|| format!("a certificate for {what:?}"))?;
            self.leaves.insert(what.to_owned(), leaf);
        }
        self.leaves.get(what).context("a certificate that was just made")
    }

    fn made(&mut self, what: &str) -> Result<Leaf> {
        let (mut hosts, mut by, mut is_expired, mut subject) = (Vec::new(), TRUSTED, false, None);
        let mut is_v1 = false;
        let mut words = what.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "by" => by = words.next().context("`by` needs the name of a CA")?,
                "expired" => is_expired = true,
                "v1" => is_v1 = true,
                "cn" => subject = Some(words.next().context("`cn` needs a name")?),
                host => hosts.push(host.to_owned()),
            }
        }
        let name = subject.map(str::to_owned).or_else(|| hosts.first().cloned()).context("which host?")?;
        let mut params = CertificateParams::new(hosts)?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        if is_expired {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        }
        let ca = self.ca(by)?;
        if is_v1 { ca.sign_v1(params) } else { ca.sign(params) }
    }

    fn pem(&mut self, what: &str) -> Result<Option<String>> {
        let (word, rest) = what.split_once(' ').unwrap_or((what, ""));
        Ok(match word {
            "ca" => Some(self.ca(if rest.is_empty() { TRUSTED } else { rest })?.pem()),
            "cert" => Some(self.leaf(rest)?.certificate.clone()),
            "key" => Some(self.leaf(rest)?.key.clone()),
            _ => None,
        })
    }

    /// Replaces all placeholders; `other` resolves those that are not certificates.
    ///
    /// # Errors
    /// A placeholder is unknown.
    pub fn fill(&mut self, text: &str, files: Option<&Path>, other: impl Fn(&str) -> Option<String>) -> Result<String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (what, after) = after.split_once("}}").context("a {{ has no }}")?;
            let what = what.trim();
            filled += before;
            if let Some(value) = other(what) {
                filled += &value;
            } else if let Some(length) = what.strip_prefix("filler ") {
                filled += &"x".repeat(length.parse().context("`filler` needs a length")?);
            } else if let Some(pem) = self.pem(what)? {
                match files {
                    // A quoted text is valid wherever a scalar is.
                    None => filled += &format!("\"{}\"", pem.replace('\n', "\\n")),
                    Some(folder) => {
                        let file = folder.join(what.replace([' ', '*'], "_"));
                        fs::write(&file, pem)?;
                        filled += &file.display().to_string();
                    }
                }
            } else {
                bail!("{{{{{what}}}}} is no placeholder");
            }
            rest = after;
        }
        Ok(filled + rest)
    }
}
