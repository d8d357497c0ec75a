//! State derived from a routing table, once per table instead of per connection.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use router_model::names::RouterName;
use router_table::policy::ClientAuth;
use router_table::table::{Endpoints, RouterTable, RoutingTable};
use rustls::sign::CertifiedKey;

use super::certificates::{CertificateChooser, SelfSignedError, self_signed};
use super::tls::router_tls::{Configs, Handshakes, RouterTls, TermsError};
use crate::http::header_case::HeaderCase;

/// A routing table, ready to serve.
#[derive(Debug, Default)]
pub struct ServingTable {
    /// Its routers by name. Clients cannot choose names, so a fast hash function is safe.
    pub routers: HashMap<RouterName, Arc<ServedRouter>, RandomState>,
    /// The endpoints of its routes.
    pub endpoints: Endpoints,
}

impl ServingTable {
    /// A copy with reference counts of its own: each request clones a router, and threads that share a count contend
    /// for its cache line.
    pub fn of_thread(&self) -> Self {
        let own =
            |(name, served): (&RouterName, &Arc<ServedRouter>)| (name.clone(), Arc::new(ServedRouter::clone(served)));
        ServingTable { routers: self.routers.iter().map(own).collect(), endpoints: self.endpoints.clone() }
    }
}

/// A router of a table.
#[derive(Clone, Debug)]
pub struct ServedRouter {
    /// Its table.
    pub table: Arc<RouterTable>,
    /// TLS towards clients; `None` after an error, which was logged: TLS connections are then rejected.
    pub tls: Option<ServedTls>,
    /// `httpHeaders.headerNameCaseAdjustments`: for responses, and for requests of routes that enable it.
    pub spelling: Option<HeaderCase>,
}

/// TLS of a router.
#[derive(Clone, Debug)]
pub struct ServedTls {
    /// For new connections.
    pub configs: Configs,
    /// Client certificate policy; the same `Arc` in all tables with the same policy.
    pub client_auth: Option<Arc<ClientAuth>>,
    /// Handshake counters.
    pub handshakes: Arc<Handshakes>,
}

#[derive(Debug, thiserror::Error)]
enum TlsError {
    #[error(transparent)]
    Terms(#[from] TermsError),
    #[error(transparent)]
    LastResort(#[from] SelfSignedError),
}

/// Creates snapshots, and keeps state that outlives them.
#[derive(Debug, Default)]
pub struct Snapshots {
    last_resorts: HashMap<(RouterName, String), Arc<CertifiedKey>>,
    terms: HashMap<RouterName, RouterTls>,
}

impl Snapshots {
    /// The snapshot of a table. A router whose table is unchanged since `before` is reused.
    pub fn make(&mut self, table: &RoutingTable, before: &ServingTable) -> ServingTable {
        let live = |name: &RouterName, domain: &str| table.router(name).is_some_and(|router| router.domain == domain);
        self.last_resorts.retain(|(name, domain), _| live(name, domain));
        self.terms.retain(|name, _| table.router(name).is_some());
        let routers = table.routers.iter().map(|router| {
            let unchanged = before.routers.get(&router.name).filter(|served| Arc::ptr_eq(&served.table, router));
            let served = unchanged.map_or_else(|| Arc::new(self.serve(router)), Arc::clone);
            (router.name.clone(), served)
        });
        ServingTable { routers: routers.collect(), endpoints: table.endpoints.clone() }
    }

    fn serve(&mut self, router: &Arc<RouterTable>) -> ServedRouter {
        let tls = self.tls(router).map_err(|error| {
            tracing::error!(router = %router.name, %error, "TLS connections of this router will be rejected");
        });
        let spelling = HeaderCase::of(&router.policy.case_adjustments);
        ServedRouter { table: Arc::clone(router), tls: tls.ok(), spelling }
    }

    fn tls(&mut self, router: &Arc<RouterTable>) -> Result<ServedTls, TlsError> {
        let key = (router.name.clone(), router.domain.clone());
        let last_resort = match self.last_resorts.get(&key) {
            Some(known) => Arc::clone(known),
            None => Arc::clone(self.last_resorts.entry(key).or_insert(self_signed(&router.domain)?)),
        };
        let terms = match self.terms.remove(&router.name) {
            Some(known) if known.are_those_of(&router.policy) => known,
            Some(known) => RouterTls::of(&router.policy)?.counted_in(known.handshakes),
            None => RouterTls::of(&router.policy)?,
        };
        let terms = self.terms.entry(router.name.clone()).or_insert(terms);
        let chooser = CertificateChooser { router: Arc::clone(router), last_resort };
        Ok(ServedTls {
            configs: terms.configs(Arc::new(chooser)),
            client_auth: terms.client_auth.clone(),
            handshakes: Arc::clone(&terms.handshakes),
        })
    }
}
