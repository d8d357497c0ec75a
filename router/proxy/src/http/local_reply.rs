//! The router's own responses.

use bytes::Bytes;
use http::header::{CONNECTION, STRICT_TRANSPORT_SECURITY};
use http::{HeaderValue, Response, StatusCode, Version, request};
use hyper::body::Incoming;
use router_access_log::Flag;
use router_table::policy::RouterPolicy;

use super::body::ResponseBody;
use super::grpc;
use super::pages::{self, PageFormat};
use super::reason;
use super::upload::is_unexpected;
use crate::access_record::AccessRecord;
use crate::connection_state::InFlight;

/// How to write a response for one request.
#[derive(Clone, Copy, Debug)]
pub struct LocalReply {
    kind: PageFormat,
    grpc: bool,
    version: Version,
    is_last: bool,
    show_cause: bool,
}

impl LocalReply {
    /// For a request with this head and content.
    pub fn to(head: &request::Parts, content: Option<&Incoming>, show_cause: bool) -> Self {
        let (kind, grpc) = (PageFormat::wanted(&head.headers), grpc::is_grpc(&head.headers));
        let is_last = content.is_some_and(|content| is_unexpected(&head.method, content));
        LocalReply { kind, grpc, version: head.version, is_last, show_cause }
    }

    /// An error page: the router's custom page for this status, if it has one.
    pub fn refuse(
        &self,
        policy: Option<&RouterPolicy>,
        status: StatusCode,
        flag: Flag,
        record: Box<AccessRecord>,
        in_flight: InFlight,
    ) -> Response<ResponseBody> {
        let own = policy.and_then(|policy| policy.pages.of(status.as_u16()));
        let page = || own.map_or_else(|| pages::error(status, self.kind), |page| pages::custom(page, status));
        let answer = if self.grpc { grpc::error(status).unwrap_or_else(page) } else { page() };
        self.give(answer, flag, record, in_flight)
    }

    /// A response with the fields that all of the router's own responses have.
    pub fn give(
        &self,
        mut response: Response<Bytes>,
        flag: Flag,
        mut record: Box<AccessRecord>,
        in_flight: InFlight,
    ) -> Response<ResponseBody> {
        let status = response.status();
        reason::complete(status, response.extensions_mut());
        let headers = response.headers_mut();
        // HTTP/2 has no connection-specific fields (RFC 9113 §8.2.2).
        if self.version != Version::HTTP_2 && (self.is_last || pages::ends_connection(status)) {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if self.show_cause && flag != Flag::Fine {
            headers.insert(pages::CAUSE, HeaderValue::from_static(flag.cause()));
        }
        let hsts = record.route.as_ref().filter(|_| record.tls).and_then(|route| route.policy.hsts.as_deref());
        if let Some(value) = hsts.and_then(|value| HeaderValue::from_str(value).ok()) {
            headers.insert(STRICT_TRANSPORT_SECURITY, value);
        }
        record.flag = flag;
        record.status = Some(status);
        response.map(|content| ResponseBody::own(content, record, in_flight))
    }
}
