//! A client of the route with terminated TLS.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;
use tests::client::trusting_the_demo_ca;
use tests::wait::PATIENCE;

use super::patient;
use crate::survival::stage::{EDGE, ROUTER};

/// Trusts only the demo CA.
pub struct Https(Arc<ClientConfig>);

impl Https {
    /// One client for any number of connections.
    ///
    /// # Errors
    /// When the CA cannot be read.
    pub fn new() -> Result<Https> {
        Ok(Https(trusting_the_demo_ca()?))
    }

    /// One request on a new connection; appends the response's body, and calls `begun` at its beginning. Runs in the
    /// clients' namespace.
    ///
    /// # Errors
    /// The connection fails, or the status is no success.
    pub fn get(&self, path: &str, body: &mut Vec<u8>, begun: impl FnOnce()) -> Result<()> {
        let tcp = TcpStream::connect_timeout(&ROUTER, PATIENCE).context("connecting")?;
        patient(&tcp)?;
        let session = ClientConnection::new(Arc::clone(&self.0), ServerName::try_from(EDGE)?)?;
        let mut tls = StreamOwned::new(session, tcp);
        write!(tls, "GET {path} HTTP/1.1\r\nHost: {EDGE}\r\nConnection: close\r\n\r\n").context("the request")?;
        let mut head = Vec::new();
        let end = b"\r\n\r\n";
        let mut byte = [0];
        while !head.ends_with(end) {
            tls.read_exact(&mut byte).context("the answer's head")?;
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        ensure!(head.starts_with("HTTP/1.1 200 "), "{head}");
        begun();
        tls.read_to_end(body).context("the answer's body")?;
        ensure!(!body.is_empty(), "an answer without a body");
        Ok(())
    }
}
