//! The listener, host and path steps: candidates in order, and why the others did not match.

use std::sync::Arc;

use router_api::openshift::route::traffic::Traffic;
use router_model::kind::Kind;
use router_model::names::{HostMatch, Hostname};
use router_model::object::ObjectKey;
use router_table::decide::RequestDecision;
use router_table::flag::Flag;
use router_table::table::{HttpTls, InsecurePolicy, ResolvedRoute, RouteKind, RouterTable, VirtualHost};

use super::host_rules;
use super::outcome::OutcomeKind;
use super::owners::{owner, owner_of};
use super::request::QueryRequest;
use crate::explain::explanation::{Candidate, Explanation, ExplanationStep, Loser, Owner};
use crate::explain::facts::Facts;
use crate::explain::lookup_result::LookupResult;
use crate::explain::query::{Query, QueryProtocol};
use crate::status::ingress::IngressEntry;

/// Maximum number of suggested names for an unknown one.
const MAX_SUGGESTIONS: usize = 3;

/// The router that has the port. For a server name without a port: the router that serves it, or the first one.
pub fn listener<'f>(facts: Facts<'f>, query: &Query, out: &mut Explanation) -> Option<&'f RouterTable> {
    let routers = &facts.table.routers;
    let serves = |router: &RouterTable| query.hostname().is_some_and(|host| router.candidates(&host).next().is_some());
    let listening = || routers.iter().filter(|router| port_of(router, query.protocol).is_some());
    let taken = match query.port {
        Some(port) => routers.iter().find(|router| port_of(router, query.protocol) == Some(port)),
        None => listening().find(|router| serves(router)).or_else(|| listening().next()),
    };
    let mut candidates: Vec<Candidate> = routers
        .iter()
        .flat_map(|router| [(router, QueryProtocol::Http), (router, QueryProtocol::Https)])
        .filter_map(|(router, protocol)| {
            let port = port_of(router, protocol)?;
            let is_taken = protocol == query.protocol && taken.is_some_and(|taken| Arc::ptr_eq(taken, router));
            let why = match query.port {
                _ if is_taken && query.port.is_none() => "serves the name, or is the first router".to_owned(),
                _ if is_taken => "has the port".to_owned(),
                Some(other) if other == port => format!("has the port, but for {protocol}"),
                Some(other) if protocol == query.protocol => format!("has port {port}, not {other}"),
                _ => format!("is for {protocol}"),
            };
            Some(Candidate { what: format!("router {} {protocol} port {port}", router.name), taken: is_taken, why })
        })
        .collect();
    candidates.sort_by_key(|candidate| !candidate.taken);
    out.steps.push(ExplanationStep::Listener { candidates });
    taken.map(|router| &**router)
}

/// Explains that no router has the port.
pub fn no_listener(facts: Facts<'_>, query: &Query, out: &mut Explanation) {
    out.outcome.push(OutcomeKind::Close { cause: None }.into());
    out.verdict = match query.port {
        Some(port) => format!("no router listens on port {port} for {}", query.protocol),
        None => "there is no router: no IngressController is available".to_owned(),
    };
    let ports: Vec<String> =
        facts.table.routers.iter().filter_map(|r| Some(port_of(r, query.protocol)?.to_string())).collect();
    out.fix = Some(if ports.is_empty() {
        "look at the conditions of the IngressControllers".to_owned()
    } else {
        format!("ask on port {} for {}", ports.join(" or "), query.protocol)
    });
    let unserved = query.hostname().map(|host| host_rules::unserved(facts, &host)).unwrap_or_default();
    add_unserved(&query.host, &unserved, out);
    if !unserved.is_empty() {
        out.steps.push(ExplanationStep::Losers { routes: unserved });
    }
}

/// Adds the objects that claim the host and are not served by this agent.
pub fn add_unserved(host: &str, losers: &[Loser], out: &mut Explanation) {
    let Some((loser, fix)) = losers.iter().find_map(|loser| Some((loser, loser.fix.as_ref()?))) else { return };
    let Owner { kind, namespace, name, .. } = &loser.route;
    out.verdict.push_str(&format!("; {kind} {namespace}/{name} claims {host} and is not served: {}", loser.why));
    out.fix = Some(fix.clone());
}

fn port_of(router: &RouterTable, protocol: QueryProtocol) -> Option<u16> {
    match protocol {
        QueryProtocol::Http => router.http_port,
        QueryProtocol::Https => router.https_port,
    }
}

