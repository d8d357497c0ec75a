//! Active health checks of backends (Contour's `healthCheck` and `healthCheckPolicy`): each endpoint gets a request or
//! a connection at intervals, as Envoy does it. Consecutive failures, or a single 503, make it unhealthy; consecutive
//! successes make it healthy again. Without a result it counts as healthy.
//!
//! An endpoint is probed once for all backends with the same protocol, peer and check, so a backend cannot make another
//! one's endpoints unhealthy. Routes with a single endpoint are not probed: there is no choice.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use http::header::{HOST, USER_AGENT};
use http::{HeaderValue, Method, Request, StatusCode};
use router_table::rule::{BackendPolicy, HealthCheck, HealthRequest};
use router_table::table::{Cluster, Endpoint, Endpoints, ResolvedRoute, RoutingTable};
use tokio::sync::{Semaphore, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::attempt::{for_http1, for_http2};
use super::connect::{Connected, connect_to};
use super::health::Checked;
use super::request_sender::RequestSender;
use super::target::EndpointTarget;
use crate::context::ProcessContext;
use crate::dial;
use crate::http::upload::RequestBody;
use crate::relay;

/// Most concurrent probes.
const MAX_AT_ONCE: usize = 1_024;
/// Longest timeout of a probe, whatever is configured, because a waiting probe holds a slot.
const LONGEST: Duration = Duration::from_secs(60);
/// The first probe begins within this time, or within an interval if that is shorter.
const FIRST: Duration = Duration::from_secs(1);

/// Probes the endpoints of the newest table; never returns.
pub async fn run(common: Arc<ProcessContext>, mut tables: watch::Receiver<Arc<RoutingTable>>) {
    let mut probes = Probes { common, slots: Arc::new(Semaphore::new(MAX_AT_ONCE)), asked: HashMap::new() };
    let mut table = Arc::default();
    loop {
        let newer = Arc::clone(&tables.borrow_and_update());
        probes.follow(&table, &newer);
        table = newer;
        if tables.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}

struct Probes {
    common: Arc<ProcessContext>,
    slots: Arc<Semaphore>,
    asked: HashMap<Checked, ProbeHandle>,
}

/// The task that probes an endpoint, and for how many endpoints of routes.
struct ProbeHandle {
    count: usize,
    task: AbortHandle,
}

impl Drop for ProbeHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Probes {
    /// Applies the changes between two tables. Cost is proportional to the change.
    fn follow(&mut self, before: &RoutingTable, newer: &RoutingTable) {
        for change in newer.route_changes(before) {
            // Additions first, so that an unchanged endpoint keeps its state.
            change.new.into_iter().for_each(|(_, route)| self.add(route, &newer.endpoints));
            change.old.into_iter().for_each(|(_, route)| self.remove(route, &before.endpoints));
        }
    }

    fn add(&mut self, route: &ResolvedRoute, endpoints: &Endpoints) {
        for (checked, endpoint, policy) in checked(route, endpoints) {
            match self.asked.entry(checked) {
                Entry::Occupied(mut known) => known.get_mut().count += 1,
                Entry::Vacant(new) => {
                    let (common, slots) = (Arc::clone(&self.common), Arc::clone(&self.slots));
                    let patient = ProbeTask { common, endpoint, policy, checked: new.key().clone() };
                    let task = tokio::spawn(patient.watch(slots)).abort_handle();
                    new.insert(ProbeHandle { count: 1, task });
                }
            }
        }
    }

    fn remove(&mut self, route: &ResolvedRoute, endpoints: &Endpoints) {
        for (checked, ..) in checked(route, endpoints) {
            if let Entry::Occupied(mut known) = self.asked.entry(checked) {
                known.get_mut().count -= 1;
                if known.get().count == 0 {
                    known.remove();
                }
            }
        }
    }
}

/// The probed endpoints of a route and of its mirrors; none for a single endpoint.
fn checked(
    route: &ResolvedRoute,
    endpoints: &Endpoints,
) -> impl Iterator<Item = (Checked, Endpoint, Arc<BackendPolicy>)> {
    let count = |cluster: &Cluster| cluster.services.iter().map(|service| endpoints.of(service).len()).sum::<usize>();
    let clusters = route.clusters().filter(move |cluster| count(cluster) > 1);
    clusters.flat_map(|cluster| cluster.services.iter()).flat_map(|service| {
        endpoints.of(service).iter().filter_map(|endpoint| {
            let policy = service.policy.as_ref()?;
            let checked = Checked::of(EndpointTarget { service: &service.service, endpoint, policy: Some(policy) })?;
            Some((checked, endpoint.clone(), Arc::clone(policy)))
        })
    })
}

/// Result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProbeResult {
    Well,
    /// No response, or an unexpected one.
    Failed,
    /// 503: unhealthy at once.
    Away,
}

/// Consecutive equal results.
#[derive(Debug, Default)]
struct Streak {
    last: Option<bool>,
    length: u32,
}

impl Streak {
    /// Whether the endpoint is unhealthy, if this result changes its state.
    fn after(&mut self, answer: ProbeResult, check: &HealthCheck) -> Option<bool> {
        let is_good = answer == ProbeResult::Well;
        self.length = if self.last == Some(is_good) { self.length.saturating_add(1) } else { 1 };
        self.last = Some(is_good);
        let needed = if is_good { check.healthy } else { check.unhealthy };
        (self.length >= needed || answer == ProbeResult::Away).then_some(!is_good)
    }
}

/// Task that probes an endpoint.
struct ProbeTask {
    common: Arc<ProcessContext>,
    endpoint: Endpoint,
    policy: Arc<BackendPolicy>,
    checked: Checked,
}

impl Drop for ProbeTask {
    fn drop(&mut self) {
        self.common.balancer.health.checked(&self.checked, false);
    }
}

impl ProbeTask {
    /// Probes until the task is aborted.
    async fn watch(self, slots: Arc<Semaphore>) {
        let check = Arc::clone(&self.checked.check);
        let mut streak = Streak::default();
        // Random phase: otherwise all endpoints of a new table would be probed at the same time.
        let part = f64::from(dial::random_below(1 << 20)) / f64::from(1 << 20);
        let mut pause = check.interval.min(FIRST).mul_f64(part);
        loop {
            sleep(pause).await;
            pause = check.interval;
            // The semaphore is never closed.
            let slot = slots.acquire().await;
            let within = check.timeout.min(LONGEST);
            let answer = timeout(within, self.ask(within)).await.unwrap_or(ProbeResult::Failed);
            drop(slot);
            if let Some(is_ill) = streak.after(answer, &check) {
                self.common.balancer.health.checked(&self.checked, is_ill);
            }
        }
    }

    async fn ask(&self, within: Duration) -> ProbeResult {
        let Some(question) = &self.checked.check.request else {
            let health = &self.common.balancer.health;
            return match dial::connect(health, &self.endpoint, within).await {
                // No data was sent, so a reset loses nothing and leaves no port in TIME_WAIT.
                Ok(stream) => {
                    relay::reset_on_close(&stream);
                    ProbeResult::Well
                }
                Err(_) => ProbeResult::Failed,
            };
        };
        let Ok(connected) =
            connect_to(&self.common, &self.endpoint, &self.checked.key.wire, &self.policy, within).await
        else {
            return ProbeResult::Failed;
        };
        let Some(mut request) = get(question) else { return ProbeResult::Failed };
        let mut sender = match connected {
            Connected::Http1(own) if for_http1(&mut request).is_ok() => RequestSender::Http1(own),
            Connected::Http2(shared) if for_http2(&mut request, self.checked.key.wire.scheme(), None).is_ok() => {
                match shared.stream(false) {
                    Some(stream) => RequestSender::Http2(stream),
                    None => return ProbeResult::Failed,
                }
            }
            _ => return ProbeResult::Failed,
        };
        match sender.send(request, None).await.map(|response| response.status()) {
            Ok(status) if is_expected(question, status) => ProbeResult::Well,
            Ok(StatusCode::SERVICE_UNAVAILABLE) => ProbeResult::Away,
            _ => ProbeResult::Failed,
        }
    }
}

fn get(question: &HealthRequest) -> Option<Request<RequestBody>> {
    let request = Request::builder().method(Method::GET).uri(&*question.path).header(HOST, &*question.host);
    let agent = HeaderValue::from_static("sluice-health-check");
    request.header(USER_AGENT, agent).body(RequestBody::default()).ok()
}

fn is_expected(question: &HealthRequest, status: StatusCode) -> bool {
    question.expected.iter().any(|(first, last)| (*first..=*last).contains(&status.as_u16()))
}

#[cfg(test)]
mod tests;
