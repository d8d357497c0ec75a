//! Health checks that backends ask for (Contour's `healthCheck` and `healthCheckPolicy`): each endpoint is asked at
//! intervals, by a request or a connection, as Envoy does it. Failures in a row make it ill, a 503 at once, successes in
//! a row well again; until something is known it counts as well.
//!
//! An endpoint is asked once for all backends that ask the same of it in the same way, so no backend can make another
//! one's endpoints ill. Those of routes that have one endpoint are not asked: there is nothing to choose.

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
use super::target::Target;
use super::wire::Sender;
use crate::context::Common;
use crate::dial;
use crate::http::upload::RequestBody;
use crate::relay;

/// Most endpoints that are asked at the same time.
const MAX_AT_ONCE: usize = 1_024;
/// Longest wait for an answer, whatever is written: whoever waits keeps others from being asked.
const LONGEST: Duration = Duration::from_secs(60);
/// The first look is within this time, or an interval if that is shorter.
const FIRST: Duration = Duration::from_secs(1);

/// Asks the endpoints of the tables as they come; ends never.
pub async fn run(common: Arc<Common>, mut tables: watch::Receiver<Arc<RoutingTable>>) {
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
    common: Arc<Common>,
    slots: Arc<Semaphore>,
    asked: HashMap<Checked, Asked>,
}

/// Who asks an endpoint, for how many endpoints of routes.
struct Asked {
    count: usize,
    task: AbortHandle,
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Probes {
    /// Follows from one table to the next. Costs what has changed.
    fn follow(&mut self, before: &RoutingTable, newer: &RoutingTable) {
        for change in newer.route_changes(before) {
            // First in, so that what stays is not forgotten.
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
                    let patient = Patient { common, endpoint, policy, checked: new.key().clone() };
                    let task = tokio::spawn(patient.watch(slots)).abort_handle();
                    new.insert(Asked { count: 1, task });
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

/// The endpoints of a route and of its mirrors that are asked; none unless there are several to choose from.
fn checked(
    route: &ResolvedRoute,
    endpoints: &Endpoints,
) -> impl Iterator<Item = (Checked, Endpoint, Arc<BackendPolicy>)> {
    let count = |cluster: &Cluster| cluster.services.iter().map(|service| endpoints.of(service).len()).sum::<usize>();
    let clusters = route.clusters().filter(move |cluster| count(cluster) > 1);
    clusters.flat_map(|cluster| cluster.services.iter()).flat_map(|service| {
        endpoints.of(service).iter().filter_map(|endpoint| {
            let policy = service.policy.as_ref()?;
            let checked = Checked::of(Target { service: &service.service, endpoint, policy: Some(policy) })?;
            Some((checked, endpoint.clone(), Arc::clone(policy)))
        })
    })
}

/// What an endpoint answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Well,
    /// Nothing, or something else.
    Failed,
    /// 503: it wants to be left alone.
    Away,
}

/// What answers in a row amount to.
#[derive(Debug, Default)]
struct Streak {
    last: Option<bool>,
    length: u32,
}

impl Streak {
    /// Whether the endpoint is ill, if this answer decides it.
    fn after(&mut self, answer: Answer, check: &HealthCheck) -> Option<bool> {
        let is_good = answer == Answer::Well;
        self.length = if self.last == Some(is_good) { self.length.saturating_add(1) } else { 1 };
        self.last = Some(is_good);
        let needed = if is_good { check.healthy } else { check.unhealthy };
        (self.length >= needed || answer == Answer::Away).then_some(!is_good)
    }
}

/// An endpoint that is asked.
struct Patient {
    common: Arc<Common>,
    endpoint: Endpoint,
    policy: Arc<BackendPolicy>,
    checked: Checked,
}

impl Drop for Patient {
    fn drop(&mut self) {
        self.common.balancer.health.checked(&self.checked, false);
    }
}

impl Patient {
    /// Asks until nobody wants to know any more.
    async fn watch(self, slots: Arc<Semaphore>) {
        let check = Arc::clone(&self.checked.check);
        let mut streak = Streak::default();
        // Spread, or all that come with one table would always be asked together.
        let part = f64::from(dial::random_below(1 << 20)) / f64::from(1 << 20);
        let mut pause = check.interval.min(FIRST).mul_f64(part);
        loop {
            sleep(pause).await;
            pause = check.interval;
            // Nobody closes it.
            let slot = slots.acquire().await;
            let within = check.timeout.min(LONGEST);
            let answer = timeout(within, self.ask(within)).await.unwrap_or(Answer::Failed);
            drop(slot);
            if let Some(is_ill) = streak.after(answer, &check) {
                self.common.balancer.health.checked(&self.checked, is_ill);
            }
        }
    }

    async fn ask(&self, within: Duration) -> Answer {
        let Some(question) = &self.checked.check.request else {
            let health = &self.common.balancer.health;
            return match dial::connect(health, &self.endpoint, within).await {
                // Nothing was said, so nothing is lost, and no port is kept waiting.
                Ok(stream) => {
                    relay::reset_on_close(&stream);
                    Answer::Well
                }
                Err(_) => Answer::Failed,
            };
        };
        let Ok(connected) =
            connect_to(&self.common, &self.endpoint, &self.checked.key.wire, &self.policy, within).await
        else {
            return Answer::Failed;
        };
        let Some(mut request) = get(question) else { return Answer::Failed };
        let mut sender = match connected {
            Connected::Http1(own) if for_http1(&mut request).is_ok() => Sender::Http1(own),
            Connected::Http2(shared) if for_http2(&mut request, self.checked.key.wire.scheme(), None).is_ok() => {
                match shared.stream(false) {
                    Some(stream) => Sender::Http2(stream),
                    None => return Answer::Failed,
                }
            }
            _ => return Answer::Failed,
        };
        match sender.send(request, None).await.map(|response| response.status()) {
            Ok(status) if is_expected(question, status) => Answer::Well,
            Ok(StatusCode::SERVICE_UNAVAILABLE) => Answer::Away,
            _ => Answer::Failed,
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
