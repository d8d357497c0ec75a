//! Host rules of Gateway API and Contour objects: which rule matches, through which objects, and what it does.

use std::cmp::Reverse;
use std::sync::Arc;

use router_model::kind::Kind;
use router_model::names::{HostMatch, Hostname};
use router_model::object::ObjectRef;
use router_table::header_modifier::HeaderModifier;
use router_table::lookup::{Request, Unmet};
use router_table::matchers::{PathMatcher, RequestMatcher, ValueMatcher};
use router_table::rule::{Action, HostRules, PathChange, RedirectPort, RedirectTo, Retry, Rule, RulePolicy};
use router_table::table::{ResolvedRoute, RouterTable, VirtualHost};

use super::owners::{object, object_conditions};
use super::request::QueryRequest;
use crate::contour::ROUTER;
use crate::contour::status::PARTLY;
use crate::explain::explanation::{Candidate, Explanation, ExplanationStep, Loser, Owner};
use crate::explain::facts::Facts;
use crate::explain::query::{Query, QueryProtocol};
use crate::explain::settings::RouteSetting;
use crate::status::object_status::ParentStatus;
use crate::warning::Unserved;

/// Maximum number of rules shown for a host; the match, and rules that cover the path, come first.
const MAX_RULES: usize = 32;

/// Maximum number of near misses that are named.
const MAX_NEAR_MISSES: usize = 3;

/// Contour's kinds.
const CONTOUR_KINDS: [Kind; 2] = [Kind::IngressRoute, Kind::HttpProxy];

/// How host rules match the query, or why they do not. No wider host is tried in either case.
pub fn describe_match(host_rules: &HostRules, request: &QueryRequest<'_>) -> String {
    let query = request.query;
    if host_rules.is_denied() {
        return "is in the list of denied domains; wider hosts are not asked".to_owned();
    }
    let listener = listener(host_rules, query);
    let Some(rules) = rules(host_rules, query) else {
        let what = match query.protocol {
            QueryProtocol::Http => "serves it over TLS only",
            QueryProtocol::Https if host_rules.cleartext_listener.as_deref() == Some(listener) => {
                "serves it in clear text only"
            }
            QueryProtocol::Https => "has no certificate for it",
        };
        return format!("is of {listener}, which {what}");
    };
    match &query.path {
        None => format!("is of {listener}, where TLS ends"),
        Some(_) if has_tcp(host_rules, query) => format!("is of {listener}, which takes TLS off and forwards bytes"),
        Some(_) if rules.iter().any(|rule| rule.takes(request)) => {
            format!("is of {listener}, and a rule takes {}", compared(rules, query))
        }
        Some(_) => {
            let path = compared(rules, query);
            format!("is of {listener}, and no rule takes {path}; wider hosts are not asked")
        }
    }
}

/// The listener of host rules for the query's protocol; if there is none, that of the other protocol.
fn listener<'s>(host_rules: &'s HostRules, query: &Query) -> &'s str {
    match &host_rules.cleartext_listener {
        Some(cleartext) if query.protocol == QueryProtocol::Http => cleartext,
        _ => &host_rules.listener,
    }
}

/// The query's path in the form in which rules compare it, with the original if that differs. All rules of a host use
/// one form.
fn compared(rules: &[Arc<Rule>], query: &Query) -> String {
    let path = query.path_in(rules.first().map(|rule| rule.path_form).unwrap_or_default());
    if *path == *query.path() { path.into_owned() } else { format!("{path}, the normal form of {}", query.path()) }
}

fn has_tcp(host_rules: &HostRules, query: &Query) -> bool {
    query.protocol == QueryProtocol::Https && host_rules.tls.as_ref().is_some_and(|tls| tls.tcp.is_some())
}

/// The rules for the query's protocol; `None` if the host does not serve it.
fn rules<'s>(host_rules: &'s HostRules, query: &Query) -> Option<&'s [Arc<Rule>]> {
    match query.protocol {
        QueryProtocol::Http => host_rules.cleartext.as_deref(),
        QueryProtocol::Https => host_rules.tls.as_ref().map(|tls| &*tls.rules),
    }
}

