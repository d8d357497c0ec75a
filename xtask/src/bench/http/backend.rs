//! Who answers, the same for every way: nginx, and a backend of our own for WebSockets and uploads.

use std::fs;

use anyhow::{Context, Result, ensure};

use super::load::websocket::LISTENING;
use super::rows;
use crate::bench::network::{DESCRIPTORS, Network};
use crate::bench::programs::Peer;
use crate::bench::tools::Tools;
use crate::process::{Running, Server};

/// Where requests are answered.
pub const WEB_PORT: u16 = 9080;
/// Where WebSockets and uploads are.
pub const ECHO_PORT: u16 = 9081;
/// Body of a short answer, without its line end.
const ANSWER: &str = "The quick brown fox jumps over the lazy dog, and again, until everybody has had enough of it.";

/// Starts both.
pub fn start(tools: &Tools, network: &Network) -> Result<[Running; 2]> {
    let folder = tools.work.join("backend");
    fs::create_dir_all(&folder)?;
    let (file, body) = (folder.join("nginx.conf"), folder.join("64k"));
    fs::write(&body, rows::body()).with_context(|| format!("writing {}", body.display()))?;
    fs::write(&file, nginx(tools.cores, &folder.display().to_string()))?;
    let mut command = network.backend.command(Peer::Nginx.program(&tools.root)?)?;
    command.arg("-p").arg(&folder).arg("-c").arg(&file).args(["-e", "stderr"]);
    let web = Server::start("the backend", &mut command)?.echo();

    let mut command = network.backend.command(&tools.load)?;
    command.args(["http-load", "echo", "--listen", &format!("0.0.0.0:{ECHO_PORT}")]);
    let mut echo = Server::start("the WebSocket backend", &mut command)?;
    ensure!(echo.wait_for(LISTENING)?.is_empty(), "the WebSocket backend says more than that it listens");
    Ok([web, echo.echo()])
}

/// A worker for each core, connections that stay open whatever number of requests they carry.
fn nginx(cores: usize, folder: &str) -> String {
    format!(
        "daemon off;
user root;
pid nginx.pid;
error_log stderr error;
worker_processes {cores};
worker_rlimit_nofile {DESCRIPTORS};
events {{
  use epoll;
  worker_connections {DESCRIPTORS};
  multi_accept on;
}}
http {{
  access_log off;
  server_tokens off;
  default_type text/plain;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
  client_max_body_size 0;
  client_body_buffer_size 128k;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  open_file_cache max=10 inactive=1h;
  server {{
    listen {WEB_PORT} reuseport backlog=4096;
    location / {{ return 200 \"{ANSWER}\\n\"; }}
    location = /64k {{ root {folder}; }}
  }}
}}
"
    )
}
