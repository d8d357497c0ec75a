//! Why clients reject a served certificate: its names (RFC 9525), and the dates of its chain.

use jiff::Timestamp;
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use crate::certificate::subject::covers;

/// Maximum number of certificate names in a message.
const SHOWN_NAMES: usize = 5;

/// Why clients of host `name` (`None`: of every host) reject a certificate at `now` (`None`: dates are not checked),
/// each with a remedy; empty if they accept it. The issuer is not checked, because the clients' trust roots are not
/// known here. Messages call the host `shown`.
pub fn refusals(pair: &CertifiedKey, name: Option<&str>, shown: &str, now: Option<Timestamp>) -> Vec<String> {
    let mut refusals = Vec::new();
    for (i, parsed) in judged(pair) {
        if i == 0 {
            refusals.extend(name_refusal(pair, &parsed, name, shown));
        }
        let Some(now) = now else { break };
        let subject = parsed.subject().to_string();
        let which = if i == 0 { String::new() } else { format!("has an intermediate certificate ({subject}) that ") };
        let time = |seconds: i64| {
            Timestamp::from_second(seconds).map_or_else(|_| "an unknown time".into(), |at| at.to_string())
        };
        let (begin, end) = (parsed.validity().not_before.timestamp(), parsed.validity().not_after.timestamp());
        if end < now.as_second() {
            refusals.push(format!("{which}expired at {}, so clients refuse it; renew it", time(end)));
        } else if begin > now.as_second() {
            let message = "so clients refuse it until then; use one that is valid now, or set this machine's clock";
            refusals.push(format!("{which}is valid from {}, {message}", time(begin)));
        }
    }
    refusals
}

/// The earliest end of validity of a certificate and of its intermediates, in seconds since the epoch; `None` if it cannot be
/// read.
pub fn expiry(pair: &CertifiedKey) -> Option<i64> {
    judged(pair).map(|(_, parsed)| parsed.validity().not_after.timestamp()).min()
}

/// The certificate and its intermediates, each with its place in the chain; those that cannot be read are left out.
fn judged(pair: &CertifiedKey) -> impl Iterator<Item = (usize, X509Certificate<'_>)> {
    let chain = pair.cert.iter().enumerate();
    let parsed = chain.filter_map(|(i, certificate)| Some((i, X509Certificate::from_der(certificate).ok()?.1)));
    // A client judges a self-signed CA by its own copy.
    parsed.filter(|(i, parsed)| *i == 0 || parsed.subject() != parsed.issuer())
}

fn name_refusal(pair: &CertifiedKey, leaf: &X509Certificate<'_>, name: Option<&str>, shown: &str) -> Option<String> {
    let names = leaf.subject_alternative_name().ok().flatten().map(|it| &it.value.general_names);
    let names: Vec<String> = names
        .into_iter()
        .flatten()
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            GeneralName::IPAddress(bytes) => Some(address(bytes)?.to_string()),
            _ => None,
        })
        .collect();
    if names.is_empty() {
        let message = "has no subjectAltName, so clients refuse it whatever its common name says; have it issued with \
                       the names of its hosts";
        return Some(message.to_owned());
    }
    let name = name?;
    if covers(pair, name) {
        return None;
    }
    let more = names.len().saturating_sub(SHOWN_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let listed = names.iter().take(SHOWN_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    Some(format!(
        "is made out for {listed}{more} and not for {shown}, so clients refuse it; use one with that name \
         (subjectAltName), or another host"
    ))
}

fn address(bytes: &[u8]) -> Option<std::net::IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(Into::into),
        16 => <[u8; 16]>::try_from(bytes).ok().map(Into::into),
        _ => None,
    }
}
