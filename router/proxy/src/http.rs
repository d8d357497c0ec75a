//! Handles a request: selects its route, forwards or answers it, and returns the response.

pub mod actions;
pub mod body;
pub mod compress;
pub mod connection;
pub mod cors;
pub mod deadlines;
pub mod decide;
pub mod destination;
mod drain_body;
mod escape;
pub mod forward;
pub mod grpc;
pub mod header_case;
pub mod headers;
pub mod interim;
mod join_values;
pub mod local_reply;
pub mod message_framing;
pub mod mirror;
pub mod modify;
pub mod pages;
pub mod path_rewrite;
pub mod reason;
pub mod request_id;
pub mod request_view;
pub mod response_filters;
mod retry;
pub mod serve;
pub mod target;
pub mod tee;
pub mod upgrade;
pub mod upload;
pub mod upload_error;

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, Version, request};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use router_access_log::{Flag, ServedBy};
use router_table::location;
use router_table::location::{RedirectFrom, to_https};
use router_table::rule::{Action, Rule};
use router_table::table::ResolvedRoute;

use super::serving_table::ServedRouter;
use crate::access_record::AccessRecord;
use crate::connection_state::InFlight;
use crate::context::WorkerContext;
use crate::http::local_reply::LocalReply;
use crate::http::response_filters::ResponseFilters;
use body::ResponseBody;
use compress::{MaybeGzip, accepts_gzip};
use connection::Connection;
use cors::CorsGrant;
use decide::{RequestAction, decide};
use destination::Destination;
use forward::Failure;

/// A client connection and the proxy's state. One allocation, because each request increments and decrements its
/// reference count.
#[derive(Debug)]
pub struct ConnectionContext {
    /// State of the proxy.
    pub shared: Arc<WorkerContext>,
    /// The connection.
    pub connection: Connection,
}

/// Handles a request with the newest routing table, so that changes apply to existing connections, too. Everything that
/// needs no waiting is done before the future is created, because the future is moved around and must be small.
pub fn handle(
    served: Arc<ConnectionContext>,
    request: Request<Incoming>,
) -> impl Future<Output = Result<Response<MaybeGzip<ResponseBody>>, Infallible>> {
    let ConnectionContext { shared, connection } = &*served;
    let (head, content) = request.into_parts();
    let is_http2 = head.version == Version::HTTP_2;
    let mut content = Some(content);
    // Only if tracing is enabled, because hardly any request needs it.
    let upgrade = head.extensions.get::<OnUpgrade>().filter(|_| !is_http2).cloned();
    let step = begin(shared, connection, head, &mut content);
    if let (RequestStep::Answered(_), Some(client)) = (&step, upgrade) {
        upgrade::declined(client, shared);
    }
    if let Some(content) = content.filter(|_| is_http2) {
        drain_body::drain(content);
    }
    async move {
        let response = match step {
            RequestStep::Answered(response) => (*response).map(MaybeGzip::Plain),
            RequestStep::Forward(ahead) => ahead.go(&served).await,
        };
        Ok(response)
    }
}

/// How far a request got without waiting. Boxed, because it is moved as often as the future.
enum RequestStep {
    /// The router's own response.
    Answered(Box<Response<ResponseBody>>),
    /// To be forwarded to an endpoint.
    Forward(Box<PendingForward>),
}

impl RequestStep {
    fn answered(response: Response<ResponseBody>) -> Self {
        RequestStep::Answered(Box::new(response))
    }
}

/// A request to be forwarded to an endpoint.
struct PendingForward {
    served: Arc<ServedRouter>,
    route: Arc<ResolvedRoute>,
    authority: HeaderValue,
    as_sent: bool,
    own: LocalReply,
    takes_gzip: bool,
    sharing: Option<Box<CorsGrant>>,
    request: Request<Incoming>,
    record: Box<AccessRecord>,
    in_flight: InFlight,
}

