//! Debian's nginx as a backend.

use std::fmt::Write as _;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::demo_certificate;
use crate::netns::Netns;
use crate::process::Process;
use crate::wait::{self, PATIENCE};

/// One `server` block. It responds with one line: its name, the TLS version and SNI of the connection, the path, and
/// `X-Forwarded-Proto`. Under `/file/` it serves the files in [`Nginx::files`], two megabytes a second.
pub struct Server<'a> {
    /// Its name.
    pub name: &'a str,
    /// Listening address.
    pub listen: SocketAddr,
    /// Path of its certificate and key, without the endings `.crt` and `.key`; one without a folder is in
    /// `examples/demo-certificates`. `None`: clear text.
    pub certificate: Option<PathBuf>,
}

/// A running nginx.
pub struct Nginx {
    process: Process,
    folder: TempDir,
}

impl Nginx {
    /// Starts it and waits until all its addresses listen.
    ///
    /// # Errors
    /// When it does not start; the error has its output.
    pub fn start(netns: &Netns, servers: &[Server<'_>]) -> Result<Nginx> {
        let folder = TempDir::new()?;
        let blocks = blocks(folder.path(), servers)?;
        let addresses: Vec<SocketAddr> = servers.iter().map(|server| server.listen).collect();
        Nginx::run(netns, folder, &addresses, &blocks)
    }

    /// As [`Nginx::start`], with custom `server` blocks, which listen on these addresses.
    ///
    /// # Errors
    /// When it does not start; the error has its output.
    pub fn with(netns: &Netns, addresses: &[SocketAddr], blocks: &str) -> Result<Nginx> {
        Nginx::run(netns, TempDir::new()?, addresses, blocks)
    }

    fn run(netns: &Netns, folder: TempDir, addresses: &[SocketAddr], blocks: &str) -> Result<Nginx> {
        fs::create_dir(folder.path().join("file"))?;
        let config = folder.path().join("nginx.conf");
        fs::write(&config, configuration(folder.path(), blocks))?;
        let mut command = netns.command("nginx")?;
        command.arg("-e").arg("stderr").arg("-p").arg(folder.path()).arg("-c").arg(&config);
        let process = Process::start("nginx", &mut command)?;
        let nginx = Nginx { process, folder };
        for address in addresses {
            netns
                .run(|| {
                    wait::wait_until(&format!("nginx listens on {address}"), PATIENCE, || {
                        TcpStream::connect(address).is_ok()
                    })
                })
                .with_context(|| format!("nginx printed:\n{}", nginx.process.output().join("\n")))?;
        }
        Ok(nginx)
    }

    /// Stops it gracefully, after all pending responses.
    ///
    /// # Errors
    /// It does not end.
    pub fn quit(mut self) -> Result<()> {
        self.process.signal(Signal::QUIT)?;
        self.process.ended(PATIENCE).map(drop)
    }

    /// Process id of its master.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Folder served under `/file/`.
    pub fn files(&self) -> PathBuf {
        self.folder.path().join("file")
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // On SIGTERM, the master ends its workers; if it is killed, they stay.
        if let Err(error) = self.process.terminate(PATIENCE) {
            eprintln!("nginx may have left workers behind: {error:#}");
        }
    }
}

/// The backends of the quickstart, on one address: clear text for `hello` and
/// `edge`, TLS for `passthrough` and `reencrypt`.
pub fn quickstart(address: std::net::IpAddr) -> [Server<'static>; 4] {
    let server = |name, port, certificate: Option<&str>| Server {
        name,
        listen: SocketAddr::new(address, port),
        certificate: certificate.map(PathBuf::from),
    };
    [
        server("hello", 18080, None),
        server("edge", 18081, None),
        server("passthrough", 18443, Some("demo-only-passthrough")),
        server("reencrypt", 18444, Some("demo-only-reencrypt-backend")),
    ]
}

fn configuration(folder: &Path, blocks: &str) -> String {
    let folder = folder.display();
    format!(
        "daemon off; user root; worker_processes 1; pid {folder}/nginx.pid; error_log stderr;\n\
         events {{ worker_connections 1024; }}\n\
        http {{\n access_log off; server_tokens off; ssl_protocols TLSv1.2 TLSv1.3;\n client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;\n \
         fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;\n{blocks}}}\n"
    )
}

fn blocks(folder: &Path, servers: &[Server<'_>]) -> Result<String> {
    let folder = folder.display();
    let mut text = String::new();
    for Server { name, listen, certificate } in servers {
        let tls = if certificate.is_some() { " ssl" } else { "" };
        writeln!(text, " server {{\n  listen {listen}{tls};")?;
        if let Some(stem) = certificate {
            let [certificate, key] = ["crt", "key"].map(|ending| demo_certificate(stem.with_extension(ending)));
            writeln!(text, "  ssl_certificate {};\n  ssl_certificate_key {};", certificate.display(), key.display())?;
        }
        writeln!(
            text,
            "  location / {{ default_type text/plain; return 200 \"nginx {name} tls=$ssl_protocol \
             sni=$ssl_server_name uri=$request_uri proto=$http_x_forwarded_proto\\n\"; }}\n  \
             location /file/ {{ root {folder}; limit_rate 2m; }}\n }}"
        )?;
    }
    Ok(text)
}
