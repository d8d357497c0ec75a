//! HTTPProxies: conditions are appended from the root to the leaf. An invalid route invalidates the whole object, an
//! invalid include only itself.

use std::sync::Arc;

use router_api::contour::types::{ContourProxy, RouteSpec, Violation};
use router_table::matchers::{PathMatcher, RequestMatcher};
use router_table::rule::Mirror;
use router_table::table::Cluster;

use super::super::backends::weighted;
use super::super::matching::{ConditionConflict, identical, join};
use super::{CollectedRule, DelegationStep, DelegationWalk, PathHop, RouteTarget, RuleAction, own_faults};

/// Name of routes in messages.
const ROUTES: &str = "Spec.Routes";
/// Status code if an include is missing or invalid, or if all services are missing.
const BAD_GATEWAY: u16 = 502;
const UNAVAILABLE: u16 = 503;

impl<'r> DelegationWalk<'r> {
    /// Collects the routes of a path's last proxy, below these conditions.
    pub(super) fn http_proxy(&mut self, path: &[PathHop<'r>], conditions: &RequestMatcher) {
        let Some(&PathHop { proxy, via, .. }) = path.last() else { return };
        let mut faults = own_faults(proxy);
        faults.extend(proxy.routes.iter().flat_map(|route| route.faults.iter().cloned()));
        let first_rule = self.rules.len();
        if faults.is_empty() {
            for (at, route) in proxy.routes.iter().enumerate() {
                match joined(conditions, route) {
                    Ok(matcher) if route.delegate.is_some() => self.include(path, proxy, at, route, matcher),
                    Ok(matcher) => faults.extend(self.proxy_route(path, proxy, at, route, matcher)),
                    Err(fault) => faults.push(fault),
                }
            }
        }
        if !faults.is_empty() {
            self.rules.truncate(first_rule);
            self.set_serves(path, false);
            // Its requests must not fall through to a shorter prefix, whose policies may differ.
            if !via.is_empty() {
                let origin = self.origin(path, "invalid");
                let action = RuleAction::Answer(BAD_GATEWAY, None);
                self.rules.push(CollectedRule {
                    matcher: conditions.clone(),
                    proxy,
                    origin,
                    permit_insecure: false,
                    action,
                });
            }
        }
        let warnings: Vec<Violation> = proxy.routes.iter().flat_map(|route| &route.warnings).cloned().collect();
        self.add_warnings(path, &warnings);
        // Recorded in any case, so that the object counts as reached.
        self.add_faults(path, faults);
    }

    fn include(
        &mut self,
        path: &[PathHop<'r>],
        proxy: &'r Arc<ContourProxy>,
        at: usize,
        include: &'r RouteSpec,
        matcher: RequestMatcher,
    ) {
        let Some(target) = &include.delegate else { return };
        let earlier = proxy.routes.iter().take(at);
        let mut earlier = earlier.filter(|other| other.delegate.is_some() && !other.label.is_empty());
        let (reason, message) = if earlier.any(|other| identical(&other.matcher, &include.matcher)) {
            ("DuplicateMatchConditions", "duplicate conditions defined on an include".to_owned())
        } else {
            match self.step(path, target) {
                DelegationStep::To(next) => {
                    let hop = PathHop { proxy: next, via: &include.label, entry: at };
                    let path: Vec<_> = path.iter().copied().chain([hop]).collect();
                    return self.http_proxy(&path, &matcher);
                }
                DelegationStep::Missing => ("IncludeNotFound", format!("include {target} not found")),
                DelegationStep::Root => {
                    ("RootIncludesRoot", "root httpproxy cannot include another root httpproxy".to_owned())
                }
                DelegationStep::Cycle(cycle) => {
                    ("IncludeCreatesCycle", format!("include creates an include cycle: {cycle}"))
                }
                DelegationStep::TooMany(message) => ("TooManyIncludes", message),
            }
        };
        if !include.label.is_empty() && matches!(reason, "IncludeNotFound" | "RootIncludesRoot") {
            let origin = self.origin(path, format_args!("include {target}"));
            let action = RuleAction::Answer(BAD_GATEWAY, None);
            self.rules.push(CollectedRule { matcher, proxy, origin, permit_insecure: false, action });
        }
        self.add_faults(path, [Violation::new("IncludeError", reason, message)]);
    }

    /// A route, or the violation that invalidates the whole object.
    fn proxy_route(
        &mut self,
        path: &[PathHop<'r>],
        proxy: &'r Arc<ContourProxy>,
        at: usize,
        route: &'r RouteSpec,
        matcher: RequestMatcher,
    ) -> Option<Violation> {
        let rewrite = match &matcher.path {
            PathMatcher::Prefix(prefix) => {
                let replacement_of =
                    |prefix: Option<&Arc<str>>| route.rewrites.iter().find(|(known, _)| known.as_ref() == prefix);
                replacement_of(Some(prefix))
                    .or_else(|| replacement_of(None))
                    .map(|(_, replacement)| Arc::clone(replacement))
            }
            _ if !route.rewrites.is_empty() => {
                let message = "cannot specify prefix replacements without a prefix condition";
                return Some(Violation::new("PrefixReplaceError", "MustHavePrefix", message));
            }
            _ => None,
        };
        // All services of a route have one strategy.
        let strategy = route.services.first().map(|service| service.strategy.clone()).unwrap_or_default();
        let mut target = RouteTarget { rewrite, strategy, ..RouteTarget::default() };
        for service in &route.services {
            match self.backends.find(proxy, service) {
                Ok(found) if service.mirror => {
                    // The weight of a mirror is its share in percent; without one, all requests are copied.
                    let share = if (1..100).contains(&found.weight) { found.weight } else { 100 };
                    let services = [router_table::table::WeightedService { weight: 1, ..found }];
                    let cluster = Cluster { services: services.into_iter().collect() };
                    target.mirrors.push(Mirror { cluster, share: (share, 100) });
                }
                Ok(found) => target.services.push(found),
                Err(problem) => {
                    let fault = problem.of_http_proxy(ROUTES, service, &proxy.meta.key.namespace);
                    self.add_faults(path, [fault]);
                }
            }
        }
        target.services = weighted(target.services);
        let origin = self.origin(path, at);
        let needs_services = route.redirect.is_none() && route.answer.is_none();
        let action = match route.answer {
            Some(status) => RuleAction::Answer(status, Some(route)),
            None if needs_services && target.services.is_empty() => RuleAction::Answer(UNAVAILABLE, None),
            None => RuleAction::Route(route, target),
        };
        if !matches!(action, RuleAction::Answer(_, None)) {
            self.set_serves(path, true);
        }
        self.rules.push(CollectedRule { matcher, proxy, origin, permit_insecure: route.permit_insecure, action });
        None
    }
}

fn joined(conditions: &RequestMatcher, route: &RouteSpec) -> Result<RequestMatcher, Violation> {
    join(conditions, &route.matcher).map_err(|conflict| match conflict {
        ConditionConflict::Header(name) => Violation::new(
            "RouteError",
            "HeaderMatchConditionsNotValid",
            format!("cannot specify duplicate header 'exact match' conditions in the same route: {name}"),
        ),
        ConditionConflict::Query(name) => Violation::new(
            "RouteError",
            "QueryParameterMatchConditionsNotValid",
            format!("cannot specify duplicate query parameter conditions in the same route: {name}"),
        ),
        ConditionConflict::Path(message) => {
            Violation::new("RouteError", "PathMatchConditionsNotValid", format!("route: {message}"))
        }
    })
}
