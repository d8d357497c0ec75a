//! HAProxy: hosts in a map, as OpenShift's router has them, and its fields for backends.

use super::super::ways::{HTTP_PORT, HTTPS_PORT};
use super::setting::PeerSetting;
use crate::bench::network::DESCRIPTORS;

/// Hosts and their backend.
pub fn map(setting: &PeerSetting<'_>) -> String {
    setting.names().map(|name| format!("{name} app\n")).collect()
}

/// Any connection to a backend is used again for any request (`http-reuse always`).
pub fn configuration(setting: &PeerSetting<'_>) -> String {
    // Two descriptors a connection, pipes for every fourth, and some for listeners and threads.
    let maxconn = DESCRIPTORS * 2 / 5 - 100;
    let folder = setting.folder.display();
    let mut text = format!(
        "global
  nbthread {cores}
  maxconn {maxconn}
  ssl-default-bind-options ssl-min-ver TLSv1.3
  ssl-default-bind-ciphersuites TLS_AES_128_GCM_SHA256
defaults
  mode http
  maxconn {maxconn}
  backlog 4096
  option http-keep-alive
  http-reuse always
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  timeout http-request 10s
  timeout http-keep-alive 300s
  timeout tunnel 1h
frontend public
  bind :{HTTP_PORT}
  bind :{HTTPS_PORT} ssl crt {folder}/both.pem curves X25519 alpn h2,http/1.1
  option forwardfor
  http-request set-header X-Forwarded-Host %[req.hdr(host)]
  http-request set-header X-Forwarded-Port %[dst_port]
  http-request set-header X-Forwarded-Proto http if !{{ ssl_fc }}
  http-request set-header X-Forwarded-Proto https if {{ ssl_fc }}
  http-request set-header Forwarded for=%[src];host=%[req.hdr(host)];proto=%[req.hdr(X-Forwarded-Proto)]
  use_backend echo if {{ path_beg /own }}
  use_backend %[req.hdr(host),field(1,:),lower,map_str({folder}/hosts.map)]
",
        cores = setting.cores,
    );
    for (name, endpoints) in setting.services() {
        text += &format!("backend {name}\n  balance roundrobin\n");
        for (number, endpoint) in endpoints.iter().enumerate() {
            text += &format!("  server {name}{number} {endpoint}\n");
        }
    }
    text
}
