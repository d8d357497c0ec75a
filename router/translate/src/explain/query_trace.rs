//! Traces a query through a router's table, as a request would go, and records each decision.

use router_model::kind::Kind;
use router_table::decide::{RequestDecision, decide, method_is_routed, target_is_valid};
use router_table::flag::Flag;
use router_table::location;
use router_table::location::RedirectFrom;
use router_table::lookup::SniMatch;
use router_table::path_form::PathForm;
use router_table::rule::{Action, RedirectTo, Rule};
use router_table::table::{ResolvedRoute, RouterTable};
use router_table::tls_offer::TlsOffer;

use super::outcome::{OutcomeKind, QueryContext, QueryOutcome};
use super::owners::owner_of;
use super::request::QueryRequest;
use super::{backends, filter, host_rules, hosts, settings};
use crate::contour::status::PARTLY;
use crate::explain::explanation::{Explanation, ExplanationStep, Loser};
use crate::explain::facts::Facts;
use crate::explain::lookup_result::LookupResult;
use crate::explain::query::{Query, QueryProtocol};
use crate::explain::settings::RouteSetting;
use crate::status::object_status::faults;

/// gRPC status if no route serves a call.
const UNAVAILABLE: &str = "UNAVAILABLE";

/// The table's result for a request.
fn look_up<'t>(router: &'t RouterTable, request: &QueryRequest<'_>) -> LookupResult<'t> {
    let query = request.query;
    if query.protocol == QueryProtocol::Https {
        match router.match_sni(request.sni.as_ref()) {
            SniMatch::Passthrough(route) => return LookupResult::Passthrough(route),
            SniMatch::Terminate(host) if host_rules::tcp(host, query).is_some() => {
                if let Some(route) = host_rules::tcp(host, query) {
                    return LookupResult::Tcp(route);
                }
            }
            SniMatch::Terminate(_) if query.path.is_none() => return LookupResult::Handshake(true),
            SniMatch::Default if query.path.is_none() => return LookupResult::Handshake(false),
            SniMatch::Terminate(_) | SniMatch::Default => {}
        }
    }
    if !method_is_routed(query.method()) {
        return LookupResult::Invalid(405);
    }
    if !target_is_valid(query.path(), query.query.as_deref()) {
        return LookupResult::Invalid(400);
    }
    LookupResult::Request(decide(router, &request.via(), request.host.as_ref(), request))
}

/// Explains a query on a router.
pub fn trace(facts: Facts<'_>, router: &RouterTable, query: &Query, out: &mut Explanation) {
    let request = &QueryRequest::of(query);
    let found = look_up(router, request);
    let is_stream = matches!(found, LookupResult::Passthrough(_) | LookupResult::Tcp(_));
    let context = QueryContext { router, request, facts, is_stream };
    out.steps.push(hosts::candidates(router, request));
    out.steps.extend(hosts::paths(router, request, &found));
    if let (Some(rule), Some(host_rules)) =
        (found.rule(), host_rules::virtual_host(router, request).and_then(|host| host.rules.as_ref()))
    {
        out.steps.push(host_rules::rule(host_rules, rule, request.query));
    }
    if let Some(route) = found.route().filter(|route| route.id.kind == Kind::Gateway) {
        host_rules::explain_unrouted(route, out);
        out.outcome.push(OutcomeKind::close(Flag::NoEndpoints).into());
    } else if let Some(route) = found.route() {
        out.steps.push(ExplanationStep::Route(owner_of(facts, Some(router), &route.id.object())));
        if filter::admits(facts, &context, route, out) {
            explain_served(facts, &context, &found, route, out);
        }
    }
    let losers = request.host.as_ref().map(|host| hosts::losers(facts, router, host)).unwrap_or_default();
    if found.route().is_none() {
        explain_unserved(&context, &found, &losers, out);
    }
    if !out.served && out.verdict.is_empty() {
        hosts::not_served(facts, router, request, &losers, out);
    } else if found.route().is_none() && !out.served {
        hosts::add_unserved(request.name(), &losers, out);
    }
    if !losers.is_empty() {
        out.steps.push(ExplanationStep::Losers { routes: losers });
    }
    handshake(&context, &found, out);
}

