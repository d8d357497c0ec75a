//! A router on a loopback of its own, and a CA trusted by its clients.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;

use anyhow::{Context, Result};
use tempfile::TempDir;
use tests::client::{Answer, Client};
use tests::folder;
use tests::netns::Netns;
use tests::pki::{Ca, Leaf};
use tests::process::Process;
use tests::sluice::{DataPath, Options, Sluice};
use tests::wait::{PATIENCE, wait_until};

/// Port of the router for clear text.
pub const HTTP: u16 = 8080;
/// Port of the router for TLS.
pub const HTTPS: u16 = 8443;

/// An address on loopback.
pub const fn at(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

/// TLS of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Clear text.
    Without,
    /// Terminated by the router.
    Edge,
    /// As `Edge`, and the endpoint has a certificate of the stage's CA.
    Reencrypt,
}

/// Everything except the router itself.
pub struct Stage {
    /// Its namespace.
    pub netns: Netns,
    /// Issuer of all certificates.
    pub ca: Ca,
    manifests: TempDir,
    files: TempDir,
}

impl Stage {
    /// A stage for a router without routes, with further lines of its `spec`.
    ///
    /// # Errors
    /// When the namespace or a file cannot be made.
    pub fn new(role: &str, spec: &str) -> Result<Stage> {
        let stage =
            Stage { netns: Netns::new(role)?, ca: Ca::new()?, manifests: TempDir::new()?, files: TempDir::new()? };
        stage.write("router", &(folder::router() + spec))?;
        Ok(stage)
    }

    /// Starts the router in user space, without draining connections at its end.
    ///
    /// # Errors
    /// When it does not become ready.
    pub fn serve(&self) -> Result<Sluice> {
        self.serve_by(DataPath::UserSpace)
    }

    /// As [`Stage::serve`], on either data path.
    ///
    /// # Errors
    /// When it does not become ready.
    pub fn serve_by(&self, data_path: DataPath) -> Result<Sluice> {
        self.serve_with(Options::loopback(data_path))
    }

    /// As [`Stage::serve`], with other options.
    ///
    /// # Errors
    /// When it does not become ready.
    pub fn serve_with(&self, options: Options) -> Result<Sluice> {
        let arguments = ["--drain", "0"].map(str::to_owned).to_vec();
        Sluice::start(&self.netns, self.manifests.path(), &Options { arguments, ..options })
    }

    /// Writes a manifest atomically.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        folder::replace(&self.manifests.path().join(name).with_extension("yaml"), text)
    }

    /// A Service of this name with these endpoints.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn service(&self, name: &str, endpoints: &[SocketAddr]) -> Result<()> {
        self.write(&format!("service-{name}"), &folder::service_of(name, endpoints))
    }

    /// As [`Stage::service`]; the endpoints speak HTTP/2 in clear text.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn h2c_service(&self, name: &str, endpoints: &[SocketAddr]) -> Result<()> {
        let text = folder::speaking(&folder::service_of(name, endpoints), "h2c");
        self.write(&format!("service-{name}"), &text)
    }

    /// A Route of this name to a Service; returns its host, `NAME.apps.test`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn route(&self, name: &str, service: &str, tls: Tls, annotations: &[(&str, &str)]) -> Result<String> {
        let host = format!("{name}.apps.test");
        self.route_with(name, service, tls, annotations, &self.ca.leaf(&host)?)?;
        Ok(host)
    }

    /// As [`Stage::route`], with a custom certificate.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn route_with(
        &self,
        name: &str,
        service: &str,
        tls: Tls,
        annotations: &[(&str, &str)],
        certificate: &Leaf,
    ) -> Result<()> {
        let spec = match tls {
            Tls::Without => String::new(),
            Tls::Edge => folder::terminated("edge", certificate, ""),
            Tls::Reencrypt => folder::terminated("reencrypt", certificate, &folder::destination_ca(&self.ca.pem())),
        };
        let route = folder::route(name, &format!("{name}.apps.test"), service, &spec);
        self.write(&format!("route-{name}"), &folder::annotated(&route, annotations))
    }

    /// Paths of a certificate and its key for a server of this name.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn certificate(&self, name: &str) -> Result<[String; 2]> {
        let files = self.ca.leaf(name)?.write(self.files.path(), name)?;
        let [certificate, key] = files.map(text);
        Ok([certificate?, key?])
    }

    /// nghttpd, which speaks HTTP/2 in clear text on a loopback port.
    ///
    /// # Errors
    /// When it does not listen.
    pub fn nghttpd(&self, port: u16, arguments: &[&str]) -> Result<Process> {
        let mut command = self.netns.command("nghttpd")?;
        command.args(["--no-tls", "--address=127.0.0.1"]).args(arguments).arg(port.to_string());
        let process = Process::start("nghttpd", &mut command)?;
        self.netns.run(|| wait_until("nghttpd listens", PATIENCE, || TcpStream::connect(at(port)).is_ok()))?;
        Ok(process)
    }

    /// A new folder for files.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn folder(&self, name: &str) -> Result<String> {
        let folder = self.files.path().join(name);
        std::fs::create_dir(&folder)?;
        text(folder)
    }

    /// Path of the CA's certificate.
    ///
    /// # Errors
    /// The path is not UTF-8.
    pub fn ca(&self) -> Result<String> {
        text(self.ca.file())
    }

    /// `curl` that trusts the stage's CA.
    ///
    /// # Errors
    /// When it fails; the error has its output.
    pub fn curl(&self, url: &str, arguments: &[&str]) -> Result<Answer> {
        let ca = self.ca()?;
        self.client().curl(url, &[&["--cacert", &ca][..], arguments].concat())
    }

    /// A client on the stage, which does not trust the stage's CA.
    pub fn client(&self) -> Client<'_> {
        Client::of(&self.netns, Ipv4Addr::LOCALHOST.into())
    }
}

fn text(path: PathBuf) -> Result<String> {
    path.into_os_string().into_string().ok().context("the path of a temporary file is no text")
}
