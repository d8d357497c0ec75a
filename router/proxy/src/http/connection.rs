//! A client's HTTP connection, over TLS or in clear text.

use std::net::SocketAddr;
use std::sync::Arc;

use router_model::names::{Hostname, RouterName};
use router_table::policy::ClientAuth;

use super::headers::ForwardedValues;
use super::target::FirstHost;
use crate::capacity::Permits;
use crate::connection_state::ConnectionState;
use crate::rt::timer::TaskTimer;
use crate::tls::client_certificate::ClientCertificate;
use crate::upstream::private::Private;

/// State of a connection that its requests share.
#[derive(Debug)]
pub struct Connection {
    /// Router of the listener.
    pub router: RouterName,
    /// Client address.
    pub client: SocketAddr,
    /// Local address.
    pub listener: SocketAddr,
    /// How TLS was terminated; `None` for clear text.
    pub tls: Option<ConnectionTls>,
    /// State shared with the byte stream.
    pub clock: Arc<ConnectionState>,
    /// Values of forwarding header fields for this connection.
    pub forwarded: ForwardedValues,
    /// The first host that a request named.
    pub first_host: FirstHost,
    /// Timer for its requests; HTTP/1 has one request at a time.
    pub timer: TaskTimer,
    /// Connections to endpoints that this connection alone uses.
    pub private: Private,
}

impl Connection {
    /// A new connection.
    pub fn new(
        router: RouterName,
        client: SocketAddr,
        listener: SocketAddr,
        tls: Option<ConnectionTls>,
        seats: Permits,
    ) -> Self {
        let (clock, forwarded) = (Arc::new(ConnectionState::new(seats)), ForwardedValues::of(client.ip(), listener));
        // A reference count of its own, because each request clones it and other threads clone theirs.
        let router = RouterName((*router.0).into());
        let (first_host, timer, private) = (FirstHost::default(), TaskTimer::default(), Private::default());
        Connection { router, client, listener, tls, clock, forwarded, first_host, timer, private }
    }

    /// The client's certificate in DER.
    pub fn certificate(&self) -> Option<&[u8]> {
        Some(self.tls.as_ref()?.client.as_ref()?.der())
    }
}

/// TLS properties of a connection.
#[derive(Debug)]
pub struct ConnectionTls {
    /// SNI.
    pub sni: Option<Hostname>,
    /// Client certificate policy of the handshake.
    pub client_auth: Option<Arc<ClientAuth>>,
    /// The client's certificate.
    pub client: Option<Arc<ClientCertificate>>,
    /// Whether `client_auth` admits its requests.
    pub admitted: bool,
    /// Whether it uses TLS 1.3.
    pub is_newest: bool,
}
