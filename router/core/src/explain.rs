//! Why a URL or a server name is served by what it is served by, or by nothing: the decisions in their order, as data.
//!
//! This asks the same table that traffic asks, and tells what traffic does not need to know: what came close, who lost
//! and to whom, and what to change. It names routes of every namespace, so it is for operators.

mod backends;
mod data_path;
mod filter;
mod hosts;
mod query;
mod settings;
mod sites;
mod text;

use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::lookup::{RequestMatch, SniMatch};
use crate::model::Hostname;
use crate::object::{Kind, ObjectKey, ObjectRef};
use crate::parse::Object;
use crate::resources::Resources;
use crate::rule::Rule;
use crate::sites::Row;
use crate::status::{Ingress, StatusReport};
use crate::table::{ResolvedRoute, RouteKind, RouterTable, RoutingTable};

pub use data_path::{DataPath, MapKey, MapNet};
pub use query::{Protocol, Query, QueryError};
pub use settings::{Setting, settings};

/// What an explanation is made from: one translation and the objects it was made of.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'f> {
    /// The table that traffic asks.
    pub table: &'f RoutingTable,
    /// What the objects are told.
    pub report: &'f StatusReport,
    /// The objects.
    pub resources: &'f Resources,
}

/// The decisions about one query, in the order in which traffic meets them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The question.
    pub query: Query,
    /// Name of the router that the port belongs to.
    pub router: Option<String>,
    /// The decisions.
    pub steps: Vec<Step>,
    /// Whether a backend of a route gets it, or a redirect that the route asks for.
    pub served: bool,
    /// What happens, in a sentence.
    pub verdict: String,
    /// What to change, when it is not served.
    pub fix: Option<String>,
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "camelCase")]
pub enum Step {
    /// Which router's port.
    Listener {
        /// All of them, the one that fits first.
        candidates: Vec<Candidate>,
    },
    /// Which host, most specific first.
    Host {
        /// The names that could have matched.
        candidates: Vec<Candidate>,
    },
    /// Which path of the host, longest first.
    Path {
        /// The host's routes of this protocol.
        candidates: Vec<Candidate>,
    },
    /// The rule that has it, of an object of another kind than Route.
    Rule {
        /// The listener, or whatever the object hangs on.
        listener: String,
        /// The way from there to the rule: each object that includes the next one.
        path: Vec<String>,
        /// What is done.
        action: String,
    },
    /// The object that has it.
    Route(Owner),
    /// Objects that would have it, if they were not refused or shadowed.
    Losers {
        /// In order of name.
        routes: Vec<Loser>,
    },
    /// Who may connect.
    Filter {
        /// The networks of the route's allow-list; `None`: it has no list.
        allow: Option<Vec<String>>,
        /// What that means for the client of the query.
        client: Option<Client>,
    },
    /// How it is carried.
    Settings {
        /// What holds for the route on this router.
        settings: Vec<Setting>,
    },
    /// Where it goes.
    Backends {
        /// Its services; one of weight 0 serves only clients whose cookie names an endpoint of it.
        services: Vec<Service>,
    },
    /// Who carries the connection; a running agent alone knows.
    DataPath(DataPath),
}

/// Something that may fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// What it is.
    pub what: String,
    /// Whether it is the one.
    pub taken: bool,
    /// Why, or why not.
    pub why: String,
}

/// An object, where it stands, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// Kind.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// `file:line` in the folder of manifests; `None` when it comes from a server.
    pub source: Option<String>,
    /// `creationTimestamp`; an object without one counts as older than all that have one.
    pub created: Option<Timestamp>,
    /// Its conditions on the router: type, status, reason, message.
    pub conditions: Vec<Fact>,
}

/// A condition of a status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fact {
    /// `type`.
    pub r#type: String,
    /// `True` or `False`.
    pub status: String,
    /// `reason`.
    pub reason: String,
    /// `message`.
    pub message: String,
}

/// A route that wants the host and is not served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loser {
    /// The route.
    pub route: Owner,
    /// Whom it lost to.
    pub winner: Option<Owner>,
    /// Why, in words.
    pub why: String,
}

/// A client, and what an allow-list says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// Its address.
    pub address: IpAddr,
    /// Whether it may connect.
    pub admitted: bool,
    /// The network that lets it in; `None` as well where there is no list.
    pub by: Option<String>,
}

/// A service of the route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Name, in the route's namespace or with its own in front.
    pub name: String,
    /// Weight, 0 – 256; of rules, up to 1,000,000.
    pub weight: u32,
    /// Ready endpoints, `address:port`; draining ones where none is ready.
    pub endpoints: Vec<String>,
    /// Why there are no endpoints; empty when there are some.
    pub problem: String,
}

