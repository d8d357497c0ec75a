//! One direction of a relay over loopback TCP: data, wake-ups, and how it ends.

use std::future::poll_fn;
use std::task::Poll;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (connected, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    (connected.unwrap(), accepted.unwrap().0)
}

/// Sends this many bytes through a direction and receives them; returns how the direction waits for more.
async fn carry(
    direction: &mut RelayDirection<'_>,
    sender: &mut TcpStream,
    receiver: &mut TcpStream,
    bytes: usize,
) -> bool {
    let (sent, mut received) = (vec![7; bytes], vec![0; bytes]);
    let mut both =
        Box::pin(async { tokio::try_join!(sender.write_all(&sent), receiver.read_exact(&mut received)).unwrap() });
    poll_fn(|cx| {
        assert!(direction.poll(false, cx).is_pending(), "nobody ends");
        both.as_mut().poll(cx).map(drop)
    })
    .await;
    drop(both);
    assert_eq!(received, sent);
    matches!(direction.step, RelayStep::Splice(Spliced { thin: false, .. }))
}

#[tokio::test]
async fn bulk_data_goes_through_a_pipe_and_messages_do_not() {
    let ((mut sender, from), (to, mut receiver)) = (pair().await, pair().await);
    let activity = Activity::new();
    let mut direction = RelayDirection::new(&from, &to, RelaySide::Client, &activity, 4 * CHUNK as u64);
    for _ in 0..2 * 4 * CHUNK / 1000 {
        let spliced = carry(&mut direction, &mut sender, &mut receiver, 1000).await;
        assert!(!spliced, "many messages are no bulk data");
    }
    let mut spliced = false;
    for _ in 0..100 {
        spliced |= carry(&mut direction, &mut sender, &mut receiver, 64 * CHUNK).await;
    }
    assert!(spliced);
    for _ in 0..3 {
        carry(&mut direction, &mut sender, &mut receiver, 1000).await;
    }
    let spliced = carry(&mut direction, &mut sender, &mut receiver, 1000).await;
    assert!(!spliced && !matches!(direction.step, RelayStep::Splice(_)), "messages again");
    assert_eq!(direction.moved, (131 + 4) * 1000 + 6400 * CHUNK as u64);
    drop(sender);
    poll_fn(|cx| direction.poll(false, cx)).await.unwrap();
    assert_eq!(receiver.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn the_last_poller_is_woken() {
    let ((mut sender, from), (to, mut receiver)) = (pair().await, pair().await);
    let activity = Activity::new();
    let mut direction = RelayDirection::new(&from, &to, RelaySide::Client, &activity, u64::MAX);
    for _ in 0..3 {
        // The direction reports that it waits, and a second poll has no effect.
        poll_fn(|cx| {
            assert!(direction.poll(false, cx).is_pending());
            assert!(direction.waits && direction.poll(false, cx).is_pending());
            Poll::Ready(())
        })
        .await;
        carry(&mut direction, &mut sender, &mut receiver, 10).await;
    }
}

/// The result of a direction whose sender had finished before the first poll, and the bytes received.
async fn carry_ended(bytes: usize, end: impl FnOnce(&TcpStream)) -> (Result<(), RelaySide>, io::Result<Vec<u8>>) {
    let ((mut sender, from), (to, mut receiver)) = (pair().await, pair().await);
    let activity = Activity::new();
    let mut direction = RelayDirection::new(&from, &to, RelaySide::Client, &activity, u64::MAX);
    sender.write_all(&vec![7; bytes]).await.unwrap();
    end(&sender);
    drop(sender);
    while !from.ready(Interest::READABLE).await.unwrap().is_read_closed() {
        // Only readability is reported so far: let the runtime poll again.
        tokio::task::yield_now().await;
    }
    let (result, received) = tokio::join!(poll_fn(|cx| direction.poll(false, cx)), async {
        let mut received = Vec::new();
        receiver.read_to_end(&mut received).await.map(|_| received)
    });
    (result, received)
}

#[tokio::test]
async fn a_stream_that_has_ended_is_carried_to_its_last_byte() {
    for bytes in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
        let (result, received) = carry_ended(bytes, |_| {}).await;
        result.unwrap();
        assert_eq!(received.unwrap(), vec![7; bytes]);
    }
}