/// Explains what a route serves to an admitted client.
fn explain_served(
    facts: Facts<'_>,
    context: &QueryContext<'_>,
    found: &LookupResult<'_>,
    route: &ResolvedRoute,
    out: &mut Explanation,
) {
    let router = context.router;
    match found {
        LookupResult::Request(RequestDecision::RedirectToHttps(_)) => {
            out.served = true;
            out.verdict = format!("Route {} sends clear-text requests to https://{}", route.id, context.request.name());
            out.outcome.insert(0, to_https(context, router.policy.path_form).into());
        }
        LookupResult::Request(RequestDecision::Preflight(rule)) => {
            out.served = true;
            out.verdict = format!("204: the CORS filter of {} answers it", rule.route.id.object());
            out.outcome.insert(0, OutcomeKind::answer(204, None).into());
        }
        LookupResult::Request(RequestDecision::RuleRedirect { rule, to }) => {
            push_settings(host_rules::settings(route, Some(&rule.prefix)), out);
            out.served = true;
            out.verdict = format!("{} redirects to {}", route.id.object(), host_rules::target(to, &rule.prefix));
            out.outcome.insert(0, redirect(context, rule, to).into());
        }
        LookupResult::Request(RequestDecision::Refuse { status, flag, rule, .. }) => {
            push_settings(host_rules::settings(route, rule.map(|rule| &*rule.prefix)), out);
            let who = route.id.object();
            out.outcome.insert(0, context.refused(*status, *flag).into());
            if route.rule.as_ref().is_some_and(|policy| matches!(policy.action, Action::Direct(_))) {
                out.served = true;
                out.verdict = format!("{who} answers {status} itself");
                return;
            }
            let answer = if context.request.is_grpc() { UNAVAILABLE } else { &status.to_string() };
            out.verdict = format!("{answer}: {who} has it, and nothing that it could go to");
            let fault = facts.report.others.get(&who).and_then(|status| {
                let in_row = || status.rows.iter().find(|row| !row.admitted || row.reason == PARTLY);
                let of_row = || in_row().map(|row| format!("{}: {}", row.reason, row.message));
                faults(&status.status()).into_iter().next().or_else(of_row)
            });
            out.fix = Some(match fault {
                Some(fault) => format!("{who} says {fault}"),
                None => format!(
                    "look at the status of {who} and of the policies for its backends, and at the rule's backends"
                ),
            });
        }
        _ => forward(facts, context, found, route, out),
    }
}

fn push_settings(settings: Vec<RouteSetting>, out: &mut Explanation) {
    if !settings.is_empty() {
        out.steps.push(ExplanationStep::Settings { settings });
    }
}

/// Explains forwarding to an endpoint of a route, if it has one.
fn forward(
    facts: Facts<'_>,
    context: &QueryContext<'_>,
    found: &LookupResult<'_>,
    route: &ResolvedRoute,
    out: &mut Explanation,
) {
    let mut all = host_rules::settings(route, found.rule().map(|rule| &*rule.prefix));
    all.extend(settings::settings(&facts.table.endpoints, context.router, route));
    push_settings(all, out);
    let services = backends::services(facts, route);
    let problem = services.iter().find(|service| service.weight > 0 && !service.problem.is_empty());
    let problem = problem.map(|service| service.problem.clone());
    out.steps.push(ExplanationStep::Backends { services });
    let who = route.id.object();
    let outcome = context.forwarded(route);
    match outcome.first().map(|first| &first.kind) {
        Some(OutcomeKind::Endpoints { endpoints }) => {
            let how = match found {
                LookupResult::Passthrough(_) => "gets the TLS stream as it is",
                LookupResult::Tcp(_) => "gets what is inside TLS",
                _ => "gets it",
            };
            let endpoints = endpoints.len();
            let plural = if endpoints == 1 { "" } else { "s" };
            let is_for_some = route.allow().is_some() && context.request.client().is_none();
            let whom = if is_for_some { ", for clients of its allow-list" } else { "" };
            out.served = true;
            out.verdict = format!("{who} {how}, on {endpoints} endpoint{plural}{whom}");
        }
        _ => {
            let answers = outcome.iter().filter(|it| it.when.is_none()).map(QueryOutcome::answer);
            let answers: Vec<String> =
                if context.request.is_grpc() { vec![UNAVAILABLE.to_owned()] } else { answers.collect() };
            let untrusted = route.cluster.services.iter().find_map(|service| facts.trust.missing(route, service));
            let is_untrusted = outcome.iter().any(|it| it.cause() == Some(Flag::NoDestinationCa.cause()));
            let (what, fix) = match untrusted.filter(|_| is_untrusted) {
                Some(advice) => ("there is no CA to verify its endpoints with", advice.to_owned()),
                None => {
                    let fix = problem.unwrap_or_else(|| format!("give a service of {who} a weight above 0"));
                    ("no service of it has a usable endpoint", fix)
                }
            };
            out.verdict = format!("{}: {who} has it, but {what}", answers.join(" or "));
            out.fix = Some(fix);
        }
    }
    let others = std::mem::replace(&mut out.outcome, outcome);
    out.outcome.extend(others);
}