/// The route that forwards terminated TLS as TCP.
pub fn tcp<'s>(host: &'s VirtualHost, query: &Query) -> Option<&'s Arc<ResolvedRoute>> {
    let tls = host.rules.as_ref()?.tls.as_ref()?;
    tls.tcp.as_ref().filter(|_| query.protocol == QueryProtocol::Https)
}

/// The virtual host whose rules apply: the most specific one, unless Routes of a more specific host serve the query.
pub fn virtual_host<'t>(router: &'t RouterTable, request: &QueryRequest<'_>) -> Option<&'t Arc<VirtualHost>> {
    router.candidates(request.host.as_ref()).find(|candidate| candidate.rules.is_some())
}

/// The rules of a host, in order.
pub fn paths(host_rules: &HostRules, request: &QueryRequest<'_>, taken: Option<&Arc<Rule>>) -> Option<ExplanationStep> {
    let query = request.query;
    let rules = rules(host_rules, query).filter(|rules| !rules.is_empty())?;
    let shown = compared(rules, query);
    let mut is_decided = false;
    let candidates = rules.iter().map(|rule| {
        let is_taken = taken.is_some_and(|taken| Arc::ptr_eq(rule, taken));
        let covers = rule.takes_path(request);
        let why = match (is_taken, rule.takes(request), query.path.is_some()) {
            (true, ..) => "the first rule that takes the request".to_owned(),
            (false, _, false) => "gets requests that it matches".to_owned(),
            (false, true, _) if is_decided => "takes the request too, but an earlier one has it".to_owned(),
            (false, false, _) if covers && !is_decided => {
                format!("would take it {}", missing_conditions(rule, request))
            }
            (false, false, _) if covers => "takes the path too, but an earlier one has it".to_owned(),
            _ => format!("does not take {shown}"),
        };
        is_decided |= is_taken;
        let what = format!("{} of {}", matcher(&rule.matcher), rule.route.id.object());
        (is_taken || covers, Candidate { what, taken: is_taken, why })
    });
    let candidates: Vec<(bool, Candidate)> = candidates.collect();
    let close = candidates.iter().filter(|(is_close, _)| *is_close).count().min(MAX_RULES);
    let mut others = MAX_RULES - close;
    let mut room = close;
    let shown = candidates.into_iter().filter_map(|(is_close, candidate)| {
        let place = if is_close || candidate.taken { &mut room } else { &mut others };
        let is_shown = *place > 0 || candidate.taken;
        *place = place.saturating_sub(1);
        is_shown.then_some(candidate)
    });
    Some(ExplanationStep::Path { candidates: shown.collect() })
}

/// The method, header fields and query parameters that a request lacks for a rule that matches its path, in curl's
/// syntax.
fn missing_conditions(rule: &Rule, request: &QueryRequest<'_>) -> String {
    // Two fields of one name would be joined into one value, which matches neither condition.
    let instead = |name: &str| match request.header(name) {
        Some(other) => format!(" instead of '{name}: {}'", String::from_utf8_lossy(&other)),
        None => String::new(),
    };
    let option = |unmet: Unmet<'_>| match unmet {
        Unmet::Method(method) => format!("-X {method}"),
        Unmet::Header(name, ValueMatcher::Exact(value)) => format!("-H '{name}: {value}'{}", instead(name)),
        Unmet::Header(name, ValueMatcher::Regex(regex)) => {
            format!("header {name} like {}{}", regex.as_str(), instead(name))
        }
        Unmet::Parameter(name, ValueMatcher::Exact(value)) => format!("query {name}={value}"),
        Unmet::Parameter(name, ValueMatcher::Regex(regex)) => format!("query {name} like {}", regex.as_str()),
    };
    let options: Vec<String> = rule.matcher.unmet(request).into_iter().map(option).collect();
    format!("with {}", options.join(" and "))
}

/// The conditions of a matcher, as text.
pub fn matcher(matcher: &RequestMatcher) -> String {
    let RequestMatcher { path, method, headers, query } = matcher;
    let mut parts = vec![match path {
        PathMatcher::Prefix(prefix) if &**prefix == "/" => "every path".to_owned(),
        PathMatcher::Prefix(prefix) => format!("{prefix}…"),
        PathMatcher::Exact(exact) => format!("exactly {exact}"),
        PathMatcher::Regex(regex) => format!("paths like {}", regex.as_str()),
    }];
    let value = |value: &ValueMatcher| match value {
        ValueMatcher::Exact(value) => format!("={value}"),
        ValueMatcher::Regex(regex) => format!("~{}", regex.as_str()),
    };
    parts.extend(method.as_ref().map(|method| format!("method {method}")));
    parts.extend(headers.iter().map(|(name, expected)| format!("header {name}{}", value(expected))));
    parts.extend(query.iter().map(|(name, expected)| format!("query {name}{}", value(expected))));
    parts.join(", ")
}

