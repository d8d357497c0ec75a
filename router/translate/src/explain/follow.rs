//! From the router on: what traffic would decide, and how that is told.

use router_model::kind::Kind;
use router_table::decide::{Decision, decide, method_is_routed, target_is_valid};
use router_table::flag::Flag;
use router_table::location;
use router_table::location::RedirectFrom;
use router_table::lookup::SniMatch;
use router_table::path_form::PathForm;
use router_table::rule::{Action, RedirectTo, Rule};
use router_table::table::{ResolvedRoute, RouterTable};
use router_table::tls_offer::TlsOffer;

use super::asked::Asked;
use super::outcome::{Fate, Ground, Outcome};
use super::owners::owner_of;
use super::{backends, filter, hosts, settings, sites};
use crate::contour::status::PARTLY;
use crate::explain::explanation::{Explanation, Loser, Step};
use crate::explain::facts::Facts;
use crate::explain::found::Found;
use crate::explain::query::{Protocol, Query};
use crate::explain::settings::Setting;
use crate::status::object_status::faults;

/// What a gRPC call is told where nothing is there that could have it.
const UNAVAILABLE: &str = "UNAVAILABLE";

fn found<'t>(router: &'t RouterTable, asked: &Asked<'_>) -> Found<'t> {
    let query = asked.query;
    if query.protocol == Protocol::Https {
        match router.match_sni(asked.sni.as_ref()) {
            SniMatch::Passthrough(route) => return Found::Passthrough(route),
            SniMatch::Terminate(host) if sites::tcp(host, query).is_some() => {
                if let Some(route) = sites::tcp(host, query) {
                    return Found::Tcp(route);
                }
            }
            SniMatch::Terminate(_) if query.path.is_none() => return Found::Handshake(true),
            SniMatch::Default if query.path.is_none() => return Found::Handshake(false),
            SniMatch::Terminate(_) | SniMatch::Default => {}
        }
    }
    if !method_is_routed(query.method()) {
        return Found::Invalid(405);
    }
    if !target_is_valid(query.path(), query.query.as_deref()) {
        return Found::Invalid(400);
    }
    Found::Request(decide(router, &asked.via(), asked.host.as_ref(), asked))
}

/// From the router on.
pub fn follow(facts: Facts<'_>, router: &RouterTable, query: &Query, out: &mut Explanation) {
    let asked = &Asked::of(query);
    let found = found(router, asked);
    let is_stream = matches!(found, Found::Passthrough(_) | Found::Tcp(_));
    let ground = Ground { router, asked, facts, is_stream };
    out.steps.push(hosts::candidates(router, asked));
    out.steps.extend(hosts::paths(router, asked, &found));
    if let (Some(rule), Some(site)) = (found.rule(), sites::asked(router, asked).and_then(|host| host.site.as_ref())) {
        out.steps.push(sites::rule(site, rule, asked.query));
    }
    if let Some(route) = found.route().filter(|route| route.id.kind == Kind::Gateway) {
        sites::unrouted(route, out);
        out.outcome.push(Fate::close(Flag::NoEndpoints).into());
    } else if let Some(route) = found.route() {
        out.steps.push(Step::Route(owner_of(facts, Some(router), &route.id.object())));
        if filter::admits(facts, &ground, route, out) {
            take(facts, &ground, &found, route, out);
        }
    }
    let losers = asked.host.as_ref().map(|host| hosts::losers(facts, router, host)).unwrap_or_default();
    if found.route().is_none() {
        nobodys(&ground, &found, &losers, out);
    }
    if !out.served && out.verdict.is_empty() {
        hosts::not_served(facts, router, asked, &losers, out);
    } else if found.route().is_none() && !out.served {
        hosts::tell_unserved(asked.name(), &losers, out);
    }
    if !losers.is_empty() {
        out.steps.push(Step::Losers { routes: losers });
    }
    handshake(&ground, &found, out);
}

