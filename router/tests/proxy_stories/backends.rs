//! Backends: an HTTP server that echoes requests, and byte streams that send their name.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// An address that refuses connections: its socket is bound for the rest of the process, and never listens.
pub fn refusing() -> SocketAddr {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    std::mem::forget(socket);
    address
}

/// An address that does not answer SYNs: it listens, and its queue is full. The owner of the socket can extend the
/// queue.
pub fn black_hole() -> (socket2::Socket, SocketAddr) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    std::mem::forget(std::net::TcpStream::connect(address).unwrap());
    (socket, address)
}

/// Serves each connection with `work`.
pub async fn serve<F>(work: impl Fn(TcpStream) -> F + Send + Sync + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let (listener, address) = listen().await;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(work(stream));
        }
    });
    address
}

/// Reads a request's head; `false` at the end of the stream.
pub async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> bool {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return false };
        head.push(byte);
    }
    true
}

/// Responds to the first bytes with its name, then echoes: shows what a passthrough route's backend receives of a
/// ClientHello.
pub async fn named_echo(name: &'static str) -> SocketAddr {
    serve(move |mut stream| async move {
        let mut buffer = [0; 4096];
        if stream.read(&mut buffer).await.unwrap_or(0) == 0 {
            return;
        }
        let _ = stream.write_all(name.as_bytes()).await;
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            if stream.write_all(&buffer[..read]).await.is_err() {
                return;
            }
        }
    })
    .await
}

/// A TLS backend that sends its name and echoes what it receives.
pub async fn tls_echo(name: &'static str, config: Arc<ServerConfig>) -> SocketAddr {
    serve(move |stream| {
        let acceptor = TlsAcceptor::from(Arc::clone(&config));
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            stream.write_all(name.as_bytes()).await.unwrap();
            let (mut read, mut write) = tokio::io::split(stream);
            let _ = tokio::io::copy(&mut read, &mut write).await;
            let _ = write.shutdown().await;
        }
    })
    .await
}

/// An HTTP backend. Its response has a first line `<name> <method> <path and query>`, then the request's fields, an
/// empty line and the request's body.
pub async fn http(name: &'static str) -> SocketAddr {
    serve(move |stream| serve_http(name, stream)).await
}

/// The same behind TLS.
pub async fn https(name: &'static str, config: Arc<ServerConfig>) -> SocketAddr {
    serve(move |stream| {
        let acceptor = TlsAcceptor::from(Arc::clone(&config));
        async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let sni = stream.get_ref().1.server_name().unwrap_or("-").to_owned();
            serve_http_with(name, stream, format!("sni: {sni}\n")).await;
        }
    })
    .await
}

/// The same over HTTP/2 in clear text with prior knowledge. The authority appears as the field `:authority`.
pub async fn h2c(name: &'static str) -> SocketAddr {
    serve(move |stream| serve_http2(name, stream)).await
}

/// The same behind TLS, in the HTTP version that the handshake selects.
pub async fn https_any(name: &'static str, config: Arc<ServerConfig>) -> SocketAddr {
    serve(move |stream| {
        let acceptor = TlsAcceptor::from(Arc::clone(&config));
        async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                serve_http2(name, stream).await;
            } else {
                serve_http(name, stream).await;
            }
        }
    })
    .await
}

/// Serves HTTP/2 on a stream, as [`h2c`] does.
pub async fn serve_http2(name: &'static str, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
    let service = service_fn(move |request: Request<Incoming>| {
        let authority = request.uri().authority().map_or("-", |authority| authority.as_str());
        let extra = format!("{:?}\n:authority: {authority}\n", request.version());
        report(name, extra, request)
    });
    let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

async fn serve_http(name: &'static str, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
    serve_http_with(name, stream, String::new()).await;
}

async fn serve_http_with(
    name: &'static str,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    extra: String,
) {
    let service = service_fn(move |request| report(name, extra.clone(), request));
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn report(
    name: &'static str,
    extra: String,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let mut text =
        format!("{name} {} {}\n{extra}", head.method, head.uri.path_and_query().map_or("*", |path| path.as_str()));
    for (field, value) in &head.headers {
        text.push_str(&format!("{field}: {}\n", value.to_str().unwrap_or("?")));
    }
    text.push('\n');
    let mut answer = text.into_bytes();
    if let Ok(body) = body.collect().await {
        answer.extend_from_slice(&body.to_bytes());
    }
    let response = Response::builder().header("x-backend", name).header("keep-alive", "5").body(Full::from(answer));
    Ok(response.unwrap())
}
