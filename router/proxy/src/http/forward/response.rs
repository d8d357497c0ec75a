//! Builds the client's response from an endpoint's.

use std::sync::Arc;

use http::header::CONNECTION;
use http::{HeaderValue, Response, StatusCode, Version};
use router_access_log::Flag;
use tokio::time::Instant;

use super::super::body::{ResponseBody, UpstreamBody};
use super::super::headers::prepare_response;
use super::super::reason;
use super::super::upgrade::{self, RequestedUpgrade};
use super::super::upload::UploadState;
use crate::access_record::AccessRecord;
use crate::connection_state::InFlight;
use crate::context::WorkerContext;
use crate::http::deadlines::Deadlines;
use crate::upstream::bucket::Lease;
use crate::upstream::request_sender::IncomingBody;

/// An endpoint's response, with what is needed of its request.
pub struct Answered {
    /// The connection that it came on.
    pub lease: Lease,
    /// Head and content.
    pub response: Response<IncomingBody>,
    /// The request's content, if any.
    pub upload: Option<Arc<UploadState>>,
    /// Timeouts.
    pub times: Deadlines,
    /// Deadline of the response.
    pub until: Option<Instant>,
    /// Whether the client uses HTTP/1, where a response may be the last of its connection.
    pub is_http1: bool,
}

/// The client's response, before the route's filters. A switch of protocols was checked before
/// ([`upgrade::is_fitting`]).
pub fn answer(
    shared: &Arc<WorkerContext>,
    answered: Answered,
    requested: Option<RequestedUpgrade>,
    mut record: Box<AccessRecord>,
    in_flight: InFlight,
) -> Response<ResponseBody> {
    let Answered { lease, response, upload, times, until, is_http1 } = answered;
    if let Some(requested) = requested {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let tunnel = times.of_tunnel(record.route.as_deref());
            return upgrade::switch(shared, response, requested, tunnel, record, in_flight);
        }
        requested.declined(shared);
    }
    record.status = Some(response.status());
    record.flag = Flag::Fine;
    let (mut head, body) = response.into_parts();
    prepare_response(&mut head.headers);
    if let Some(upload) = &upload {
        upload.answered();
        if is_http1 && upload.is_last() {
            head.headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
    head.version = Version::HTTP_11;
    reason::keep(head.status, &mut head.extensions);
    let body = UpstreamBody { body, lease: Some(lease), upload, limit: times.server, until, wait: None, since: None };
    Response::from_parts(head, ResponseBody::upstream(body, record, in_flight))
}