/// Explains what happens to a query. Pure: the data path's part is added by whoever runs one.
pub fn explain(facts: Facts<'_>, query: &Query) -> Explanation {
    let mut explanation = Explanation {
        query: query.clone(),
        router: None,
        steps: Vec::new(),
        served: false,
        verdict: String::new(),
        fix: None,
    };
    match hosts::listener(facts, query, &mut explanation) {
        Some(router) => {
            explanation.router = Some(router.name.to_string());
            follow(facts, router, query, &mut explanation);
        }
        None => hosts::no_listener(facts, query, &mut explanation),
    }
    explanation
}

/// From the router on.
fn follow(facts: Facts<'_>, router: &RouterTable, query: &Query, out: &mut Explanation) {
    let Some(host) = query.hostname() else {
        out.verdict = format!("{} is an address; no route can have it", query.host);
        out.fix = Some("ask for the host name of a route".to_owned());
        return;
    };
    out.steps.push(hosts::candidates(router, &host, query));
    let found = matched(router, &host, query);
    out.steps.extend(hosts::paths(router, &host, query, &found));
    match found {
        Found::Rule(rule) => {
            if let Some(site) = sites::asked(router, &host).and_then(|host| host.site.as_ref()) {
                out.steps.push(sites::rule(site, &rule));
            }
            out.steps.push(Step::Route(owner_of(facts, Some(router), &rule.route.id.object())));
            if filter::admits(facts, &rule.route, query, out) {
                sites::serve(router, &rule.route, Some(&rule.prefix), out);
            }
        }
        Found::Tcp(route) => {
            out.steps.push(Step::Route(owner_of(facts, Some(router), &route.id.object())));
            if filter::admits(facts, &route, query, out) {
                sites::serve(router, &route, None, out);
            }
        }
        Found::Closed => {
            if let Some((host, site)) = sites::asked(router, &host).and_then(|host| Some((host, host.site.as_ref()?))) {
                sites::closed(host, site, query, out);
            }
        }
        Found::Route(route) if route.is_of_rule() => {
            out.steps.push(Step::Route(owner_of(facts, Some(router), &route.id.object())));
            if filter::admits(facts, &route, query, out) {
                sites::serve(router, &route, None, out);
            }
        }
        Found::Route(route) => serve(facts, router, &route, query, out),
        Found::Redirect(route) => {
            out.steps.push(Step::Route(owner(facts, Some(router), &route.id.object_key())));
            if filter::admits(facts, &route, query, out) {
                out.served = true;
                out.verdict = format!("Route {} sends clear-text requests to https://{host}", route.id);
            }
        }
        Found::Terminate => {
            out.served = true;
            out.verdict = format!("TLS for {host} ends here; the path decides which route gets a request");
            if query.from.is_some() {
                out.verdict.push_str(", and whether its client may connect: ask for a URL");
            }
        }
        Found::Nothing => {}
    }
    let losers = hosts::losers(facts, router, &host);
    if !out.served && out.verdict.is_empty() {
        hosts::not_served(facts, router, &host, query, &losers, out);
    }
    if !losers.is_empty() {
        out.steps.push(Step::Losers { routes: losers });
    }
}

/// What the table says.
enum Found {
    /// A rule of an object of another kind.
    Rule(std::sync::Arc<Rule>),
    /// TLS is taken off, and bytes are forwarded.
    Tcp(std::sync::Arc<ResolvedRoute>),
    /// A host that is served by rules, none of which matches.
    Closed,
    Route(std::sync::Arc<ResolvedRoute>),
    Redirect(std::sync::Arc<ResolvedRoute>),
    /// Only a server name was asked for, and it has terminated routes.
    Terminate,
    Nothing,
}

fn matched(router: &RouterTable, host: &Hostname, query: &Query) -> Found {
    let of = |found: RequestMatch<'_>| match found {
        RequestMatch::Forward(route) => Found::Route(route.clone()),
        RequestMatch::RedirectToHttps(route) => Found::Redirect(route.clone()),
        RequestMatch::Rule(rule) => Found::Rule(rule.clone()),
        RequestMatch::Closed if sites::asked(router, host).is_some() => Found::Closed,
        RequestMatch::PassedThrough | RequestMatch::Closed | RequestMatch::NoRoute => Found::Nothing,
    };
    if query.protocol == Protocol::Http {
        return of(router.match_cleartext_request(host, query.path()));
    }
    match (router.match_sni(Some(host)), &query.path) {
        (SniMatch::Passthrough(route), _) => Found::Route(route.clone()),
        (SniMatch::Terminate(host), _) if sites::tcp(host, query).is_some() => {
            sites::tcp(host, query).map_or(Found::Nothing, |route| Found::Tcp(route.clone()))
        }
        (SniMatch::Terminate(_), None) => Found::Terminate,
        (SniMatch::Default, None) if sites::asked(router, host).is_some() => Found::Closed,
        (SniMatch::Terminate(_) | SniMatch::Default, Some(path)) => of(router.match_tls_request(host, path.as_str())),
        (SniMatch::Default, None) => Found::Nothing,
    }
}

