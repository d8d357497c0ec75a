//! The router's own responses to gRPC requests. A gRPC client reads the outcome from `grpc-status`, so an error is a
//! single HEADERS frame with status 200 and that field ("Trailers-Only", gRPC over HTTP/2).

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use router_table::decide::{grpc_has_words_for, type_is_grpc};

const GRPC: &str = "application/grpc";
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Whether this is a gRPC request.
pub fn is_grpc(request: &HeaderMap) -> bool {
    request.get(CONTENT_TYPE).is_some_and(|kind| type_is_grpc(kind.as_bytes()))
}

/// The gRPC error for a status; `None` if it has no gRPC equivalent.
pub fn error(status: StatusCode) -> Option<Response<Bytes>> {
    if !grpc_has_words_for(status.as_u16()) {
        return None;
    }
    let mut response = Response::new(Bytes::new());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(GRPC));
    headers.insert(GRPC_STATUS, HeaderValue::from(code(status)));
    if let Some(reason) = status.canonical_reason() {
        headers.insert(GRPC_MESSAGE, HeaderValue::from_static(reason));
    }
    Some(response)
}

/// The mapping of gRPC ("HTTP to gRPC Status Code Mapping") and Envoy, with two exceptions. 504: the endpoint may have
/// processed the request, and clients repeat requests after UNAVAILABLE. 500: a rule without a usable backend
/// (GRPCRoute: "UNAVAILABLE").
fn code(status: StatusCode) -> u16 {
    match status.as_u16() {
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 500 | 502 | 503 => 14,
        504 => 4,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_recognised_by_their_content_type() {
        let is = |kind| is_grpc(&HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]));
        for kind in ["application/grpc", "application/grpc+proto", "Application/gRPC; charset=utf-8"] {
            assert!(is(kind), "{kind}");
        }
        for kind in ["application/grpc-web", "application/grpcx", "application/json", "text/html", ""] {
            assert!(!is(kind), "{kind}");
        }
        assert!(!is_grpc(&HeaderMap::new()));
    }

    #[test]
    fn answers_have_no_body_and_say_why() {
        let answer = error(StatusCode::SERVICE_UNAVAILABLE).unwrap();
        assert_eq!((answer.status(), &answer.headers()["grpc-status"]), (StatusCode::OK, &HeaderValue::from(14)));
        assert_eq!(answer.headers()["grpc-message"], "Service Unavailable");
        assert!(answer.body().is_empty());
        assert_eq!(error(StatusCode::GATEWAY_TIMEOUT).unwrap().headers()["grpc-status"], "4");
        assert_eq!(error(StatusCode::NOT_FOUND).unwrap().headers()["grpc-status"], "12");
        assert_eq!(error(StatusCode::INTERNAL_SERVER_ERROR).unwrap().headers()["grpc-status"], "14");
        assert!(error(StatusCode::MISDIRECTED_REQUEST).is_none());
    }
}
