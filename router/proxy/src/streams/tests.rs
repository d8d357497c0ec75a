//! Bodies in parts, and tasks that hold one.

use std::convert::Infallible;
use std::future::poll_fn;

use http_body_util::{BodyExt, Full, StreamBody};
use hyper::rt::Executor;
use tokio::sync::oneshot;

use super::*;

#[tokio::test]
async fn a_body_in_parts_is_the_same_body() {
    for length in [0, 1, PART, PART + 1, 3 * PART, 200_000] {
        let content: Vec<u8> = (0..length).map(|number| (number % 251) as u8).collect();
        let mut body = InParts::of(Full::new(Bytes::from(content.clone())));
        let mut got = Vec::new();
        while !body.is_end_stream() {
            assert_eq!(body.size_hint().exact(), Some((length - got.len()) as u64));
            let part = body.frame().await.unwrap().unwrap().into_data().unwrap();
            assert!(part.len() <= PART);
            got.extend(part);
        }
        assert!(got == content, "{length}");
    }
    let trailers = http::HeaderMap::from_iter([(http::header::ETAG, http::HeaderValue::from_static("x"))]);
    let frames = [Frame::data(Bytes::from(vec![b'x'; PART + 1])), Frame::trailers(trailers.clone())];
    let frames = futures_util::stream::iter(frames.map(Ok::<_, Infallible>));
    let collected = InParts::of(StreamBody::new(frames)).collect().await.unwrap();
    assert_eq!(collected.trailers(), Some(&trailers));
    assert_eq!(collected.to_bytes().len(), PART + 1);
}

/// A task that polls such a body for a frame and then waits forever; ready when it has ended.
fn waiting<B: Body<Data = Bytes> + Unpin + Send + 'static>(body: B) -> oneshot::Receiver<()> {
    let (ended, end) = oneshot::channel();
    let mut body = InParts::of(body);
    let task = async move {
        let _ended = ended;
        let mut is_asked = false;
        poll_fn(|cx| {
            if !std::mem::replace(&mut is_asked, true) {
                let _ = Pin::new(&mut body).poll_frame(cx);
            }
            Poll::<()>::Pending
        })
        .await;
    };
    Streams { patience: Duration::from_millis(20) }.execute(task);
    end
}

#[tokio::test]
async fn only_a_task_that_holds_a_part_is_late() {
    let mut silent = waiting(StreamBody::new(futures_util::stream::pending::<Result<Frame<Bytes>, Infallible>>()));
    assert!(waiting(Full::new(Bytes::from("taken by nobody"))).await.is_err());
    assert!(silent.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Empty));
}
