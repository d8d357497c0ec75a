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

/// How manifests become a table.
#[derive(Debug, Args)]
pub struct TranslationArgs {
    /// The cluster's ingress domain, for generated hosts and for a router whose IngressController names no domain.
    #[arg(long, default_value = "apps.localhost", value_parser = domain, value_name = "DOMAIN")]
    cluster_domain: String,
    /// Which endpoint addresses may be used: `cluster` leaves out loopback, link-local and metadata addresses; `any`
    /// is for a folder that is the operator's own.
    #[arg(long, value_enum, default_value_t = Addresses::Cluster, value_name = "WHICH")]
    endpoint_addresses: Addresses,
    /// Domains that no router serves, with all names under them.
    #[arg(long, value_delimiter = ',', value_parser = domain, value_name = "DOMAIN,…")]
    denied_domains: Vec<String>,
    /// When given, only hosts of these domains are served.
    #[arg(long, value_delimiter = ',', value_parser = domain, value_name = "DOMAIN,…")]
    allowed_domains: Vec<String>,
    /// Namespaces that root IngressRoutes and HTTPProxies may be in [default: all].
    #[arg(long, value_delimiter = ',', value_parser = namespace, value_name = "NAMESPACE,…")]
    ingressroute_root_namespaces: Vec<String>,
    /// Let names under the suffix of an IngressRoute that it does not delegate have root objects of their own.
    #[arg(long)]
    allow_undelegated_subdomains: bool,
    /// How many HTTPRoutes may lie on one way from a listener to a backend, 2 to 8: with 2 no included route includes
    /// further ones.
    #[arg(long, default_value_t, value_name = "ROUTES")]
    max_inclusion_depth: MaxDepth,
    /// PEM file of CAs that sign the services' own certificates, for re-encrypt routes without a
    /// destinationCACertificate.
    #[arg(long, value_name = "FILE")]
    service_ca: Option<PathBuf>,
}

fn namespace(text: &str) -> Result<String, String> {
    dns_names::label_fault(text).map_or_else(|| Ok(text.to_owned()), Err)
}

/// A domain as hosts are compared with it; one that could match no host is refused.
fn domain(text: &str) -> Result<String, String> {
    dns_names::subdomain_fault(text).map_or_else(|| Ok(text.to_owned()), Err)
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Addresses {
    Cluster,
    Any,
}

impl TranslationArgs {
    /// As the engine takes it.
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
    /// The file cannot be read, or has none.
    pub fn service_ca(&self) -> anyhow::Result<Option<Arc<RootCertStore>>> {
        self.service_ca.as_deref().map(service_ca).transpose()
    }

    /// What endpoints are verified with.
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
        let certificate = certificate.with_context(|| format!("--service-ca {} is no PEM", path.display()))?;
        roots.add(certificate).with_context(|| format!("--service-ca {}: no usable CA", path.display()))?;
    }
    ensure!(!roots.is_empty(), "--service-ca {} has no certificate", path.display());
    Ok(Arc::new(roots))
}

/// Where a running agent is found.
#[derive(Debug, Args)]
pub struct StateArgs {
    /// Folder of the agent's admin socket and statuses [default: sluice in the run-time directory].
    #[arg(long, value_name = "DIR", global = true)]
    state: Option<PathBuf>,
}

impl StateArgs {
    /// The folder.
    pub fn folder(&self) -> PathBuf {
        self.state.clone().unwrap_or_else(|| run_time_directory().join("sluice"))
    }
}

/// Form of lists.
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
