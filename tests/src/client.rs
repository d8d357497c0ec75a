//! Third-party clients: `curl` and `openssl s_client`, inside a namespace.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::netns::Netns;
use crate::{command, demo_ca};

/// A client of a router.
pub struct Client<'n> {
    /// Its namespace.
    pub netns: &'n Netns,
    /// Address of the router; `None`: whatever the URL's host resolves to.
    pub router: Option<IpAddr>,
    /// `curl --interface`: its source address.
    pub from: Option<IpAddr>,
}

/// A response as `curl` received it.
#[derive(Debug)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Header lines, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: String,
}

impl Answer {
    /// The first header line of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

impl<'n> Client<'n> {
    /// A client that resolves names itself.
    pub fn new(netns: &'n Netns) -> Client<'n> {
        Client { netns, router: None, from: None }
    }

    /// A client that connects to one address, whatever the URL's host.
    pub fn of(netns: &'n Netns, router: IpAddr) -> Client<'n> {
        Client { netns, router: Some(router), from: None }
    }

    /// `curl` with further arguments. It trusts only the demo CA.
    ///
    /// # Errors
    /// When `curl` fails; the error has its output.
    pub fn curl(&self, url: &str, arguments: &[&str]) -> Result<Answer> {
        let output = command::output(self.command(url)?.arg("--include").args(arguments))?;
        parse(&String::from_utf8(output.stdout)?)
    }

    /// `curl` into a file.
    ///
    /// # Errors
    /// When `curl` fails; the error has its output.
    pub fn download(&self, url: &str, file: &Path) -> Result<()> {
        command::output(self.command(url)?.arg("--fail").arg("--output").arg(file)).map(drop)
    }

    /// `curl` with only the URL.
    ///
    /// # Errors
    /// When `curl` fails; the error has its output.
    pub fn get(&self, url: &str) -> Result<Answer> {
        self.curl(url, &[])
    }

    /// `openssl s_client`: one request over TLS; verifies the certificate against `name`. Returns its entire output.
    ///
    /// # Errors
    /// When the handshake or the verification fails; the error has its output.
    pub fn s_client(&self, router: SocketAddr, name: &str, path: &str) -> Result<String> {
        let mut command = self.netns.command("openssl")?;
        command.args(["s_client", "-connect", &router.to_string(), "-servername", name, "-verify_hostname", name]);
        command.arg("-CAfile").arg(demo_ca()).args(["-verify_return_error", "-ign_eof"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("openssl cannot be run")?;
        let mut stdin = child.stdin.take().context("stdin is piped")?;
        write!(stdin, "GET {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n")?;
        let output = child.wait_with_output()?;
        drop(stdin);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            bail!("openssl s_client failed: {}\n{text}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(text)
    }
}

impl Client<'_> {
    /// `curl` with only the arguments that resolve and trust the router.
    ///
    /// # Errors
    /// When the namespace cannot be handed on.
    pub fn command(&self, url: &str) -> Result<Command> {
        let mut command = self.netns.command("curl")?;
        command.args(["--silent", "--show-error", "--max-time", "60", "--noproxy", "*"]);
        command.arg("--cacert").arg(demo_ca());
        if let Some(router) = self.router {
            let address = if router.is_ipv6() { format!("[{router}]") } else { router.to_string() };
            command.args(["--connect-to", &format!("::{address}:")]);
        }
        if let Some(from) = self.from {
            command.args(["--interface", &from.to_string()]);
        }
        command.arg(url);
        Ok(command)
    }
}

fn parse(text: &str) -> Result<Answer> {
    let (head, body) = text.split_once("\r\n\r\n").with_context(|| format!("no HTTP answer: {text:?}"))?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Ok(Answer { status: status.context("no status code")?, headers, body: body.to_owned() })
}

/// The settings of a TLS client in this process that trusts only the demo CA.
///
/// # Errors
/// When the CA cannot be read.
pub fn trusting_the_demo_ca() -> Result<Arc<ClientConfig>> {
    trusting(&std::fs::read(demo_ca())?).map(Arc::new)
}

/// Settings of a TLS client in this process that trusts only the CAs of a PEM text.
///
/// # Errors
/// The text is invalid.
pub fn trusting(pem: &[u8]) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots(pem)?)
        .with_no_client_auth();
    Ok(config)
}

/// The CAs of a PEM text.
///
/// # Errors
/// The text is invalid.
pub fn roots(pem: &[u8]) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate?)?;
    }
    Ok(roots)
}