/// Origin and action of a rule.
pub fn rule(host_rules: &HostRules, rule: &Rule, query: &Query) -> ExplanationStep {
    let path = rule.origin.split(" ▸ ").map(str::to_owned).collect();
    ExplanationStep::Rule {
        listener: listener(host_rules, query).to_owned(),
        path,
        action: action(&rule.route, &rule.prefix),
    }
}

fn action(route: &ResolvedRoute, prefix: &str) -> String {
    let Some(policy) = &route.rule else { return "forward".to_owned() };
    match &policy.action {
        Action::Forward => "forward".to_owned(),
        Action::Answer(status) | Action::Direct(status) => format!("answer {status}"),
        Action::Redirect(to) => format!("redirect to {}", target(to, prefix)),
    }
}

/// The target of a redirect; parts kept from the request are in braces.
pub fn target(to: &RedirectTo, prefix: &str) -> String {
    let RedirectTo { scheme, hostname, port, path, status } = to;
    let scheme = scheme.as_deref().unwrap_or("{scheme}");
    let host = hostname.as_ref().map_or("{host}", |host| host.as_str());
    let port = match port {
        Some(RedirectPort::Number(port)) => format!(":{port}"),
        Some(RedirectPort::RouterHttps) | None => String::new(),
    };
    let path = path.as_ref().map_or_else(|| "{path}".to_owned(), |path| change(path, prefix));
    format!("{scheme}://{host}{port}{path} with {status}")
}

fn change(path: &PathChange, prefix: &str) -> String {
    match path {
        PathChange::Full(full) => full.to_string(),
        PathChange::Prefix(new) => format!("{new} in the place of {prefix}"),
    }
}

/// Settings of a rule, without its destination.
pub fn settings(route: &ResolvedRoute, prefix: Option<&str>) -> Vec<RouteSetting> {
    let Some(policy) = &route.rule else { return Vec::new() };
    let RulePolicy {
        action: _,
        request_headers,
        response_headers,
        rewrite_host,
        rewrite_path,
        mirrors,
        cors,
        request_timeout,
        backend_timeout,
        idle_timeout,
        keep_connections,
        retry,
    } = &**policy;
    let mut list = Vec::new();
    let mut add =
        |what: &str, value: String| list.push(RouteSetting { what: what.to_owned(), value, non_default: true });
    for (what, modifiers) in [("request headers", request_headers), ("response headers", response_headers)] {
        if !modifiers.is_empty() {
            add(what, modifiers.iter().map(modifier).collect::<Vec<_>>().join(", "));
        }
    }
    if let Some(host) = rewrite_host {
        add("Host", host.to_string());
    }
    if let Some(path) = rewrite_path {
        add("path", change(path, prefix.unwrap_or("the prefix")));
    }
    for mirror in mirrors {
        let services: Vec<&str> = mirror.cluster.services.iter().map(|service| &*service.service).collect();
        let (numerator, denominator) = mirror.share;
        add("copies", format!("{numerator} of {denominator} to service {}", services.join(", ")));
    }
    if let Some(cors) = cors {
        let like = cors.origins_like.iter().map(|pattern| format!("like {}", pattern.as_str()));
        let origins: Vec<String> = cors.origins.iter().map(ToString::to_string).chain(like).collect();
        add("CORS", format!("for origins {}", origins.join(", ")));
    }
    for (what, timeout) in [
        ("request timeout", request_timeout),
        ("timeout of a try", backend_timeout),
        ("idle timeout", idle_timeout),
        ("idle connection timeout", keep_connections),
    ] {
        if let Some(timeout) = timeout {
            add(what, super::settings::time(*timeout));
        }
    }
    if let Some(retry) = retry {
        add("tried again", retry_text(retry));
    }
    list
}

