//! IngressRoutes: prefixes are absolute, and the first violation ends the reading of an object.

use std::sync::Arc;

use router_api::contour::types::{ContourProxy, RouteSpec, Violation};

use super::super::backends::{strategy, weighted};
use super::super::matching::is_under;
use super::{CollectedRule, DelegationStep, DelegationWalk, PathHop, RouteTarget, RuleAction, own_faults};

impl<'r> DelegationWalk<'r> {
    /// Collects the routes of a path's last proxy; `parent` is the prefix delegated to it.
    pub(super) fn ingress_route(&mut self, path: &[PathHop<'r>], parent: &str) {
        let Some(&PathHop { proxy, .. }) = path.last() else { return };
        let faults = own_faults(proxy);
        let is_valid = faults.is_empty();
        self.add_faults(path, faults);
        if !is_valid {
            return;
        }
        for (at, route) in proxy.routes.iter().enumerate() {
            if let Err(fault) = self.route(path, proxy, at, route, parent) {
                self.add_faults(path, [fault]);
                return;
            }
        }
    }

    fn route(
        &mut self,
        path: &[PathHop<'r>],
        proxy: &'r Arc<ContourProxy>,
        at: usize,
        route: &'r RouteSpec,
        parent: &str,
    ) -> Result<(), Violation> {
        let label = &route.label;
        let error = |reason, message: String| Violation::new("RouteError", reason, message);
        if !route.services.is_empty() && route.delegate.is_some() {
            let message = format!("route {label:?}: cannot specify services and delegate in the same route");
            return Err(error("ActionNotUnique", message));
        }
        if let Some(fault) = route.faults.first() {
            return Err(fault.clone());
        }
        if !is_under(label, parent) {
            // Contour checks this only if there are services, so a delegate could escape its prefix.
            let message = format!("the path prefix {label:?} does not match the parent's path prefix {parent:?}");
            return Err(error("PathMatchConditionsNotValid", message));
        }
        let Some(target) = &route.delegate else {
            if route.services.is_empty() {
                return Ok(());
            }
            let target = self.target(proxy, route)?;
            let origin = self.origin(path, at);
            let matcher = route.matcher.clone();
            let permit_insecure = route.permit_insecure;
            self.rules.push(CollectedRule {
                matcher,
                proxy,
                origin,
                permit_insecure,
                action: RuleAction::Route(route, target),
            });
            self.set_serves(path, true);
            return Ok(());
        };
        match self.step(path, target) {
            // Contour reports nothing; requests get 404, or match a shorter prefix.
            DelegationStep::Missing => Ok(()),
            DelegationStep::Root => {
                let message = "root ingressroute cannot delegate to another root ingressroute";
                Err(Violation::new("IncludeError", "RootIncludesRoot", message))
            }
            DelegationStep::Cycle(cycle) => {
                let message = format!("route creates a delegation cycle: {cycle}");
                Err(Violation::new("IncludeError", "IncludeCreatesCycle", message))
            }
            DelegationStep::TooMany(message) => Err(Violation::new("IncludeError", "TooManyDelegations", message)),
            DelegationStep::To(next) => {
                let hop = PathHop { proxy: next, via: label, entry: at };
                let path: Vec<_> = path.iter().copied().chain([hop]).collect();
                self.ingress_route(&path, label);
                Ok(())
            }
        }
    }

    fn target(&self, proxy: &ContourProxy, route: &RouteSpec) -> Result<RouteTarget, Violation> {
        let label = &route.label;
        let error = |message: String| Violation::new("ServiceError", "UnsupportedField", message);
        if route.websockets && route.services.len() > 1 {
            return Err(error(format!("route {label:?}: cannot specify multiple services and enable websockets")));
        }
        let mut services = Vec::new();
        for service in &route.services {
            let found = self.backends.find(proxy, service);
            services.push(found.map_err(|problem| problem.of_ingress_route(label, service))?);
        }
        let strategy = strategy(&route.services, &mut services);
        let rewrite = route.rewrites.first().map(|(_, replacement)| Arc::clone(replacement));
        Ok(RouteTarget { services: weighted(services), mirrors: Vec::new(), strategy, rewrite })
    }
}
