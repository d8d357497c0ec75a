//! Settings of a route, from its annotations and its router, as text.

use std::time::Duration;

use router_api::openshift::route::annotations::values::MAX_TIMEOUT;
use router_table::path_form::PathForm;
use router_table::policy::forwarded::ForwardedHeaders;
use router_table::policy::header_actions::HeaderActions;
use router_table::policy::{Balance, HashOf, HashedPart, SameSite, Timeouts};
use router_table::table::{Endpoints, InsecurePolicy, ResolvedRoute, RouteKind, RouterTable};
use serde::{Deserialize, Serialize};

/// A setting of a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteSetting {
    /// Name of the setting.
    pub what: String,
    /// Its value.
    pub value: String,
    /// True if it differs from the default: that of a route without annotations, on a router without settings.
    #[serde(rename = "asked")]
    pub non_default: bool,
}

/// Settings of a route on a router, most important first. Features that are off by default appear only if enabled.
pub fn settings(endpoints: &Endpoints, router: &RouterTable, route: &ResolvedRoute) -> Vec<RouteSetting> {
    let mut list = SettingList(Vec::new());
    let is_passthrough = matches!(route.kind, RouteKind::Passthrough { .. });
    list.add("balance", balance(endpoints, route), route.policy.balance.is_some());
    if is_passthrough {
        if route.relay_only {
            list.add("carried by", "the proxy, as the kernel does not keep this balance or these limits", true);
        } else if route.needs_relay(endpoints) {
            list.add(
                "carried by",
                "the proxy, as the kernel would give the share of a service without endpoints to others",
                true,
            );
        }
        if route.proxy_protocol {
            list.add("PROXY header", "version 2, to endpoints", true);
        }
    } else {
        http(router, route, &mut list);
    }
    let defaults = Timeouts::default();
    let tunnel = route.tunnel_timeout().unwrap_or(router.policy.timeouts.tunnel);
    list.add("tunnel timeout", time(tunnel), tunnel != defaults.tunnel);
    limits(route, &mut list);
    let interval = route.policy.health_check.unwrap_or(router.policy.timeouts.health_check);
    if interval != defaults.health_check {
        list.add("health check", format!("every {}", time(interval)), true);
    }
    list.0
}

struct SettingList(Vec<RouteSetting>);

impl SettingList {
    fn add(&mut self, what: &str, value: impl Into<String>, non_default: bool) {
        self.0.push(RouteSetting { what: what.to_owned(), value: value.into(), non_default });
    }
}

fn balance(endpoints: &Endpoints, route: &ResolvedRoute) -> String {
    let services = &route.cluster.services;
    let own = services.iter().filter_map(|service| Some((service, service.policy.as_ref()?.balance?)));
    let own: Vec<String> =
        own.map(|(service, own)| format!("{} in {}", balance_name(own, route), service.service)).collect();
    let all = match route.policy.balance {
        Some(balance) => balance_name(balance, route),
        None => default_balance(endpoints, route).to_owned(),
    };
    if own.is_empty() { all } else { format!("{all} between services, {}", own.join(", ")) }
}

fn balance_name(balance: Balance, route: &ResolvedRoute) -> String {
    match balance {
        Balance::RoundRobin => "roundrobin".to_owned(),
        Balance::LeastConnections => "leastconn".to_owned(),
        Balance::Random => "random".to_owned(),
        Balance::Source => "source".to_owned(),
        Balance::Hash => {
            let parts = route.policy.hash.iter().map(|HashOf { part, terminal }| {
                let part = match part {
                    HashedPart::Source => "the client's address".to_owned(),
                    HashedPart::Header(name) => format!("header {name}"),
                    HashedPart::Query(name) => format!("query parameter {name}"),
                    HashedPart::Cookie(name) => format!("cookie {name}"),
                };
                if *terminal { format!("{part} alone if it is there") } else { part }
            });
            format!("by hash of {}", parts.collect::<Vec<_>>().join(", "))
        }
    }
}

/// The balance of a route without one.
fn default_balance(endpoints: &Endpoints, route: &ResolvedRoute) -> &'static str {
    let is_passthrough = matches!(route.kind, RouteKind::Passthrough { .. });
    let is_active =
        |service: &&router_table::table::WeightedService| service.weight > 0 && !endpoints.of(service).is_empty();
    let takes_turns = !is_passthrough && route.cluster.services.iter().filter(is_active).count() > 1;
    if takes_turns { "roundrobin" } else { "random" }
}