/// Takes the content of a request to be forwarded.
fn begin(
    shared: &WorkerContext,
    connection: &Connection,
    mut head: request::Parts,
    content: &mut Option<Incoming>,
) -> RequestStep {
    let in_flight = connection.clock.request();
    let served = shared.snapshot.load().routers.get(&connection.router).cloned();
    let Connection { router, client, listener, .. } = connection;
    // Boxed, because it is passed on until the end of the response.
    let mut record = Box::new(AccessRecord::new(router.clone(), *client, *listener, ServedBy::Proxy, &shared.log));
    record.tls = connection.tls.is_some();
    let own = LocalReply::to(&head, content.as_ref(), shared.config.show_cause);
    let policy = served.as_ref().map(|served| &*served.table.policy);
    if let Some((status, is_empty)) = connection.clock.refused() {
        // The stream rejected the client's input; this request is a stand-in.
        let flag = match status {
            _ if is_empty => Flag::EmptyRequest,
            StatusCode::REQUEST_TIMEOUT => Flag::ClientTimeout,
            _ => Flag::BadRequest,
        };
        if is_empty && policy.is_some_and(|policy| policy.log.ignore_empty) {
            record.discard_line();
        }
        return RequestStep::answered(own.refuse(policy, status, flag, record, in_flight));
    }
    if record.is_wanted() {
        record.method = Some((head.method.clone(), head.version));
        record.path = Some(head.uri.path().to_owned());
    }
    // The router was removed from the table after the client connected.
    let Some(served) = served else {
        return RequestStep::answered(own.refuse(
            None,
            StatusCode::SERVICE_UNAVAILABLE,
            Flag::NoRouter,
            record,
            in_flight,
        ));
    };
    let policy = &*served.table.policy;
    let (status, flag) = match decide(&served, connection, &mut head, &mut record) {
        RequestAction::Refuse { status, flag, route } => {
            record.route = route;
            (status, flag)
        }
        RequestAction::Router => {
            return RequestStep::answered(own.give(pages::empty(StatusCode::OK), Flag::Fine, record, in_flight));
        }
        RequestAction::Redirect { route, host, https_port } => {
            record.route = Some(route);
            let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
            match pages::redirect(StatusCode::FOUND, to_https(host.as_str(), https_port, path)) {
                Some(mut redirect) => {
                    redirect.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
                    return RequestStep::answered(own.give(redirect, Flag::Fine, record, in_flight));
                }
                None => (StatusCode::BAD_REQUEST, Flag::BadRequest),
            }
        }
        RequestAction::RuleRedirect { rule, authority } => {
            record.route = Some(Arc::clone(&rule.route));
            let from = RedirectFrom {
                tls: connection.tls.is_some(),
                port: listener.port(),
                https_port: served.table.https_port,
                authority: authority.to_str().unwrap_or_default(),
                path: head.uri.path(),
                query: head.uri.query(),
            };
            match redirected(&rule, &from, &head.headers) {
                Some(redirect) => return RequestStep::answered(own.give(redirect, Flag::Fine, record, in_flight)),
                None => (StatusCode::INTERNAL_SERVER_ERROR, Flag::RuleAnswer),
            }
        }
        RequestAction::Preflight(rule) => {
            record.route = Some(Arc::clone(&rule.route));
            match sharing(&rule.route, &head.headers) {
                Some(sharing) => {
                    let answer = sharing.preflight(&head.headers);
                    return RequestStep::answered(own.give(answer, Flag::Fine, record, in_flight));
                }
                None => (StatusCode::INTERNAL_SERVER_ERROR, Flag::RuleAnswer),
            }
        }
        RequestAction::Forward { route, rule, authority, as_sent } => {
            record.route = Some(Arc::clone(&route));
            record.capture_request(&policy.log, &head.headers);
            let takes_gzip = !policy.compress.is_empty() && accepts_gzip(&head);
            let sharing = sharing(&route, &head.headers).map(Box::new);
            if let Some(uri) = forwarded(&mut head.uri, &route, rule.as_deref())
                && let Some(content) = content.take()
            {
                head.uri = uri;
                let request = Request::from_parts(head, content);
                let ahead = PendingForward {
                    served,
                    route,
                    authority,
                    as_sent,
                    own,
                    takes_gzip,
                    sharing,
                    request,
                    record,
                    in_flight,
                };
                return RequestStep::Forward(Box::new(ahead));
            }
            (StatusCode::BAD_REQUEST, Flag::BadRequest)
        }
    };
    let route = record.route.clone();
    let mut answer = own.refuse(Some(policy), status, flag, record, in_flight);
    if let Some(rule) = route.as_ref().and_then(|route| route.rule.as_deref()).filter(|_| flag == Flag::RuleAnswer) {
        modify::modify(&rule.response_headers, answer.headers_mut());
    }
    let sharing = route.as_deref().and_then(|route| sharing(route, &head.headers));
    RequestStep::answered(shared_with(sharing.as_ref(), answer))
}

