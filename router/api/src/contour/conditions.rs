//! `conditions` of an HTTPProxy's routes and includes.

use std::sync::Arc;

use router_model::field::{FieldPath, Findings};
use router_table::matchers::{PathMatcher, RequestMatcher, ValueMatcher};
use router_table::pattern::{Pattern, expression};

use crate::contour::common::{compared, prefix};
use crate::contour::types::Violation;
use crate::fields::Fields;
use crate::header_names::is_token;

/// Parsed conditions.
#[derive(Debug, Default)]
pub struct MatchConditions {
    /// The conditions, ANDed.
    pub matcher: RequestMatcher,
    /// In words; empty if there are none.
    pub label: String,
}

/// Pseudo-header of conditions on the method.
pub const METHOD: &str = ":method";

/// Parent of conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionsParent {
    /// A route.
    Route,
    /// An include, which allows prefixes only.
    Include,
}

impl ConditionsParent {
    const fn word(self) -> &'static str {
        match self {
            ConditionsParent::Route => "route",
            ConditionsParent::Include => "include",
        }
    }

    /// Type and reason of violations of paths.
    fn path_fault(self, message: &str) -> Violation {
        let kind = if self == ConditionsParent::Include { "IncludeError" } else { "RouteError" };
        Violation::new(kind, "PathMatchConditionsNotValid", format!("{}: {message}", self.word()))
    }
}

/// Reads `conditions`.
pub fn read(
    holder: &mut Fields<'_>,
    parent: ConditionsParent,
    faults: &mut Vec<Violation>,
    findings: &mut Findings,
) -> MatchConditions {
    let mut conditions = MatchConditions::default();
    let (mut words, mut path_seen) = (Vec::new(), false);
    for (path, item) in holder.list("conditions", findings) {
        let mut fields = Fields::of(Some(item), path.clone(), findings);
        for name in ["prefix", "exact", "regex"] {
            let Some(text) = fields.text(name, findings) else { continue };
            if path_seen {
                let message = "more than one prefix, exact or regex condition is not allowed; keep one of them";
                faults.push(parent.path_fault(message));
                continue;
            }
            path_seen = true;
            words.push(format!("{name} {text}"));
            // A regular expression is not normalised.
            let text = if name == "regex" { text.into() } else { compared(text, &fields.path(name), findings) };
            match path_condition(name, &text, parent) {
                Ok(matcher) => conditions.matcher.path = matcher,
                Err(fault) => faults.push(fault),
            }
        }
        let mut header = fields.mapping("header", findings);
        let at = fields.path("header");
        if let Some((name, matcher)) = value_condition(&mut header, &at, &HEADER, faults, findings) {
            words.push(format!("header {name}"));
            let RequestMatcher { headers, method, .. } = &mut conditions.matcher;
            if *name == *METHOD {
                faults.extend(of_method(method, matcher, &at));
            } else if let Some(fault) = repeated(headers, &name, &matcher, &HEADER) {
                faults.extend(fault);
            } else {
                headers.push((name, matcher));
            }
        }
        header.finish(findings);
        let mut parameter = fields.mapping("queryParameter", findings);
        let at = fields.path("queryParameter");
        if let Some((name, matcher)) = value_condition(&mut parameter, &at, &QUERY, faults, findings) {
            words.push(format!("query parameter {name}"));
            let query = &mut conditions.matcher.query;
            if let Some(fault) = repeated(query, &name, &matcher, &QUERY) {
                faults.extend(fault);
            } else {
                query.push((name, matcher));
            }
        }
        parameter.finish(findings);
        fields.finish(findings);
    }
    conditions.label = words.join(", ");
    conditions
}

fn path_condition(name: &str, text: &str, parent: ConditionsParent) -> Result<PathMatcher, Violation> {
    if parent == ConditionsParent::Include && name != "prefix" {
        return Err(parent.path_fault(&format!("{name} conditions are not allowed in includes; write a prefix")));
    }
    if !text.starts_with('/') {
        let message = format!("{name} conditions must start with /, {text} was supplied; write /{text}");
        return Err(parent.path_fault(&message));
    }
    match name {
        "prefix" => Ok(PathMatcher::Prefix(prefix(text))),
        "exact" => Ok(PathMatcher::Exact(text.into())),
        _ => match expression(text, false) {
            Ok(regex) => Ok(PathMatcher::Regex(regex)),
            Err(why) => Err(parent.path_fault(&format!("regex condition: {why}"))),
        },
    }
}

/// Names and operators of header and query parameter conditions.
struct ValueSyntax {
    word: &'static str,
    reason: &'static str,
    is_header: bool,
}