/// Settings of routes whose requests are parsed.
fn http(router: &RouterTable, route: &ResolvedRoute, list: &mut SettingList) {
    let RouteKind::Http { path, tls } = &route.kind else { return };
    let policy = &route.policy;
    let affinity = &policy.affinity;
    let is_tls_alone = tls.as_ref().is_some_and(|tls| tls.insecure != InsecurePolicy::Allow);
    let same_site = match affinity.same_site {
        SameSite::Lax => ", SameSite=Lax",
        SameSite::Strict => ", SameSite=Strict",
        SameSite::None => ", SameSite=None",
    };
    let same_site = if is_tls_alone { same_site } else { "" };
    let hashed = policy.hash.iter().find_map(|of| match &of.part {
        HashedPart::Cookie(name) => Some(name),
        _ => None,
    });
    let (value, non_default) = match &affinity.cookie {
        _ if let Some(name) = hashed => (format!("by cookie {name}"), true),
        _ if affinity.disabled => ("none".to_owned(), true),
        Some(name) => (format!("by cookie {name}{same_site}"), true),
        None => (format!("by cookie{same_site}"), affinity.same_site != SameSite::default()),
    };
    list.add("affinity", value, non_default);
    let timeout = policy.server_timeout.unwrap_or(router.policy.timeouts.server);
    list.add("endpoint timeout", time(timeout), timeout != Timeouts::default().server);
    let forwarded = match route.forwarded {
        ForwardedHeaders::Append => "append",
        ForwardedHeaders::Replace => "replace",
        ForwardedHeaders::IfNone => "if-none",
        ForwardedHeaders::Never => "never",
    };
    path_form(router, route, list);
    list.add("forwarding headers", forwarded, route.forwarded != ForwardedHeaders::default());
    if let Some(target) = &policy.rewrite_target {
        let from = if path.as_str().is_empty() { "every path" } else { path.as_str() };
        list.add("rewrite", format!("{from} to {}", target.as_str()), true);
    }
    if let Some(value) = &policy.hsts {
        list.add("Strict-Transport-Security", &**value, true);
    }
    for (of, actions) in [("router's", &router.policy.actions), ("route's", &policy.actions)] {
        let Some(actions) = actions else { continue };
        let HeaderActions { request, response } = &**actions;
        let value = format!("{} on requests, {} on responses", request.len(), response.len());
        list.add(&format!("{of} header actions"), value, true);
    }
    if policy.adjust_case && !router.policy.case_adjustments.is_empty() {
        list.add("header names", "in the router's spelling", true);
    }
}

/// The form in which paths of Routes are compared, if it is not the default; rules have their own form.
fn path_form(router: &RouterTable, route: &ResolvedRoute, list: &mut SettingList) {
    match router.policy.path_form {
        PathForm::Normal { merge_slashes } if !route.is_of_rule() => {
            let slashes = if merge_slashes { "" } else { ", slashes kept" };
            list.add("paths", format!("in normal form{slashes}"), true);
        }
        _ => {}
    }
}

fn limits(route: &ResolvedRoute, list: &mut SettingList) {
    let limits = &route.policy.source_limits;
    let parts: Vec<String> = [
        limits.concurrent.map(|most| format!("{most} connections at once")),
        limits.connections.map(|most| format!("{most} connections in 3 s")),
        limits.requests.map(|most| format!("{most} requests in 10 s")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !parts.is_empty() {
        list.add("limit for each client", parts.join(", "), true);
    }
    if let Some(most) = route.policy.endpoint_connections {
        list.add("limit for each endpoint", format!("{most} connections at once"), true);
    }
}

/// A duration in its largest whole unit.
pub(super) fn time(time: Duration) -> String {
    if time >= MAX_TIMEOUT {
        return "none".to_owned();
    }
    let milliseconds = time.as_millis();
    let units = [(3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")];
    let whole = units.into_iter().find(|(unit, _)| milliseconds > 0 && milliseconds.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{}us", time.as_micros()), |(unit, name)| format!("{}{name}", milliseconds / unit))
}
