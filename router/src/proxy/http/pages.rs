//! Responses that the router makes itself.

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, LOCATION, PRAGMA};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use crate::proxy::access::Flag;

const CAUSE: HeaderName = HeaderName::from_static("x-sluice-cause");

/// Title and sentence of a status.
const fn text(status: StatusCode) -> (&'static str, &'static str) {
    match status.as_u16() {
        400 => ("Bad request", "The request is not valid."),
        403 => ("Forbidden", "Your address may not use this application."),
        405 => ("Method not allowed", "This method is not allowed here."),
        408 => ("Request timeout", "The request did not come in time."),
        431 => ("Request header fields too large", "The request has too many or too large header fields."),
        501 => ("Not implemented", "The request has a transfer coding that is not known."),
        505 => ("HTTP version not supported", "The request has a version of HTTP that is not served."),
        421 => ("Misdirected request", "This host is served on another connection."),
        502 => ("Bad gateway", "The application gave no valid answer."),
        504 => ("Gateway timeout", "The application did not answer in time."),
        _ => (
            "Application is not available",
            "The application is currently not serving requests at this address. It may not have been started, or is \
             still starting.",
        ),
    }
}

/// An error page: HTML for those who accept it, plain text for others. With `show_cause` the response names what
/// `flag` stands for in `x-sluice-cause`.
pub fn error(status: StatusCode, flag: Flag, request: &HeaderMap, show_cause: bool) -> Response<Bytes> {
    let (title, sentence) = text(status);
    let (kind, body) = if accepts_html(request) {
        let page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{title}</title></head>\n\
             <body><h1>{title}</h1><p>{sentence}</p></body>\n</html>\n"
        );
        ("text/html; charset=utf-8", page)
    } else {
        ("text/plain; charset=utf-8", format!("{title}. {sentence}\n"))
    };
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, max-age=0, no-cache, no-store"));
    headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
    if matches!(status.as_u16(), 400 | 408 | 431 | 501 | 505) {
        // Where the next request would begin cannot be relied on.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if show_cause {
        headers.insert(CAUSE, HeaderValue::from_static(flag.cause()));
    }
    response
}

/// 302 to the same path under https; `https_port` when the client is to be told of one.
pub fn redirect(host: &str, https_port: Option<u16>, path_and_query: &str) -> Option<Response<Bytes>> {
    let port = https_port.filter(|port| *port != 443).map(|port| format!(":{port}")).unwrap_or_default();
    let location = HeaderValue::from_str(&format!("https://{host}{port}{path_and_query}")).ok()?;
    let mut response = empty(StatusCode::FOUND);
    response.headers_mut().insert(LOCATION, location);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Some(response)
}

/// A response without content.
pub fn empty(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response
}

/// A client that names its types and HTML is not among them gets plain text.
fn accepts_html(request: &HeaderMap) -> bool {
    let mut types = request.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).peekable();
    types.peek().is_none()
        || types.any(|value| value.contains("text/html") || value.contains("*/*") || value.contains("text/*"))
}

#[cfg(test)]
mod tests;
