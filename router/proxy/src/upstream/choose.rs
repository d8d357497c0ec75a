//! Chooses endpoints by `haproxy.router.openshift.io/balance`, after affinity, within limits, and avoiding ejected
//! ones.
//!
//! * random: by chance and weight, the default of a route with one service;
//! * roundrobin: in turn, in proportion to the weights, the default with several services;
//! * leastconn: the fewest requests or connections in proportion to the weight;
//! * source, and hash for rules: the endpoint with the highest score for the client's address, or for the hashed parts
//!   of the request ([`hashing`](super::hashing)).
//!
//! Ejected endpoints (`health`) are chosen only if no other is left, with a short connect timeout: neither skipping
//! them nor waiting for them would help.
//!
//! Services of rules keep their shares: first a service is drawn, then one of its endpoints. An unusable backend, or
//! one without endpoints, answers its share with failures. If all endpoints of a service are ejected, or were tried in
//! vain, those of other services take over, as for Routes.

mod draw;

use std::time::Duration;

use http::HeaderValue;
use router_table::table::{Cluster, ResolvedRoute};
use tokio::time::Instant;

use super::balancer::Balancer;
use super::concurrency_limit::{Permit, WaitQueue};
use super::hashing::HashKey;
use super::health::{Health, HealthView};
use super::plan::{BalancingPlan, MemberShare, MemberSpan, MemberState};
use super::private::BoundMember;
use super::tag::Tag;
use super::target::EndpointTarget;

/// Maximum number of endpoints tried for one connection or request.
pub const MAX_ATTEMPTS: usize = 4;
/// Total time for connecting to ejected endpoints when no other is left: clients do not wait for endpoints known to be
/// down, and still notice when one is back.
const LAST_RESORT: Duration = Duration::from_millis(100);

/// An endpoint to try.
#[derive(Debug)]
pub struct Pick<'r> {
    /// The endpoint.
    pub target: EndpointTarget<'r>,
    /// Its permit, if requests are counted; to be kept as long as the endpoint is used.
    pub place: Option<Permit>,
    /// The cookie that binds the client to the endpoint, unless the client sent it.
    pub set_cookie: Option<HeaderValue>,
}

/// Why there is no endpoint to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoEndpoint {
    /// The route has no endpoints, or the service drawn has none.
    #[error("no usable endpoint")]
    NoEndpoints,
    /// The backend drawn is unusable; the response has this status.
    #[error("the backend cannot be used")]
    Failing(u16),
    /// All endpoints are at their limit, and no request ended in time.
    #[error("every endpoint has as many requests as it may have")]
    Busy,
    /// All endpoints were tried, or [`MAX_ATTEMPTS`] of them.
    #[error("no other endpoint is left to try")]
    Tried,
}

/// The endpoints to try for one request or connection, in order, each once.
#[derive(Debug)]
pub struct Choice<'r> {
    route: &'r ResolvedRoute,
    cluster: &'r Cluster,
    plan: &'r BalancingPlan,
    /// The key by which endpoints are scored, for rules that hash.
    key: Option<HashKey>,
    sticky: Option<Tag>,
    /// The endpoint that the client's connection is bound to.
    bound: Option<BoundMember>,
    /// The service drawn, for rules.
    share: Option<MemberShare>,
    tried: [usize; MAX_ATTEMPTS],
    attempts: usize,
    /// The endpoint to try last.
    avoid: Option<usize>,
    /// True if only ejected or unhealthy endpoints were left to try.
    last_resort: bool,
}

