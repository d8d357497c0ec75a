//! Forwards a request to an endpoint and returns the response.

mod response;

use std::future::{poll_fn, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::Either;
use http::header::EXPECT;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use router_access_log::Flag;
use router_table::table::ResolvedRoute;
use tokio::time::{Instant, Sleep, sleep};

use super::body::ResponseBody;
use super::connection::Connection;
use super::destination::Destination;
use super::headers::{ClientView, prepare_request};
use super::mirror::Mirrors;
use super::modify::modify;
use super::retry::{AttemptOutcome, Retries};
use super::upgrade::{self, RequestedUpgrade};
use super::upload::{RequestBody, UploadState, is_unexpected};
use crate::access_record::AccessRecord;
use crate::connection_state::InFlight;
use crate::context::WorkerContext;
use crate::http::deadlines::Deadlines;
use crate::interim::InterimTurn;
use crate::limits::TooMany;
use crate::upstream::attempt::{AttemptError, InactivityTimeouts, attempt, read_off};
use crate::upstream::choose::{Choice, NoEndpoint, Pick};
use crate::upstream::connect::ConnectRequest;
use crate::upstream::hashing::HashInput;
use crate::upstream::plan::{BalancingPlan, Prepared};
use crate::upstream::target::EndpointTarget;

use response::{Answered, answer};

/// Why an endpoint's response is missing, with what the router's own response needs.
#[derive(Debug)]
pub struct Failure {
    /// Status of the response.
    pub status: StatusCode,
    /// Cause, for the access log.
    pub flag: Flag,
    /// Access record of the request.
    pub record: Box<AccessRecord>,
    /// Guard of the request.
    pub in_flight: InFlight,
}

/// A request ready to be sent, with its state until it is answered.
struct Exchange<'r> {
    plan: &'r BalancingPlan,
    choice: Choice<'r>,
    request: Request<RequestBody>,
    /// The fields before a backend's modifiers, if any backend has modifiers.
    unmodified: Option<Box<HeaderMap>>,
    upload: Option<Arc<UploadState>>,
    requested: Option<RequestedUpgrade>,
    times: Deadlines,
    /// Remaining time for connecting, shared by all endpoints until the request is sent again.
    left: Duration,
    record: Box<AccessRecord>,
    in_flight: InFlight,
    is_http1: bool,
    /// Retries of the rule, if any and if the request may be repeated.
    retries: Option<Retries<'r>>,
    /// Passes interim responses to the client.
    interim: Option<InterimTurn<'r>>,
    /// A new client's affinity cookie.
    set_cookie: Option<HeaderValue>,
}

