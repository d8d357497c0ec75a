//! ClientHellos of a real client, for connections that need no TLS afterwards: a passthrough route reads nothing after
//! the hello.

use std::sync::Arc;

use anyhow::{Context, Result};
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use rustls_pki_types::ServerName;

/// The first flight of a rustls client with SNI `name` and a post-quantum key share: some 1.5 KB.
///
/// # Errors
/// When `name` is no DNS name.
pub fn client_hello(name: &str) -> Result<Vec<u8>> {
    hello_by(name, rustls::crypto::aws_lc_rs::default_provider())
}

/// As [`client_hello`], without post-quantum key exchange: some 250 bytes, as most clients sent until 2024.
///
/// # Errors
/// When `name` is no DNS name.
pub fn short_hello(name: &str) -> Result<Vec<u8>> {
    let kx_groups = vec![rustls::crypto::aws_lc_rs::kx_group::X25519];
    hello_by(name, CryptoProvider { kx_groups, ..rustls::crypto::aws_lc_rs::default_provider() })
}

fn hello_by(name: &str, provider: CryptoProvider) -> Result<Vec<u8>> {
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).context("a DNS name")?;
    let mut connection = ClientConnection::new(Arc::new(config), name)?;
    let mut hello = Vec::new();
    connection.write_tls(&mut hello)?;
    Ok(hello)
}
