//! Request policies of an HTTPProxy's routes: headers, paths, redirects.

use std::sync::Arc;

use regex::Regex;
use router_model::field::Findings;
use router_model::names::Hostname;
use router_table::header_modifier::HeaderModifier;

use crate::contour::common::{compared, prefix};
use crate::contour::types::Violation;
use crate::fields::Fields;
use crate::header_names::{OWN, is_token};
use crate::redirect::{PathModifier, Redirect};

/// Maximum length of a header value, in bytes.
const MAX_VALUE: usize = 16_384;
/// Contour's dynamic values: `%CLIENT_IP%`, `%REQ(X)%`.
const DYNAMIC: &str = "%[A-Z_]+(\\([^)]*\\))?(:[0-9]+)?%";

/// Whether `Host` may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostHeaderPolicy {
    /// Yes: it rewrites the request's host.
    Rewritten,
    /// Yes, for one of the route's services: as any other field, after those of the route.
    OfService,
    /// No.
    Fixed,
}

/// Reads `requestHeadersPolicy` or `responseHeadersPolicy`: the changes, and the new host.
pub fn headers(
    holder: &mut Fields<'_>,
    name: &'static str,
    host: HostHeaderPolicy,
    faults: &mut Vec<Violation>,
    findings: &mut Findings,
) -> (HeaderModifier, Option<Hostname>) {
    let (mut modifier, mut rewrite) = (HeaderModifier::default(), None);
    let mut policy = holder.mapping(name, findings);
    let mut fault = |message: String| {
        faults.push(Violation::new("RouteError", "HeaderPolicyNotValid", message));
    };
    let dynamic = Regex::new(DYNAMIC).ok();
    for (path, item) in policy.list("set", findings) {
        let mut fields = Fields::of(Some(item), path.clone(), findings);
        let name = fields.text("name", findings).unwrap_or_default().to_ascii_lowercase();
        let value = fields.text("value", findings).unwrap_or_default();
        fields.finish(findings);
        let is_first = rewrite.is_none() && !modifier.set.iter().any(|(known, _)| **known == *name);
        if name == "host" && host != HostHeaderPolicy::Fixed && is_first {
            match Hostname::parse(value) {
                Ok(_) if host == HostHeaderPolicy::OfService => modifier.set.push((name.into(), value.into())),
                Ok(name) => rewrite = Some(name),
                Err(_) => {
                    fault(format!("{path}: {value:?} is not a valid host name; write one such as www.example.com"))
                }
            }
        } else if name == "host" {
            fault(format!("{path}: Host cannot be set here; remove it, or set it once in a requestHeadersPolicy"));
        } else if !is_token(&name) {
            fault(format!("{path}: {name:?} is not a valid header name; use letters, digits and -"));
        } else if OWN.contains(&&*name) {
            fault(format!("{path}: {name} cannot be set, because the router writes it itself; remove it"));
        } else if modifier.set.iter().any(|(known, _)| **known == *name) {
            fault(format!("{path}: duplicate header {name}; keep one of them"));
        } else if dynamic.as_ref().is_some_and(|dynamic| dynamic.is_match(value)) {
            fault(format!("{path}: dynamic values (%…%) are not supported; write a value as it is"));
        } else if value.len() > MAX_VALUE || !value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte)) {
            fault(format!(
                "{path}: the value is not a valid header value; use at most {MAX_VALUE} printable ASCII characters"
            ));
        } else {
            modifier.set.push((name.into(), value.into()));
        }
    }
    for (path, name) in policy.texts("remove", findings) {
        let name = name.to_ascii_lowercase();
        if !is_token(&name) || name == "host" || OWN.contains(&&*name) {
            fault(format!("{path}: {name:?} cannot be removed; remove it from the list"));
        } else if !modifier.remove.iter().any(|known| **known == *name) {
            modifier.remove.push(name.into());
        }
    }
    policy.finish(findings);
    (modifier, rewrite)
}

/// Reads `pathRewritePolicy.replacePrefix`.
pub fn rewrites(
    holder: &mut Fields<'_>,
    faults: &mut Vec<Violation>,
    findings: &mut Findings,
) -> Vec<(Option<Arc<str>>, Arc<str>)> {
    let mut policy = holder.mapping("pathRewritePolicy", findings);
    let mut rewrites: Vec<(Option<Arc<str>>, Arc<str>)> = Vec::new();
    for (path, item) in policy.list("replacePrefix", findings) {
        let mut fields = Fields::of(Some(item), path.clone(), findings);
        let matched = fields.text("prefix", findings).map(|text| compared(text, &fields.path("prefix"), findings));
        let what = "what stands in the prefix's place, such as /";
        let replacement = fields.required("replacement", what, findings);
        fields.finish(findings);
        for text in matched.as_deref().into_iter().chain(replacement).filter(|text| !text.starts_with('/')) {
            faults.push(path_fault(format!("{path}: {text:?} must begin with /; write \"/{text}\"")));
        }
        let matched = matched.as_deref().map(prefix);
        if rewrites.iter().any(|(known, _)| *known == matched) {
            faults.push(path_fault(format!("{path}: the prefix stands twice; keep one replacement for each")));
        }
        rewrites.extend(replacement.map(|replacement| (matched, replacement.into())));
    }
    policy.finish(findings);
    rewrites
}

fn path_fault(message: String) -> Violation {
    Violation::new("PrefixReplaceError", "PrefixReplaceNotValid", message)
}

/// Reads `requestRedirectPolicy`.
pub fn redirect(holder: &mut Fields<'_>, faults: &mut Vec<Violation>, findings: &mut Findings) -> Option<Redirect> {
    let mut policy = holder.mapping("requestRedirectPolicy", findings);
    if !policy.is_present() {
        return None;
    }
    let mut fault =
        |message: String| faults.push(Violation::new("RouteError", "RequestRedirectPolicyNotValid", message));
    let scheme = policy.text("scheme", findings);
    if let Some(scheme) = scheme.filter(|scheme| !["http", "https"].contains(scheme)) {
        findings.error(policy.path("scheme"), format!("Unsupported value: {scheme:?}; write http or https"));
    }
    let hostname = policy.text("hostname", findings).and_then(|text| {
        let parsed = Hostname::parse(text).ok();
        if parsed.is_none() {
            fault(format!("{}: {text:?} is not a valid host name", policy.path("hostname")));
        }
        parsed
    });
    let port = policy.number("port", 1, 65535, findings).and_then(|port| u16::try_from(port).ok());
    let status = match policy.number("statusCode", 301, 302, findings) {
        Some(301) => 301,
        _ => 302,
    };
    let (full, part) = (policy.text("path", findings), policy.text("prefix", findings));
    if full.is_some() && part.is_some() {
        fault("cannot specify both redirect path and redirect prefix".to_owned());
    }
    for text in full.into_iter().chain(part).filter(|text| !text.starts_with('/')) {
        fault(format!("redirect path {text:?} must begin with /; write \"/{text}\""));
    }
    policy.finish(findings);
    let path = full.map(|path| PathModifier::Full(path.into())).or(part.map(|part| PathModifier::Prefix(part.into())));
    Some(Redirect { scheme: scheme.map(Arc::from), hostname, path, port, status })
}