/// Adds CORS fields to the router's own response: otherwise a page of another origin could not read the error.
fn shared_with(sharing: Option<&CorsGrant>, mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    if let Some(sharing) = sharing {
        sharing.set_fields(response.headers_mut());
    }
    response
}

impl PendingForward {
    async fn go(self: Box<Self>, of: &ConnectionContext) -> Response<MaybeGzip<ResponseBody>> {
        let ConnectionContext { shared, connection } = of;
        let PendingForward { served, route, authority, as_sent, own, takes_gzip, sharing, request, record, in_flight } =
            *self;
        let plan = shared.balancer.plan(&route);
        let destination = Destination { route: &route, plan: &plan, served: &served, authority: &authority, as_sent };
        match forward::forward(shared, connection, &destination, request, record, in_flight).await {
            Ok(response) => {
                let sharing = sharing.as_deref();
                ResponseFilters { served: &served, route: &route, connection, takes_gzip, sharing }.response(response)
            }
            Err(Failure { mut status, mut flag, record, in_flight }) => {
                if connection.clock.body_stalled() {
                    (status, flag) = (StatusCode::REQUEST_TIMEOUT, Flag::ClientTimeout);
                }
                let refused = own.refuse(Some(&served.table.policy), status, flag, record, in_flight);
                shared_with(sharing.as_deref(), refused).map(MaybeGzip::Plain)
            }
        }
    }
}

/// What the rule's CORS filter grants to the request's origin, if any.
fn sharing(route: &ResolvedRoute, request: &HeaderMap) -> Option<CorsGrant> {
    let cors = route.rule.as_ref()?.cors.as_ref()?;
    Some(CorsGrant::with(cors, request))
}

/// A rule's redirect, with its response filters.
fn redirected(rule: &Rule, from: &RedirectFrom<'_>, request: &HeaderMap) -> Option<Response<Bytes>> {
    let policy = rule.route.rule.as_ref()?;
    let Action::Redirect(to) = &policy.action else { return None };
    let status = StatusCode::from_u16(to.status).ok()?;
    let mut response = pages::redirect(status, location::of_rule(to, &rule.prefix, from))?;
    modify::modify(&policy.response_headers, response.headers_mut());
    if let Some(sharing) = sharing(&rule.route, request) {
        sharing.set_fields(response.headers_mut());
    }
    Some(response)
}

/// The URI to forward; `None` if a rewritten path is invalid.
fn forwarded(uri: &mut Uri, route: &ResolvedRoute, rule: Option<&Rule>) -> Option<Uri> {
    if let Some(target) = &route.policy.rewrite_target {
        return path_rewrite::rewritten(uri, target.rewrite(route.path(), uri.path()));
    }
    let change = route.rule.as_ref().and_then(|policy| policy.rewrite_path.as_ref());
    match change.zip(rule) {
        Some((change, rule)) => path_rewrite::rewritten(uri, location::changed(change, &rule.prefix, uri.path())),
        None => Some(std::mem::take(uri)),
    }
}