/// Sends a request to an endpoint of the route; tries further endpoints as long as none has received it. Everything
/// that needs no waiting is done before the future is created, because each request's future is moved around.
///
/// # Errors
/// The response when no endpoint answered.
pub fn forward<'r>(
    shared: &'r Arc<WorkerContext>,
    connection: &'r Connection,
    destination: &'r Destination<'r>,
    request: Request<Incoming>,
    record: Box<AccessRecord>,
    in_flight: InFlight,
) -> impl Future<Output = Result<Response<ResponseBody>, Failure>> + 'r {
    let mut exchange = match prepare(shared, connection, destination, request, record, in_flight) {
        Ok(exchange) => exchange,
        Err(failure) => return Either::Left(ready(Err(failure))),
    };
    let route = destination.route;
    Either::Right(async move {
        let mut last = (StatusCode::SERVICE_UNAVAILABLE, Flag::NoEndpoints);
        loop {
            let pick = match exchange.choice.next(&shared.balancer, exchange.times.patience()).await {
                Ok(pick) => pick,
                Err(NoEndpoint::Busy) => {
                    let is_late = exchange.times.are_over();
                    let status = if is_late { StatusCode::GATEWAY_TIMEOUT } else { StatusCode::SERVICE_UNAVAILABLE };
                    last = (status, Flag::Busy);
                    break;
                }
                Err(NoEndpoint::Failing(status)) => {
                    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                    last = (status, Flag::InvalidBackend);
                    break;
                }
                Err(NoEndpoint::Tried) => match exchange.again(AttemptOutcome::Unreachable) {
                    Some(pause) => {
                        pause.await;
                        continue;
                    }
                    None => break,
                },
                Err(NoEndpoint::NoEndpoints) => break,
            };
            let Pick { target, place, set_cookie } = pick;
            exchange.record.endpoint = Some(target.endpoint.address);
            exchange.record.place = place;
            exchange.record.tries += 1;
            exchange.modify_for(target);
            let (way, waits) = exchange.way(shared, connection, route, target);
            let attempted = {
                let Exchange { request, upload, .. } = &mut *exchange;
                let answer = pin!(attempt(&way, request, upload.as_deref(), waits));
                if way.interim.is_some() {
                    destination.forward_interim(answer, connection, target).await
                } else {
                    answer.await
                }
            };
            match attempted {
                Ok((_, response)) if !upgrade::is_fitting(&response, exchange.requested.as_ref()) => {
                    last = (StatusCode::BAD_GATEWAY, Flag::UpstreamSwitch);
                    break;
                }
                Ok((lease, response)) => {
                    if let Some(pause) = exchange.again(AttemptOutcome::Answered(response.status())) {
                        exchange.record.place = None;
                        // The request has no content.
                        tokio::spawn(read_off(lease, response, waits.server, false));
                        pause.await;
                        continue;
                    }
                    exchange.end_interim(connection).await;
                    let set_cookie = set_cookie.or_else(|| exchange.set_cookie.take());
                    let Exchange { plan, upload, requested, times, record, in_flight, is_http1, .. } = *exchange;
                    let answered = Answered { lease, response, upload, times, until: waits.until, is_http1 };
                    let mut response = answer(shared, answered, requested, record, in_flight);
                    let headers = response.headers_mut();
                    target.policy.into_iter().for_each(|backend| modify(&backend.response_headers, headers));
                    route.rule.iter().for_each(|rule| modify(&rule.response_headers, headers));
                    plan.set_cookie(headers, set_cookie);
                    return Ok(response);
                }
                Err(trouble) => {
                    let AttemptError { status, flag, unseen, connecting } = trouble;
                    last = match flag {
                        // The cause was known at once, so no timeout can have expired.
                        Flag::UpstreamConnectTimeout | Flag::UpstreamTlsTimeout
                            if unseen && exchange.choice.is_last_resort() =>
                        {
                            (StatusCode::SERVICE_UNAVAILABLE, Flag::BackendsDown)
                        }
                        _ => (status, flag),
                    };
                    exchange.left = exchange.left.saturating_sub(connecting);
                    exchange.record.place = None;
                    if exchange.times.are_over() {
                        break;
                    }
                    if !unseen {
                        match exchange.again(trouble.into()) {
                            Some(pause) => pause.await,
                            None => break,
                        }
                    }
                }
            }
        }
        exchange.end_interim(connection).await;
        let Exchange { requested, record, in_flight, .. } = *exchange;
        if let Some(requested) = requested {
            requested.declined(shared);
        }
        let (status, flag) = last;
        Err(Failure { status, flag, record, in_flight })
    })
}

impl<'r> Exchange<'r> {
    /// Applies a backend's modifiers to the original fields.
    fn modify_for(&mut self, target: EndpointTarget<'_>) {
        let Some(unmodified) = self.unmodified.as_deref() else { return };
        self.request.headers_mut().clone_from(unmodified);
        target.policy.into_iter().for_each(|backend| modify(&backend.request_headers, self.request.headers_mut()));
    }

    /// The wait before the rule's next retry after this outcome, if any; boxed, because retries are rare.
    fn again(&mut self, outcome: AttemptOutcome) -> Option<Pin<Box<Sleep>>> {
        let pause = self.retries.as_mut()?.after(outcome)?;
        if self.times.until.is_some_and(|until| Instant::now() + pause >= until) {
            return None;
        }
        self.choice.again();
        self.left = self.times.connect;
        Some(Box::pin(sleep(pause)))
    }

    /// No interim response can follow. hyper gets the final response after pending interim ones were written.
    async fn end_interim(&mut self, connection: &Connection) {
        let interim = &connection.clock.interim;
        if !self.is_http1 {
            return;
        }
        if interim.is_unwritten() {
            poll_fn(|cx| interim.poll_written(cx)).await;
        }
        self.record.interim_dropped = interim.end();
    }

