//! A client's connection that requests come on, over TLS or in clear text.

use std::net::SocketAddr;
use std::sync::Arc;

use router_model::names::{Hostname, RouterName};
use router_table::policy::ClientAuth;

use super::headers::Told;
use super::target::FirstHost;
use crate::capacity::Permits;
use crate::connection_state::ConnectionState;
use crate::rt::timer::TaskTimer;
use crate::tls::client_certificate::ClientCertificate;
use crate::upstream::private::Private;

/// What all requests of a connection have in common.
#[derive(Debug)]
pub struct Connection {
    /// Router that took it.
    pub router: RouterName,
    /// Who connected.
    pub client: SocketAddr,
    /// The address that was connected to.
    pub listener: SocketAddr,
    /// How TLS was terminated; `None` for clear text.
    pub tls: Option<ConnectionTls>,
    /// Tells the stream beneath what the service is doing.
    pub clock: Arc<ConnectionState>,
    /// What endpoints are told of it.
    pub told: Told,
    /// Which host its requests are for.
    pub first_host: FirstHost,
    /// For the waits of its requests, of which HTTP/1 has one at a time.
    pub timer: TaskTimer,
    /// Connections to endpoints that are for its requests alone.
    pub private: Private,
}

impl Connection {
    /// A connection that has asked for nothing yet.
    pub fn new(
        router: RouterName,
        client: SocketAddr,
        listener: SocketAddr,
        tls: Option<ConnectionTls>,
        seats: Permits,
    ) -> Self {
        let (clock, told) = (Arc::new(ConnectionState::new(seats)), Told::of(client.ip(), listener));
        // Counted here: every request has a clone, and connections of other threads have theirs.
        let router = RouterName((*router.0).into());
        let (first_host, timer, private) = (FirstHost::default(), TaskTimer::default(), Private::default());
        Connection { router, client, listener, tls, clock, told, first_host, timer, private }
    }

    /// The client's certificate, in DER.
    pub fn certificate(&self) -> Option<&[u8]> {
        Some(self.tls.as_ref()?.client.as_ref()?.der())
    }
}

/// TLS of a connection.
#[derive(Debug)]
pub struct ConnectionTls {
    /// The name that the client asked for.
    pub sni: Option<Hostname>,
    /// What was asked of its certificate.
    pub client_auth: Option<Arc<ClientAuth>>,
    /// The certificate that it has shown.
    pub client: Option<Arc<ClientCertificate>>,
    /// Whether its requests are served, by `client_auth`.
    pub admitted: bool,
    /// Whether it speaks TLS 1.3, the newest version.
    pub is_newest: bool,
}
