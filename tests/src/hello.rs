//! Real ClientHellos, for connections whose rest need not be TLS: a passthrough route reads nothing after the hello.

use std::sync::Arc;

use anyhow::{Context, Result};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use rustls_pki_types::ServerName;

/// The first flight of a rustls client that asks for `name`, with its post-quantum key share: some 1.5 KB.
///
/// # Errors
/// When `name` is no DNS name.
pub fn client_hello(name: &str) -> Result<Vec<u8>> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).context("a DNS name")?;
    let mut connection = ClientConnection::new(Arc::new(config), name)?;
    let mut hello = Vec::new();
    connection.write_tls(&mut hello)?;
    Ok(hello)
}
