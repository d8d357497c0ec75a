//! What a client goes on sending when it has its answer already. HTTP/2 would tell it to stop by a reset of the stream
//! (RFC 9113 §8.1), and there are clients that take the answer for lost then; so a little is read and thrown away first.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::time::timeout;

/// Most bytes that are read; the flow control window that clients begin with (RFC 9113 §6.9.2).
const MOST: usize = 65_535;
/// How long a client may take to send them.
const LONGEST: Duration = Duration::from_secs(1);

/// Reads what is left of a request's body, within limits, beside whatever else is done.
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
