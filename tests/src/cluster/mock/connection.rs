//! Connections: TLS, HTTP/1.1 or HTTP/2 as the client wants, and their faults.

use std::collections::BTreeMap;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::answer::answer;
use super::lock::lock;
use super::state::State;

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It serves.
    Serve,
    /// It takes no further requests (GOAWAY in HTTP/2, `Connection: close` in HTTP/1.1), and ends after the last answer.
    Drain,
    /// It neither reads nor writes, for good, as if the network were cut.
    Stall,
    /// It ends at once.
    Cut,
}

/// The open connections.
#[derive(Default)]
pub struct Connections(Mutex<Open>);

#[derive(Default)]
struct Open {
    orders: BTreeMap<u64, watch::Sender<Order>>,
    made: u64,
}

impl Connections {
    /// Numbers of the open connections.
    pub fn open(&self) -> Vec<u64> {
        lock(&self.0).orders.keys().copied().collect()
    }

    /// Number of connections so far.
    pub fn made(&self) -> u64 {
        lock(&self.0).made
    }

    /// Orders all open connections.
    pub fn order(&self, order: Order) {
        for connection in lock(&self.0).orders.values() {
            connection.send_replace(order);
        }
    }

    /// Serves a connection until its end.
    pub async fn serve(&self, stream: TcpStream, tls: TlsAcceptor, state: Arc<State>) {
        let (sender, orders) = watch::channel(Order::Serve);
        let number = {
            let mut open = lock(&self.0);
            open.made += 1;
            let number = open.made;
            open.orders.insert(number, sender);
            number
        };
        let mut cut = orders.clone();
        tokio::select! {
            // The peer observes errors.
            _ = speak(stream, tls, state, number, orders) => {}
            _ = cut.wait_for(|order| *order == Order::Cut) => {}
        }
        lock(&self.0).orders.remove(&number);
    }
}

type Error = Box<dyn std::error::Error + Send + Sync>;

async fn speak(
    stream: TcpStream,
    tls: TlsAcceptor,
    state: Arc<State>,
    number: u64,
    mut orders: watch::Receiver<Order>,
) -> Result<(), Error> {
    stream.set_nodelay(true)?;
    let stream = tls.accept(Stallable { stream, orders: orders.clone() }).await?;
    let service = service_fn(move |request| answer(Arc::clone(&state), number, request));
    let builder = Builder::new(TokioExecutor::new());
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        ended = connection.as_mut() => return ended,
        _ = orders.wait_for(|order| *order == Order::Drain) => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

/// A stream that can stop in silence.
struct Stallable {
    stream: TcpStream,
    orders: watch::Receiver<Order>,
}

impl Stallable {
    fn is_stalled(&self) -> bool {
        *self.orders.borrow() == Order::Stall
    }
}

impl AsyncRead for Stallable {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        // Nobody wakes it: it is stalled for good.
        if self.is_stalled() { Poll::Pending } else { Pin::new(&mut self.stream).poll_read(cx, into) }
    }
}

impl AsyncWrite for Stallable {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_stalled() { Poll::Pending } else { Pin::new(&mut self.stream).poll_write(cx, bytes) }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_stalled() { Poll::Pending } else { Pin::new(&mut self.stream).poll_shutdown(cx) }
    }
}
