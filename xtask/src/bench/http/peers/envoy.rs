//! Envoy: hosts as domains of one virtual host, in a file of routes that both listeners read.

use super::super::ways::{HTTP_PORT, HTTPS_PORT};
use super::setting::PeerSetting;
use crate::bench::network::{DESCRIPTORS, HOSTS};

/// The routes (config.route.v3.RouteConfiguration).
pub fn routes(setting: &PeerSetting<'_>) -> String {
    let domains: String = setting.names().map(|name| format!("    - {name}\n")).collect();
    let fields: String = [
        ("X-Forwarded-Host", "%REQ(:AUTHORITY)%"),
        ("X-Forwarded-Port", "%DOWNSTREAM_LOCAL_PORT%"),
        (
            "Forwarded",
            "for=%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%;host=%REQ(:AUTHORITY)%;proto=%REQ(X-FORWARDED-PROTO)%",
        ),
    ]
    .iter()
    .map(|(key, value)| {
        format!("  - {{header: {{key: {key}, value: \"{value}\"}}, append_action: OVERWRITE_IF_EXISTS_OR_ADD}}\n")
    })
    .collect();
    format!(
        "resources:
- \"@type\": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: routes
  request_headers_to_add:
{fields}  virtual_hosts:
  - name: bench
    domains:
{domains}    routes:
    - match: {{prefix: /own}}
      route: {{cluster: echo, timeout: 0s}}
    - match: {{prefix: /}}
      route: {{cluster: app}}
"
    )
}

/// A worker and a listening socket for each core; circuit breakers without effect; no additions to requests.
pub fn configuration(setting: &PeerSetting<'_>) -> String {
    let folder = setting.folder.display();
    let most = HOSTS.len() as u64 * DESCRIPTORS;
    let tls = format!(
        "      transport_socket:
        name: tls
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context:
            alpn_protocols: [h2, http/1.1]
            tls_params:
              tls_minimum_protocol_version: TLSv1_3
              tls_maximum_protocol_version: TLSv1_3
              ecdh_curves: [X25519]
            tls_certificates:
            - certificate_chain: {{filename: {folder}/certificate.pem}}
              private_key: {{filename: {folder}/key.pem}}
"
    );
    let listeners: String = [("http", HTTP_PORT, ""), ("https", HTTPS_PORT, tls.as_str())]
        .iter()
        .map(|(name, port, transport)| listener(name, *port, transport, &folder.to_string()))
        .collect();
    let mut text = format!("static_resources:\n  listeners:\n{listeners}  clusters:\n");
    for (name, endpoints) in setting.services() {
        text += &format!(
            "  - name: {name}
    type: STATIC
    connect_timeout: 5s
    lb_policy: ROUND_ROBIN
    circuit_breakers:
      thresholds:
      - {{max_connections: {most}, max_pending_requests: {most}, max_requests: {most}}}
    load_assignment:
      cluster_name: {name}
      endpoints:
      - lb_endpoints:
"
        );
        for to in endpoints {
            let (address, port) = (to.ip(), to.port());
            text += &format!(
                "        - endpoint: {{address: {{socket_address: {{address: {address}, port_value: {port}}}}}}}\n"
            );
        }
    }
    text
}

fn listener(name: &str, port: u16, transport: &str, folder: &str) -> String {
    format!(
        "  - name: {name}
    address: {{socket_address: {{address: 0.0.0.0, port_value: {port}}}}}
    enable_reuse_port: true
    tcp_backlog_size: 4096
    filter_chains:
    - filters:
      - name: http
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: {name}
          use_remote_address: true
          generate_request_id: false
          strip_any_host_port: true
          upgrade_configs: [{{upgrade_type: websocket}}]
          rds:
            route_config_name: routes
            config_source: {{path_config_source: {{path: {folder}/routes.yaml}}}}
          http_filters:
          - name: router
            typed_config:
              \"@type\": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
              dynamic_stats: false
              suppress_envoy_headers: true
{transport}"
    )
}
