//! nginx: hosts as server names, backends with connections that stay.

use super::super::ways::{HTTP_PORT, HTTPS_PORT};
use super::setting::PeerSetting;
use crate::bench::network::DESCRIPTORS;

/// A listening socket for each worker, bodies passed on as they come, and buffers that hold a response of 64 KiB, so
/// that none goes through a file.
pub fn configuration(setting: &PeerSetting<'_>) -> String {
    let folder = setting.folder.display();
    let names: String = setting.names().map(|name| format!("      {name}\n")).collect();
    let upstreams: String = setting
        .services()
        .iter()
        .map(|(name, endpoints)| {
            let servers: String = endpoints.iter().map(|to| format!("    server {to};\n")).collect();
            format!("  upstream {name} {{\n{servers}    keepalive 128;\n    keepalive_requests 1000000000;\n  }}\n")
        })
        .collect();
    let fields = "      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Host $host;
      proxy_set_header X-Forwarded-Port $server_port;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header Forwarded \"for=$remote_addr;host=$host;proto=$scheme\";";
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
  keepalive_requests 1000000000;
  keepalive_timeout 300s;
  client_max_body_size 0;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server_names_hash_max_size 1048576;
  server_names_hash_bucket_size 128;
  ssl_protocols TLSv1.3;
  ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
  ssl_ecdh_curve X25519;
  ssl_certificate {folder}/certificate.pem;
  ssl_certificate_key {folder}/key.pem;
  proxy_http_version 1.1;
  proxy_request_buffering off;
  proxy_buffers 16 8k;
  proxy_max_temp_file_size 0;
  map $http_upgrade $wanted {{
    \"\" \"\";
    default upgrade;
  }}
{upstreams}  server {{
    listen {HTTP_PORT} default_server reuseport backlog=4096;
    listen {HTTPS_PORT} ssl http2 default_server reuseport backlog=4096;
    return 503;
  }}
  server {{
    listen {HTTP_PORT};
    listen {HTTPS_PORT} ssl http2;
    server_name
{names}      ;
    location / {{
      proxy_pass http://app;
      proxy_set_header Connection \"\";
{fields}
    }}
    location /own {{
      proxy_pass http://echo;
      proxy_read_timeout 1h;
      proxy_set_header Connection $wanted;
      proxy_set_header Upgrade $http_upgrade;
{fields}
    }}
  }}
}}
",
        cores = setting.cores,
    )
}
