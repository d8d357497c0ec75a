//! Reads request content that a client sends after it was answered. HTTP/2 would reset the stream (RFC 9113 §8.1), and
//! some clients then discard the response; so a limited amount is read and dropped first.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::time::timeout;

/// Most bytes to read: the initial flow-control window (RFC 9113 §6.9.2).
const MOST: usize = 65_535;
/// Longest time to read.
const LONGEST: Duration = Duration::from_secs(1);

/// Reads the rest of a request's body, within limits, in a task of its own.
pub fn drain(body: Incoming) {
    if !body.is_end_stream() {
        tokio::spawn(timeout(LONGEST, read(body)));
    }
}

async fn read(mut body: Incoming) {
    let mut left = MOST;
    while let Some(Ok(frame)) = body.frame().await {
        match left.checked_sub(frame.data_ref().map_or(0, |data| data.len())) {
            Some(less) => left = less,
            None => return,
        }
    }
}
