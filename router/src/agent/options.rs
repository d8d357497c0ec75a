//! How an agent is to run.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use router_access_log::AccessLogForm;
use router_datapath::DataPath;
use router_datapath::kernel::Object;
use router_datapath::netfilter::HostFirewall;
use router_datapath::ports::PortRange;
use router_datapath::redirect_peer::PeerRedirect;
use router_translate::settings::Settings;
use rustls::RootCertStore;

/// How an agent is to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder of manifests.
    pub manifests: PathBuf,
    /// Folder for the admin socket and the statuses.
    pub state: PathBuf,
    /// Name of the kernel objects' folder; one agent each.
    pub instance: String,
    /// Which data path.
    pub data_path: DataPath,
    /// Whether the kernel's packets are handed to the other ends of interfaces.
    pub peer_redirect: PeerRedirect,
    /// Whether the host's firewall holds for connections that the kernel could carry.
    pub host_firewall: HostFirewall,
    /// Which of the kernel objects to load.
    pub object: Object,
    /// Addresses to listen on.
    pub listen: Vec<IpAddr>,
    /// How to translate.
    pub settings: Settings,
    /// CA bundle for re-encrypt routes that name none.
    pub service_ca: Option<Arc<RootCertStore>>,
    /// How the access log is written.
    pub access_log: AccessLogForm,
    /// Whether error responses name their cause.
    pub show_cause: bool,
    /// Source ports of the kernel's dials. `None`: the agent finds a range.
    pub snat_ports: Option<PortRange>,
    /// How long connections may go on after SIGTERM.
    pub drain: Duration,
}
