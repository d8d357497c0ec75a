//! Clients: raw bytes, TLS, HTTP/1.1 as text, HTTP/2.

use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{AlertDescription, CipherSuite, ClientConfig, HandshakeKind, ProtocolVersion};
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::pki;
use crate::tables::PATIENCE;

/// A response, as far as the tests use it.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// Status line and fields, fields in lower case.
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// Sends a request verbatim and reads to the end of the stream. The request must contain `Connection: close`.
pub async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> Answer {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("an answer").unwrap();
    parse(&String::from_utf8(bytes).unwrap())
}

fn parse(text: &str) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status line");
    let body =
        if head.to_ascii_lowercase().contains("transfer-encoding: chunked") { unchunk(body) } else { body.to_owned() };
    let mut lines = head.split("\r\n").map(|line| match line.split_once(": ") {
        Some((name, value)) => format!("{}: {value}", name.to_ascii_lowercase()),
        None => line.to_owned(),
    });
    let first = lines.next().unwrap_or_default();
    Answer { status, head: lines.fold(first, |head, line| head + "\n" + &line), body }
}

fn unchunk(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a chunk size");
        text.push_str(&rest[..size]);
        body = rest[size..].trim_start_matches("\r\n");
    }
    text
}

/// `GET` over clear text.
pub async fn get(to: SocketAddr, host: &str, path: &str) -> Answer {
    request(to, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")).await
}

/// A clear-text request, verbatim.
pub async fn request(to: SocketAddr, text: &str) -> Answer {
    exchange(TcpStream::connect(to).await.unwrap(), text).await
}

/// `GET` over TLS with this SNI.
pub async fn get_tls(to: SocketAddr, sni: Option<&str>, host: &str, path: &str) -> Answer {
    let stream = tls(to, sni, &["http/1.1"]).await;
    exchange(stream, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")).await
}

/// A client configuration that accepts any certificate: tests look at the certificate themselves.
pub fn config(alpn: &[&str]) -> ClientConfig {
    let mut config = ClientConfig::builder_with_provider(pki::provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(any_certificate())
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}

/// Accepts any certificate.
pub fn any_certificate() -> Arc<dyn rustls::client::danger::ServerCertVerifier> {
    Arc::new(AnyCertificate)
}

/// A TLS connection; without SNI if `sni` is `None`.
pub async fn tls(to: SocketAddr, sni: Option<&str>, alpn: &[&str]) -> TlsStream<TcpStream> {
    let mut config = config(alpn);
    config.enable_sni = sni.is_some();
    let name = ServerName::try_from(sni.unwrap_or("unnamed.test").to_owned()).unwrap();
    let stream = TcpStream::connect(to).await.unwrap();
    timeout(PATIENCE, TlsConnector::from(Arc::new(config)).connect(name, stream)).await.expect("a handshake").unwrap()
}

/// Result of a connection that may be rejected.
pub struct Served {
    pub kind: Option<HandshakeKind>,
    pub version: Option<ProtocolVersion>,
    pub suite: Option<CipherSuite>,
    pub answer: Answer,
}

/// A `GET /` over TLS with this configuration, for its host; or the error. Under TLS 1.3, a client learns only after
/// its handshake that its certificate was rejected.
pub async fn try_get(to: SocketAddr, config: &Arc<ClientConfig>, host: &str) -> std::io::Result<Served> {
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let attempt = async {
        let stream = TcpStream::connect(to).await?;
        let mut stream = TlsConnector::from(Arc::clone(config)).connect(name, stream).await?;
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        let session = stream.get_ref().1;
        let suite = session.negotiated_cipher_suite().map(|suite| suite.suite());
        let (kind, version) = (session.handshake_kind(), session.protocol_version());
        Ok(Served { kind, version, suite, answer: parse(&text) })
    };
    timeout(PATIENCE, attempt).await.expect("an end")
}

/// The alert that ended a connection.
pub fn alert(error: &std::io::Error) -> AlertDescription {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::AlertReceived(alert)) => *alert,
        _ => panic!("no alert: {error:?}"),
    }
}

/// The configuration with a client certificate.
pub fn showing(mut config: ClientConfig, identity: &Arc<CertifiedKey>) -> ClientConfig {
    config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(Arc::clone(identity)));
    config
}

/// The bytes of a ClientHello for this name.
pub fn hello(name: &str) -> Vec<u8> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut connection = rustls::ClientConnection::new(Arc::new(config(&[])), name).unwrap();
    let mut bytes = Vec::new();
    connection.write_tls(&mut bytes).unwrap();
    bytes
}

/// The certificate that the server presented.
pub fn shown(stream: &TlsStream<TcpStream>) -> CertificateDer<'static> {
    stream.get_ref().1.peer_certificates().unwrap()[0].clone()
}

/// HTTP/2 requests for these `(authority, path)` over one connection with this SNI: status and body of each.
pub async fn get_h2(to: SocketAddr, sni: &str, wanted: &[(&str, &str)]) -> Vec<(StatusCode, String)> {
    let stream = tls(to, Some(sni), &["h2", "http/1.1"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, driver) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(driver);
    let mut answers = Vec::new();
    for (authority, path) in wanted {
        let request = Request::get(format!("https://{authority}{path}")).body(Empty::<Bytes>::new()).unwrap();
        let response = timeout(PATIENCE, sender.send_request(request)).await.expect("an answer").unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        answers.push((status, String::from_utf8(body.to_vec()).unwrap()));
    }
    answers
}

/// The head of the response to a `GET` with these fields over HTTP/2.
pub async fn h2_answer(to: SocketAddr, host: &str, path: &str, fields: &[(&str, &str)]) -> Response<()> {
    let stream = tls(to, Some(host), &["h2"]).await;
    let (mut sender, driver) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(driver);
    let request = fields
        .iter()
        .fold(Request::get(format!("https://{host}{path}")), |request, (name, value)| request.header(*name, *value));
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    timeout(PATIENCE, sender.send_request(request)).await.expect("an answer").unwrap().map(drop)
}

#[derive(Debug)]
struct AnyCertificate;

impl rustls::client::danger::ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: rustls_pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = pki::provider().signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, &algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = pki::provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        pki::provider().signature_verification_algorithms.supported_schemes()
    }
}
