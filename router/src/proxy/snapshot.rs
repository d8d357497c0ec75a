//! What the proxy derives from a routing table, once per table and not per connection.

use std::collections::HashMap;
use std::sync::Arc;

use router_core::model::{Hostname, RouterName};
use router_core::table::{RouterTable, RoutingTable};
use rustls::ServerConfig;
use rustls::sign::CertifiedKey;

use super::certificates::{CertificateError, TlsIdentity, certificate_for};

/// One routing table, ready to serve.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Its routers by name.
    pub routers: HashMap<RouterName, Arc<ServedRouter>>,
}

/// One router of a table.
#[derive(Debug)]
pub struct ServedRouter {
    /// Its table.
    pub table: Arc<RouterTable>,
    /// TLS towards clients; `None` when it could not be set up, which was logged: TLS connections are then refused.
    pub tls: Option<ServedTls>,
}

/// TLS of one router.
#[derive(Debug)]
pub struct ServedTls {
    /// For new connections.
    pub config: Arc<ServerConfig>,
    last_resort: Arc<CertifiedKey>,
}

impl ServedRouter {
    /// The certificate that a name is served with; `None` when the router has no TLS.
    pub fn certificate(&self, name: Option<&Hostname>) -> Option<&Arc<CertifiedKey>> {
        self.tls.as_ref().map(|tls| certificate_for(&self.table, &tls.last_resort, name))
    }
}

/// Makes snapshots, and keeps what outlives them.
#[derive(Debug, Default)]
pub struct Snapshots {
    identities: HashMap<(RouterName, String), TlsIdentity>,
}

impl Snapshots {
    /// The snapshot of a table. A router whose table is the one of `before` is taken over from there.
    pub fn make(&mut self, table: &RoutingTable, before: &Snapshot) -> Snapshot {
        let live = |name: &RouterName, domain: &str| table.router(name).is_some_and(|router| router.domain == domain);
        self.identities.retain(|(name, domain), _| live(name, domain));
        let routers = table.routers.iter().map(|router| {
            let unchanged = before.routers.get(&router.name).filter(|served| Arc::ptr_eq(&served.table, router));
            let served = unchanged.map_or_else(|| Arc::new(self.serve(router)), Arc::clone);
            (router.name.clone(), served)
        });
        Snapshot { routers: routers.collect() }
    }

    fn serve(&mut self, router: &Arc<RouterTable>) -> ServedRouter {
        let tls = self.tls(router).map_err(|error| {
            tracing::error!(router = %router.name, %error, "TLS connections of this router will be refused");
        });
        ServedRouter { table: Arc::clone(router), tls: tls.ok() }
    }

    fn tls(&mut self, router: &Arc<RouterTable>) -> Result<ServedTls, CertificateError> {
        let key = (router.name.clone(), router.domain.clone());
        let identity = match self.identities.get(&key) {
            Some(known) => known.clone(),
            None => self.identities.entry(key).or_insert(TlsIdentity::generate(&router.domain)?).clone(),
        };
        let config = Arc::new(identity.server_config(router)?);
        Ok(ServedTls { config, last_resort: identity.self_signed })
    }
}
