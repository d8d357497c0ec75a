//! `corsPolicy` of a virtual host.

use std::sync::Arc;

use router_model::field::{FieldPath, Findings};
use router_table::cors::Cors;
use router_table::pattern::{Pattern, expression};

use crate::contour::types::Violation;
use crate::fields::Fields;
use crate::go_duration::go_duration;
use crate::header_names::is_token;

/// Default of `Access-Control-Max-Age`, in seconds: the default of browsers (Fetch, 3.2.3).
const MAX_AGE: u32 = 5;

/// Reads `corsPolicy`.
pub(crate) fn policy(
    holder: &mut Fields<'_>,
    faults: &mut Vec<Violation>,
    findings: &mut Findings,
) -> Option<Arc<Cors>> {
    let mut policy = holder.mapping("corsPolicy", findings);
    if !policy.is_present() {
        return None;
    }
    let mut cors = Cors { max_age: MAX_AGE, ..Cors::default() };
    let mut wrong = |message: String| faults.push(Violation::new("CORSError", "PolicyDidNotParse", message));
    for (path, text) in policy.texts("allowOrigin", findings) {
        match origin(text) {
            Ok(None) => cors.origins.push(text.into()),
            Ok(Some(pattern)) => cors.origins_like.push(pattern),
            Err(why) => wrong(format!("{path}: {why}")),
        }
    }
    let mut names = |name| {
        let mut good: Vec<Arc<str>> = Vec::new();
        for (path, text) in policy.texts(name, findings) {
            if is_token(text) {
                good.push(text.into());
            } else {
                wrong(format!("{path}: {text:?} is not a valid token; write letters, digits and -"));
            }
        }
        good
    };
    cors.methods = names("allowMethods");
    cors.headers = names("allowHeaders");
    cors.expose = names("exposeHeaders");
    for name in ["allowOrigin", "allowMethods"] {
        if policy.value(name).and_then(|value| value.as_array()).is_none_or(Vec::is_empty) {
            wrong(format!("{}: write at least one", policy.path(name)));
        }
    }
    cors.credentials = policy.truth("allowCredentials", findings).unwrap_or_default();
    if let Some(text) = policy.text("maxAge", findings).filter(|text| !text.is_empty()) {
        match go_duration(text) {
            Some(age) => cors.max_age = u32::try_from(age.as_secs()).unwrap_or(u32::MAX),
            None => wrong(no_duration(&policy.path("maxAge"), text)),
        }
    }
    cors.private_network = policy.truth("allowPrivateNetwork", findings).unwrap_or_default();
    policy.finish(findings);
    Some(Arc::new(cors))
}

fn no_duration(path: &FieldPath, text: &str) -> String {
    format!("{path}: {text:?} is not a valid duration; write one such as 10m, or 0 so that browsers keep nothing")
}

/// `*` and a whole origin are literals; other texts are regular expressions.
fn origin(text: &str) -> Result<Option<Pattern>, String> {
    let is_host = |rest: &str| {
        !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte))
    };
    let whole = text.split_once("://").filter(|(scheme, rest)| is_token(scheme) && is_host(rest));
    match whole {
        _ if text == "*" => return Ok(None),
        Some(("http" | "https", _)) => return Ok(None),
        // For example an app's origin, which has no port.
        Some(_) => return expression(&regex::escape(text), true).map(Some),
        None => {}
    }
    if text.contains("://*") || text.starts_with('*') {
        return Err(format!(
            "{text:?} is read as a regular expression; write one such as https://[^.]+\\.example\\.com"
        ));
    }
    expression(text, false).map(Some)
}
