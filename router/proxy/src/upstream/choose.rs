//! Which endpoint: the rules of `haproxy.router.openshift.io/balance`, stickiness before them, limits and rests beside.
//!
//! * random: by chance and weight, the default of a route with one service;
//! * roundrobin: in turn, each as often as its weight says, the default with more services;
//! * leastconn: fewest requests or connections for its weight;
//! * source, and hash for rules: the endpoint that scores highest with the client's address, or with what is hashed of
//!   the request ([`hashing`](super::hashing)).
//!
//! Endpoints that rest (`health`) are chosen only when no other is left, and then not waited for for long: nothing is won
//! by not trying, nor by waiting.
//!
//! Services of rules keep their shares: first it is found out whose turn it is, then the service's endpoints are chosen
//! between. A backend that cannot be used has its share of failures, and one without endpoints too. Where endpoints
//! rest, or were tried in vain, those of other services step in as for Routes.

mod draw;

use std::time::Duration;

use http::HeaderValue;
use router_table::table::{Cluster, ResolvedRoute};
use tokio::time::Instant;

use super::balancer::Balancer;
use super::concurrency_limit::{Permit, WaitQueue};
use super::hashing::Key;
use super::health::{Health, View};
use super::plan::{Member, Plan, Share, Span};
use super::private::Bound;
use super::tag::Tag;
use super::target::Target;

/// Most endpoints that are tried for one connection or request.
pub const MAX_ATTEMPTS: usize = 4;
/// How long all tries together may take to connect to endpoints that rest, of which no other is left: nobody waits for
/// what is known to be down, and still everybody finds out that it is back.
const LAST_RESORT: Duration = Duration::from_millis(100);

/// An endpoint to try.
#[derive(Debug)]
pub struct Pick<'r> {
    /// Which.
    pub target: Target<'r>,
    /// Counts for it, where something is counted; to be kept as long as the endpoint is used.
    pub place: Option<Permit>,
    /// The cookie that makes the client stay, if it has not sent that one.
    pub set_cookie: Option<HeaderValue>,
}

/// Why there is no endpoint to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoEndpoint {
    /// The route has none, or the service has none whose share it is.
    #[error("no usable endpoint")]
    NoEndpoints,
    /// It is the share of a backend that cannot be used, and answered with this status.
    #[error("the backend cannot be used")]
    Failing(u16),
    /// All have as many requests as they may have, and none ended in time.
    #[error("every endpoint has as many requests as it may have")]
    Busy,
    /// All were tried, or [`MAX_ATTEMPTS`].
    #[error("no other endpoint is left to try")]
    Tried,
}

/// The endpoints to try for one request or connection, one after the other, none twice.
#[derive(Debug)]
pub struct Choice<'r> {
    route: &'r ResolvedRoute,
    cluster: &'r Cluster,
    plan: &'r Plan,
    /// What endpoints are scored with, by rules that do so.
    key: Option<Key>,
    sticky: Option<Tag>,
    /// The endpoint that the client's connection is bound to.
    bound: Option<Bound>,
    /// Whose share it is, for rules.
    share: Option<Share>,
    tried: [usize; MAX_ATTEMPTS],
    attempts: usize,
    /// Not this one, as long as there are others.
    avoid: Option<usize>,
    /// Whether none but such as rest, or are ill, were left to try.
    last_resort: bool,
}

