//! A client with one connection of HTTP/2, which reads answers by parts.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls_pki_types::ServerName;
use serde_json::Value;
use tests::client::trusting;
use tests::cluster::mock::MockApiServer;
use tests::wait::PATIENCE;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Time in which something must not happen.
const SILENCE: Duration = Duration::from_millis(300);

/// The client; its connection is driven while it waits.
pub struct Client {
    runtime: Runtime,
    sender: SendRequest<Empty<Bytes>>,
    address: String,
}

/// An answer that is being read.
pub struct Answer {
    /// Status and header fields.
    pub head: Response<()>,
    body: Incoming,
    read: Vec<u8>,
}

impl Client {
    /// Connects.
    pub fn connect(mock: &MockApiServer) -> Result<Client> {
        let mut config = trusting(mock.ca_pem().as_bytes())?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        let (address, runtime) = (mock.address(), Builder::new_current_thread().enable_all().build()?);
        let connecting = async {
            let stream = TcpStream::connect(address).await?;
            let stream = TlsConnector::from(Arc::new(config)).connect(ServerName::from(address.ip()), stream).await?;
            let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
            // Its errors are those of the requests.
            tokio::spawn(connection);
            Ok::<_, anyhow::Error>(sender)
        };
        let sender = runtime.block_on(async { timeout(PATIENCE, connecting).await })??;
        Ok(Client { runtime, sender, address: address.to_string() })
    }

    /// Sends a request and waits until its answer begins.
    pub fn get(&mut self, path: &str) -> Result<Answer> {
        self.get_within(PATIENCE, path, "")?.with_context(|| format!("{path} is not answered"))
    }

    /// Asserts that a request is not answered.
    pub fn get_nothing(&mut self, path: &str) -> Result<()> {
        let answer = self.get_within(SILENCE, path, "")?;
        ensure!(answer.is_none(), "{path} is answered");
        Ok(())
    }

    /// As [`Client::get`], with a bearer token.
    pub fn get_with(&mut self, path: &str, token: &str) -> Result<Answer> {
        self.get_within(PATIENCE, path, token)?.with_context(|| format!("{path} is not answered"))
    }

    fn get_within(&mut self, time: Duration, path: &str, token: &str) -> Result<Option<Answer>> {
        let mut request = Request::get(format!("https://{}{path}", self.address));
        if !token.is_empty() {
            request = request.header(http::header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Empty::new())?;
        let asked = async {
            self.sender.ready().await?;
            self.sender.send_request(request).await
        };
        let Ok(answer) = self.runtime.block_on(async { timeout(time, asked).await }) else { return Ok(None) };
        let (head, body) = answer?.into_parts();
        Ok(Some(Answer { head: Response::from_parts(head, ()), body, read: Vec::new() }))
    }

    /// The rest of an answer.
    pub fn rest(&mut self, answer: Answer) -> Result<Bytes> {
        Ok(self.runtime.block_on(async { timeout(PATIENCE, answer.body.collect()).await })??.to_bytes())
    }

    /// The rest of an answer as JSON.
    pub fn json(&mut self, path: &str) -> Result<Value> {
        let answer = self.get(path)?;
        ensure!(answer.head.status() == StatusCode::OK, "{path}: {}", answer.head.status());
        Ok(serde_json::from_slice(&self.rest(answer)?)?)
    }

    /// The next event of a watch: its type and the name of its object; `None` at its end.
    pub fn event(&mut self, watch: &mut Answer) -> Result<Option<(String, String)>> {
        let line = self.line(PATIENCE, watch)?.context("no event comes")?;
        let Some(line) = line else { return Ok(None) };
        let event: Value = serde_json::from_slice(&line)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(Some((text(&event["type"]), text(&event["object"]["metadata"]["name"]))))
    }

    /// Asserts that no event comes.
    pub fn no_event(&mut self, watch: &mut Answer) -> Result<()> {
        let line = self.line(SILENCE, watch)?;
        ensure!(line.is_none(), "an event comes: {line:?}");
        Ok(())
    }

    /// The next line, if one comes in time and the answer does not end before.
    fn line(&mut self, time: Duration, answer: &mut Answer) -> Result<Option<Option<Vec<u8>>>> {
        let reading = async {
            loop {
                if let Some(end) = answer.read.iter().position(|&byte| byte == b'\n') {
                    return Ok(Some(answer.read.drain(..=end).collect()));
                }
                let Some(frame) = answer.body.frame().await else { return Ok(None) };
                answer.read.extend_from_slice(frame?.data_ref().map_or(&[][..], |data| data));
            }
        };
        self.runtime.block_on(async { timeout(time, reading).await }).ok().transpose()
    }
}
