//! Routers, their hosts and their routes, as text. The code names every field, so that a new one is not forgotten.

use std::fmt::Debug;
use std::sync::Arc;

use router_table::matchers::{PathMatcher, RequestMatcher, ValueMatcher};
use router_table::path_form::PathForm;
use router_table::rule::{HostRules, HostRulesTls, Rule};
use router_table::table::{
    Cluster, Endpoints, HttpTls, RareSettings, Reencrypt, ResolvedRoute, RouteKind, RouterTable, RoutingTable,
    VirtualHost, WeightedService,
};

use crate::certificates::Certificates;
use crate::policies;

/// Prints tables; certificates have the names that the story gives them.
#[derive(Clone, Copy)]
pub struct Hosts<'c>(pub &'c Certificates, pub &'c Endpoints);

impl Hosts<'_> {
    pub fn table(self, table: &RoutingTable) -> Vec<String> {
        let RoutingTable { revision: _, routers, endpoints: _ } = table;
        routers.iter().flat_map(|router| self.router(router)).collect()
    }

    fn router(self, router: &RouterTable) -> Vec<String> {
        let RouterTable {
            name,
            id,
            domain,
            http_port,
            https_port,
            default_certificate,
            policy,
            hosts,
            routes,
            common_allow,
        } = router;
        let port = |port: &Option<u16>| port.map_or("none".to_owned(), |port| port.to_string());
        let ports = format!("http {}, https {}", port(http_port), port(https_port));
        let mut lines = vec![String::new(), format!("router {name} ({id}) of {domain:?}: {ports}")];
        lines.extend(default_certificate.iter().map(|pair| format!("  shows {}", self.0.name(pair))));
        lines.extend(policies::router(policy, self.0).into_iter().map(|line| format!("  {line}")));
        lines.extend(hosts.domains.iter().map(|domain| format!("  delegates {domain}")));
        lines.extend(common_allow.iter().map(|nets| format!("  every route: only {nets:?} may connect")));
        for host in hosts.iter() {
            lines.extend(self.host(host).into_iter().map(|line| format!("  {line}")));
        }
        for route in routes.values() {
            lines.extend(self.route(route).into_iter().map(|line| format!("  {line}")));
        }
        lines
    }

    fn host(self, host: &VirtualHost) -> Vec<String> {
        let VirtualHost { host: name, rules, cleartext, terminated, passthrough, certificate } = host;
        let mut lines = vec![format!("host {name} {}", kind(name))];
        lines.extend(cleartext.iter().map(|route| format!("  http {:?} {}", route.path(), route.id)));
        lines.extend(terminated.iter().map(|route| format!("  https {:?} {}", route.path(), route.id)));
        lines.extend(passthrough.iter().map(|route| format!("  passthrough {}", route.id)));
        lines.extend(certificate.iter().map(|pair| format!("  shows {}", self.0.name(pair))));
        lines.extend(rules.iter().flat_map(|rules| self.rules(rules)).map(|line| format!("  {line}")));
        lines
    }

    fn rules(self, rules: &HostRules) -> Vec<String> {
        let HostRules { owner, listener, cleartext_listener, cleartext, tls } = rules;
        let other = cleartext_listener.as_ref().filter(|other| *other != listener);
        let other = other.map(|other| format!(", in clear text on {other}")).unwrap_or_default();
        let mut lines = vec![format!("of {owner}, on {listener}{other}")];
        lines.extend(cleartext.iter().flat_map(|rules| list("http", rules)));
        if let Some(HostRulesTls { shown_by, certificates, minimum, rules, tcp }) = tls {
            let names: Vec<String> = certificates.iter().map(|pair| self.0.name(pair)).collect();
            let minimum = minimum.map(|version| format!(", at least {version:?}")).unwrap_or_default();
            lines.push(format!("shows {} by {shown_by}{minimum}", names.join(", ")));
            lines.extend(list("https", rules));
            lines.extend(tcp.iter().map(|route| format!("bytes {}", route.id)));
        }
        lines
    }

    fn route(self, route: &ResolvedRoute) -> Vec<String> {
        let ResolvedRoute {
            derived: _,
            policy,
            rule,
            forwarded,
            proxy_protocol,
            request_work,
            relay_only,
            is_plain,
            cluster,
            kind: route_kind,
            rare,
            id,
            host,
        } = route;
        let mut lines = vec![format!("route {id} of {host} {}: {}", kind(host), self.kind(route_kind))];
        let flags = [
            ("proxy-protocol", *proxy_protocol),
            ("request-work", *request_work),
            ("relay-only", *relay_only),
            ("plain", *is_plain),
            ("needs-relay", route.needs_relay(self.1)),
            ("keeps-shares", route.keeps_shares(cluster)),
        ];
        let flags: Vec<&str> = flags.iter().filter(|(_, holds)| *holds).map(|(name, _)| *name).collect();
        lines.push(format!("  {forwarded:?} {}", flags.join(" ")));
        if let Some(RareSettings { allow, tunnel_timeout }) = rare.as_deref() {
            lines.extend(allow.iter().map(|nets| format!("  only {nets:?}")));
            lines.extend(tunnel_timeout.iter().map(|time| format!("  tunnel {time:?}")));
        }
        lines.extend(policies::route(policy).into_iter().map(|line| format!("  {line}")));
        lines.extend(self.cluster(cluster).into_iter().map(|line| format!("  {line}")));
        if let Some(rule) = rule {
            lines.extend(policies::rule(rule, self).into_iter().map(|line| format!("  {line}")));
        }
        let weights = route.weighted_endpoints(self.1);
        if weights.len() > 1 {
            let weights: Vec<String> =
                weights.iter().map(|(endpoint, weight)| format!("{}×{weight}", endpoint.address)).collect();
            lines.push(format!("  weights {}", weights.join(" ")));
        }
        lines
    }

    fn kind(self, kind: &RouteKind) -> String {
        match kind {
            RouteKind::Passthrough { redirect } => format!("passthrough{}", if *redirect { ", redirects" } else { "" }),
            RouteKind::Http { path, tls: None } => format!("clear text, path {:?}", path.as_str()),
            RouteKind::Http { path, tls: Some(HttpTls { insecure, certificate, reencrypt }) } => {
                let pair =
                    certificate.as_ref().map(|pair| format!(", shows {}", self.0.name(pair))).unwrap_or_default();
                let again = reencrypt.as_ref().map(|Reencrypt { destination_ca }| {
                    let roots =
                        destination_ca.as_ref().map_or("the service CA".to_owned(), |roots| self.0.names(roots));
                    format!(", again for endpoints of {roots}")
                });
                format!("TLS, path {:?}, insecure {insecure:?}{pair}{}", path.as_str(), again.unwrap_or_default())
            }
        }
    }

    /// The services of a cluster.
    pub fn cluster(self, cluster: &Cluster) -> Vec<String> {
        let Cluster { services } = cluster;
        services.iter().flat_map(|service| self.service(service)).collect()
    }

    fn service(self, service: &WeightedService) -> Vec<String> {
        let WeightedService { service: name, port, weight, key: _, policy } = service;
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        let endpoints: Vec<String> = self
            .1
            .of(service)
            .iter()
            .map(|endpoint| {
                let target = endpoint.target.as_ref().map(|target| format!(" ({target})")).unwrap_or_default();
                format!("{}{target}{}", endpoint.address, if endpoint.h2c { " h2c" } else { "" })
            })
            .collect();
        let endpoints = if endpoints.is_empty() { "no endpoint".to_owned() } else { endpoints.join(", ") };
        let mut lines = vec![format!("to {name}{port} ×{weight}: {endpoints}")];
        if let Some(policy) = policy {
            lines.extend(policies::backend(policy, self.0).into_iter().map(|line| format!("  {line}")));
        }
        lines
    }
}

