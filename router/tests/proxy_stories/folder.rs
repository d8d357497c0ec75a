//! Objects as users write them: from a folder to a proxy that serves them, and to `explain` and `validate`.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;

use router_proxy::{ProxyConfig, UpstreamTls};

use router::cli::explain::offline;
use router::cli::validate::validate;
use router::source::{Directory, SourceOptions};
use router_api::defaults::Defaults;
use router_table::table::{RouterTable, RoutingTable};
use router_translate::endpoints::addresses::EndpointAddresses;
use router_translate::explain::explanation::Explanation;
use router_translate::explain::query::Query;
use router_translate::settings::Settings;
use router_translate::translate::translate;
use tempfile::TempDir;

use crate::pki;
use crate::tables::Rig;

/// A folder of manifests.
pub struct Folder {
    dir: TempDir,
}

impl Folder {
    /// A folder with these documents.
    pub fn of(manifests: &[String]) -> Folder {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("all.yaml"), manifests.join("\n---\n")).unwrap();
        Folder { dir }
    }

    fn settings() -> Settings {
        Settings { endpoint_addresses: EndpointAddresses::Any, ..Settings::default() }
    }

    fn trust() -> UpstreamTls {
        UpstreamTls::new(None, None)
    }

    fn source(&self) -> SourceOptions {
        SourceOptions::Folder(self.dir.path().to_owned())
    }

    /// The table, on ports that the system chooses.
    pub fn table(&self) -> Arc<RoutingTable> {
        let (_, snapshot) = Directory::open(self.dir.path(), Defaults::default()).unwrap();
        let table = translate(&snapshot.resources, &Self::settings()).table;
        let anywhere = |router: &Arc<RouterTable>| {
            let any = |port: Option<u16>| port.map(|_| 0);
            Arc::new(RouterTable {
                http_port: any(router.http_port),
                https_port: any(router.https_port),
                ..router.with(router.hosts.clone(), router.routes.clone())
            })
        };
        let routers = table.routers.iter().map(anywhere).collect();
        Arc::new(RoutingTable { revision: 1, routers, endpoints: table.endpoints })
    }

    /// A proxy that serves the table.
    pub async fn serve(&self) -> Rig {
        Rig::start(ProxyConfig::default(), self.table()).await
    }

    /// The output of `sluice explain` for a URL on the usual ports.
    pub fn explain(&self, url: &str) -> Explanation {
        offline(&self.source(), &Self::settings(), &Self::trust(), &Query::parse(url).unwrap()).unwrap()
    }

    /// The output of `sluice validate`.
    pub fn problems(&self) -> Vec<String> {
        let findings = validate(&self.source(), &Self::settings(), &Self::trust(), jiff::Timestamp::now()).unwrap();
        findings.problems.iter().map(ToString::to_string).collect()
    }
}

/// A Service `namespace/name` with one port, 80, and its endpoint.
pub fn backend(id: &str, endpoint: SocketAddr) -> String {
    let (namespace, name) = id.split_once('/').unwrap();
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{namespace: {namespace}, name: {name}}}\n\
         spec: {{ports: [{{name: http, port: 80}}]}}\n---\n\
         apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
         metadata: {{namespace: {namespace}, name: {name}-1, labels: {{kubernetes.io/service-name: {name}}}}}\n\
         addressType: IPv4\nendpoints: [{{addresses: [{}]}}]\nports: [{{name: http, port: {}}}]",
        endpoint.ip(),
        endpoint.port()
    )
}

/// A Secret `namespace/name` with a certificate for these names.
pub fn secret(id: &str, names: &[&str]) -> String {
    let (namespace, name) = id.split_once('/').unwrap();
    let (cert, key) = pki::ca().leaf_pem(names);
    let block = |pem: String| pem.lines().map(|line| format!("    {line}\n")).collect::<String>();
    format!(
        "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {{namespace: {namespace}, name: {name}}}\n\
         stringData:\n  tls.crt: |\n{}  tls.key: |\n{}",
        block(cert),
        block(key)
    )
}
