//! Copies of requests for mirrors (Gateway API, `HTTPRequestMirrorFilter`): sent and forgotten. A copy goes its own way
//! from the moment that the request is ready to be sent; it never delays it, nor does anything that becomes of it reach
//! the client. It has the request's fields as the endpoint gets them, `Host` included, with the mirror's own work on them
//! in the place of the backend's.
//!
//! Requests that would leave HTTP are not copied. Copies beyond [`MAX_COPIES`](crate::context::MAX_COPIES) at the same time are not made. What no
//! mirror has answered is counted as lost, and the log tells of it, now and then.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Request;
use http::header::EXPECT;
use router_access_log::{Flag, Totals};
use router_table::rule::Mirror;
use router_table::table::ResolvedRoute;
use tokio::sync::OwnedSemaphorePermit;

use super::modify::modify;
use super::upload::{RequestBody, Upload};
use crate::context::Shared;
use crate::upstream::attempt::{Waits, attempt, read_off};
use crate::upstream::connect::ConnectRequest;
use crate::upstream::plan::Plan;

/// Where copies of a request go.
#[derive(Clone, Copy, Debug)]
pub struct Mirrors<'r> {
    /// The worker.
    pub shared: &'r Arc<Shared>,
    /// The route, with a rule that has mirrors.
    pub route: &'r Arc<ResolvedRoute>,
    /// Its plan.
    pub plan: &'r Plan,
    /// What is counted of the route.
    pub totals: &'r Arc<Totals>,
    /// How long connecting to an endpoint may take.
    pub connect: Duration,
    /// How long nothing may move.
    pub waits: Waits,
}

impl Mirrors<'_> {
    /// Sends the copies that are due of a request that is about to be sent.
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
            // The body comes as it is read, whether or not this endpoint wants it.
            copied.headers_mut().remove(EXPECT);
            let (shared, route, totals) = (Arc::clone(self.shared), Arc::clone(self.route), Arc::clone(self.totals));
            let Mirrors { connect, waits, .. } = *self;
            let copy = Copy { shared, route, number, totals, connect, waits, _permit: permit };
            tokio::spawn(async move { copy.send(copied, upload).await });
        }
    }
}

/// Counts a copy that no mirror has answered, and tells of it if it is time.
fn lost(route: &ResolvedRoute, number: usize, totals: &Totals, why: &str) {
    let Some(count) = totals.lose_copy(Instant::now()) else { return };
    let mirror = route.rule.as_ref().and_then(|rule| rule.mirrors.get(number));
    let service = mirror.and_then(|mirror| mirror.cluster.services.first()).map_or("-", |service| &*service.service);
    tracing::warn!(route = %route.id, service, why, count, "copies of requests are lost");
}

struct Copy {
    shared: Arc<Shared>,
    route: Arc<ResolvedRoute>,
    /// Of the rule's mirrors.
    number: usize,
    totals: Arc<Totals>,
    connect: Duration,
    waits: Waits,
    _permit: OwnedSemaphorePermit,
}

impl Copy {
    async fn send(&self, mut request: Request<RequestBody>, upload: Option<Arc<Upload>>) {
        let Copy { shared, route, connect, waits, .. } = self;
        let plan = shared.balancer.plan(route);
        let Some((mirrored, Mirror { cluster, .. })) = self.of(&plan) else { return };
        let mut choice = mirrored.choose(route, cluster, None, None);
        let (mut left, mut why) = (*connect, Flag::NoEndpoints);
        let own = cluster.services.iter().filter_map(|service| service.policy.as_deref());
        own.for_each(|policy| modify(&policy.request_headers, request.headers_mut()));
        // An error: there is no endpoint (left).
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

    fn of<'p>(&'p self, plan: &'p Plan) -> Option<(&'p Plan, &'p Mirror)> {
        let mirror = self.route.rule.as_ref()?.mirrors.get(self.number)?;
        Some((&plan.mirrors().get(self.number)?.plan, mirror))
    }
}
