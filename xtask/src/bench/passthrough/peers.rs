//! HAProxy, nginx and Envoy as TLS passthrough routers by server name: a thread or worker for each core, no logs, and
//! what their documentation recommends for bulk data.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};

use super::load::hello::NAME;
use crate::bench::network::{DESCRIPTORS, HOSTS, Middle, ROUTER_PORT};
use crate::bench::programs::{self, Peer};
use crate::bench::tools::Tools;
use crate::process::{Running, Server};

/// Where Debian puts nginx' stream module.
const STREAM_MODULE: &str = "/usr/lib/nginx/modules/ngx_stream_module.so";

/// Installs missing programs.
pub fn install(root: &Path) -> Result<()> {
    let module = if Path::new(STREAM_MODULE).exists() { None } else { Some("libnginx-mod-stream") };
    programs::install_peers(root, module.into_iter().collect())
}

/// Starts one. It is ready when connections come through.
pub fn start(tools: &Tools, peer: Peer, middle: &Middle, folder: &Path) -> Result<Running> {
    let mut command = middle.netns.command(peer.program(&tools.root)?)?;
    let (name, file, config) = match peer {
        Peer::HaProxy => {
            let file = folder.join("haproxy.cfg");
            command.arg("-db").arg("-f").arg(&file);
            ("haproxy", file, haproxy(tools, middle))
        }
        Peer::Nginx => {
            ensure!(Path::new(STREAM_MODULE).exists(), "nginx' stream module is not there; `--install` gets it");
            let file = folder.join("nginx.conf");
            command.arg("-p").arg(folder).arg("-c").arg(&file).args(["-e", "stderr"]);
            ("nginx", file, nginx(tools, middle))
        }
        Peer::Envoy => {
            let file = folder.join("envoy.yaml");
            command.arg("-c").arg(&file).args(["--concurrency", &tools.cores.to_string(), "--log-level", "error"]);
            command.args(["--use-dynamic-base-id", "--disable-hot-restart"]);
            ("envoy", file, envoy_yaml(middle))
        }
    };
    fs::write(file, config)?;
    Ok(Server::start(name, &mut command)?.echo())
}

/// Bytes are spliced where that pays (`option splice-auto`), threads share the cores, and a connection waits for its
/// hello at most 5 seconds.
fn haproxy(tools: &Tools, middle: &Middle) -> String {
    // Two descriptors a connection, pipes for every fourth, and some for listeners and threads.
    let maxconn = DESCRIPTORS * 2 / 5 - 100;
    let servers: String =
        middle.endpoints().iter().enumerate().map(|(number, to)| format!("  server app{number} {to}\n")).collect();
    format!(
        "global
  nbthread {cores}
  maxconn {maxconn}
defaults
  mode tcp
  maxconn {maxconn}
  backlog 4096
  option splice-auto
  timeout connect 5s
  timeout client 1h
  timeout server 1h
frontend tls
  bind :{ROUTER_PORT}
  tcp-request inspect-delay 5s
  tcp-request content accept if {{ req.ssl_hello_type 1 }}
  use_backend app if {{ req.ssl_sni -i {NAME} }}
backend app
  balance roundrobin
{servers}",
        cores = tools.cores,
    )
}

/// A listening socket for each worker (`reuseport`), several accepts at a time, buffers of 64 KiB instead of 16. Half
/// closed connections go on, as with the others.
fn nginx(tools: &Tools, middle: &Middle) -> String {
    let servers: String = middle.endpoints().iter().map(|to| format!("    server {to};\n")).collect();
    format!(
        "load_module {STREAM_MODULE};
daemon off;
pid nginx.pid;
error_log stderr error;
worker_processes {cores};
worker_rlimit_nofile {DESCRIPTORS};
events {{
  use epoll;
  worker_connections {DESCRIPTORS};
  multi_accept on;
}}
stream {{
  access_log off;
  upstream app {{
{servers}  }}
  map $ssl_preread_server_name $backend {{
    {NAME} app;
  }}
  server {{
    listen {ROUTER_PORT} reuseport backlog=4096;
    ssl_preread on;
    preread_timeout 5s;
    proxy_pass $backend;
    proxy_connect_timeout 5s;
    proxy_timeout 1h;
    proxy_half_close on;
    proxy_buffer_size 64k;
  }}
}}
",
        cores = tools.cores,
    )
}

/// A worker and a listening socket for each core; circuit breakers that do not bind.
fn envoy_yaml(middle: &Middle) -> String {
    let most = HOSTS.len() as u64 * DESCRIPTORS;
    let endpoints: String = middle
        .endpoints()
        .iter()
        .map(|to| {
            format!(
                "        - endpoint: {{address: {{socket_address: {{address: {}, port_value: {}}}}}}}\n",
                to.ip(),
                to.port()
            )
        })
        .collect();
    format!(
        "static_resources:
  listeners:
  - name: tls
    address: {{socket_address: {{address: 0.0.0.0, port_value: {ROUTER_PORT}}}}}
    enable_reuse_port: true
    tcp_backlog_size: 4096
    listener_filters:
    - name: tls_inspector
      typed_config:
        \"@type\": type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector
    filter_chains:
    - filter_chain_match: {{server_names: [{NAME}]}}
      filters:
      - name: tcp_proxy
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy
          stat_prefix: app
          cluster: app
          idle_timeout: 3600s
  clusters:
  - name: app
    type: STATIC
    connect_timeout: 5s
    lb_policy: ROUND_ROBIN
    circuit_breakers:
      thresholds:
      - {{max_connections: {most}, max_pending_requests: {most}}}
    load_assignment:
      cluster_name: app
      endpoints:
      - lb_endpoints:
{endpoints}"
    )
}
