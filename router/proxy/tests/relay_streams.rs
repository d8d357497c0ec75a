//! The relay between two real TCP connections on loopback: what one side does is what the other side sees.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

use std::io;
use std::time::Duration;

use router_proxy::relay::{RelayEnd, RelayOptions, RelayOutcome, relay};
use router_proxy::rt::timer::Timer;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);

/// A client, a backend, and the relay between them.
struct Rig {
    client: TcpStream,
    backend: TcpStream,
    relay: JoinHandle<RelayOutcome>,
}

async fn rig(options: RelayOptions, initial: &[u8], buffers: Option<u32>) -> Rig {
    let (client, accepted) = pair(buffers).await;
    let (connected, backend) = pair(buffers).await;
    let initial = initial.to_vec();
    let relay = tokio::spawn(async move { relay(accepted, connected, initial, options, &mut Timer::default()).await });
    Rig { client, backend, relay }
}

async fn pair(buffers: Option<u32>) -> (TcpStream, TcpStream) {
    let listening = TcpSocket::new_v4().unwrap();
    let connecting = TcpSocket::new_v4().unwrap();
    if let Some(size) = buffers {
        for socket in [&listening, &connecting] {
            socket.set_send_buffer_size(size).unwrap();
            socket.set_recv_buffer_size(size).unwrap();
        }
    }
    listening.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener: TcpListener = listening.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let (connected, accepted) = tokio::join!(connecting.connect(address), listener.accept());
    (connected.unwrap(), accepted.unwrap().0)
}

async fn finish(relay: JoinHandle<RelayOutcome>) -> RelayOutcome {
    timeout(PATIENCE, relay).await.expect("the relay ends").unwrap()
}

async fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the stream ends").unwrap();
    bytes
}

/// A byte stream that is different at every position for longer than any buffer.
fn pattern(offset: u64, seed: u64) -> u8 {
    let mixed = (offset / 8 + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> ((offset % 8) * 8)) as u8
}

async fn send_pattern(stream: &mut (impl AsyncWriteExt + Unpin), length: u64, seed: u64) {
    let mut sent = 0;
    while sent < length {
        let chunk: Vec<u8> = (sent..length.min(sent + 100_003)).map(|offset| pattern(offset, seed)).collect();
        stream.write_all(&chunk).await.unwrap();
        sent += chunk.len() as u64;
    }
    stream.shutdown().await.unwrap();
}

async fn expect_pattern(stream: &mut (impl AsyncReadExt + Unpin), length: u64, seed: u64) {
    let mut buffer = vec![0; 256 * 1024];
    let mut received = 0;
    loop {
        let read = stream.read(&mut buffer).await.unwrap();
        if read == 0 {
            break;
        }
        let wrong = buffer[..read].iter().zip(received..).position(|(byte, offset)| *byte != pattern(offset, seed));
        assert_eq!(wrong, None, "first wrong byte after {received}");
        received += read as u64;
    }
    assert_eq!(received, length);
}

#[tokio::test]
async fn client_half_closes_first() {
    let Rig { mut client, mut backend, relay } = rig(RelayOptions::default(), b"initial ", None).await;
    client.write_all(b"request").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(read_all(&mut backend).await, b"initial request");
    // The backend has seen the end, and answers all the same.
    backend.write_all(&[7; 300_000]).await.unwrap();
    backend.shutdown().await.unwrap();
    assert_eq!(read_all(&mut client).await, [7; 300_000]);
    let outcome = finish(relay).await;
    assert_eq!(outcome, RelayOutcome { to_upstream: 15, to_client: 300_000, end: RelayEnd::Finished });
}

#[tokio::test]
async fn backend_half_closes_first() {
    let Rig { mut client, mut backend, relay } = rig(RelayOptions::default(), b"", None).await;
    backend.write_all(b"banner").await.unwrap();
    backend.shutdown().await.unwrap();
    assert_eq!(read_all(&mut client).await, b"banner");
    client.write_all(&[9; 300_000]).await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(read_all(&mut backend).await, [9; 300_000]);
    let outcome = finish(relay).await;
    assert_eq!(outcome, RelayOutcome { to_upstream: 300_000, to_client: 6, end: RelayEnd::Finished });
}

#[tokio::test]
async fn both_ways_at_once_copied() {
    both_ways(RelayOptions { splice_after: u64::MAX, ..RelayOptions::default() }, 8 << 20).await;
}

#[tokio::test]
async fn both_ways_at_once_spliced() {
    both_ways(RelayOptions::default(), 64 << 20).await;
}

#[tokio::test]
async fn spliced_from_the_first_byte() {
    both_ways(RelayOptions { splice_after: 0, ..RelayOptions::default() }, 1 << 20).await;
}

