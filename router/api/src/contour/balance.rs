//! Load balancing: `strategy` of an IngressRoute's services, `loadBalancerPolicy` of an HTTPProxy.

use router_model::field::{FieldPath, Findings};
use router_table::policy::{Balance, HashOf, HashedPart};

use crate::contour::types::{Strategy, Violation};
use crate::fields::Fields;
use crate::header_names::is_token;

/// Name of Contour's affinity cookie.
const COOKIE: &str = "X-Contour-Session-Affinity";

/// Reads `strategy` of a service. As in Contour, an unknown value means RoundRobin.
pub fn strategy(fields: &mut Fields<'_>, findings: &mut Findings) -> Strategy {
    let name = fields.text("strategy", findings).unwrap_or_default();
    named(name, &fields.path("strategy"), findings)
}

fn named(name: &str, path: &FieldPath, findings: &mut Findings) -> Strategy {
    let balance = match name {
        "" | "RoundRobin" => Balance::RoundRobin,
        "WeightedLeastRequest" => Balance::LeastConnections,
        "Random" => Balance::Random,
        "Cookie" => {
            let part = HashedPart::Cookie(COOKIE.into());
            return Strategy { balance: Balance::Hash, hash: Box::new([HashOf { part, terminal: false }]) };
        }
        _ => {
            let known = "RoundRobin, WeightedLeastRequest, Random, Cookie or, in an HTTPProxy's route, RequestHash";
            findings
                .warn(path.clone(), format!("{name:?} is not a supported strategy, RoundRobin is used; write {known}"));
            Balance::RoundRobin
        }
    };
    Strategy { balance, ..Strategy::default() }
}

/// Reads `loadBalancerPolicy`. As in Contour, an invalid hash policy is ignored.
pub fn policy(holder: &mut Fields<'_>, warnings: &mut Vec<Violation>, findings: &mut Findings) -> Strategy {
    let mut policy = holder.mapping("loadBalancerPolicy", findings);
    let name = policy.text("strategy", findings).unwrap_or_default();
    if name != "RequestHash" {
        policy.ignore(&["requestHashPolicies"]);
        let strategy = named(name, &policy.path("strategy"), findings);
        policy.finish(findings);
        return strategy;
    }
    let (mut hash, at) = (Vec::<HashOf>::new(), policy.path("requestHashPolicies"));
    for (path, item) in policy.list("requestHashPolicies", findings) {
        let mut fields = Fields::of(Some(item), path.clone(), findings);
        let terminal = fields.truth("terminal", findings).unwrap_or_default();
        let part = part(&mut fields, findings);
        fields.finish(findings);
        let part = part.and_then(|part| match hash.iter().any(|known| known.part == part) {
            true => Err("the same is hashed before; remove it".to_owned()),
            false => Ok(part),
        });
        match part {
            Ok(part) => hash.push(HashOf { part, terminal }),
            Err(why) => warnings.push(ignored(format!("ignoring {path}: {why}"))),
        }
    }
    policy.finish(findings);
    if hash.is_empty() {
        let advice = "ignoring strategy RequestHash, which needs at least one; endpoints are chosen by RoundRobin";
        warnings.push(ignored(format!("{at}: {advice}")));
        return Strategy::default();
    }
    Strategy { balance: Balance::Hash, hash: hash.into() }
}

/// The hashed part of one of `requestHashPolicies`, or why it is ignored.
fn part(fields: &mut Fields<'_>, findings: &mut Findings) -> Result<HashedPart, String> {
    let mut parts = Vec::new();
    if fields.truth("hashSourceIP", findings) == Some(true) {
        parts.push(Ok(HashedPart::Source));
    }
    let mut header = fields.mapping("headerHashOptions", findings);
    if header.is_present() {
        let name = header.text("headerName", findings).unwrap_or_default().to_ascii_lowercase();
        parts.push(match is_token(&name) {
            true => Ok(HashedPart::Header(name.into())),
            false => Err(format!("{name:?} is not a valid header name; use letters, digits and -")),
        });
    }
    header.finish(findings);
    let mut query = fields.mapping("queryParameterHashOptions", findings);
    if query.is_present() {
        let name = query.text("parameterName", findings).unwrap_or_default().to_ascii_lowercase();
        parts.push(match name.is_empty() {
            false => Ok(HashedPart::Query(name.into())),
            true => Err("parameterName is empty; write the name of a query parameter".to_owned()),
        });
    }
    query.finish(findings);
    let several = "write exactly one of hashSourceIP, headerHashOptions and queryParameterHashOptions".to_owned();
    match (parts.pop(), parts.is_empty()) {
        (Some(only), true) => only,
        _ => Err(several),
    }
}

/// The warning about an ignored field.
pub fn ignored(message: String) -> Violation {
    Violation::new("SpecError", "IgnoredField", message)
}