/// What is told of something that a route has, whose client is let in.
fn take(facts: Facts<'_>, ground: &Ground<'_>, found: &Found<'_>, route: &ResolvedRoute, out: &mut Explanation) {
    let router = ground.router;
    match found {
        Found::Request(Decision::RedirectToHttps(_)) => {
            out.served = true;
            out.verdict = format!("Route {} sends clear-text requests to https://{}", route.id, ground.asked.name());
            out.outcome.insert(0, to_https(ground, router.policy.path_form).into());
        }
        Found::Request(Decision::Preflight(rule)) => {
            out.served = true;
            out.verdict = format!("204: the CORS filter of {} answers it", rule.route.id.object());
            out.outcome.insert(0, Fate::answer(204, None).into());
        }
        Found::Request(Decision::RuleRedirect { rule, to }) => {
            tell_settings(sites::settings(route, Some(&rule.prefix)), out);
            out.served = true;
            out.verdict = format!("{} redirects to {}", route.id.object(), sites::target(to, &rule.prefix));
            out.outcome.insert(0, redirect(ground, rule, to).into());
        }
        Found::Request(Decision::Refuse { status, flag, rule, .. }) => {
            tell_settings(sites::settings(route, rule.map(|rule| &*rule.prefix)), out);
            let who = route.id.object();
            out.outcome.insert(0, ground.refused(*status, *flag).into());
            if route.rule.as_ref().is_some_and(|policy| matches!(policy.action, Action::Direct(_))) {
                out.served = true;
                out.verdict = format!("{who} answers {status} itself");
                return;
            }
            let answer = if ground.asked.is_grpc() { UNAVAILABLE } else { &status.to_string() };
            out.verdict = format!("{answer}: {who} has it, and nothing that it could go to");
            let told = facts.report.others.get(&who).and_then(|told| {
                let in_row = || told.rows.iter().find(|row| !row.admitted || row.reason == PARTLY);
                let of_row = || in_row().map(|row| format!("{}: {}", row.reason, row.message));
                faults(&told.status).into_iter().next().or_else(of_row)
            });
            out.fix = Some(match told {
                Some(fault) => format!("{who} says {fault}"),
                None => format!(
                    "look at the status of {who} and of the policies for its backends, and at the rule's backends"
                ),
            });
        }
        _ => forward(facts, ground, found, route, out),
    }
}

fn tell_settings(settings: Vec<Setting>, out: &mut Explanation) {
    if !settings.is_empty() {
        out.steps.push(Step::Settings { settings });
    }
}

