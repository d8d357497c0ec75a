//! nginx, HAProxy, Node's server and gunicorn, each as installed and as lenient as can be configured. They keep
//! connections, respond with `[NAME HOST METHOD TARGET]`, and log requests.

use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;

use anyhow::{Context, Result};
use tempfile::TempDir;
use tests::netns::Netns;
use tests::nginx::Nginx;
use tests::process::Process;
use tests::wait::{PATIENCE, wait_until};
use tests::{python, workspace};

use super::super::stage::at;

/// How a server treats invalid requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// As installed.
    Usual,
    /// As lenient as its settings allow.
    Lenient,
}

/// The servers of one manner: their names are those of the hosts that they own.
pub struct Origin {
    pub name: &'static str,
    pub port: u16,
    server: Server,
}

enum Server {
    Nginx(Nginx),
    /// Node, gunicorn, HAProxy.
    Other(Process),
}

/// An origin's log of a request.
pub enum Seen {
    Request(Request),
    /// An unreadable one.
    Malformed(String),
}

/// A request as an origin parsed it.
#[derive(Debug)]
pub struct Request {
    pub host: String,
    pub method: String,
    pub target: String,
}

/// Starts one of each, on ports from this one on.
pub fn start(netns: &Netns, manner: Manner, port: u16) -> Result<Vec<Origin>> {
    let names = match manner {
        Manner::Usual => ["nginx", "haproxy", "node", "gunicorn"],
        Manner::Lenient => ["nginx-lenient", "haproxy-lenient", "node-lenient", "gunicorn-lenient"],
    };
    let starters = [nginx, haproxy, node, gunicorn];
    let origins = names.into_iter().zip(starters).zip(port..).map(|((name, start), port)| {
        let server = start(netns, name, port, manner).with_context(|| format!("starting {name}"))?;
        Ok(Origin { name, port, server })
    });
    origins.collect()
}

fn nginx(netns: &Netns, name: &str, port: u16, manner: Manner) -> Result<Server> {
    let address = at(port);
    let settings = match manner {
        Manner::Usual => "",
        Manner::Lenient => "ignore_invalid_headers off; underscores_in_headers on; merge_slashes off;",
    };
    let block = format!(
        "log_format story \"$http_host\\t$request_method\\t$request_uri\\t$status\\t$request\";\n\
         server {{ listen {address}; access_log file/log story; keepalive_requests 1000000; keepalive_timeout 600; \
         {settings} location / {{ default_type text/plain; \
         return 200 \"[{name}\\t$http_host\\t$request_method\\t$request_uri]\"; }} }}\n"
    );
    Nginx::with(netns, &[address], &block).map(Server::Nginx)
}

fn haproxy(netns: &Netns, name: &str, port: u16, manner: Manner) -> Result<Server> {
    let address = at(port);
    let settings = match manner {
        Manner::Usual => "",
        Manner::Lenient => "option accept-invalid-http-request",
    };
    let folder = TempDir::new()?;
    let file = folder.path().join("haproxy.cfg");
    // It responds once it has the entire content, as a server behind it would.
    let configuration = format!(
        r#"
global
  log stdout format raw local0
  nbthread 1
defaults
  mode http
  log global
  option dontlognull
  option http-buffer-request
  timeout connect 600s
  timeout client 600s
  timeout server 600s
  timeout http-keep-alive 600s
frontend {name}
  bind {address}
  {settings}
  http-request capture req.hdr(host) len 200
  log-format "%[capture.req.hdr(0)]\t%[capture.req.method]\t%[capture.req.uri]\t%ST\t%tsc"
  http-request return status 200 content-type text/plain lf-string "[{name}\t%[req.hdr(host)]\t%[method]\t%[pathq]]"
"#
    );
    fs::write(&file, configuration)?;
    let mut process = Process::start("haproxy", netns.command("haproxy")?.args(["-db", "-f"]).arg(file))?;
    netns.run(|| {
        wait_until("HAProxy listens or ends", PATIENCE, || TcpStream::connect(address).is_ok() || !process.runs())
    })?;
    anyhow::ensure!(process.runs(), "HAProxy has ended, printing:\n{}", process.output().join("\n"));
    Ok(Server::Other(process))
}

fn node(netns: &Netns, name: &str, port: u16, manner: Manner) -> Result<Server> {
    let program: PathBuf = workspace().join("tests/programs/node_origin.js");
    let mut command = netns.command("node")?;
    let mut process = Process::start("node", command.arg(program).args([name, &port.to_string(), of(manner)]))?;
    process.wait_for_line("ready", PATIENCE)?;
    Ok(Server::Other(process))
}

fn gunicorn(netns: &Netns, name: &str, port: u16, manner: Manner) -> Result<Server> {
    let process = python::server(netns, "gunicorn_origin", &[name, &port.to_string(), of(manner)])?;
    Ok(Server::Other(process))
}

fn of(manner: Manner) -> &'static str {
    match manner {
        Manner::Usual => "usual",
        Manner::Lenient => "lenient",
    }
}

impl Origin {
    /// Its host.
    pub fn host(&self) -> String {
        host(self.name)
    }

    /// All requests that it has received.
    pub fn seen(&self) -> Result<Vec<Seen>> {
        let lines = match &self.server {
            Server::Nginx(nginx) => {
                let log = fs::read(nginx.files().join("log"))?;
                String::from_utf8_lossy(&log).lines().map(str::to_owned).collect()
            }
            Server::Other(process) => process.output(),
        };
        Ok(lines.iter().filter_map(|line| read(line)).collect())
    }
}

/// The host of an origin of this name.
pub fn host(name: &str) -> String {
    format!("{name}.apps.test")
}

/// Parses a line of an origin's log; some have a status, and more, after the target.
fn read(line: &str) -> Option<Seen> {
    let mut parts = line.split('\t');
    let (Some(host), Some(method), Some(target)) = (parts.next(), parts.next(), parts.next()) else {
        return line.starts_with("MALFORMED").then(|| Seen::Malformed(line.to_owned()));
    };
    if parts.next().is_some_and(|status| status != "200") {
        return Some(Seen::Malformed(line.to_owned()));
    }
    let [host, method, target] = [host, method, target].map(str::to_owned);
    Some(Seen::Request(Request { host, method, target }))
}