fn retry_text(retry: &Retry) -> String {
    let Retry { count, statuses, unanswered, unreachable, backoff: _ } = retry;
    let statuses = statuses.iter().map(|range| match (range.start(), range.end()) {
        (start, end) if start == end => start.to_string(),
        (start, end) => format!("{start} to {end}"),
    });
    let unanswered = unanswered.then(|| "no answer".to_owned());
    let unreachable = unreachable.then(|| "no connection".to_owned());
    let when: Vec<String> = statuses.chain(unanswered).chain(unreachable).collect();
    format!("{count} times at most, if safe, on {}", when.join(", "))
}

fn modifier(modifier: &HeaderModifier) -> String {
    let HeaderModifier { set, add, remove } = modifier;
    let set = set.iter().map(|(name, _)| format!("set {name}"));
    let add = add.iter().map(|(name, _)| format!("add {name}"));
    let remove = remove.iter().map(|name| format!("remove {name}"));
    set.chain(add).chain(remove).collect::<Vec<_>>().join(", ")
}

/// Verdict and fix for a query that host rules do not serve.
pub fn explain_closed(
    host: &VirtualHost,
    host_rules: &HostRules,
    request: &QueryRequest<'_>,
    losers: &[Loser],
    out: &mut Explanation,
) {
    let query = request.query;
    let answer = if request.is_grpc() { "UNIMPLEMENTED" } else { "404" };
    if host_rules.is_denied() {
        out.verdict = format!("{answer}: {} is in the list of denied domains", host.host);
        out.fix = Some("ask for another host, or change --denied-domains of the agent".to_owned());
        return;
    }
    let listener = listener(host_rules, query);
    let is_contour = CONTOUR_KINDS.contains(&host_rules.owner.kind);
    let rules = rules(host_rules, query);
    let Some(rules) = rules else {
        let (answer, what, fix) = match query.protocol {
            QueryProtocol::Http if is_contour => {
                (answer, " on https only", "ask over https, or write spec.routes beside the tcpproxy")
            }
            QueryProtocol::Http => (answer, " on https only", "ask over https, or add a listener for http"),
            QueryProtocol::Https => {
                let answer = if query.path.is_some() { answer } else { "the default certificate, and 404" };
                if is_contour {
                    (answer, " on http only", "ask over http, or write spec.virtualhost.tls")
                } else {
                    let fix = "ask over http, or add a listener for https; one that is there says in ResolvedRefs what it lacks";
                    (answer, ", and no certificate for https", fix)
                }
            }
        };
        out.verdict = format!("{answer}: {listener} has {}{what}", host.host);
        out.fix = Some(fix.to_owned());
        return;
    };
    let path = compared(rules, query);
    // An invalid Contour object keeps its host; a name that several roots claim is granted to none.
    let is_lost = |winner: &Owner| losers.iter().any(|other| other.route.is(winner));
    let is_exact = matches!(host.host, HostMatch::Exact(_));
    let invalid = losers.iter().find(|Loser { route, winner, .. }| match winner {
        None => is_contour && route.kind == host_rules.owner.kind.name(),
        Some(winner) => !is_exact && CONTOUR_KINDS.iter().any(|kind| route.kind == kind.name()) && is_lost(winner),
    });
    let name_of = |Owner { kind, namespace, name, .. }: &Owner| format!("{kind} {namespace}/{name}");
    let invalid = invalid.map(|Loser { route, winner, why, .. }| (name_of(route), winner.as_ref().map(name_of), why));
    out.verdict = if let (true, Some((name, _, why))) = (rules.is_empty(), &invalid) {
        format!("{answer}: {name} claims it and is not served: {why}")
    } else if rules.is_empty() {
        format!("{answer}: {listener} has {}, and no route with it is attached there", host.host)
    } else {
        format!("{answer}: {listener} has {}, and no rule takes {path}", host.host)
    };
    let close = rules.iter().filter(|rule| rule.takes_path(request)).take(MAX_NEAR_MISSES);
    let close: Vec<String> = close
        .map(|rule| format!("{} takes it {}", rule.route.id.object(), missing_conditions(rule, request)))
        .collect();
    out.fix = Some(match invalid.filter(|_| close.is_empty()) {
        Some((name, Some(other), _)) => format!("give {name} another host, or remove {other}"),
        // The verdict applies to the entire object.
        Some((name, None, _)) if rules.is_empty() => {
            format!("correct {name}: as its status says; `sluice validate` shows the place")
        }
        Some((name, None, why)) => format!("correct {name}: {why}"),
        None if close.is_empty() => format!("give a route on {listener} a rule that matches {path}"),
        None => close.join("; "),
    });
}

