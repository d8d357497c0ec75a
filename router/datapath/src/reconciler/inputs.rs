//! Inputs of the data path.

use std::sync::Arc;
use std::time::Duration;

use router_access_log::AccessLog;
use router_listener::ListenerState;
use router_table::table::RoutingTable;
use tokio::sync::watch;

use crate::netfilter::HostFirewall;
use crate::pin_folder::PinFolder;
use crate::ports::PortRange;
use crate::redirect_peer::PeerRedirect;

/// Inputs of the data path.
#[derive(Clone)]
pub struct Inputs {
    /// What to route.
    pub tables: watch::Receiver<Arc<RoutingTable>>,
    /// Where it is listened.
    pub listeners: watch::Receiver<Arc<Vec<ListenerState>>>,
    /// Where the maps are pinned.
    pub pins: PinFolder,
    /// Where ends of connections are told.
    pub access: AccessLog,
    /// Source ports of dials; `None`: see [`crate::ports::choose`].
    pub ports: Option<PortRange>,
    /// Whether packets are handed to the other ends of interfaces.
    pub peers: PeerRedirect,
    /// Whether rules of the host hold.
    pub firewall: HostFirewall,
    /// Tunnel timeout of routes that have none of their own.
    pub idle: Duration,
}