/// Names that could match: the exact one, then wildcards.
pub fn candidates(router: &RouterTable, request: &QueryRequest<'_>) -> ExplanationStep {
    let host = request.host.as_ref();
    let wildcard =
        host.and_then(Hostname::parent).map(|parent| (format!("*.{parent}"), router.hosts.wildcard.get(parent)));
    let wide = router.candidates(host).filter(|entry| matches!(entry.host, HostMatch::Suffix(_) | HostMatch::Any));
    let wide: Vec<_> = wide.map(|entry| (entry.host.to_string(), Some(entry))).collect();
    // A wildcard with equal text is shown once.
    let wildcard = wildcard.filter(|(what, entry)| entry.is_some() || wide.iter().all(|(other, _)| what != other));
    let exact = host.map(|host| (host.to_string(), router.hosts.exact.get(host)));
    let none = (exact.is_none() && wide.is_empty()).then(|| (request.name().to_owned(), None));
    let named = exact.into_iter().chain(none).chain(wildcard).chain(wide);
    let mut is_decided = false;
    let candidates = named
        .map(|(what, entry)| {
            let (fits, why) = match entry {
                None => (false, "no admitted route has it".to_owned()),
                Some(entry) => match_host(router, entry, request),
            };
            let taken = fits && !is_decided;
            let why = if fits && is_decided { "a more specific host has it".to_owned() } else { why };
            is_decided |= fits;
            Candidate { what, taken, why }
        })
        .collect();
    ExplanationStep::Host { candidates }
}

/// True if a host has a route for the query; and the reason.
fn match_host(router: &RouterTable, host: &VirtualHost, request: &QueryRequest<'_>) -> (bool, String) {
    let query = request.query;
    if let Some(host_rules) =
        host.rules.as_ref().filter(|_| query.protocol == QueryProtocol::Http || host.passthrough.is_none())
    {
        return (true, host_rules::describe_match(host_rules, request));
    }
    let path = &query.path_in(router.policy.path_form);
    match query.protocol {
        QueryProtocol::Https if host.passthrough.is_some() => (true, "has a passthrough route".to_owned()),
        QueryProtocol::Https if host.terminated.is_empty() => (false, "has no TLS route".to_owned()),
        QueryProtocol::Https if query.path.is_none() => (true, "has TLS routes that end here".to_owned()),
        QueryProtocol::Https => by_path(&host.terminated, path),
        QueryProtocol::Http if host.cleartext.is_empty() => {
            (false, "has TLS routes only, and none lets clear text in (insecureEdgeTerminationPolicy)".to_owned())
        }
        QueryProtocol::Http => by_path(&host.cleartext, path),
    }
}

fn by_path(routes: &[Arc<ResolvedRoute>], path: &str) -> (bool, String) {
    if routes.iter().any(|route| covers(route, path)) {
        (true, format!("has a path that covers {path}"))
    } else {
        (false, format!("none of its paths covers {path}"))
    }
}

fn covers(route: &ResolvedRoute, path: &str) -> bool {
    match &route.kind {
        RouteKind::Http { path: prefix, .. } => prefix.covers(path),
        RouteKind::Passthrough { .. } => true,
    }
}

/// Paths of the most specific host that has routes of this protocol, longest first.
pub fn paths(router: &RouterTable, request: &QueryRequest<'_>, found: &LookupResult<'_>) -> Option<ExplanationStep> {
    let (query, host) = (request.query, request.host.as_ref());
    let host_rules = || host_rules::virtual_host(router, request)?.rules.as_ref();
    let taken = match found {
        LookupResult::Tcp(_) => return None,
        _ if found.rule().is_some() => return host_rules::paths(host_rules()?, request, found.rule()),
        LookupResult::Request(RequestDecision::Refuse { flag: Flag::NoRule, .. }) if host_rules().is_some() => {
            return host_rules::paths(host_rules()?, request, None);
        }
        _ => found.route(),
    };
    let of = |host: &VirtualHost| match query.protocol {
        QueryProtocol::Https => host.terminated.to_vec(),
        QueryProtocol::Http => host.cleartext.to_vec(),
    };
    let lists: Vec<Vec<Arc<ResolvedRoute>>> = router.candidates(host).map(|host| of(host)).collect();
    let has_taken = |routes: &&Vec<Arc<ResolvedRoute>>| {
        taken.is_some_and(|taken| routes.iter().any(|route| Arc::ptr_eq(route, taken)))
    };
    let routes = lists.iter().find(has_taken).or_else(|| lists.iter().find(|routes| !routes.is_empty()))?;
    let path = &query.path_in(router.policy.path_form);
    let mut is_decided = false;
    let candidates = routes
        .iter()
        .map(|route| {
            let is_taken = taken.is_some_and(|taken| Arc::ptr_eq(route, taken));
            let why = match (is_taken, covers(route, path), query.path.is_some()) {
                (true, ..) => "the longest path that covers the request".to_owned(),
                (false, _, false) => "gets requests for its path".to_owned(),
                (false, true, _) if is_decided => "covers the request too, but an earlier one has it".to_owned(),
                (false, true, _) => "covers the request, but serves no clear text".to_owned(),
                (false, false, _) => format!("does not cover {path}"),
            };
            is_decided |= is_taken;
            let path = if route.path().is_empty() { "every path" } else { route.path() };
            Candidate { what: format!("{path} of Route {}", route.id), taken: is_taken, why }
        })
        .collect();
    Some(ExplanationStep::Path { candidates })
}