/// What is told of something that goes to an endpoint of a route, if there is one.
fn forward(facts: Facts<'_>, ground: &Ground<'_>, found: &Found<'_>, route: &ResolvedRoute, out: &mut Explanation) {
    let mut told = sites::settings(route, found.rule().map(|rule| &*rule.prefix));
    told.extend(settings::settings(&facts.table.endpoints, ground.router, route));
    tell_settings(told, out);
    let services = backends::services(facts, route);
    let problem = services.iter().find(|service| service.weight > 0 && !service.problem.is_empty());
    let problem = problem.map(|service| service.problem.clone());
    out.steps.push(Step::Backends { services });
    let who = route.id.object();
    let outcome = ground.forwarded(route);
    match outcome.first().map(|first| &first.fate) {
        Some(Fate::Endpoints { endpoints }) => {
            let how = match found {
                Found::Passthrough(_) => "gets the TLS stream as it is",
                Found::Tcp(_) => "gets what is inside TLS",
                _ => "gets it",
            };
            let endpoints = endpoints.len();
            let plural = if endpoints == 1 { "" } else { "s" };
            let is_for_some = route.allow.is_some() && ground.asked.client().is_none();
            let whom = if is_for_some { ", for clients of its allow-list" } else { "" };
            out.served = true;
            out.verdict = format!("{who} {how}, on {endpoints} endpoint{plural}{whom}");
        }
        _ => {
            let answers = outcome.iter().filter(|it| it.when.is_none()).map(Outcome::answer);
            let answers: Vec<String> =
                if ground.asked.is_grpc() { vec![UNAVAILABLE.to_owned()] } else { answers.collect() };
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

/// What is told of something that no route has. What more there is to say about hosts is left to others.
fn nobodys(ground: &Ground<'_>, found: &Found<'_>, losers: &[Loser], out: &mut Explanation) {
    let (router, asked) = (ground.router, ground.asked);
    let site = || sites::asked(router, asked).and_then(|host| Some((host, host.site.as_ref()?)));
    match found {
        Found::Handshake(is_wanted) => {
            out.outcome.push(Fate::Handshake.into());
            match site().filter(|_| !is_wanted) {
                Some((host, site)) => sites::closed(host, site, asked, losers, out),
                None if *is_wanted => {
                    out.served = true;
                    out.verdict =
                        format!("TLS for {} ends here; the path decides which route gets a request", asked.name());
                    if asked.client().is_some() {
                        out.verdict.push_str(", and whether its client may connect: ask for a URL");
                    }
                }
                None => {}
            }
        }
        Found::Invalid(status) => {
            out.outcome.push(ground.refused(*status, Flag::BadRequest).into());
            let (verdict, fix) = match status {
                405 => {
                    (format!("405: {} is no method that is routed", asked.query.method()), "ask with another method")
                }
                _ => {
                    ("400: the path or query has a byte that none may have".to_owned(), "write it as %XX, but for NUL")
                }
            };
            (out.verdict, out.fix) = (verdict, Some(fix.to_owned()));
        }
        Found::Request(Decision::Refuse { status, flag, .. }) => {
            out.outcome.push(ground.refused(*status, *flag).into());
            match (flag, site()) {
                (Flag::Misdirected, _) => {
                    out.verdict =
                        format!("421: {} needs another connection than that for {}", asked.name(), asked.query.host);
                    out.fix = Some(format!("ask for https://{}", asked.name()));
                }
                (Flag::NoRule, Some((host, site))) => sites::closed(host, site, asked, losers, out),
                _ => {}
            }
        }
        _ => {}
    }
}

/// What the router wants of those who speak TLS with it: that it can, and certificates, of which the question has none.
fn handshake(ground: &Ground<'_>, found: &Found<'_>, out: &mut Explanation) {
    if ground.asked.query.protocol != Protocol::Https || matches!(found, Found::Passthrough(_)) {
        return;
    }
    let (name, policy) = (&ground.router.name, &ground.router.policy);
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
        out.outcome = vec![Fate::close(Flag::ClientHandshake).into()];
        return;
    }
    let Some(auth) = auth else { return };
    let without = if auth.required {
        Some(Fate::close(Flag::ClientHandshake))
    } else if !auth.subjects.is_empty() && !matches!(found, Found::Handshake(_)) {
        Some(ground.refused(403, Flag::ClientCertificate))
    } else {
        None
    };
    let Some(without) = without else { return };
    if out.served {
        out.verdict.push_str(", for clients that show a certificate");
    }
    out.outcome.push(Outcome::from(without).when("the client shows no certificate that the router's clientTLS takes"));
}

/// What a redirect of a Route to https says.
fn to_https(ground: &Ground<'_>, form: PathForm) -> Fate {
    let (router, asked) = (ground.router, ground.asked);
    let port = router.http_port.and_then(|port| location::mapped_port(&asked.authority, port, router.https_port));
    let query = asked.query.query.as_deref().map(|query| format!("?{query}")).unwrap_or_default();
    let target = format!("{}{query}", asked.query.path_in(form));
    let location = location::to_https(asked.name(), port, &target);
    Fate::answer(302, Some(location))
}

/// What a redirect of a rule says.
fn redirect(ground: &Ground<'_>, rule: &Rule, to: &RedirectTo) -> Fate {
    let query = ground.asked.query;
    let (tls, port) = match query.protocol {
        Protocol::Http => (false, ground.router.http_port),
        Protocol::Https => (true, ground.router.https_port),
    };
    let from = RedirectFrom {
        tls,
        port: port.unwrap_or_default(),
        https_port: ground.router.https_port,
        authority: &ground.asked.authority,
        path: &query.path_in(rule.path_form),
        query: query.query.as_deref(),
    };
    Fate::answer(to.status, Some(location::of_rule(to, &rule.prefix, &from)))
}
