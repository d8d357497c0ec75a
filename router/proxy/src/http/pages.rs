//! Pages for the router's own responses.

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, LOCATION, PRAGMA};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use hyper::ext::ReasonPhrase;
use router_table::policy::error_page::ErrorPage;

/// Field with the cause of an error, if enabled.
pub const CAUSE: HeaderName = HeaderName::from_static("x-sluice-cause");

/// Title and text for a status.
const fn text(status: StatusCode) -> (&'static str, &'static str) {
    match status.as_u16() {
        400 => ("Bad request", "The request is not valid."),
        403 => ("Forbidden", "You may not use this application."),
        405 => ("Method not allowed", "This method is not allowed here."),
        404 => ("Not found", "There is nothing at this address."),
        413 => ("Content too large", "The request is too long."),
        414 => ("URI too long", "The address of the request is too long."),
        429 => ("Too many requests", "There were too many requests from your address. Try again later."),
        408 => ("Request timeout", "The request did not come in time."),
        431 => ("Request header fields too large", "The request has too many or too large header fields."),
        500 => ("Internal server error", "The application is not set up correctly at this address."),
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

/// Format of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFormat {
    /// HTML, if the client accepts it or has no `Accept`.
    Html,
    /// Plain text otherwise.
    Text,
}

impl PageFormat {
    /// The format that a request accepts: text if `Accept` is present and does not include HTML.
    pub fn wanted(request: &HeaderMap) -> Self {
        let mut types = request.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).peekable();
        let html = types.peek().is_none()
            || types.any(|value| value.contains("text/html") || value.contains("*/*") || value.contains("text/*"));
        if html { PageFormat::Html } else { PageFormat::Text }
    }
}

/// An error page.
pub fn error(status: StatusCode, kind: PageFormat) -> Response<Bytes> {
    let (title, sentence) = text(status);
    let (media_type, body) = match kind {
        PageFormat::Html => {
            let page = format!(
                "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{title}</title></head>\n\
                 <body><h1>{title}</h1><p>{sentence}</p></body>\n</html>\n"
            );
            ("text/html; charset=utf-8", page)
        }
        PageFormat::Text => ("text/plain; charset=utf-8", format!("{title}. {sentence}\n")),
    };
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, max-age=0, no-cache, no-store"));
    headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
    response
}

/// A custom page for `status`. The page may set another status.
pub fn custom(page: &ErrorPage, status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(page.body.clone());
    *response.status_mut() = StatusCode::from_u16(page.status).unwrap_or(status);
    if let Ok(phrase) = ReasonPhrase::try_from(page.reason.as_bytes()) {
        response.extensions_mut().insert(phrase);
    }
    for (name, value) in &page.fields {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(&**name), HeaderValue::from_bytes(value)) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// Whether the router's own response with this status ends an HTTP/1 connection: the start of the next request is
/// uncertain, or the client should use another connection.
pub fn ends_connection(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 408 | 413 | 414 | 421 | 431 | 501 | 505)
}

/// A redirect; `None` if the location is not a valid field value.
pub fn redirect(status: StatusCode, location: String) -> Option<Response<Bytes>> {
    let mut response = empty(status);
    response.headers_mut().insert(LOCATION, HeaderValue::try_from(location).ok()?);
    Some(response)
}

/// A response without content.
pub fn empty(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests;
