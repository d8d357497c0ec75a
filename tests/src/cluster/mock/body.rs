//! Bodies of answers, which are made while they are sent.

use std::io;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;

use super::fault::{Fault, Then};

/// A body of an answer.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Size in bytes after which a part of a body is sent.
pub const PART: usize = 64 << 10;

/// A body that is there.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A body of parts that a function makes out of a state, until it makes none.
pub fn parts<S, F, N>(state: S, next: N) -> Body
where
    S: Send + 'static,
    F: Future<Output = Option<(io::Result<Bytes>, S)>> + Send + 'static,
    N: FnMut(S) -> F + Send + 'static,
{
    framed(stream::unfold(state, next))
}

fn framed(parts: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Body {
    use futures_util::StreamExt;
    StreamBody::new(parts.map(|part| part.map(Frame::data))).boxed_unsync()
}

/// A body with the fault of its request.
pub fn with(fault: &Fault, body: Body) -> Body {
    let left = match fault.then() {
        Then::Stall(length) | Then::Cut(length) => *length,
        _ => return body,
    };
    parts((body, left, fault.clone()), async |(mut body, left, fault)| {
        if left == 0 {
            match fault.then() {
                Then::Cut(_) => return Some((Err(io::ErrorKind::ConnectionReset.into()), (body, left, fault))),
                _ => fault.released().await,
            }
            // Its end is out of reach.
            let part = next(&mut body).await?;
            return Some((part, (body, usize::MAX, fault)));
        }
        let part = next(&mut body).await?;
        let Ok(mut part) = part else { return Some((part, (body, left, fault))) };
        if part.len() <= left {
            let left = if left == usize::MAX { left } else { left - part.len() };
            return Some((Ok(part), (body, left, fault)));
        }
        let rest = part.split_off(left);
        Some((Ok(part), (followed(rest, body), 0, fault)))
    })
}

/// A body after some bytes.
fn followed(bytes: Bytes, body: Body) -> Body {
    parts((Some(bytes), body), async |(bytes, mut body)| match bytes {
        Some(bytes) => Some((Ok(bytes), (None, body))),
        None => next(&mut body).await.map(|part| (part, (None, body))),
    })
}

/// The next part of a body.
async fn next(body: &mut Body) -> Option<io::Result<Bytes>> {
    loop {
        match body.frame().await? {
            Ok(frame) => match frame.into_data() {
                Ok(part) => return Some(Ok(part)),
                // Answers have no trailers.
                Err(_) => continue,
            },
            Err(error) => return Some(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Result;
    use tokio::runtime::Builder;

    use super::super::fault::{Faults, When};
    use super::*;

    fn thrice() -> Body {
        parts(0, async |number| (number < 3).then(|| (Ok(Bytes::from(format!("part{number}"))), number + 1)))
    }

    #[test]
    fn a_body_breaks_off_or_stops_within_a_part() -> Result<()> {
        let runtime = Builder::new_current_thread().build()?;
        runtime.block_on(async {
            assert_eq!(thrice().collect().await?.to_bytes(), "part0part1part2");
            let mut cut = with(&Faults::default().add(When::default(), Then::Cut(7)), thrice());
            let mut read = Vec::new();
            let error = loop {
                match next(&mut cut).await {
                    Some(Ok(part)) => read.extend(part),
                    other => break other,
                }
            };
            assert_eq!(read, b"part0pa");
            assert!(matches!(error, Some(Err(_))));
            let fault = Faults::default().add(When::default(), Then::Stall(7));
            let mut stalled = with(&fault, thrice());
            assert_eq!(next(&mut stalled).await.transpose()?, Some("part0".into()));
            assert_eq!(next(&mut stalled).await.transpose()?, Some("pa".into()));
            let waiting = tokio::spawn(async move { stalled.collect().await });
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished());
            fault.release();
            assert_eq!(waiting.await??.to_bytes(), "rt1part2");
            Ok(())
        })
    }
}
