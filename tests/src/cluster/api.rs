//! A client of an API server: one connection of HTTP/1.1, whose calls block. Calls of several threads wait for one another.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_rustls::TlsConnector;

use crate::client::roots;
use crate::netns::Netns;
use crate::pki::Leaf;
use crate::stream;
use crate::wait::PATIENCE;

/// The client of a user.
pub struct Api {
    netns: Netns,
    server: SocketAddr,
    tls: Arc<ClientConfig>,
    connection: Mutex<Connection>,
}

/// A connection, as long as it lives; the runtime drives it during a call.
struct Connection {
    runtime: Runtime,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Api {
    /// A client in a namespace; it connects on its first call.
    ///
    /// # Errors
    /// When the certificates are invalid.
    pub fn new(netns: &Netns, server: SocketAddr, ca: &str, user: &Leaf) -> Result<Api> {
        let chain = vec![CertificateDer::from_pem_slice(user.certificate.as_bytes())?];
        let key = PrivateKeyDer::from_pem_slice(user.key.as_bytes())?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots(ca.as_bytes())?)
            .with_client_auth_cert(chain, key)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let connection = Mutex::new(Connection { runtime, sender: None });
        Ok(Api { netns: netns.clone(), server, tls: Arc::new(tls), connection })
    }

    /// An object, a list, or another document in JSON.
    ///
    /// # Errors
    /// When the server does not answer 200 with JSON.
    pub fn get(&self, path: &str) -> Result<Value> {
        self.call(Method::GET, path, "", String::new())
    }

    /// Creates an object of a collection.
    ///
    /// # Errors
    /// When the server rejects it.
    pub fn create(&self, collection: &str, object: &Value) -> Result<Value> {
        self.call(Method::POST, collection, "application/json", object.to_string())
    }

    /// Replaces an object, or a subresource.
    ///
    /// # Errors
    /// When the server rejects it.
    pub fn replace(&self, path: &str, object: &Value) -> Result<Value> {
        self.call(Method::PUT, path, "application/json", object.to_string())
    }

    /// Changes an object, or a subresource, by a JSON merge patch (RFC 7396).
    ///
    /// # Errors
    /// When the server rejects it.
    pub fn patch(&self, path: &str, patch: &Value) -> Result<Value> {
        self.call(Method::PATCH, path, "application/merge-patch+json", patch.to_string())
    }

    /// Deletes an object, or all of a collection.
    ///
    /// # Errors
    /// When the server rejects it.
    pub fn delete(&self, path: &str) -> Result<Value> {
        self.call(Method::DELETE, path, "", String::new())
    }

    /// Any request; returns the status and the body.
    ///
    /// # Errors
    /// When there is no complete answer.
    pub fn request(&self, method: Method, path: &str, media: &str, body: String) -> Result<(StatusCode, Bytes)> {
        self.request_as("application/json", method, path, media, body)
    }

    /// Any request for an answer of a media type, such as one of metadata alone.
    ///
    /// # Errors
    /// When there is no complete answer.
    pub fn request_as(
        &self,
        accept: &str,
        method: Method,
        path: &str,
        media: &str,
        body: String,
    ) -> Result<(StatusCode, Bytes)> {
        let request = self.head(method, path, media).header(header::ACCEPT, accept).body(Full::from(body))?;
        let Connection { runtime, sender } = &mut *self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let answered = async {
            let answer = self.send(sender, request).await?;
            let status = answer.status();
            Ok((status, answer.into_body().collect().await?.to_bytes()))
        };
        let answered = runtime.block_on(async { tokio::time::timeout(PATIENCE, answered).await });
        answered.with_context(|| format!("{path} is not answered within {PATIENCE:?}"))?
    }