/// Routes that claim the host on this router and were rejected, shadowed or not selected.
pub fn losers(facts: Facts<'_>, router: &RouterTable, host: &Hostname) -> Vec<Loser> {
    let mut losers = Vec::new();
    for (key, entries) in facts.report.routes.entries() {
        let entries = entries.to_vec();
        let Some(entry) = entries.iter().find(|entry| entry.router_name == router.name) else {
            let Some(route) = facts.resources.routes.get(key).filter(|route| *route.host == *host.as_str()) else {
                continue;
            };
            let elsewhere: Vec<String> = entries.iter().map(|entry| format!("router {}", entry.router_name)).collect();
            if elsewhere.is_empty() {
                continue;
            }
            let why = format!(
                "router {} does not select it, {} does; compare its labels and its namespace's with \
                 spec.routeSelector and spec.namespaceSelector",
                router.name,
                elsewhere.join(" and ")
            );
            losers.push(Loser { route: owner(facts, None, &route.meta.key), winner: None, why, fix: None });
            continue;
        };
        if !claims_host(entry, host) {
            continue;
        }
        let conflicts = facts.report.conflicts.get(key);
        let conflict = conflicts.and_then(|all| all.iter().find(|conflict| conflict.router == router.name));
        let rejected = entry.conditions.iter().find(|condition| condition.kind == "Admitted" && !condition.holds);
        let why = match (conflict, rejected) {
            (Some(conflict), _) => format!("{}: {}", conflict.reason, conflict.message),
            (None, Some(rejected)) => format!("{}: {}", rejected.reason, rejected.message),
            (None, None) => continue,
        };
        let winner = conflict.map(|conflict| owner_of(facts, Some(router), &conflict.winner));
        losers.push(Loser { route: owner(facts, Some(router), key), winner, why, fix: None });
    }
    losers.extend(host_rules::losers(facts, router, host));
    losers
}

/// True if the query's path matches the route's; for an invalid route, always.
fn claims_path(facts: Facts<'_>, router: &RouterTable, loser: &Loser, query: &Query) -> bool {
    if loser.route.kind != Kind::Route.name() {
        return true;
    }
    let key = ObjectKey::new(&loser.route.namespace, &loser.route.name);
    let Some(route) = facts.resources.routes.get(&key) else { return true };
    match &route.traffic {
        Traffic::Http { path, .. } if query.path.is_some() => path.covers(&query.path_in(router.policy.path_form)),
        _ => true,
    }
}

/// True if the entry's host, or its wildcard, covers the host.
fn claims_host(entry: &IngressEntry, host: &Hostname) -> bool {
    // Hosts are compared in lower case, even if the entry was rejected for its upper case.
    let claimed: &str = entry.host.as_ref();
    claimed.eq_ignore_ascii_case(host.as_str())
        || (entry.wildcard_policy == "Subdomain"
            && claimed.split_once('.').map(|(_, domain)| domain) == host.parent()
            && host.parent().is_some())
}