/// The steps of a route that has the query.
fn serve(facts: Facts<'_>, router: &RouterTable, route: &ResolvedRoute, query: &Query, out: &mut Explanation) {
    out.steps.push(Step::Route(owner(facts, Some(router), &route.id.object_key())));
    let is_let_in = filter::admits(facts, route, query, out);
    let services = backends::services(facts.resources, route);
    let weighted = || services.iter().filter(|service| service.weight > 0);
    let endpoints: usize = weighted().map(|service| service.endpoints.len()).sum();
    let problem = weighted().find(|service| !service.problem.is_empty()).map(|service| service.problem.clone());
    out.steps.push(Step::Settings { settings: settings(router, route) });
    out.steps.push(Step::Backends { services });
    let how = match &route.kind {
        RouteKind::Passthrough { .. } => "gets the TLS stream as it is",
        RouteKind::Http { .. } => "gets it",
    };
    if !is_let_in {
        return;
    }
    if endpoints == 0 {
        out.verdict = format!("Route {} has it, but no service of it has a usable endpoint: 503", route.id);
        out.fix = problem.or_else(|| Some("give a service of the route a weight above 0".to_owned()));
    } else {
        out.served = true;
        let plural = if endpoints == 1 { "" } else { "s" };
        let is_for_some = route.allow.is_some() && query.from.is_none();
        let who = if is_for_some { ", for clients of its allow-list" } else { "" };
        out.verdict = format!("Route {} {how}, on {endpoints} endpoint{plural}{who}", route.id);
    }
}

/// A Route of the folder, with its conditions on a router.
fn owner(facts: Facts<'_>, router: Option<&RouterTable>, key: &ObjectKey) -> Owner {
    let entries = facts.report.routes.get(key).map(Ingress::to_vec).unwrap_or_default();
    let conditions = entries
        .iter()
        .filter(|entry| router.is_none_or(|router| router.name == entry.router_name))
        .flat_map(|entry| entry.conditions.iter())
        .map(|condition| Fact {
            r#type: condition.kind.to_owned(),
            status: condition.status().to_owned(),
            reason: condition.reason.to_string(),
            message: condition.message.to_string(),
        })
        .collect();
    object(facts, &ObjectRef { kind: Kind::Route, key: key.clone() }, conditions)
}

/// An object of the folder, with its conditions on a router, or wherever else it hangs.
fn owner_of(facts: Facts<'_>, router: Option<&RouterTable>, who: &ObjectRef) -> Owner {
    match who.kind {
        Kind::Route => owner(facts, router, &who.key),
        _ => object(facts, who, objects_conditions(facts, who, None)),
    }
}

/// What an object of another kind than Route is told, of one parent or of all of them.
fn objects_conditions(facts: Facts<'_>, who: &ObjectRef, parent: Option<&str>) -> Vec<Fact> {
    let told = facts.report.others.get(who);
    let rows = told.iter().flat_map(|told| &told.rows).filter(|row| parent.is_none_or(|parent| *row.parent == *parent));
    let fact = |row: &Row| Fact {
        r#type: if row.parent.is_empty() { "Accepted".to_owned() } else { format!("Accepted by {}", row.parent) },
        status: if row.admitted { "True" } else { "False" }.to_owned(),
        reason: row.reason.clone(),
        message: row.message.clone(),
    };
    rows.map(fact).collect()
}

fn object(facts: Facts<'_>, who: &ObjectRef, conditions: Vec<Fact>) -> Owner {
    let object = facts.resources.object(who.kind, &who.key);
    let meta = object.as_ref().map(Object::meta);
    let source = meta.filter(|meta| !meta.origin.file.is_empty());
    Owner {
        kind: who.kind.to_string(),
        namespace: who.key.namespace.to_string(),
        name: who.key.name.to_string(),
        source: source.map(|meta| format!("{}:{}", meta.origin.file, meta.origin.line)),
        created: meta.and_then(|meta| meta.created),
        conditions,
    }
}

#[cfg(test)]
mod tests;