    /// How an attempt that begins now connects, and its timeouts.
    fn way<'w>(
        &self,
        shared: &'w WorkerContext,
        connection: &'w Connection,
        route: &'w ResolvedRoute,
        target: EndpointTarget<'w>,
    ) -> (ConnectRequest<'w>, InactivityTimeouts)
    where
        'r: 'w,
    {
        let (times, until) = (&self.times, self.times.end_of_try());
        let way = ConnectRequest {
            shared,
            route,
            target,
            http1_only: self.requested.is_some(),
            within: self.choice.patience(self.left),
            until,
            keep: self.retries.as_ref().is_some_and(Retries::are_left),
            interim: self.interim,
            timer: self.is_http1.then_some(&connection.timer),
            private: Some(&connection.private),
            turn: times.server,
            apart: connection.clock.takes_back_often(),
            with_content: self.upload.is_some(),
        };
        (way, InactivityTimeouts { server: times.server, client: times.client, until })
    }
}

fn prepare<'r>(
    shared: &'r Arc<WorkerContext>,
    connection: &'r Connection,
    destination: &'r Destination<'r>,
    request: Request<Incoming>,
    mut record: Box<AccessRecord>,
    in_flight: InFlight,
) -> Result<Box<Exchange<'r>>, Failure> {
    let Destination { route, plan, authority, as_sent, .. } = *destination;
    let times = Deadlines::of(destination);
    let client = connection.client.ip();
    let (mut head, content) = request.into_parts();
    let unexpected = is_unexpected(&head.method, &content);
    let view = ClientView {
        forwarded: &connection.forwarded,
        tls: connection.tls.is_some(),
        version: head.version,
        authority,
        policy: route.forwarded,
        certificate: connection.tls.as_ref().and_then(|tls| tls.client.as_deref()),
        as_sent,
    };
    match plan.admit(client) {
        Ok(visit) => record.visit = visit,
        Err(TooMany) => {
            let (status, flag) = (StatusCode::TOO_MANY_REQUESTS, Flag::RateLimited);
            return Err(Failure { status, flag, record, in_flight });
        }
    }
    let sticky = plan.take_cookie(&mut head.headers);
    let wanted = prepare_request(&mut head.headers, &view);
    destination.act(&mut head.headers, connection);
    let requested = upgrade::requested(&mut head, wanted);
    let hold = expects_continue(&mut head.headers, head.version);
    head.extensions.clear();
    if let Some(spelling) = destination.spelling() {
        spelling.apply(&mut head.extensions);
    }
    let (body, upload) = RequestBody::new(content, &mut record.upload, hold, unexpected);
    let mut request = Request::from_parts(head, body);
    if let Some(upload) = upload.clone().filter(|_| hold) {
        hyper::ext::on_informational(&mut request, move |response| {
            if response.status() == StatusCode::CONTINUE {
                upload.release();
            }
        });
    }
    let is_http1 = view.version != Version::HTTP_2;
    if is_http1 {
        connection.clock.be_patient(times.idle);
    }
    // HTTP/1.0 has no interim responses, and hyper cannot send them over HTTP/2.
    let interim = is_http1.then(|| connection.clock.interim.begin()).filter(|_| view.version == Version::HTTP_11);
    if let Some(route) = record.route.as_ref().filter(|_| !plan.mirrors().is_empty() && requested.is_none())
        && let Some(prepared) = Prepared::of(route)
    {
        let waits = InactivityTimeouts { server: times.server, client: times.client, until: None };
        let totals = prepared.totals(|| shared.log.counters().totals(&record.router, &route.id));
        Mirrors { shared, route, plan, totals, connect: times.connect, waits }.send(&mut request);
    }
    let unmodified = plan.modifies_requests.then(|| Box::new(request.headers().clone()));
    let (key, set_cookie) = plan.key(route, &HashInput { headers: request.headers(), uri: request.uri(), client });
    let mut choice = plan.choose(route, &route.cluster, key, sticky);
    choice.bind(connection.private.bound(plan, route));
    let retries = Retries::of(route, &request).filter(|_| requested.is_none());
    Ok(Box::new(Exchange {
        plan,
        choice,
        request,
        unmodified,
        upload,
        requested,
        left: times.connect,
        times,
        record,
        in_flight,
        is_http1,
        retries,
        interim,
        set_cookie,
    }))
}

/// Whether the client waits for `100 Continue` and can receive it. hyper sends it as soon as the body is read, so
/// reading is deferred until the endpoint has sent its own. Over HTTP/2 hyper sends none.
fn expects_continue(headers: &mut HeaderMap, version: Version) -> bool {
    let expects = headers.get(EXPECT).is_some_and(|expected| expected.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    let can_be_told = expects && version == Version::HTTP_11;
    if expects && !can_be_told {
        headers.remove(EXPECT);
    }
    can_be_told
}
