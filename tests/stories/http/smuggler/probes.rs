//! Requests whose end parsers may interpret differently, and the acceptable results.

use anyhow::{Context, Result, bail, ensure};

use super::origins::host;

/// Where a parser that uses `Content-Length` and one that uses `Transfer-Encoding` see the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// From the tool: a parser that receives the first four bytes waits for more chunks.
    ShortLength,
    /// From the tool: a parser that decodes chunks waits for a sixth byte.
    ShortChunks,
    /// A request after the last chunk, within the length.
    HiddenBehindChunks,
    /// A request in a chunk, beyond the length.
    HiddenInChunk,
}

pub const SHAPES: [Shape; 4] =
    [Shape::ShortLength, Shape::ShortChunks, Shape::HiddenBehindChunks, Shape::HiddenInChunk];

/// Shapes with a hidden request for another host.
pub const HIDDEN: [Shape; 2] = [Shape::HiddenBehindChunks, Shape::HiddenInChunk];

/// A request to try, followed by a well-formed one.
pub struct Probe {
    pub number: usize,
    /// The origin of the request.
    pub origin: &'static str,
    /// The origin of the hidden request, if there is one.
    pub victim: &'static str,
    pub shape: Shape,
    /// Lines that resemble `Transfer-Encoding: chunked`.
    pub line: Vec<u8>,
}

/// A request of a probe that an origin may receive, or that may be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// With the odd line.
    Odd,
    /// The hidden request.
    Hidden,
    /// The request after it, on the same connection.
    After,
    /// The request on another connection.
    Later,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Odd, Kind::Hidden, Kind::After, Kind::Later];

    /// The prefix of its target.
    fn target(self) -> &'static str {
        match self {
            Kind::Odd => "/odd-",
            Kind::Hidden => "/hidden-",
            Kind::After => "/after-",
            Kind::Later => "/later-",
        }
    }

    pub fn method(self) -> &'static str {
        if self == Kind::Odd { "POST" } else { "GET" }
    }

    /// The kind and number of a target.
    pub fn of(target: &str) -> Option<(Kind, usize)> {
        Kind::ALL.into_iter().find_map(|kind| Some((kind, target.strip_prefix(kind.target())?.parse().ok()?)))
    }
}

impl Probe {
    /// The bytes in parts: the request by its length, and the rest.
    pub fn parts(&self) -> [Vec<Vec<u8>>; 2] {
        let (number, own) = (self.number, host(self.origin));
        let hidden = format!("GET /hidden-{number} HTTP/1.1\r\nHost: {}\r\n\r\n", host(self.victim));
        let size = format!("{:x}\r\n", hidden.len());
        let (content, behind): (&[&str], &[&str]) = match self.shape {
            Shape::ShortLength => (&["1\r\nZ"], &["\r\n0\r\n\r\n"]),
            Shape::ShortChunks => (&["0\r\n\r\nX"], &[]),
            Shape::HiddenBehindChunks => (&["0\r\n\r\n", &hidden], &[]),
            Shape::HiddenInChunk => (&[&size], &[&hidden, "\r\n0\r\n\r\n"]),
        };
        let length: usize = content.iter().map(|part| part.len()).sum();
        let rest = format!(
            "\r\nHost: {own}\r\nUser-Agent: Mozilla/5.0\r\nContent-type: application/x-www-form-urlencoded; \
             charset=UTF-8\r\nContent-Length: {length}\r\n\r\n"
        );
        let head = [format!("POST /odd-{number} HTTP/1.1\r\n").as_bytes(), &self.line, rest.as_bytes()].concat();
        let after = format!("GET /after-{number} HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\n\r\n");
        let bytes = |part: &&str| part.as_bytes().to_vec();
        let after_all = behind.iter().map(bytes).chain([after.into_bytes()]);
        [[head].into_iter().chain(content.iter().map(bytes)).collect(), after_all.collect()]
    }