/// The kind of a host's match.
fn kind(host: &impl Debug) -> String {
    let text = format!("{host:?}");
    format!("[{}]", text.split('(').next().unwrap_or_default())
}

fn list(scheme: &str, rules: &[Arc<Rule>]) -> Vec<String> {
    if rules.is_empty() {
        return vec![format!("{scheme}: no rule")];
    }
    rules
        .iter()
        .map(|rule| {
            let Rule { matcher, path_form, prefix, route, origin } = &**rule;
            let form = if *path_form == PathForm::default() { String::new() } else { format!(", {path_form:?}") };
            format!("{scheme} {}{form}, prefix {prefix:?} → {} ({origin})", matched(matcher), route.id)
        })
        .collect()
}

fn matched(matcher: &RequestMatcher) -> String {
    let RequestMatcher { path, method, headers, query } = matcher;
    let value = |(name, value): &(Arc<str>, ValueMatcher)| match value {
        ValueMatcher::Exact(text) => format!("{name}={text:?}"),
        ValueMatcher::Regex(regex) => format!("{name}~{:?}", regex.as_str()),
    };
    let mut text = match path {
        PathMatcher::Prefix(path) => format!("{path}…"),
        PathMatcher::Exact(path) => format!("={path}"),
        PathMatcher::Regex(regex) => format!("~{}", regex.as_str()),
    };
    text += &method.iter().map(|method| format!(" {method}")).collect::<String>();
    text += &headers.iter().map(|header| format!(" header {}", value(header))).collect::<String>();
    text += &query.iter().map(|parameter| format!(" query {}", value(parameter))).collect::<String>();
    text
}
