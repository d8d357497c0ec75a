//! Interim responses of an endpoint as they are sent to the client.

use http::header::{CONTENT_LENGTH, TRAILER};
use http::response::Parts;
use http::{HeaderMap, HeaderName, Response};

use super::headers::prepare_response;
use super::reason;
use crate::http::header_case::HeaderCase;

/// A head in HTTP/1.1 syntax. Without connection-specific fields, and without those that the response's actions (`act`)
/// remove or overwrite; fields that the actions add appear in the final response.
pub fn head(response: Response<()>, spelling: Option<&HeaderCase>, act: impl FnOnce(&mut HeaderMap)) -> Vec<u8> {
    let (Parts { status, mut headers, extensions, .. }, ()) = response.into_parts();
    prepare_response(&mut headers);
    // Interim responses have no content (RFC 9110 §8.6).
    for name in [CONTENT_LENGTH, TRAILER] {
        headers.remove(name);
    }
    let sent = headers.clone();
    act(&mut headers);
    let added: Vec<HeaderName> = headers.keys().filter(|name| !sent.contains_key(*name)).cloned().collect();
    for name in added {
        headers.remove(name);
    }
    let mut bytes = format!("HTTP/1.1 {} ", status.as_str()).into_bytes();
    bytes.extend_from_slice(reason::of(status, &extensions));
    bytes.extend_from_slice(b"\r\n");
    for (name, value) in &headers {
        let name = spelling.and_then(|spelling| spelling.name(name)).unwrap_or(name.as_str());
        for part in [name.as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            bytes.extend_from_slice(part);
        }
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, StatusCode};
    use hyper::ext::ReasonPhrase;

    use super::*;

    fn hints() -> Response<()> {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::EARLY_HINTS;
        for (name, value) in [
            ("connection", "x-own, close"),
            ("x-own", "1"),
            ("keep-alive", "timeout=5"),
            ("transfer-encoding", "chunked"),
            ("content-length", "5"),
            ("trailer", "x"),
            ("link", "</a.css>; rel=preload"),
            ("link", "</b.css>; rel=preload"),
            ("x-secret", "s"),
            ("x-odd", "\u{e9}"),
        ] {
            response.headers_mut().append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        response
    }

    #[test]
    fn a_head_has_no_fields_of_the_endpoints_connection_and_none_that_are_taken_out() {
        let act = |headers: &mut HeaderMap| {
            headers.remove("x-secret");
            headers.insert("x-odd", HeaderValue::from_static("even"));
            headers.insert("x-new", HeaderValue::from_static("not yet"));
        };
        let written = String::from_utf8(head(hints(), None, act)).unwrap();
        let links = "link: </a.css>; rel=preload\r\nlink: </b.css>; rel=preload\r\n";
        assert_eq!(written, format!("HTTP/1.1 103 Early Hints\r\n{links}x-odd: even\r\n\r\n"));
    }

    #[test]
    fn names_are_spelled_as_in_responses() {
        let spelling = HeaderCase::of(&["LINK".into(), "X-Other".into()]).unwrap();
        let response = Response::builder().status(199).header("link", "</a>").body(()).unwrap();
        let written = head(response, Some(&spelling), |_| ());
        assert_eq!(String::from_utf8(written).unwrap(), "HTTP/1.1 199 \r\nLINK: </a>\r\n\r\n");
    }

    #[test]
    fn a_phrase_is_the_endpoints() {
        for phrase in ["Wait a moment", ""] {
            let mut response = Response::builder().status(102).body(()).unwrap();
            response.extensions_mut().insert(ReasonPhrase::try_from(phrase.to_owned()).unwrap());
            let written = String::from_utf8(head(response, None, |_| ())).unwrap();
            assert_eq!(written, format!("HTTP/1.1 102 {phrase}\r\n\r\n"));
        }
    }
}
