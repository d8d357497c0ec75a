//! How long a request may take, from its router, its route and its rule.

use std::time::Duration;

use router_table::rule::RulePolicy;
use router_table::table::ResolvedRoute;
use tokio::time::Instant;

use super::destination::Destination;

/// How long a request may take.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// To connect to an endpoint.
    pub connect: Duration,
    /// For the client to send its body.
    pub client: Duration,
    /// How long the endpoint may be silent.
    pub server: Duration,
    /// How long both may be, where the rule says.
    pub idle: Option<Duration>,
    /// When all of it must be over.
    pub until: Option<Instant>,
    /// What one try has.
    of_try: Option<Duration>,
    /// What a tunnel that comes of it has, unless its route says otherwise.
    tunnel: Duration,
}

impl Deadlines {
    /// Those of a request that has just come.
    pub fn of(destination: &Destination<'_>) -> Self {
        let Destination { route, served, .. } = *destination;
        let timeouts = &served.table.policy.timeouts;
        let own = |time: fn(&RulePolicy) -> Option<Duration>| route.rule.as_deref().and_then(time);
        let all = own(|rule| rule.request_timeout).filter(|time| !time.is_zero());
        let idle = own(|rule| rule.idle_timeout);
        let of_try = own(|rule| rule.backend_timeout).filter(|time| !time.is_zero());
        // Whoever gives a request more time than the router gives an endpoint to say something means it.
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

    /// How long a tunnel that comes of it may be silent. Few requests become one, so the route is asked only then.
    pub fn of_tunnel(&self, route: Option<&ResolvedRoute>) -> Duration {
        route.and_then(|route| route.tunnel_timeout).unwrap_or(self.tunnel)
    }

    /// When a try that begins now must be over.
    pub fn end_of_try(&self) -> Option<Instant> {
        let of_try = self.of_try.map(|time| Instant::now() + time);
        self.until.map_or(of_try, |until| Some(of_try.map_or(until, |of_try| of_try.min(until))))
    }

    /// How long may be waited for an endpoint to have room.
    pub fn patience(&self) -> Duration {
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        left.map_or(self.connect, |left| left.min(self.connect))
    }

    /// Whether the request's time has run out.
    pub fn are_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}
