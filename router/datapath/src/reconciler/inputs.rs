//! Inputs of the data path.

use std::sync::Arc;
use std::time::Duration;

use router_access_log::AccessLog;
use router_listener::ListenerState;
use router_table::table::RoutingTable;
use tokio::sync::watch;

use crate::kernel::GateMode;
use crate::netfilter::HostFirewall;
use crate::pin_folder::PinFolder;
use crate::ports::PortRange;
use crate::redirect_peer::PeerRedirect;

/// Inputs of the data path.
#[derive(Clone)]
pub struct DataPathInputs {
    /// The routing table.
    pub tables: watch::Receiver<Arc<RoutingTable>>,
    /// Listening addresses.
    pub listeners: watch::Receiver<Arc<Vec<ListenerState>>>,
    /// Folder of the pinned maps.
    pub pins: PinFolder,
    /// Access log, for ends of connections.
    pub access: AccessLog,
    /// Source ports of dials; `None`: see [`crate::ports::choose`].
    pub ports: Option<PortRange>,
    /// Whether `bpf_redirect_peer` may be used.
    pub peers: PeerRedirect,
    /// Whether the host's firewall rules apply.
    pub firewall: HostFirewall,
    /// Whether and how the XDP gate is attached.
    pub gate: GateMode,
    /// Whether it forwards established connections.
    pub xdp_forward: bool,
    /// Tunnel timeout of routes that have none of their own.
    pub idle: Duration,
}
