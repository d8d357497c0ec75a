//! Reads an endpoint's interim responses beside hyper. hyper skips them unless a callback is set, which costs every
//! request although most endpoints send none. A head that httparse (hyper's parser) accepts as interim is passed on;
//! the bytes themselves go to hyper unchanged.

use http::{HeaderName, HeaderValue, Response, StatusCode};
use hyper::ext::ReasonPhrase;

/// First bytes of every HTTP/1.1 interim response.
const BEGINNING: &[u8] = b"HTTP/1.1 1";
/// Longest head in bytes, and most fields of a head; hyper's limits.
const MAX_HEAD: usize = 64 * 1024;
const MAX_FIELDS: usize = 100;

/// Parses an endpoint's bytes from the start of a response to its first final head.
#[derive(Debug, Default)]
pub struct InterimParser {
    /// Received bytes of an incomplete head; `None` after the final head, or after anything else.
    head: Option<Vec<u8>>,
}

enum ParseStep {
    /// The head is incomplete.
    Part,
    /// An interim response, with the length of its head in bytes.
    Interim(Response<()>, usize),
    /// A final response, or anything else.
    Other,
}

impl InterimParser {
    /// Parses received bytes. `is_first`: they begin a response.
    pub fn parse(&mut self, bytes: &[u8], is_first: bool, mut forward: impl FnMut(Response<()>)) {
        if is_first {
            // Most responses are not interim and return below.
            self.head = may_be_interim(bytes).then(Vec::new);
        }
        let Some(head) = &mut self.head else { return };
        if head.is_empty() && !may_be_interim(bytes) {
            self.head = None;
            return;
        }
        head.extend_from_slice(bytes);
        let mut read = 0;
        loop {
            let rest = head.get(read..).unwrap_or_default();
            match step(rest) {
                ParseStep::Interim(response, length) => {
                    forward(response);
                    read += length;
                }
                ParseStep::Part if rest.len() <= MAX_HEAD => break,
                ParseStep::Part | ParseStep::Other => {
                    self.head = None;
                    return;
                }
            }
        }
        head.drain(..read);
    }
}

fn may_be_interim(bytes: &[u8]) -> bool {
    bytes.iter().zip(BEGINNING).all(|(byte, expected)| byte == expected)
}

fn step(bytes: &[u8]) -> ParseStep {
    if !may_be_interim(bytes) {
        return ParseStep::Other;
    }
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return ParseStep::Part,
        Err(_) => return ParseStep::Other,
    };
    match response.code.and_then(|code| StatusCode::from_u16(code).ok()) {
        // 101 ends the response and is not interim (RFC 9110 §15.2.2).
        Some(status) if status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS => {
            let field = |field: &httparse::Header<'_>| {
                Some((HeaderName::from_bytes(field.name.as_bytes()).ok()?, HeaderValue::from_bytes(field.value).ok()?))
            };
            let mut interim = Response::new(());
            *interim.status_mut() = status;
            if let Some(Ok(phrase)) = response.reason.map(|reason| ReasonPhrase::try_from(reason.as_bytes())) {
                interim.extensions_mut().insert(phrase);
            }
            for (name, value) in response.headers.iter().filter_map(field) {
                interim.headers_mut().append(name, value);
            }
            ParseStep::Interim(interim, length)
        }
        _ => ParseStep::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &[u8] =
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nLink: </b>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n\
                            HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\nHTTP/1.1 103 Not a head\r\n\r\nHTTP";

    /// The interim responses found in a response that arrives in these parts.
    fn forwarded(tap: &mut InterimParser, parts: &[&[u8]]) -> Vec<String> {
        let mut told = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            tap.parse(part, number == 0, |interim| {
                let values: Vec<&str> = interim.headers().values().map(|value| value.to_str().unwrap()).collect();
                told.push(format!("{} {}", interim.status().as_u16(), values.join(" ")));
            });
        }
        told
    }

    #[test]
    fn heads_are_found_however_they_are_cut() {
        let expected = ["103 </a> </b>", "102 "];
        let mut tap = InterimParser::default();
        for cut in 1..ANSWER.len() {
            let (first, rest) = ANSWER.split_at(cut);
            assert_eq!(forwarded(&mut tap, &[first, rest]), expected, "cut at {cut}");
            assert!(tap.head.is_none());
        }
        let bytes: Vec<&[u8]> = ANSWER.chunks(1).collect();
        assert_eq!(forwarded(&mut tap, &bytes), expected);
    }

    #[test]
    fn nothing_else_is_forwarded() {
        let mut tap = InterimParser::default();
        let long = format!("HTTP/1.1 103 x\r\nLink: {}", "x".repeat(MAX_HEAD));
        for answer in [
            "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 103 x\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\n\r\nHTTP/1.1 103 x\r\n\r\n",
            "HTTP/1.0 103 x\r\n\r\n",
            "HTTP/1.1 103 x\r\n bad\0\r\n\r\nHTTP/1.1 103 x\r\n\r\n",
            "HTTP/1.1 1",
            &long,
        ] {
            assert_eq!(forwarded(&mut tap, &[answer.as_bytes()]), [""; 0], "{}", &answer[..20.min(answer.len())]);
        }
        // The next response starts with a clean state.
        assert_eq!(forwarded(&mut tap, &[ANSWER]).len(), 2);
    }
}
