//! The command line: `sluice <verb>`. Data goes to stdout, talk to stderr.
//!
//! Exit codes: 0 ok, 1 run-time failure, 2 usage, 3 invalid input, 4 degraded.
mod bpf;
pub mod explain;
mod get;
mod keep;
mod run;
mod table;
pub mod translate;
mod upgrade;
pub mod validate;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, ensure};
use clap::{Args, Parser, Subcommand, ValueEnum};
use router_model::dns_names;
use router_translate::domain_lists::DomainLists;
use router_translate::endpoints::addresses::EndpointAddresses;
use router_translate::settings::MaxDepth;
use router_translate::settings::Settings;
use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use router_proxy::UpstreamTls;

/// Sluice, an edge router: eBPF steering with an in-process TLS proxy.
#[derive(Debug, Parser)]
#[command(name = "sluice", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run the router on a folder of manifests.
    Run(run::RunArgs),
    /// Hold the listening sockets, run the agent and start it again when it falls: `sluice keep -- run …`.
    Keep(keep::KeepArgs),
    /// Put a new agent, of the binary that is there now, in the place of the one that `sluice keep` runs.
    Upgrade(StateArgs),
    /// Check manifests: exit 0, or 3 with file:line:column, what is wrong and what to write instead.
    Validate {
        /// Folder of manifests, or a single file.
        #[arg(value_name = "DIR|FILE")]
        dir: PathBuf,
        #[command(flatten)]
        translation: TranslationArgs,
    },
    /// Show every object that gets a status, with that status, as the API server would store it.
    Translate {
        /// Folder of manifests, or a single file.
        #[arg(value_name = "DIR|FILE")]
        dir: PathBuf,
        #[command(flatten)]
        translation: TranslationArgs,
        /// Form of the output.
        #[arg(short, long, value_enum, default_value_t = translate::Format::Text)]
        output: translate::Format,
    },
    /// Tell why a URL or a TLS server name is served as it is: exit 0, or 4 when it is not served.
    Explain(explain::ExplainArgs),
    /// Show what the running agent serves.
    Get(get::GetArgs),
    /// Show the kernel's real state, decoded.
    #[command(subcommand)]
    Bpf(bpf::BpfVerb),
    /// Serve the backends of examples/quickstart.
    #[command(hide = true)]
    DemoBackends,
}

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

/// Does what the command line says.
///
/// # Errors
/// What ended a verb; the exit code is then 1.
pub fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    if !matches!(cli.verb, Verb::Run(_) | Verb::Keep(_) | Verb::DemoBackends) {
        router_sys::signal::end_on_broken_pipe();
    }
    match cli.verb {
        Verb::Run(args) => run::run(args),
        Verb::Keep(args) => keep::run(args),
        Verb::Upgrade(state) => upgrade::run(&state),
        Verb::Validate { dir, translation } => {
            validate::run(&dir, &translation.settings(), &translation.trust()?, jiff::Timestamp::now())
        }
        Verb::Translate { dir, translation, output } => {
            translate::run(&dir, &translation.settings(), output, jiff::Timestamp::now())
        }
        Verb::Explain(args) => explain::run(&args),
        Verb::Get(args) => get::run(&args),
        Verb::Bpf(verb) => bpf::run(verb),
        Verb::DemoBackends => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            match runtime.block_on(crate::demo::run())? {}
        }
    }
}

#[cfg(test)]
mod tests;
