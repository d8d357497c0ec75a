//! An endpoint that speaks HTTP/2 and behaves as the paths of requests demand.

use std::future::{pending, poll_fn};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use h2::RecvStream;
use h2::server::{Builder, SendResponse};
use http::{HeaderValue, Request, Response};
use hyper::body::Bytes;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::backends;
use crate::tables::PATIENCE;

/// The endpoint and its counters.
#[derive(Clone, Default)]
pub struct Endpoint {
    /// Connections to it.
    pub connections: Arc<AtomicUsize>,
    /// Requests received.
    pub asked: Arc<watch::Sender<usize>>,
    /// Small frames sent.
    pub ticks: Arc<watch::Sender<usize>>,
    /// Bytes received and not read.
    pub unread: Arc<watch::Sender<usize>>,
    /// Releases held requests.
    pub released: Arc<watch::Sender<bool>>,
}

impl Endpoint {
    /// Starts the endpoint; returns its address.
    pub async fn serve(&self, builder: fn() -> Builder) -> SocketAddr {
        let endpoint = self.clone();
        backends::serve(move |stream| {
            let endpoint = endpoint.clone();
            async move {
                endpoint.connections.fetch_add(1, Ordering::SeqCst);
                let mut connection = builder().handshake::<_, Bytes>(stream).await.unwrap();
                while let Some(Ok((request, respond))) = connection.accept().await {
                    endpoint.asked.send_modify(|asked| *asked += 1);
                    let endpoint = endpoint.clone();
                    tokio::spawn(async move { endpoint.answer(request, respond).await });
                }
            }
        })
        .await
    }

    async fn answer(self, request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
        let path = request.uri().path().to_owned();
        let mut body = request.into_body();
        let ok = Response::new(());
        match &*path {
            // Responds and takes no more content, without a reset.
            "/early" => {
                let _ = respond.send_response(ok, true);
                pending::<()>().await;
            }
            // Takes no content, and reports how much has arrived.
            "/unread" => loop {
                let came = body.flow_control().used_capacity();
                self.unread.send_replace(came);
                tokio::time::sleep(Duration::from_millis(5)).await;
            },
            "/half" => {
                let Ok(mut out) = respond.send_response(ok, false) else { return };
                let _ = out.send_data(Bytes::from_static(b"half"), false);
                // Once it is sent.
                tokio::time::sleep(Duration::from_millis(50)).await;
                out.send_reset(h2::Reason::CANCEL);
            }
            "/ticks" => {
                let Ok(mut out) = respond.send_response(ok, false) else { return };
                while let Some(Ok(1..)) = {
                    out.reserve_capacity(20);
                    poll_fn(|cx| out.poll_capacity(cx)).await
                } {
                    if out.send_data(Bytes::from_static(b"a message of 20 byte"), false).is_err() {
                        return;
                    }
                    self.ticks.send_modify(|ticks| *ticks += 1);
                }
            }
            "/nothing" => {
                let Ok(mut out) = respond.send_response(ok, false) else { return };
                for _ in 0..1_000 {
                    let _ = out.send_data(Bytes::new(), false);
                }
                let _ = out.send_data(Bytes::from_static(b"something"), true);
            }
            "/large-head" => {
                let mut large = ok;
                for field in 0..40 {
                    let name = http::HeaderName::try_from(format!("x-{field}")).unwrap();
                    large.headers_mut().insert(name, HeaderValue::try_from("x".repeat(2_000)).unwrap());
                }
                let _ = respond.send_response(large, true);
            }
            "/held" => {
                let _ = self.released.subscribe().wait_for(|released| *released).await;
                let _ = respond.send_response(ok, true);
            }
            _ => {
                while let Some(Ok(data)) = body.data().await {
                    let _ = body.flow_control().release_capacity(data.len());
                }
                let Ok(mut out) = respond.send_response(ok, false) else { return };
                let _ = out.send_data(Bytes::from_static(b"ok"), true);
            }
        }
    }

    /// Waits for this number of requests.
    pub async fn until_requests(&self, times: usize) {
        let mut asked = self.asked.subscribe();
        timeout(PATIENCE, asked.wait_for(|asked| *asked >= times)).await.expect("requests").unwrap();
    }
}
