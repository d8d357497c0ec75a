//! Mirrored requests (Gateway API, `HTTPRequestMirrorFilter`): a copy is sent, and its response dropped. The copy is
//! created when the request is ready to be sent. It never delays the request, and its outcome never affects the client.
//! It has the request's fields as for the endpoint, `Host` included, with the mirror's modifiers instead of the
//! backend's.
//!
//! Upgrade requests are not mirrored. At most [`MAX_COPIES`](crate::context::MAX_COPIES) copies are in progress at a
//! time. Copies without a response are counted as lost, and logged at intervals.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Request;
use http::header::EXPECT;
use router_access_log::{Flag, Totals};
use router_table::rule::Mirror;
use router_table::table::ResolvedRoute;
use tokio::sync::OwnedSemaphorePermit;

use super::modify::modify;
use super::upload::{RequestBody, UploadState};
use crate::context::WorkerContext;
use crate::upstream::attempt::{InactivityTimeouts, attempt, read_off};
use crate::upstream::connect::ConnectRequest;
use crate::upstream::plan::BalancingPlan;

/// The mirrors of a request.
#[derive(Clone, Copy, Debug)]
pub struct Mirrors<'r> {
    /// State of the worker.
    pub shared: &'r Arc<WorkerContext>,
    /// The route, whose rule has mirrors.
    pub route: &'r Arc<ResolvedRoute>,
    /// Plan of the route.
    pub plan: &'r BalancingPlan,
    /// Counters of the route.
    pub totals: &'r Arc<Totals>,
    /// Connect timeout.
    pub connect: Duration,
    /// Inactivity timeouts.
    pub waits: InactivityTimeouts,
}

impl Mirrors<'_> {
    /// Sends the copies of a request that is about to be sent.
    pub fn send(&self, request: &mut Request<RequestBody>) {
        let turn = self.plan.next_mirror_turn();
        for (number, mirrored) in self.plan.mirrors().iter().enumerate() {
            if !mirrored.portion.has(turn) {
                continue;
            }
            self.totals.add_copy();
            let Ok(permit) = Arc::clone(&self.shared.copies).try_acquire_owned() else {
                lost(self.route, number, self.totals, "too many copies are under way");
                continue;
            };
            let (body, upload) = request.body_mut().copy();
            let mut copied = Request::new(body);
            *copied.method_mut() = request.method().clone();
            *copied.uri_mut() = request.uri().clone();
            *copied.version_mut() = request.version();
            *copied.headers_mut() = request.headers().clone();
            // The body is copied as it is read, whether or not this endpoint accepts it.
            copied.headers_mut().remove(EXPECT);
            let (shared, route, totals) = (Arc::clone(self.shared), Arc::clone(self.route), Arc::clone(self.totals));
            let Mirrors { connect, waits, .. } = *self;
            let copy = Copy { shared, route, number, totals, connect, waits, _permit: permit };
            tokio::spawn(async move { copy.send(copied, upload).await });
        }
    }
}

/// Counts a lost copy, and logs the number of lost ones at intervals.
fn lost(route: &ResolvedRoute, number: usize, totals: &Totals, why: &str) {
    let Some(count) = totals.lose_copy(Instant::now()) else { return };
    let mirror = route.rule.as_ref().and_then(|rule| rule.mirrors.get(number));
    let service = mirror.and_then(|mirror| mirror.cluster.services.first()).map_or("-", |service| &*service.service);
    tracing::warn!(route = %route.id, service, why, count, "mirrored requests were lost");
}

struct Copy {
    shared: Arc<WorkerContext>,
    route: Arc<ResolvedRoute>,
    /// Index of the rule's mirror.
    number: usize,
    totals: Arc<Totals>,
    connect: Duration,
    waits: InactivityTimeouts,
    _permit: OwnedSemaphorePermit,
}

impl Copy {
    async fn send(&self, mut request: Request<RequestBody>, upload: Option<Arc<UploadState>>) {
        let Copy { shared, route, connect, waits, .. } = self;
        let plan = shared.balancer.plan(route);
        let Some((mirrored, Mirror { cluster, .. })) = self.of(&plan) else { return };
        let mut choice = mirrored.choose(route, cluster, None, None);
        let (mut left, mut why) = (*connect, Flag::NoEndpoints);
        let own = cluster.services.iter().filter_map(|service| service.policy.as_deref());
        own.for_each(|policy| modify(&policy.request_headers, request.headers_mut()));
        // An error means that no endpoint is left.
        while let Ok(pick) = choice.next(&shared.balancer, *connect).await {
            let target = pick.target;
            let within = choice.patience(left);
            let way = ConnectRequest {
                shared,
                route,
                target,
                http1_only: false,
                within,
                until: None,
                keep: false,
                interim: None,
                timer: None,
                private: None,
                turn: waits.server,
                apart: false,
                with_content: upload.is_some(),
            };
            match attempt(&way, &mut request, upload.as_deref(), *waits).await {
                Ok((lease, response)) => {
                    let is_last = upload.is_some_and(|upload| upload.is_last());
                    return read_off(lease, response, waits.server, is_last).await;
                }
                Err(trouble) => {
                    (left, why) = (left.saturating_sub(trouble.connecting), trouble.flag);
                    if !trouble.unseen {
                        break;
                    }
                }
            }
        }
        lost(route, self.number, &self.totals, why.cause());
    }

    fn of<'p>(&'p self, plan: &'p BalancingPlan) -> Option<(&'p BalancingPlan, &'p Mirror)> {
        let mirror = self.route.rule.as_ref()?.mirrors.get(self.number)?;
        Some((&plan.mirrors().get(self.number)?.plan, mirror))
    }
}
