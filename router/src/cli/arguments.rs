//! Arguments that several verbs share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use router_model::dns_names;
use router_proxy::UpstreamTls;
use router_translate::domain_lists::DomainLists;
use router_translate::endpoints::addresses::EndpointAddresses;
use router_translate::settings::{MaxDepth, Settings};
use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::source::SourceOptions;
use crate::source::cluster::ClusterOptions;

/// Settings of translation.
#[derive(Debug, Args)]
pub struct TranslationArgs {
    /// Ingress domain of the cluster, for generated hosts and for a router whose IngressController sets no domain.
    #[arg(long, default_value = "apps.localhost", value_parser = domain, value_name = "DOMAIN")]
    cluster_domain: String,
    /// Allowed endpoint addresses: `cluster` excludes loopback, link-local and metadata addresses; `any` is for a
    /// folder of the operator's own manifests.
    #[arg(long, value_enum, default_value_t = Addresses::Cluster, value_name = "WHICH")]
    endpoint_addresses: Addresses,
    /// Domains that no router serves, with all names below them.
    #[arg(long, value_delimiter = ',', value_parser = domain, value_name = "DOMAIN,…")]
    denied_domains: Vec<String>,
    /// If given, only hosts in these domains are served.
    #[arg(long, value_delimiter = ',', value_parser = domain, value_name = "DOMAIN,…")]
    allowed_domains: Vec<String>,
    /// Namespaces that may have root IngressRoutes and HTTPProxies [default: all].
    #[arg(long, value_delimiter = ',', value_parser = namespace, value_name = "NAMESPACE,…")]
    ingressroute_root_namespaces: Vec<String>,
    /// Allow root objects for names in an IngressRoute's domain (`fqdn: .example.com`) that the domain does not
    /// delegate.
    #[arg(long)]
    allow_undelegated_subdomains: bool,
    /// Maximum number of HTTPRoutes on the path from a listener to a backend, 2 to 8: with 2, an included route cannot
    /// include others.
    #[arg(long, default_value_t, value_name = "ROUTES")]
    max_inclusion_depth: MaxDepth,
    /// PEM file with the CAs of services, for re-encrypt routes without a destinationCACertificate.
    #[arg(long, value_name = "FILE")]
    service_ca: Option<PathBuf>,
}

/// Maximum length of `status.addresses` (Gateway API, GatewayStatus.addresses).
pub const MAX_ADDRESSES: usize = 16;

/// A name of an object.
///
/// # Errors
/// Its fault.
pub fn object_name(text: &str) -> Result<String, String> {
    dns_names::subdomain_fault(text).map_or_else(|| Ok(text.to_owned()), Err)
}

/// A name of a namespace.
///
/// # Errors
/// Its fault.
pub fn namespace(text: &str) -> Result<String, String> {
    dns_names::label_fault(text).map_or_else(|| Ok(text.to_owned()), Err)
}

/// A domain in the form of hosts; one that no host can match is rejected.
fn domain(text: &str) -> Result<String, String> {
    dns_names::subdomain_fault(text).map_or_else(|| Ok(text.to_owned()), Err)
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Addresses {
    Cluster,
    Any,
}

impl TranslationArgs {
    /// The settings of translation.
    pub fn settings(&self) -> Settings {
        Settings {
            cluster_domain: self.cluster_domain.clone(),
            endpoint_addresses: match self.endpoint_addresses {
                Addresses::Cluster => EndpointAddresses::Filtered,
                Addresses::Any => EndpointAddresses::Any,
            },
            domains: DomainLists { denied: self.denied_domains.clone(), allowed: self.allowed_domains.clone() },
            root_namespaces: self.ingressroute_root_namespaces.clone(),
            allow_undelegated_subdomains: self.allow_undelegated_subdomains,
            max_inclusion_depth: self.max_inclusion_depth,
            ..Settings::default()
        }
    }

    /// The CAs of services.
    ///
    /// # Errors
    /// The file cannot be read, or has no certificate.
    pub fn service_ca(&self) -> anyhow::Result<Option<Arc<RootCertStore>>> {
        self.service_ca.as_deref().map(service_ca).transpose()
    }

    /// Trusted CAs for endpoints.
    ///
    /// # Errors
    /// See [`TranslationArgs::service_ca`].
    pub fn trust(&self) -> anyhow::Result<UpstreamTls> {
        Ok(UpstreamTls::new(self.service_ca()?, None))
    }
}

fn service_ca(path: &Path) -> anyhow::Result<Arc<RootCertStore>> {
    let pem = std::fs::read(path).with_context(|| format!("--service-ca {}", path.display()))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.with_context(|| format!("--service-ca {} is not a PEM file", path.display()))?;
        roots.add(certificate).with_context(|| format!("--service-ca {}: no usable CA", path.display()))?;
    }
    ensure!(!roots.is_empty(), "--service-ca {} has no certificate", path.display());
    Ok(Arc::new(roots))
}

/// A Kubernetes cluster as the source of objects.
#[derive(Debug, Args)]
pub struct ClusterArgs {
    /// Read objects from a Kubernetes API server instead of a folder.
    #[arg(long)]
    kubernetes: bool,
    /// Kubeconfig [default: KUBECONFIG, ~/.kube/config, or the service account of the pod].
    #[arg(long, requires = "kubernetes", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Namespaces to read [default: all].
    #[arg(long, requires = "kubernetes", value_delimiter = ',', value_parser = namespace, value_name = "NAMESPACE,…")]
    namespaces: Vec<String>,
}

impl ClusterArgs {
    /// The cluster, or else this folder.
    pub fn or_folder(&self, folder: Option<PathBuf>) -> Option<SourceOptions> {
        let cluster = self.kubernetes.then(|| {
            let namespaces = self.namespaces.iter().map(|name| name.as_str().into()).collect();
            SourceOptions::Cluster(ClusterOptions { kubeconfig: self.kubeconfig.clone(), namespaces, snapshot: None })
        });
        cluster.or(folder.map(SourceOptions::Folder))
    }
}

/// How to reach a running agent.
#[derive(Debug, Args)]
pub struct StateArgs {
    /// Folder of the agent's admin socket and statuses [default: `sluice` in the run-time directory].
    #[arg(long, value_name = "DIR", global = true)]
    state: Option<PathBuf>,
}

impl StateArgs {
    /// The state folder.
    pub fn folder(&self) -> PathBuf {
        self.state.clone().unwrap_or_else(|| run_time_directory().join("sluice"))
    }
}

/// Format of lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// A table.
    #[default]
    Table,
    /// A table with more columns.
    Wide,
    /// JSON.
    Json,
}

fn run_time_directory() -> PathBuf {
    if let Some(directory) = std::env::var_os("XDG_RUNTIME_DIR") {
        return directory.into();
    }
    if rustix::process::geteuid().is_root() {
        return "/run".into();
    }
    std::env::temp_dir().join(format!("run-{}", rustix::process::geteuid().as_raw()))
}