impl<'r> Choice<'r> {
    /// The next endpoint. If all remaining ones are at their limit, waits for one of their requests to end, for at most
    /// `patience`.
    ///
    /// Why no endpoint is left.
    /// Why there is none.
    pub async fn next(&mut self, balancer: &Balancer, patience: Duration) -> Result<Pick<'r>, NoEndpoint> {
        match self.look(&balancer.health) {
            Selection::Free(index, place) => self.pick(index, place),
            Selection::Nobody(why) => Err(why),
            // Boxed because it is rare: otherwise every request would reserve memory for it.
            Selection::Full(line) => Box::pin(self.wait(balancer, line, Instant::now() + patience)).await,
        }
    }

    /// Binds the client's connection to this endpoint: it is tried first, also when the request is sent again.
    pub fn bind(&mut self, bound: Option<BoundMember>) {
        self.bound = bound;
    }

    /// Starts over for a request that is sent again: all endpoints may be tried again, the last one only if no other is
    /// left.
    pub fn again(&mut self) {
        self.avoid = self.attempts.checked_sub(1).and_then(|last| self.tried.get(last)).copied();
        self.attempts = 0;
    }

    /// Time-out for connecting to the current endpoint, if `left` is the time for all attempts: half of it, as long as
    /// there are other endpoints.
    pub fn patience(&self, left: Duration) -> Duration {
        let most = MAX_ATTEMPTS.min(self.plan.members().len());
        if self.last_resort {
            // At most `MAX_ATTEMPTS` endpoints.
            return left.min(LAST_RESORT / (most as u32).max(1));
        }
        if self.attempts < most { left / 2 } else { left }
    }

    /// True if the current endpoint is ejected or unhealthy, as are all others: its connect time-out is short.
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
            // A permit released before `enter` is not handed to this waiter.
            match self.look(&balancer.health) {
                Selection::Free(index, place) => return self.pick(index, place),
                Selection::Nobody(why) => return Err(why),
                Selection::Full(_) => {}
            }
            match tokio::time::timeout_at(deadline, place).await {
                Ok(Ok(place)) => return self.pick_handed(place),
                // The endpoint of the client's session stayed at its limit for this long: try the others.
                Err(_) if self.sticky.take().is_some() => {}
                Ok(Err(_)) | Err(_) => return Err(NoEndpoint::Busy),
            }
            match self.look(&balancer.health) {
                Selection::Free(index, place) => return self.pick(index, place),
                Selection::Nobody(why) => return Err(why),
                Selection::Full(next) => line = next,
            }
        }
    }

    /// Looks for an endpoint to try now.
    fn look(&mut self, health: &Health) -> Selection<'r> {
        if self.attempts >= MAX_ATTEMPTS {
            return Selection::Nobody(NoEndpoint::Tried);
        }
        self.last_resort = false;
        let view = health.view();
        if let Some(BoundMember { member, is_alive }) = self.bound.filter(|_| self.attempts == 0)
            && (is_alive || self.may_connect(view.as_ref(), member))
        {
            return self.take(member).unwrap_or_else(Selection::Full);
        }
        if let Some(tag) = self.sticky.filter(|_| self.attempts == 0 && self.avoid.is_none()) {
            let named = self.plan.kept().iter().position(|member| member.tag == tag);
            match named.filter(|index| self.may_connect(view.as_ref(), *index)) {
                Some(index) => return self.take(index).unwrap_or_else(Selection::Full),
                // It was removed or is ejected: the client gets another endpoint and its cookie.
                None => self.sticky = None,
            }
        }
        let share = self.share.filter(|_| self.attempts == 0);
        let span = share.and_then(|share| self.plan.span(share));
        if let Some(status) = span.and_then(|span| span.failure) {
            return Selection::Nobody(NoEndpoint::Failing(status));
        }
        if self.plan.total() == 0 || span.is_some_and(MemberSpan::is_empty) {
            return Selection::Nobody(NoEndpoint::NoEndpoints);
        }
        if let Some(span) = span {
            let is_well =
                |index| span.has(index) && self.avoid != Some(index) && !self.is_avoided(view.as_ref(), index);
            if let Some(found) = self.take_one(share, is_well, |index| self.may_connect(view.as_ref(), index)) {
                return found;
            }
            // Other services take over only when all endpoints of this one are ejected.
            if self.avoid.take().is_some() {
                return self.look(health);
            }
        }
        let is_left = |index: usize| self.plan.weight(index) > 0 && !self.was_tried(index);
        if view.is_some() {
            let is_well = |index| is_left(index) && !self.is_avoided(view.as_ref(), index);
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
        Selection::Nobody(if self.attempts == 0 { NoEndpoint::NoEndpoints } else { NoEndpoint::Tried })
    }

    fn is_avoided(&self, view: Option<&HealthView>, index: usize) -> bool {
        let rests = |(view, target): (&HealthView, EndpointTarget<'_>)| {
            view.is_ejected(target.endpoint.address, || target.peer_for(self.route)) || view.is_ill(target)
        };
        view.zip(self.target(index)).is_some_and(rests)
    }

    fn may_connect(&self, view: Option<&HealthView>, index: usize) -> bool {
        let may = |(view, target): (&HealthView, EndpointTarget<'_>)| {
            !view.is_ill(target) && view.may_connect(target.endpoint.address, || target.peer_for(self.route))
        };
        view.zip(self.target(index)).is_none_or(may)
    }

    fn target(&self, index: usize) -> Option<EndpointTarget<'r>> {
        self.plan.target(index, self.cluster)
    }

    /// One of the passing members, by the route's rule, unless all of them are full; `None` if none passes.
    fn take_one(
        &self,
        share: Option<MemberShare>,
        passes: impl Fn(usize) -> bool,
        may_connect: impl Fn(usize) -> bool,
    ) -> Option<Selection<'r>> {
        // Another request may take a free member first, or its probe; then it no longer passes.
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
        full.then_some(self.plan.state()).flatten().map(|state| Selection::Full(&state.line))
    }

    fn take(&self, index: usize) -> Result<Selection<'r>, &'r WaitQueue> {
        match self.plan.occupancy(index) {
            Some(it) => it.take().map(|place| Selection::Free(index, Some(place))).ok_or(it.line()),
            None => Ok(Selection::Free(index, None)),
        }
    }

    /// Picks the member of a permit that another request handed over.
    fn pick_handed(&mut self, place: Permit) -> Result<Pick<'r>, NoEndpoint> {
        let is_it = |member: &MemberState| member.occupancy.as_ref().is_some_and(|it| place.is_of(it));
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

enum Selection<'r> {
    /// Try this member.
    Free(usize, Option<Permit>),
    /// All candidates are at their limit; wait here.
    Full(&'r WaitQueue),
    Nobody(NoEndpoint),
}

impl BalancingPlan {
    /// The endpoints to try for the cluster of this plan: the route's or a mirror's. With rules that hash, equal keys
    /// get the same endpoint; `sticky` is the endpoint that the client's cookie names.
    pub fn choose<'r>(
        &'r self,
        route: &'r ResolvedRoute,
        cluster: &'r Cluster,
        key: Option<HashKey>,
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
