//! Debian's nginx as a backend.

use std::fmt::Write as _;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::demo_certificate;
use crate::netns::Netns;
use crate::process::Process;
use crate::wait::{self, PATIENCE};

/// One `server` block. It answers one line: its name, the TLS version and SNI that it saw, the path, and
/// `X-Forwarded-Proto`. Under `/file/` it serves what is in [`Nginx::files`], two megabytes a second.
pub struct Server<'a> {
    /// What it calls itself.
    pub name: &'a str,
    /// Where it listens.
    pub listen: SocketAddr,
    /// Its certificate and key are in this file with the endings `.crt` and `.key`; one without a folder is in
    /// `examples/demo-certificates`. `None`: clear text.
    pub certificate: Option<PathBuf>,
}

/// A running nginx.
pub struct Nginx {
    process: Process,
    folder: TempDir,
}

impl Nginx {
    /// Starts it and waits until it listens everywhere.
    ///
    /// # Errors
    /// When it does not start, with what it printed.
    pub fn start(netns: &Netns, servers: &[Server<'_>]) -> Result<Nginx> {
        let folder = TempDir::new()?;
        fs::create_dir(folder.path().join("file"))?;
        let config = folder.path().join("nginx.conf");
        fs::write(&config, configuration(folder.path(), servers)?)?;
        let mut command = netns.command("nginx")?;
        command.arg("-e").arg("stderr").arg("-p").arg(folder.path()).arg("-c").arg(&config);
        let process = Process::start("nginx", &mut command)?;
        let nginx = Nginx { process, folder };
        for server in servers {
            netns
                .run(|| {
                    wait::wait_until(&format!("nginx listens on {}", server.listen), PATIENCE, || {
                        TcpStream::connect(server.listen).is_ok()
                    })
                })
                .with_context(|| format!("nginx printed:\n{}", nginx.process.output().join("\n")))?;
        }
        Ok(nginx)
    }

    /// Folder of what is served under `/file/`.
    pub fn files(&self) -> PathBuf {
        self.folder.path().join("file")
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

fn configuration(folder: &Path, servers: &[Server<'_>]) -> Result<String> {
    let folder = folder.display();
    let mut text = format!(
        "daemon off; user root; worker_processes 1; pid {folder}/nginx.pid; error_log stderr;\n\
         events {{ worker_connections 1024; }}\n\
        http {{\n access_log off; server_tokens off; ssl_protocols TLSv1.2 TLSv1.3;\n client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;\n \
         fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;\n"
    );
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
    text.push_str("}\n");
    Ok(text)
}