const HEADER: ValueSyntax = ValueSyntax { word: "header", reason: "HeaderMatchConditionsNotValid", is_header: true };
const QUERY: ValueSyntax =
    ValueSyntax { word: "query parameter", reason: "QueryParameterMatchConditionsNotValid", is_header: false };

impl ValueSyntax {
    fn fault(&self, message: String) -> Violation {
        Violation::new("RouteError", self.reason, message)
    }
}

/// Merges a second condition on the same name; an equal one is dropped.
fn repeated(
    known: &[(Arc<str>, ValueMatcher)],
    name: &Arc<str>,
    matcher: &ValueMatcher,
    values: &ValueSyntax,
) -> Option<Option<Violation>> {
    let (_, first) = known.iter().find(|(other, _)| other == name)?;
    if first == matcher {
        return Some(None);
    }
    let word = values.word;
    Some(Some(values.fault(match (first, matcher) {
        (ValueMatcher::Exact(_), ValueMatcher::Exact(_)) => {
            format!("cannot specify duplicate {word} 'exact match' conditions in the same route: {name}")
        }
        _ => format!("more than one condition on {word} {name} is not supported; write one regex condition"),
    })))
}

/// Converts a header condition on `:method`, which Envoy treats as a header.
fn of_method(method: &mut Option<Arc<str>>, matcher: ValueMatcher, at: &FieldPath) -> Option<Violation> {
    match (&*method, matcher) {
        (None, ValueMatcher::Exact(wanted)) => *method = Some(wanted),
        (Some(known), ValueMatcher::Exact(wanted)) if *known == wanted => {}
        _ => {
            let message = format!("{at}: of {METHOD} one exact condition is done, with regard to case; write that");
            return Some(HEADER.fault(message));
        }
    }
    None
}

/// Negated conditions; unsupported.
const NEGATIVE: [&str; 4] = ["notpresent", "notcontains", "notexact", "treatMissingAsEmpty"];

fn value_condition(
    fields: &mut Fields<'_>,
    at: &FieldPath,
    values: &ValueSyntax,
    faults: &mut Vec<Violation>,
    findings: &mut Findings,
) -> Option<(Arc<str>, ValueMatcher)> {
    if !fields.is_present() {
        return None;
    }
    let name = match fields.text("name", findings) {
        Some(name) if !values.is_header => name.to_owned(),
        Some(name) if is_token(name) || name == METHOD => name.to_ascii_lowercase(),
        Some(name) => {
            findings.error(
                fields.path("name"),
                format!("Invalid value: {name:?}: is not a valid header name; use letters, digits and -"),
            );
            return None;
        }
        None => {
            findings.error(fields.path("name"), format!("Required value: write the name of a {}", values.word));
            return None;
        }
    };
    if values.is_header {
        crate::contour::common::refuse(fields, &NEGATIVE, faults);
    }
    let ignore_case = fields.truth("ignoreCase", findings).unwrap_or_default();
    let mut found = Vec::new();
    if fields.truth("present", findings) == Some(true) {
        found.push(expression(".*", false));
    }
    let operators: &[&'static str] = if values.is_header {
        &["exact", "contains", "regex"]
    } else {
        &["exact", "prefix", "suffix", "contains", "regex"]
    };
    for operator in operators {
        let Some(text) = fields.text(operator, findings) else { continue };
        let literal = regex::escape(text);
        found.push(match *operator {
            "exact" if !ignore_case => {
                return single(found, name, ValueMatcher::Exact(text.into()), at, values, faults);
            }
            "exact" => expression(&literal, ignore_case),
            "prefix" => expression(&format!("{literal}.*"), ignore_case),
            "suffix" => expression(&format!(".*{literal}"), ignore_case),
            "contains" => expression(&format!(".*{literal}.*"), ignore_case),
            _ => expression(text, ignore_case),
        });
    }
    let last = found.pop();
    match last {
        Some(Ok(regex)) => single(found, name, ValueMatcher::Regex(regex), at, values, faults),
        Some(Err(why)) => {
            faults.push(values.fault(format!("{at}: {why}")));
            None
        }
        None => {
            // Unsupported operators are reported; a condition without an operator is a violation too.
            if faults.is_empty() {
                faults.push(
                    values.fault(format!("{at}: says nothing about {name}; write exact, contains, regex or present")),
                );
            }
            None
        }
    }
}

/// The only condition of a block; a second one is a violation.
fn single(
    others: Vec<Result<Pattern, String>>,
    name: String,
    matcher: ValueMatcher,
    at: &FieldPath,
    values: &ValueSyntax,
    faults: &mut Vec<Violation>,
) -> Option<(Arc<str>, ValueMatcher)> {
    if !others.is_empty() {
        faults.push(values.fault(format!("{at}: more than one condition on {name}; keep one of them")));
        return None;
    }
    Some((name.into(), matcher))
}