    /// The well-formed request on another connection.
    pub fn later(&self) -> String {
        format!("GET /later-{} HTTP/1.1\r\nHost: {}\r\n\r\n", self.number, host(self.origin))
    }

    /// The origins that may receive each of its requests.
    pub fn owner(&self, kind: Kind) -> &'static str {
        if kind == Kind::Hidden { self.victim } else { self.origin }
    }

    /// The response to one of its requests.
    pub fn answer(&self, kind: Kind) -> String {
        let owner = self.owner(kind);
        format!("[{owner}\t{}\t{}\t{}{}]", host(owner), kind.method(), kind.target(), self.number)
    }

    /// If the origin itself decides what a request is, every response belongs to this client.
    ///
    /// # Errors
    /// Other bytes were received.
    pub fn check_own(&self, bytes: &[u8]) -> Result<()> {
        let text = String::from_utf8_lossy(bytes);
        let (own, number) = (format!("{}\t{}\t", self.origin, host(self.origin)), format!("-{}", self.number));
        for body in text.split('[').skip(1).filter_map(|rest| rest.split_once(']')).map(|(body, _)| body) {
            let hidden = self.answer(Kind::Hidden);
            let is_own = body.starts_with(&own) && body.ends_with(&number);
            ensure!(is_own || hidden == format!("[{body}]"), "an answer to something else: {body:?}");
        }
        Ok(())
    }

    /// Its answered requests: in order, each with its own response, none after a rejection.
    ///
    /// # Errors
    /// When something else came.
    pub fn answered(&self, bytes: &[u8]) -> Result<Vec<Kind>> {
        let mut kinds = Vec::new();
        let mut left = [Kind::Odd, Kind::Hidden, Kind::After].into_iter();
        let mut refused = false;
        for answer in answers(bytes)? {
            ensure!(!refused, "something behind a refusal: {answer:?}");
            match answer {
                Answer { status: 200, body } => {
                    let kind = left.find(|kind| self.answer(*kind) == body);
                    let kind = kind.with_context(|| format!("an answer to something else: {body:?}"))?;
                    // Only bytes after a complete request are a request.
                    ensure!(
                        kind == Kind::Odd || kinds.contains(&Kind::Odd),
                        "{kind:?} answered, and not what was before"
                    );
                    kinds.push(kind);
                }
                Answer { status: 400 | 501, .. } => refused = true,
                other => bail!("neither answered nor refused: {other:?}"),
            }
        }
        ensure!(refused || !kinds.is_empty(), "no answer at all");
        Ok(kinds)
    }
}

/// Bytes received for a request.
#[derive(Debug)]
struct Answer {
    status: u16,
    body: String,
}

/// The ends of the first response's head and of its content.
pub fn end_of_answer(bytes: &[u8]) -> Option<(usize, usize)> {
    let head = bytes.windows(4).position(|part| part == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&bytes[..head]).ok()?;
    let field = text.lines().filter_map(|line| line.split_once(':'));
    let mut lengths =
        field.filter(|(name, _)| name.eq_ignore_ascii_case("content-length")).map(|(_, value)| value.trim().parse());
    let length: usize = lengths.next_back().transpose().ok()?.unwrap_or(0);
    (bytes.len() >= head + length).then_some((head, head + length))
}

fn answers(mut bytes: &[u8]) -> Result<Vec<Answer>> {
    let mut answers = Vec::new();
    while !bytes.is_empty() {
        let text = || String::from_utf8_lossy(bytes);
        let (head, end) = end_of_answer(bytes).with_context(|| format!("no whole answer: {:?}", text()))?;
        let status = std::str::from_utf8(&bytes[..head])?.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.with_context(|| format!("no status: {:?}", text()))?;
        answers.push(Answer { status, body: String::from_utf8_lossy(&bytes[head..end]).into_owned() });
        bytes = &bytes[end..];
    }
    Ok(answers)
}