/// Explains a query that no route serves; further hints on hosts are added elsewhere.
fn explain_unserved(context: &QueryContext<'_>, found: &LookupResult<'_>, losers: &[Loser], out: &mut Explanation) {
    let (router, request) = (context.router, context.request);
    let host_rules = || host_rules::virtual_host(router, request).and_then(|host| Some((host, host.rules.as_ref()?)));
    match found {
        LookupResult::Handshake(is_requested) => {
            out.outcome.push(OutcomeKind::Handshake.into());
            match host_rules().filter(|_| !is_requested) {
                Some((host, host_rules)) => host_rules::explain_closed(host, host_rules, request, losers, out),
                None if *is_requested => {
                    out.served = true;
                    out.verdict =
                        format!("TLS for {} ends here; the path decides which route gets a request", request.name());
                    if request.client().is_some() {
                        out.verdict.push_str(", and whether its client may connect: ask for a URL");
                    }
                }
                None => {}
            }
        }
        LookupResult::Invalid(status) => {
            out.outcome.push(context.refused(*status, Flag::BadRequest).into());
            let (verdict, fix) = match status {
                405 => {
                    (format!("405: {} is no method that is routed", request.query.method()), "ask with another method")
                }
                _ => {
                    ("400: the path or query has a byte that none may have".to_owned(), "write it as %XX, but for NUL")
                }
            };
            (out.verdict, out.fix) = (verdict, Some(fix.to_owned()));
        }
        LookupResult::Request(RequestDecision::Refuse { status, flag, .. }) => {
            out.outcome.push(context.refused(*status, *flag).into());
            match (flag, host_rules()) {
                (Flag::Misdirected, _) => {
                    out.verdict = format!(
                        "421: {} needs another connection than that for {}",
                        request.name(),
                        request.query.host
                    );
                    out.fix = Some(format!("ask for https://{}", request.name()));
                }
                (Flag::NoRule, Some((host, host_rules))) => {
                    host_rules::explain_closed(host, host_rules, request, losers, out)
                }
                _ => {}
            }
        }
        _ => {}
    }
}

/// Explains the TLS handshake: whether the router can terminate TLS, and whether it asks for client certificates.
fn handshake(context: &QueryContext<'_>, found: &LookupResult<'_>, out: &mut Explanation) {
    if context.request.query.protocol != QueryProtocol::Https || matches!(found, LookupResult::Passthrough(_)) {
        return;
    }
    let (name, policy) = (&context.router.name, &context.router.policy);
    let auth = policy.client_tls.as_deref();
    let refused = if TlsOffer::of(&policy.tls).is_err() {
        Some(("its tlsSecurityProfile names no cipher suite that can be used", "spec.tlsSecurityProfile"))
    } else {
        auth.filter(|auth| auth.roots.is_empty())
            .map(|_| ("its clientTLS has no CA that can be used", "spec.clientTLS.clientCA"))
    };
    if let Some((why, field)) = refused {
        out.served = false;
        out.verdict = format!("TLS of router {name} is refused: {why}");
        out.fix = Some(format!("correct {field} of IngressController {name}"));
        out.outcome = vec![OutcomeKind::close(Flag::ClientHandshake).into()];
        return;
    }
    let Some(auth) = auth else { return };
    let without_certificate = if auth.required {
        Some(OutcomeKind::close(Flag::ClientHandshake))
    } else if !auth.subjects.is_empty() && !matches!(found, LookupResult::Handshake(_)) {
        Some(context.refused(403, Flag::ClientCertificate))
    } else {
        None
    };
    let Some(without_certificate) = without_certificate else { return };
    if out.served {
        out.verdict.push_str(", for clients that show a certificate");
    }
    out.outcome.push(
        QueryOutcome::from(without_certificate)
            .when("the client shows no certificate that the router's clientTLS takes"),
    );
}

/// The redirect of a Route to https.
fn to_https(context: &QueryContext<'_>, form: PathForm) -> OutcomeKind {
    let (router, request) = (context.router, context.request);
    let port = router.http_port.and_then(|port| location::mapped_port(&request.authority, port, router.https_port));
    let query = request.query.query.as_deref().map(|query| format!("?{query}")).unwrap_or_default();
    let target = format!("{}{query}", request.query.path_in(form));
    let location = location::to_https(request.name(), port, &target);
    OutcomeKind::answer(302, Some(location))
}

/// The redirect of a rule.
fn redirect(context: &QueryContext<'_>, rule: &Rule, to: &RedirectTo) -> OutcomeKind {
    let query = context.request.query;
    let (tls, port) = match query.protocol {
        QueryProtocol::Http => (false, context.router.http_port),
        QueryProtocol::Https => (true, context.router.https_port),
    };
    let from = RedirectFrom {
        tls,
        port: port.unwrap_or_default(),
        https_port: context.router.https_port,
        authority: &context.request.authority,
        path: &query.path_in(rule.path_form),
        query: query.query.as_deref(),
    };
    OutcomeKind::answer(to.status, Some(location::of_rule(to, &rule.prefix, &from)))
}
