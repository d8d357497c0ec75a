//! Backends of `examples/quickstart`: small servers that respond with one line: their name, the path, and
//! their TLS parameters.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Why the demo backends cannot run.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The port is in use, probably by another copy.
    #[error("demo backend {name}: cannot listen on {address}: {error}")]
    Listen {
        /// The backend.
        name: &'static str,
        /// Its address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// A built-in certificate is invalid.
    #[error("demo backend {name}: its certificate cannot be used: {error}")]
    Certificate {
        /// The backend.
        name: &'static str,
        /// The error of rustls.
        error: rustls::Error,
    },
    /// A built-in PEM file cannot be read.
    #[error("demo backend {name}: its certificate cannot be read: {error}")]
    Pem {
        /// The backend.
        name: &'static str,
        /// The parser's error.
        error: rustls_pki_types::pem::Error,
    },
}

/// One server. Ports are those of the EndpointSlices in `examples/quickstart`.
struct DemoServer {
    name: &'static str,
    port: u16,
    /// Certificate and key in PEM, for a backend that speaks TLS.
    pair: Option<(&'static str, &'static str)>,
}

const BACKENDS: [DemoServer; 4] = [
    DemoServer { name: "hello", port: 18080, pair: None },
    DemoServer { name: "edge", port: 18081, pair: None },
    DemoServer {
        name: "passthrough",
        port: 18443,
        pair: Some((
            include_str!("../../examples/demo-certificates/demo-only-passthrough.crt"),
            include_str!("../../examples/demo-certificates/demo-only-passthrough.key"),
        )),
    },
    DemoServer {
        name: "reencrypt",
        port: 18444,
        pair: Some((
            include_str!("../../examples/demo-certificates/demo-only-reencrypt-backend.crt"),
            include_str!("../../examples/demo-certificates/demo-only-reencrypt-backend.key"),
        )),
    },
];

/// Time-out of handshakes, and of requests on an open connection.
const PATIENCE: Duration = Duration::from_secs(30);

/// Serves all demo backends on an address until the returned future is dropped. Each prints a line to stderr once it listens.
///
/// # Errors
/// One of them cannot start.
pub async fn run(on: IpAddr) -> Result<Infallible, DemoError> {
    let mut servers = tokio::task::JoinSet::new();
    for backend in BACKENDS {
        let address = SocketAddr::new(on, backend.port);
        let listen = |error| DemoError::Listen { name: backend.name, address, error };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let acceptor = backend.pair.map(|pair| acceptor(backend.name, pair)).transpose()?;
        eprintln!("demo backend {} on {address}", backend.name);
        servers.spawn(serve(backend.name, listener, acceptor));
    }
    eprintln!("demo backends: ready");
    std::future::pending().await
}

fn acceptor(name: &'static str, (certificate, key): (&str, &str)) -> Result<TlsAcceptor, DemoError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| DemoError::Pem { name, error })?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| DemoError::Pem { name, error })?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| DemoError::Certificate { name, error })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn serve(name: &'static str, listener: TcpListener, acceptor: Option<TlsAcceptor>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(connection(name, stream, acceptor.clone()))),
            // Out of file descriptors or memory: open connections must end first.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn connection(name: &'static str, stream: TcpStream, acceptor: Option<TlsAcceptor>) {
    let Some(acceptor) = acceptor else {
        return answer(name, stream, None).await;
    };
    // A client that aborts the handshake needs no report.
    let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await else { return };
    let (_, tls) = stream.get_ref();
    let version = tls.protocol_version().map_or_else(|| "?".to_owned(), |version| format!("{version:?}"));
    let facts = format!("{version} up to here, SNI {}", tls.server_name().unwrap_or("none"));
    answer(name, stream, Some(facts)).await;
}

async fn answer(name: &'static str, stream: impl AsyncRead + AsyncWrite + Unpin, tls: Option<String>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let line = line(name, request.method().as_str(), request.uri().path(), request.headers(), tls.as_deref());
        async move { Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(line)))) }
    });
    // The client has disconnected.
    let _ = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// The response of a backend. `tls` describes a TLS connection that it terminates itself.
fn line(name: &str, method: &str, path: &str, headers: &HeaderMap, tls: Option<&str>) -> String {
    let seen = tls.unwrap_or("clear text up to here");
    let field = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    match (field("x-forwarded-proto"), field("x-forwarded-host")) {
        (Some(proto), Some(host)) => format!("{name}: {method} {path} ({seen}; the client asked {proto}://{host})\n"),
        _ => format!("{name}: {method} {path} ({seen})\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_certificates_can_be_used() {
        for backend in BACKENDS {
            if let Some(pair) = backend.pair {
                acceptor(backend.name, pair).unwrap();
            }
        }
    }

    #[test]
    fn a_line_tells_name_path_and_tls() {
        let mut headers = HeaderMap::new();
        assert_eq!(line("hello", "GET", "/a", &headers, None), "hello: GET /a (clear text up to here)\n");
        headers.insert("x-forwarded-proto", http::HeaderValue::from_static("https"));
        headers.insert("x-forwarded-host", http::HeaderValue::from_static("reencrypt.apps.localhost"));
        assert_eq!(
            line("reencrypt", "GET", "/", &headers, Some("TLSv1_3 up to here, SNI reencrypt.demo.svc")),
            "reencrypt: GET / (TLSv1_3 up to here, SNI reencrypt.demo.svc; the client asked \
             https://reencrypt.apps.localhost)\n"
        );
    }
}
