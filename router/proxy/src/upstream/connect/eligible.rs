//! Selects the connections that a request may use.

use std::sync::Arc;

use http::{HeaderMap, Response};
use router_access_log::Flag;

use super::ConnectRequest;
use crate::upstream::bucket::{Bucket, Lease, MAX_AGE, PoolKey, Wire};
use crate::upstream::private::{Private, offers_credentials, requests_credentials};
use crate::upstream::removed_endpoints::is_there;
use crate::upstream::request_sender::IncomingBody;
use crate::upstream::target::EndpointTarget;

impl ConnectRequest<'_> {
    fn key(&self, http1_only: bool) -> PoolKey {
        let EndpointTarget { endpoint, .. } = self.target;
        let wire = Wire::of(self.target.peer_for(self.route), endpoint.h2c, http1_only || self.http1_only);
        let keep = self.route.rule.as_ref().and_then(|rule| rule.keep_connections).unwrap_or(MAX_AGE);
        PoolKey { address: endpoint.address, wire, keep }
    }

    /// Key of connections that may be authenticated; over TLS they use HTTP/1.1.
    fn tied_key(&self) -> PoolKey {
        self.key(!self.target.endpoint.h2c)
    }

    fn is_there(&self) -> bool {
        is_there(&self.shared.snapshot.load(), &self.route.id, self.target.endpoint.address)
    }

    /// The bucket for a request with these fields.
    pub fn bucket(&self, request: &HeaderMap) -> Arc<Bucket> {
        let offers = offers_credentials(request);
        match self.private {
            None if offers => return Arc::new(Bucket::keeping_none(self.key(false))),
            None => {}
            Some(private) if offers => return private.tie(&self.shared.pool, self.tied_key(), || self.is_there()),
            Some(private) => {
                if let Some(tied) = private.tied(&self.tied_key()) {
                    return tied;
                }
            }
        }
        let bucket = self.shared.pool.bucket(self.key(false), || self.is_there());
        if let Some(private) = self.private.filter(|_| self.apart && bucket.may_be_shared()) {
            return private.apart(&self.shared.pool, bucket.key.clone(), || self.is_there());
        }
        if bucket.requires_http1() { self.http1_bucket() } else { bucket }
    }

    /// The bucket for a request that the endpoint requires over HTTP/1.1.
    pub fn http1_bucket(&self) -> Arc<Bucket> {
        self.shared.pool.bucket(self.key(true), || self.is_there())
    }

    /// Whether the next endpoint may be tried after this failure: not if the request waits for its turn on a tied
    /// connection.
    pub fn may_leave(&self, bucket: &Bucket, flag: Flag) -> bool {
        bucket.turns().is_none() || flag != Flag::Busy
    }

    /// Ties the connection to the client's if the response asks for connection-based credentials.
    pub fn answered(&self, lease: &mut Lease, response: &Response<IncomingBody>) {
        if requests_credentials(response.status(), response.headers()) {
            let tie = |private: &Private| private.tie(&self.shared.pool, self.tied_key(), || self.is_there());
            lease.tie_to(self.private.map(tie));
        }
    }
}
