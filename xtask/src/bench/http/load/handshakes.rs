//! A client that never comes back to a session: every connection is a full handshake.

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, anyhow, ensure};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConfig, Resumption};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConnection, DigitallySignedStruct, HandshakeKind, ProtocolVersion, SignatureScheme, StreamOwned};

use super::client::{Client, in_threads, open};
use super::outcome::Outcome;

/// Connections one after the other on each thread, with the names in turn.
pub fn run(client: Client, names: &[&str]) -> Result<Outcome> {
    let asked: Vec<(ServerName<'static>, String)> = names
        .iter()
        .map(|name| {
            let server = ServerName::try_from((*name).to_owned()).with_context(|| format!("{name:?} is no name"))?;
            Ok((server, request(name)))
        })
        .collect::<Result<_>>()?;
    ensure!(!asked.is_empty(), "there is no name to ask for");
    let (config, next) = (configuration()?, AtomicUsize::new(0));
    let (config, next, asked) = (&config, &next, &asked);
    in_threads(client, |_| {
        // A thread's generator collects entropy at its first use, for as long as many handshakes take.
        config
            .crypto_provider()
            .secure_random
            .fill(&mut [0; 32])
            .map_err(|_| anyhow!("there are no random numbers"))?;
        Ok(move || {
            let (name, request) = &asked[next.fetch_add(1, Ordering::Relaxed) % asked.len()];
            once(client, config, name, request)
        })
    })
}

/// The same in clear text, with one name.
pub fn run_in_clear_text(client: Client, name: &str) -> Result<Outcome> {
    let request = &request(name);
    in_threads(client, |_| Ok(move || ask(&mut open(client.to)?, request)))
}

fn request(name: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n")
}

/// The router closes first, because the request says so.
fn ask(stream: &mut (impl Read + Write), request: &str) -> Result<()> {
    stream.write_all(request.as_bytes()).context("sending the request")?;
    let mut answer = Vec::with_capacity(1024);
    match stream.read_to_end(&mut answer) {
        // Not every router says goodbye in TLS before it closes.
        Err(error) if error.kind() != ErrorKind::UnexpectedEof => return Err(error).context("reading the answer"),
        _ => {}
    }
    ensure!(answer.starts_with(b"HTTP/1.1 200 "), "answered: {}", String::from_utf8_lossy(&answer));
    Ok(())
}

/// One connection.
fn once(client: Client, config: &Arc<ClientConfig>, name: &ServerName<'static>, request: &str) -> Result<()> {
    let connection = ClientConnection::new(Arc::clone(config), name.clone())?;
    let mut stream = StreamOwned::new(connection, open(client.to)?);
    ask(&mut stream, request)?;
    let tls = &stream.conn;
    ensure!(tls.handshake_kind() == Some(HandshakeKind::Full), "the handshake was not full");
    ensure!(tls.protocol_version() == Some(ProtocolVersion::TLSv1_3), "another version than TLS 1.3");
    Ok(())
}

/// TLS 1.3 with X25519 and AES-128-GCM, which every router has; nothing is resumed.
fn configuration() -> Result<Arc<ClientConfig>> {
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = vec![aws_lc_rs::kx_group::X25519];
    provider.cipher_suites = vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256];
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Unverified))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// Verifies nothing: checking a signature costs more than making one, and it is the router that is measured.
#[derive(Debug)]
struct Unverified;

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}