async fn both_ways(options: RelayOptions, length: u64) {
    let Rig { client, backend, relay } = rig(options, b"", None).await;
    let (mut client_read, mut client_write) = client.into_split();
    let (mut backend_read, mut backend_write) = backend.into_split();
    let all = async {
        tokio::join!(
            send_pattern(&mut client_write, length, 1),
            send_pattern(&mut backend_write, length, 2),
            expect_pattern(&mut client_read, length, 2),
            expect_pattern(&mut backend_read, length, 1),
        )
    };
    timeout(PATIENCE, all).await.expect("both directions finish");
    let outcome = finish(relay).await;
    assert_eq!(outcome, RelayOutcome { to_upstream: length, to_client: length, end: RelayEnd::Finished });
}

/// Writes until nothing was taken for `quiet`; how many bytes were.
async fn fill(stream: &TcpStream, offered: u64, seed: u64, quiet: Duration) -> u64 {
    let mut taken = 0;
    while taken < offered {
        let chunk: Vec<u8> = (taken..offered.min(taken + 65_536)).map(|offset| pattern(offset, seed)).collect();
        match timeout(quiet, stream.writable()).await {
            Err(_) => return taken,
            Ok(ready) => ready.unwrap(),
        }
        match stream.try_write(&chunk) {
            Ok(written) => taken += written as u64,
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }
    taken
}

#[tokio::test]
async fn stalled_receiver_stops_the_sender() {
    for splice_after in [0, u64::MAX] {
        let options = RelayOptions { splice_after, ..RelayOptions::default() };
        let Rig { mut client, mut backend, relay } = rig(options, b"", Some(64 * 1024)).await;
        let taken = fill(&client, 64 << 20, 3, Duration::from_secs(3)).await;
        // Four socket buffers of 128 KiB (the kernel doubles what is asked for) and one pipe or chunk; the kernel may
        // overshoot a buffer by a segment.
        assert!(taken <= 1 << 20, "{taken} bytes were taken from the sender");
        // Nothing is lost: the receiver wakes up and gets them all, and the sender goes on.
        let rest: Vec<u8> = (taken..taken + 500_000).map(|offset| pattern(offset, 3)).collect();
        let sending = async {
            client.write_all(&rest).await.unwrap();
            client.shutdown().await.unwrap();
        };
        let all = async { tokio::join!(sending, expect_pattern(&mut backend, taken + 500_000, 3)) };
        timeout(PATIENCE, all).await.expect("the stream goes on");
        drop(backend);
        finish(relay).await;
    }
}

async fn expect_reset(stream: &mut TcpStream) {
    let mut buffer = [0; 65_536];
    let error = timeout(PATIENCE, async {
        loop {
            match stream.read(&mut buffer).await {
                Ok(0) => panic!("a FIN where a reset was due"),
                Ok(_) => {}
                Err(error) => return error,
            }
        }
    });
    assert_eq!(error.await.expect("the stream ends").kind(), io::ErrorKind::ConnectionReset);
}

fn reset(stream: TcpStream) {
    SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    drop(stream);
}

#[tokio::test]
async fn resets_are_forwarded() {
    let Rig { client, mut backend, relay } = rig(RelayOptions::default(), b"", None).await;
    reset(client);
    expect_reset(&mut backend).await;
    assert_eq!(finish(relay).await.end, RelayEnd::ClientReset);

    let Rig { mut client, backend, relay } = rig(RelayOptions::default(), b"", None).await;
    reset(backend);
    expect_reset(&mut client).await;
    assert_eq!(finish(relay).await.end, RelayEnd::UpstreamReset);
}

#[tokio::test]
async fn reset_is_seen_while_the_receiver_stalls() {
    let Rig { client, mut backend, relay } = rig(RelayOptions::default(), b"", Some(64 * 1024)).await;
    fill(&client, 64 << 20, 4, Duration::from_millis(300)).await;
    // The relay waits for the backend now, not for the client.
    reset(client);
    assert_eq!(finish(relay).await.end, RelayEnd::ClientReset);
    expect_reset(&mut backend).await;
}

#[tokio::test]
async fn reset_after_a_half_close_is_forwarded() {
    let Rig { mut client, mut backend, relay } = rig(RelayOptions::default(), b"", None).await;
    client.shutdown().await.unwrap();
    assert_eq!(read_all(&mut backend).await, b"");
    reset(client);
    assert_eq!(finish(relay).await.end, RelayEnd::ClientReset);
    // After a FIN a read says "end of stream" for ever; the reset shows as the socket's error.
    timeout(PATIENCE, backend.ready(Interest::ERROR)).await.expect("the reset arrives").unwrap();
    assert_eq!(backend.take_error().unwrap().map(|error| error.kind()), Some(io::ErrorKind::BrokenPipe));
}

#[tokio::test]
async fn idle_connections_end() {
    let options = RelayOptions { idle: Duration::from_millis(200), ..RelayOptions::default() };
    let Rig { mut client, mut backend, relay } = rig(options, b"hello", None).await;
    let started = std::time::Instant::now();
    let mut got = [0; 5];
    backend.read_exact(&mut got).await.unwrap();
    expect_reset(&mut client).await;
    expect_reset(&mut backend).await;
    assert!(started.elapsed() >= Duration::from_millis(150), "ended after {:?}", started.elapsed());
    assert_eq!(finish(relay).await.end, RelayEnd::Idle);
}
