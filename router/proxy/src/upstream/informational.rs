//! Interim responses of an endpoint, read beside hyper: hyper skips them, unless it is asked to tell of each, which costs
//! every request what most endpoints never send. What httparse, which hyper reads with, takes for the head of an interim
//! response is told; the bytes themselves go on to hyper as they are.

use http::{HeaderName, HeaderValue, Response, StatusCode};
use hyper::ext::ReasonPhrase;

/// How a response begins that may be interim.
const BEGINNING: &[u8] = b"HTTP/1.1 1";
/// Longest head that is read, in bytes, and most fields of it: hyper takes no more.
const MAX_HEAD: usize = 64 * 1024;
const MAX_FIELDS: usize = 100;

/// Reads what an endpoint sends from the beginning of its answer to the first head that is not interim.
#[derive(Debug, Default)]
pub struct Tap {
    /// What has come of a head; `None`: the response has come, or something else.
    head: Option<Vec<u8>>,
}

enum Step {
    /// More bytes are needed.
    Part,
    /// An interim response whose head has so many bytes.
    Interim(Response<()>, usize),
    /// Anything else.
    Other,
}

impl Tap {
    /// These bytes have come. `is_first`: they are the first of an answer.
    pub fn hear(&mut self, bytes: &[u8], is_first: bool, mut tell: impl FnMut(Response<()>)) {
        if is_first {
            // Most answers end here.
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
                Step::Interim(response, length) => {
                    tell(response);
                    read += length;
                }
                Step::Part if rest.len() <= MAX_HEAD => break,
                Step::Part | Step::Other => {
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

fn step(bytes: &[u8]) -> Step {
    if !may_be_interim(bytes) {
        return Step::Other;
    }
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Step::Part,
        Err(_) => return Step::Other,
    };
    match response.code.and_then(|code| StatusCode::from_u16(code).ok()) {
        // A switch is the end of the answer, and no interim response (RFC 9110 §15.2.2).
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
            Step::Interim(interim, length)
        }
        _ => Step::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &[u8] =
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nLink: </b>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n\
                            HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\nHTTP/1.1 103 Not a head\r\n\r\nHTTP";

    /// What is told of an answer that comes in these parts.
    fn told(tap: &mut Tap, parts: &[&[u8]]) -> Vec<String> {
        let mut told = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            tap.hear(part, number == 0, |interim| {
                let values: Vec<&str> = interim.headers().values().map(|value| value.to_str().unwrap()).collect();
                told.push(format!("{} {}", interim.status().as_u16(), values.join(" ")));
            });
        }
        told
    }

    #[test]
    fn heads_are_found_however_they_are_cut() {
        let expected = ["103 </a> </b>", "102 "];
        let mut tap = Tap::default();
        for cut in 1..ANSWER.len() {
            let (first, rest) = ANSWER.split_at(cut);
            assert_eq!(told(&mut tap, &[first, rest]), expected, "cut at {cut}");
            assert!(tap.head.is_none());
        }
        let bytes: Vec<&[u8]> = ANSWER.chunks(1).collect();
        assert_eq!(told(&mut tap, &bytes), expected);
    }

    #[test]
    fn nothing_else_is_told() {
        let mut tap = Tap::default();
        let long = format!("HTTP/1.1 103 x\r\nLink: {}", "x".repeat(MAX_HEAD));
        for answer in [
            "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 103 x\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\n\r\nHTTP/1.1 103 x\r\n\r\n",
            "HTTP/1.0 103 x\r\n\r\n",
            "HTTP/1.1 103 x\r\n bad\0\r\n\r\nHTTP/1.1 103 x\r\n\r\n",
            "HTTP/1.1 1",
            &long,
        ] {
            assert_eq!(told(&mut tap, &[answer.as_bytes()]), [""; 0], "{}", &answer[..20.min(answer.len())]);
        }
        // The next answer begins anew.
        assert_eq!(told(&mut tap, &[ANSWER]).len(), 2);
    }
}
