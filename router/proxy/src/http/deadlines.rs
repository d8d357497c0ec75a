//! Timeouts of a request, from its router, route and rule.

use std::time::Duration;

use router_table::rule::RulePolicy;
use router_table::table::ResolvedRoute;
use tokio::time::Instant;

use super::destination::Destination;

/// Timeouts of a request.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// Connecting to an endpoint.
    pub connect: Duration,
    /// Client inactivity while it sends the body.
    pub client: Duration,
    /// Endpoint inactivity.
    pub server: Duration,
    /// Inactivity of both sides, if the rule sets it.
    pub idle: Option<Duration>,
    /// Deadline of the whole request.
    pub until: Option<Instant>,
    /// Time for each attempt.
    of_try: Option<Duration>,
    /// Inactivity of a tunnel, unless the route sets its own.
    tunnel: Duration,
}

impl Deadlines {
    /// Timeouts of a request that begins now.
    pub fn of(destination: &Destination<'_>) -> Self {
        let Destination { route, served, .. } = *destination;
        let timeouts = &served.table.policy.timeouts;
        let own = |time: fn(&RulePolicy) -> Option<Duration>| route.rule.as_deref().and_then(time);
        let all = own(|rule| rule.request_timeout).filter(|time| !time.is_zero());
        let idle = own(|rule| rule.idle_timeout);
        let of_try = own(|rule| rule.backend_timeout).filter(|time| !time.is_zero());
        // A rule that grants a longer request timeout than the router's `serverTimeout` extends that, too.
        let server = || all.max(of_try).map_or(timeouts.server, |time| time.max(timeouts.server));
        Deadlines {
            connect: timeouts.connect,
            client: idle.unwrap_or(timeouts.client),
            server: route.policy.server_timeout.unwrap_or_else(server),
            idle,
            until: all.map(|time| Instant::now() + time),
            of_try,
            tunnel: timeouts.tunnel,
        }
    }

    /// Inactivity timeout of a tunnel. The route is looked up here, because few requests become tunnels.
    pub fn of_tunnel(&self, route: Option<&ResolvedRoute>) -> Duration {
        route.and_then(ResolvedRoute::tunnel_timeout).unwrap_or(self.tunnel)
    }

    /// Deadline of an attempt that begins now.
    pub fn end_of_try(&self) -> Option<Instant> {
        let of_try = self.of_try.map(|time| Instant::now() + time);
        self.until.map_or(of_try, |until| Some(of_try.map_or(until, |of_try| of_try.min(until))))
    }

    /// Longest wait for an endpoint with capacity.
    pub fn patience(&self) -> Duration {
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        left.map_or(self.connect, |left| left.min(self.connect))
    }

    /// Whether the request's deadline has expired.
    pub fn are_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}
