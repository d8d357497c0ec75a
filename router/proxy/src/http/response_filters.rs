//! Changes of a response after connection-specific fields were removed.

use http::header::STRICT_TRANSPORT_SECURITY;
use http::{HeaderValue, Response, StatusCode};
use hyper::body::Body;
use router_table::table::ResolvedRoute;

use super::actions;
use super::body::ResponseBody;
use super::compress::{MaybeGzip, add_vary, is_compressible};
use super::connection::Connection;
use super::cors::CorsGrant;
use crate::serving_table::ServedRouter;

/// Inputs of the filters.
#[derive(Clone, Copy, Debug)]
pub struct ResponseFilters<'r> {
    /// State of the router.
    pub served: &'r ServedRouter,
    /// The route.
    pub route: &'r ResolvedRoute,
    /// The client's connection.
    pub connection: &'r Connection,
    /// Whether the client accepts gzip and the router may compress.
    pub takes_gzip: bool,
    /// What the rule's CORS filter grants to the request's origin, if any.
    pub sharing: Option<&'r CorsGrant>,
}

impl ResponseFilters<'_> {
    /// Captures the endpoint's fields for the log, then applies in order: the route's actions and the router's, which
    /// has the last word (docs/openshift.md#header-actions), CORS fields, HSTS over TLS, compression, and case
    /// adjustments.
    pub fn response(&self, response: Response<ResponseBody>) -> Response<MaybeGzip<ResponseBody>> {
        let ResponseFilters { served, route, connection, takes_gzip, sharing } = *self;
        let (policy, of_route) = (&*served.table.policy, &*route.policy);
        let (mut head, mut body) = response.into_parts();
        if let Some(record) = body.record() {
            record.capture_response(&policy.log, &head.headers);
        }
        let certificate = connection.certificate();
        for actions in [&of_route.actions, &policy.actions].into_iter().flatten() {
            actions::apply(&actions.response, &mut head.headers, certificate);
        }
        if let Some(sharing) = sharing {
            sharing.set_fields(&mut head.headers);
        }
        let hsts = of_route.hsts.as_deref().filter(|_| connection.tls.is_some());
        if let Some(value) = hsts.and_then(|value| HeaderValue::from_str(value).ok()) {
            head.headers.insert(STRICT_TRANSPORT_SECURITY, value);
        }
        if let Some(spelling) = &served.spelling {
            spelling.apply(&mut head.extensions);
        }
        let is_content = head.status != StatusCode::SWITCHING_PROTOCOLS && !policy.compress.is_empty();
        if !is_content || !is_compressible(&policy.compress, &head, body.size_hint().exact()) {
            return Response::from_parts(head, MaybeGzip::Plain(body));
        }
        let body = if takes_gzip { MaybeGzip::compress(&mut head.headers, body) } else { MaybeGzip::Plain(body) };
        add_vary(&mut head.headers);
        Response::from_parts(head, body)
    }
}