/// Verdict and fix for a query that nothing serves.
pub fn not_served(
    facts: Facts<'_>,
    router: &RouterTable,
    request: &QueryRequest<'_>,
    losers: &[Loser],
    out: &mut Explanation,
) {
    let (query, host) = (request.query, request.host.as_ref());
    let admitted: Vec<&Arc<VirtualHost>> = router.candidates(host).collect();
    let is_closed = router.hosts.finds_nothing(host.filter(|_| admitted.is_empty()));
    let status = if is_closed { "404" } else { "503" };
    let answer =
        if query.path.is_some() { status.to_owned() } else { format!("the default certificate, and {status}") };
    if let Some(loser) = losers.iter().find(|loser| claims_path(facts, router, loser, query)) {
        let name = format!("{} {}/{}", loser.route.kind, loser.route.namespace, loser.route.name);
        let lost = |winner: &Owner| losers.iter().any(|other| other.route.is(winner));
        match &loser.winner {
            Some(winner) if !lost(winner) => {
                let owner = format!("{} {}/{}", winner.kind, winner.namespace, winner.name);
                let since = winner.created.map(|at| format!(", created {at},")).unwrap_or_default();
                out.verdict =
                    format!("{answer}: {name} claims it and is rejected ({}); {owner}{since} has it", loser.why);
                out.fix = Some(format!("give {name} another host or path, or remove {owner}"));
            }
            // A name that several roots of Contour claim is granted to none.
            _ => {
                out.verdict = format!("{answer}: {name} claims it and is not served: {}", loser.why);
                let what = if loser.route.kind.ends_with("Route") { "the route" } else { &*name };
                out.fix = Some(loser.fix.clone().unwrap_or_else(|| fix_of(what, &loser.why, router)));
            }
        }
    } else if let Some(entry) = admitted.first() {
        out.verdict = format!("{answer}: {} is known, but no route of it takes this", entry.host);
        out.fix = Some(fix_of_known(entry, query, &query.path_in(router.policy.path_form)));
    } else {
        let what = if is_closed { "object" } else { "route" };
        let Some(host) = host else {
            out.verdict = format!("{answer}: {} is an address, and no {what} has every host", request.name());
            out.fix = Some("ask for the host name of a route".to_owned());
            return;
        };
        out.verdict = format!("{answer}: no {what} of router {} has {host}", router.name);
        out.fix = Some(elsewhere(facts, router, host, query).unwrap_or_else(|| suggestions(router, host)));
    }
}

fn fix_of(what: &str, why: &str, router: &RouterTable) -> String {
    if why.starts_with("RouteNotAdmitted: wildcard") {
        return format!(
            "set spec.routeAdmission.wildcardPolicy of IngressController {} to WildcardsAllowed, or the route's \
             wildcardPolicy to None",
            router.name
        );
    }
    if why.contains("list of domains") || why.contains("denied domains") {
        return "give the route another host, or change --denied-domains and --allowed-domains of the agent".to_owned();
    }
    if why.contains("does not select") {
        return "change the labels or the selectors so that the router selects the route".to_owned();
    }
    format!("correct {what} as its condition says; `sluice validate` shows the place")
}

fn fix_of_known(host: &VirtualHost, query: &Query, path: &str) -> String {
    let closed = |route: &&Arc<ResolvedRoute>| {
        matches!(&route.kind, RouteKind::Http { tls: Some(HttpTls { insecure: InsecurePolicy::None, .. }), .. })
    };
    match query.protocol {
        QueryProtocol::Http if host.terminated.iter().any(|route| covers(route, path) && closed(&route)) => {
            "ask over https, or set spec.tls.insecureEdgeTerminationPolicy to Redirect or Allow".to_owned()
        }
        QueryProtocol::Http if host.passthrough.is_some() => {
            "ask over https, or set spec.tls.insecureEdgeTerminationPolicy to Redirect".to_owned()
        }
        QueryProtocol::Https if host.terminated.is_empty() => "ask over http, or give the route spec.tls".to_owned(),
        _ => format!("add a Route with a path that covers {path}"),
    }
}

/// Another router that serves the host.
fn elsewhere(facts: Facts<'_>, router: &RouterTable, host: &Hostname, query: &Query) -> Option<String> {
    let other = facts
        .table
        .routers
        .iter()
        .filter(|other| other.name != router.name && port_of(other, query.protocol).is_some())
        .find(|other| other.candidates(host).next().is_some())?;
    let port = port_of(other, query.protocol)?;
    Some(format!("router {} has it: ask on port {port} for {}", other.name, query.protocol))
}

/// Hosts within a small edit distance.
fn suggestions(router: &RouterTable, host: &Hostname) -> String {
    let mut close: Vec<(usize, &str)> = router
        .hosts
        .exact
        .entries()
        .map(|(name, _)| (distance(host.as_str(), name.as_str()), name.as_str()))
        .filter(|(distance, _)| *distance <= 2)
        .collect();
    close.sort();
    close.truncate(MAX_SUGGESTIONS);
    let create = format!("create a Route with host {host}");
    if close.is_empty() {
        return create;
    }
    let names: Vec<&str> = close.into_iter().map(|(_, name)| name).collect();
    format!("did you mean {}? Otherwise {create}", names.join(" or "))
}

/// Edit distance (Levenshtein), capped: 3 means 3 or more.
fn distance(a: &str, b: &str) -> usize {
    const MANY: usize = 3;
    if a.len().abs_diff(b.len()) >= MANY {
        return MANY;
    }
    let b: Vec<u8> = b.bytes().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.bytes().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row.last().copied().unwrap_or(MANY).min(MANY)
}
