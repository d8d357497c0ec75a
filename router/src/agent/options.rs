//! Options of an agent.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use router_access_log::AccessLogForm;
use router_datapath::DataPathMode;
use router_datapath::kernel::{BpfObject, GateMode};
use router_datapath::netfilter::HostFirewall;
use router_datapath::ports::PortRange;
use router_datapath::redirect_peer::PeerRedirect;
use router_translate::settings::Settings;
use rustls::RootCertStore;

use crate::source::SourceOptions;

/// Options of an agent.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where objects come from.
    pub source: SourceOptions,
    /// Name of the Lease of which the holder writes statuses to an API server; `None`: this agent never writes them there.
    pub lease: Option<String>,
    /// Folder of the admin socket and the statuses.
    pub state: PathBuf,
    /// Name of the folder for kernel objects; unique for each agent.
    pub instance: String,
    /// The data path.
    pub data_path: DataPathMode,
    /// Whether the kernel uses `bpf_redirect_peer`.
    pub peer_redirect: PeerRedirect,
    /// Whether and how the XDP gate is attached.
    pub xdp: GateMode,
    /// Whether XDP forwards established connections.
    pub xdp_forward: bool,
    /// Whether connections in the kernel respect the host's firewall.
    pub host_firewall: HostFirewall,
    /// Which of the kernel objects to load.
    pub object: BpfObject,
    /// Addresses to listen on.
    pub listen: Vec<IpAddr>,
    /// Settings of translation; without addresses, Gateways have those of the listeners.
    pub settings: Settings,
    /// CA bundle for re-encrypt routes that name none.
    pub service_ca: Option<Arc<RootCertStore>>,
    /// Format of the access log.
    pub access_log: AccessLogForm,
    /// Add the cause to error responses.
    pub show_cause: bool,
    /// Source ports of connections that the kernel opens. `None`: the agent chooses a range.
    pub snat_ports: Option<PortRange>,
    /// Maximum time for connections to end after SIGTERM.
    pub drain: Duration,
}