    /// Watches a collection until the object of this name fulfils a condition; returns the object.
    ///
    /// # Errors
    /// When the deadline passes; the error has the last version of the object.
    pub fn wait_for(
        &self,
        collection: &str,
        name: &str,
        within: Duration,
        mut condition: impl FnMut(&Value) -> bool,
    ) -> Result<Value> {
        let until = Instant::now() + within;
        let mut last = Value::Null;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let seconds = left.as_secs().max(1);
            let path = format!("{collection}?watch=true&fieldSelector=metadata.name%3D{name}&timeoutSeconds={seconds}");
            // The watch begins with the object as it is, if it exists.
            let found = self.watch(&path, left, |event| {
                last = event["object"].clone();
                event["type"] != "DELETED" && condition(&last)
            })?;
            if found {
                return Ok(last);
            }
            ensure!(Instant::now() < until, "not within {within:?}: {name} of {collection}; it is {last:#}");
        }
    }

    /// Reads a watch until an event is the wanted one; false if the server ends it before, or the time is over.
    fn watch(&self, path: &str, within: Duration, mut wanted: impl FnMut(&Value) -> bool) -> Result<bool> {
        let request =
            self.head(Method::GET, path, "").header(header::ACCEPT, "application/json").body(Full::default())?;
        let Connection { runtime, sender } = &mut *self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let found = async {
            let answer = self.send(sender, request).await?;
            ensure!(answer.status().is_success(), "{path}: the server answers {}", answer.status());
            let mut body = answer.into_body();
            let mut received = Vec::new();
            while let Some(frame) = body.frame().await {
                received.extend_from_slice(frame?.data_ref().map_or(&[][..], |data| data));
                while let Some(end) = received.iter().position(|&byte| byte == b'\n') {
                    let line: Vec<u8> = received.drain(..=end).collect();
                    let event: Value = serde_json::from_slice(&line).context("an event of a watch is JSON")?;
                    ensure!(event["type"] != "ERROR", "{path}: {}", event["object"]["message"]);
                    if wanted(&event) {
                        // What is left of the answer goes with the connection.
                        *sender = None;
                        return Ok(true);
                    }
                }
            }
            Ok(false)
        };
        let found = runtime.block_on(async { tokio::time::timeout(within, found).await });
        found.unwrap_or_else(|_| {
            // As above.
            *sender = None;
            Ok(false)
        })
    }

    fn call(&self, method: Method, path: &str, media: &str, body: String) -> Result<Value> {
        let (status, answer) = self.request(method.clone(), path, media, body)?;
        if !status.is_success() {
            bail!("{method} {path}: {status}: {}", String::from_utf8_lossy(&answer));
        }
        serde_json::from_slice(&answer)
            .with_context(|| format!("{method} {path}: {}", String::from_utf8_lossy(&answer)))
    }

    fn head(&self, method: Method, path: &str, media: &str) -> http::request::Builder {
        let head = Request::builder().method(method).uri(path).header(header::HOST, self.server.to_string());
        let head = head.header(header::USER_AGENT, "tests");
        if media.is_empty() { head } else { head.header(header::CONTENT_TYPE, media) }
    }

    async fn send(
        &self,
        sender: &mut Option<SendRequest<Full<Bytes>>>,
        mut request: Request<Full<Bytes>>,
    ) -> Result<http::Response<Incoming>> {
        if let Some(mut connected) = sender.take()
            && connected.ready().await.is_ok()
        {
            match connected.try_send_request(request).await {
                Ok(answer) => {
                    *sender = Some(connected);
                    return Ok(answer);
                }
                // The server has closed the connection since the last call.
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(error.into_error().into()),
                },
            }
        }
        let mut connected = self.connect().await?;
        let answer = connected.send_request(request).await?;
        *sender = Some(connected);
        Ok(answer)
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>> {
        let stream = stream::open(&self.netns, self.server)?;
        stream.set_nonblocking(true)?;
        let name = ServerName::from(self.server.ip());
        let stream = TlsConnector::from(Arc::clone(&self.tls)).connect(name, TcpStream::from_std(stream)?).await?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // Its errors are those of the calls.
        tokio::spawn(connection);
        Ok(sender)
    }
}