impl<'r> Choice<'r> {
    /// The next endpoint. When all that are left have as many requests as they may have, it waits for one of these to
    /// end, `patience` at most.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn next(&mut self, balancer: &Balancer, patience: Duration) -> Result<Pick<'r>, NoEndpoint> {
        match self.look(&balancer.health) {
            Found::Free(index, place) => self.pick(index, place),
            Found::Nobody(why) => Err(why),
            // Boxed: it is rare, and every request would carry the room for it.
            Found::Full(line) => Box::pin(self.wait(balancer, line, Instant::now() + patience)).await,
        }
    }

    /// The client's connection is bound to this endpoint: it is tried first, and again.
    pub fn bind(&mut self, bound: Option<Bound>) {
        self.bound = bound;
    }

    /// For a request that is sent again: all endpoints may be tried anew, the last one only if it stands alone.
    pub fn again(&mut self) {
        self.avoid = self.attempts.checked_sub(1).and_then(|last| self.tried.get(last)).copied();
        self.attempts = 0;
    }

    /// How long connecting to the endpoint that is tried may take when all tries together have this long: half of it, as
    /// long as there are others.
    pub fn patience(&self, left: Duration) -> Duration {
        let most = MAX_ATTEMPTS.min(self.plan.members().len());
        if self.last_resort {
            // No more than a few.
            return left.min(LAST_RESORT / (most as u32).max(1));
        }
        if self.attempts < most { left / 2 } else { left }
    }

    /// Whether the endpoint that is tried rests, or is ill, as do all others: it has little time to connect.
    pub fn is_last_resort(&self) -> bool {
        self.last_resort
    }

    async fn wait(
        &mut self,
        balancer: &Balancer,
        mut line: &'r WaitQueue,
        deadline: Instant,
    ) -> Result<Pick<'r>, NoEndpoint> {
        loop {
            let place = line.enter().ok_or(NoEndpoint::Busy)?;
            // What became free before this is handed to nobody.
            match self.look(&balancer.health) {
                Found::Free(index, place) => return self.pick(index, place),
                Found::Nobody(why) => return Err(why),
                Found::Full(_) => {}
            }
            match tokio::time::timeout_at(deadline, place).await {
                Ok(Ok(place)) => return self.pick_handed(place),
                // Whoever cannot go on with the endpoint of its session for this long may as well go elsewhere.
                Err(_) if self.sticky.take().is_some() => {}
                Ok(Err(_)) | Err(_) => return Err(NoEndpoint::Busy),
            }
            match self.look(&balancer.health) {
                Found::Free(index, place) => return self.pick(index, place),
                Found::Nobody(why) => return Err(why),
                Found::Full(next) => line = next,
            }
        }
    }

    /// Looks for an endpoint to try now.
    fn look(&mut self, health: &Health) -> Found<'r> {
        if self.attempts >= MAX_ATTEMPTS {
            return Found::Nobody(NoEndpoint::Tried);
        }
        self.last_resort = false;
        let view = health.view();
        if let Some(Bound { member, is_alive }) = self.bound.filter(|_| self.attempts == 0)
            && (is_alive || self.may_connect(view.as_ref(), member))
        {
            return self.take(member).unwrap_or_else(Found::Full);
        }
        if let Some(tag) = self.sticky.filter(|_| self.attempts == 0 && self.avoid.is_none()) {
            let named = self.plan.kept().iter().position(|member| member.tag == tag);
            match named.filter(|index| self.may_connect(view.as_ref(), *index)) {
                Some(index) => return self.take(index).unwrap_or_else(Found::Full),
                // It has gone or rests: the client gets another one, and a cookie that says so.
                None => self.sticky = None,
            }
        }
        let share = self.share.filter(|_| self.attempts == 0);
        let span = share.and_then(|share| self.plan.span(share));
        if let Some(status) = span.and_then(|span| span.failure) {
            return Found::Nobody(NoEndpoint::Failing(status));
        }
        if self.plan.total() == 0 || span.is_some_and(Span::is_empty) {
            return Found::Nobody(NoEndpoint::NoEndpoints);
        }
        if let Some(span) = span {
            let is_well = |index| span.has(index) && self.avoid != Some(index) && !self.rests(view.as_ref(), index);
            if let Some(found) = self.take_one(share, is_well, |index| self.may_connect(view.as_ref(), index)) {
                return found;
            }
            // Other services have no part in it before all of this one's endpoints rest.
            if self.avoid.take().is_some() {
                return self.look(health);
            }
        }
        let is_left = |index: usize| self.plan.weight(index) > 0 && !self.was_tried(index);
        if view.is_some() {
            let is_well = |index| is_left(index) && !self.rests(view.as_ref(), index);
            if let Some(found) = self.take_one(None, is_well, |index| self.may_connect(view.as_ref(), index)) {
                return found;
            }
        }
        if let Some(found) = self.take_one(None, is_left, |_| true) {
            self.last_resort = view.is_some();
            return found;
        }
        if self.avoid.take().is_some() {
            return self.look(health);
        }
        Found::Nobody(if self.attempts == 0 { NoEndpoint::NoEndpoints } else { NoEndpoint::Tried })
    }

    fn rests(&self, view: Option<&View>, index: usize) -> bool {
        let rests = |(view, target): (&View, Target<'_>)| {
            view.rests(target.endpoint.address, || target.peer_for(self.route)) || view.is_ill(target)
        };
        view.zip(self.target(index)).is_some_and(rests)
    }

    fn may_connect(&self, view: Option<&View>, index: usize) -> bool {
        let may = |(view, target): (&View, Target<'_>)| {
            !view.is_ill(target) && view.may_connect(target.endpoint.address, || target.peer_for(self.route))
        };
        view.zip(self.target(index)).is_none_or(may)
    }

    fn target(&self, index: usize) -> Option<Target<'r>> {
        self.plan.target(index, self.cluster)
    }

    /// One of those that pass, by the route's rule, unless all of them are full; `None` when none passes.
    fn take_one(
        &self,
        share: Option<Share>,
        passes: impl Fn(usize) -> bool,
        may_connect: impl Fn(usize) -> bool,
    ) -> Option<Found<'r>> {
        // Somebody else may be quicker with one that was free, or on trial; then it passes no more.
        for _ in 0..=self.plan.members().len() {
            let drawn = self.plan.draw(self.key, share, |index| passes(index) && !self.plan.is_full(index));
            let Some(index) = drawn else { break };
            if may_connect(index)
                && let Ok(found) = self.take(index)
            {
                return Some(found);
            }
        }
        let full = self.plan.members().any(passes);
        full.then_some(self.plan.state()).flatten().map(|state| Found::Full(&state.line))
    }

    fn take(&self, index: usize) -> Result<Found<'r>, &'r WaitQueue> {
        match self.plan.occupancy(index) {
            Some(it) => it.take().map(|place| Found::Free(index, Some(place))).ok_or(it.line()),
            None => Ok(Found::Free(index, None)),
        }
    }

    /// A place that somebody left to this one.
    fn pick_handed(&mut self, place: Permit) -> Result<Pick<'r>, NoEndpoint> {
        let is_it = |member: &Member| member.occupancy.as_ref().is_some_and(|it| place.is_of(it));
        match self.plan.kept().iter().position(is_it).filter(|index| !self.was_tried(*index)) {
            Some(index) => self.pick(index, Some(place)),
            None => Err(NoEndpoint::Busy),
        }
    }

    fn pick(&mut self, index: usize, place: Option<Permit>) -> Result<Pick<'r>, NoEndpoint> {
        let target = self.target(index).ok_or(NoEndpoint::NoEndpoints)?;
        if let Some(tried) = self.tried.get_mut(self.attempts) {
            *tried = index;
        }
        self.attempts += 1;
        let is_known =
            self.sticky.is_some_and(|tag| self.plan.kept().get(index).is_some_and(|member| member.tag == tag));
        let set_cookie = if is_known { None } else { self.plan.cookie_for(index) };
        Ok(Pick { target, place, set_cookie })
    }

    fn was_tried(&self, index: usize) -> bool {
        self.avoid == Some(index) || self.tried.iter().take(self.attempts).any(|tried| *tried == index)
    }
}

enum Found<'r> {
    /// This member is to be tried.
    Free(usize, Option<Permit>),
    /// Those that could be tried have as many requests as they may have; here is where to wait.
    Full(&'r WaitQueue),
    Nobody(NoEndpoint),
}

impl Plan {
    /// The endpoints to try for the cluster of this plan, the route's or one of its mirrors'. Whoever has the same `key`
    /// gets the same one, where that is the rule; `sticky` is what a cookie says that names an endpoint.
    pub fn choose<'r>(
        &'r self,
        route: &'r ResolvedRoute,
        cluster: &'r Cluster,
        key: Option<Key>,
        sticky: Option<Tag>,
    ) -> Choice<'r> {
        let share = self.next_share(key);
        let tried = [0; MAX_ATTEMPTS];
        Choice {
            route,
            cluster,
            plan: self,
            key,
            sticky,
            bound: None,
            share,
            tried,
            attempts: 0,
            avoid: None,
            last_resort: false,
        }
    }
}

#[cfg(test)]
mod tests;