/// Verdict and fix for a connection to a listener's host that no TLSRoute serves.
pub fn explain_unrouted(route: &ResolvedRoute, out: &mut Explanation) {
    let gateway = route.id.object();
    out.verdict = format!("the connection is reset: {gateway} has {}, and no TLSRoute is attached for it", route.host);
    out.fix = Some(format!("attach a TLSRoute with this host to {gateway}"));
}

/// Gateway API and Contour objects that claim the host and do not own it on every listener: claims on exactly this host
/// first, those on every host last.
pub fn losers(facts: Facts<'_>, router: &RouterTable, host: &Hostname) -> Vec<Loser> {
    let mut losers = Vec::new();
    let routers = &facts.table.routers;
    let contour_router = routers.iter().find(|router| *router.name.0 == *ROUTER).or(routers.first());
    let is_contour_router = contour_router.is_some_and(|contour| contour.name == router.name);
    let owned = router.candidates(host).next().and_then(|host| host.rules.as_ref());
    for (who, status) in facts.report.others.entries() {
        if matches!(who.kind, Kind::GatewayClass | Kind::BackendTlsPolicy | Kind::RouteSlot) {
            continue;
        }
        let is_of_contour = CONTOUR_KINDS.contains(&who.kind);
        if is_of_contour && !is_contour_router {
            continue;
        }
        // A row lists all hosts of an object, but the problem may concern another host.
        let has_host = || owned.is_some_and(|host_rules| has_part(host_rules, who));
        let is_whole = |row: &ParentStatus| {
            row.admitted && (row.winners.is_empty() || has_host()) && !(is_of_contour && row.reason == PARTLY)
        };
        for row in status.rows.iter().filter(|row| !is_whole(row)) {
            let closeness =
                row.hosts.iter().filter(|it| claims_host(it, host)).map(|it| it.len() + usize::from(!it.contains('*')));
            let Some(closeness) = closeness.max() else { continue };
            let parent = if row.parent.is_empty() { String::new() } else { format!("{}: ", row.parent) };
            let loser = Loser {
                route: object(facts, who, object_conditions(facts, who, Some(&row.parent))),
                winner: row.winners.first().map(|winner| of_any_kind(facts, winner)),
                why: format!("{parent}{}: {}", row.reason, row.message),
                fix: None,
            };
            losers.push((closeness, loser));
        }
    }
    losers.sort_by_key(|(closeness, _)| Reverse(*closeness));
    losers.into_iter().map(|(_, loser)| loser).chain(unserved(facts, host)).collect()
}

/// True if host rules are owned by an object, or contain rules of it.
fn has_part(host_rules: &HostRules, who: &ObjectRef) -> bool {
    let cleartext = host_rules.cleartext.as_deref().unwrap_or_default();
    let tls = host_rules.tls.as_ref().map(|tls| &*tls.rules).unwrap_or_default();
    host_rules.owner == *who || cleartext.iter().chain(tls).any(|rule| rule.route.id.object() == *who)
}

/// Objects that claim the host and that this agent does not serve.
pub fn unserved(facts: Facts<'_>, host: &Hostname) -> Vec<Loser> {
    let all = crate::unserved::unserved(facts.resources, facts.report).into_iter();
    let claiming = all.filter(|unserved| unserved.hosts.iter().any(|it| claims_host(it, host)));
    let loser = |unserved: Unserved| Loser {
        route: of_any_kind(facts, &unserved.object),
        winner: None,
        why: unserved.why,
        fix: Some(unserved.advice),
    };
    claiming.map(loser).collect()
}

fn of_any_kind(facts: Facts<'_>, who: &ObjectRef) -> Owner {
    object(facts, who, object_conditions(facts, who, None))
}

/// True if a host, as a row writes it, covers the name.
fn claims_host(written: &str, host: &Hostname) -> bool {
    match written.strip_prefix('*') {
        Some("") => true,
        Some(domain) => host.as_str().strip_suffix(domain).is_some_and(|labels| !labels.is_empty()),
        None => written.eq_ignore_ascii_case(host.as_str()),
    }
}
