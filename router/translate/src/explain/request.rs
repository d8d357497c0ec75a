//! The query as a request on the wire.

use std::borrow::Cow;
use std::net::IpAddr;

use router_model::names::Hostname;
use router_table::decide::{Via, ViaTls, type_is_grpc};
use router_table::lookup::{Request, joined};

use crate::explain::query::{Query, QueryProtocol};

/// The request that a client would send for a query.
pub struct QueryRequest<'q> {
    /// The query.
    pub query: &'q Query,
    /// Host and port as a client writes them.
    pub authority: String,
    /// Host of the request; `None` for an IP address.
    pub host: Option<Hostname>,
    /// SNI of the ClientHello; `None` for an IP address.
    pub sni: Option<Hostname>,
}

impl<'q> QueryRequest<'q> {
    /// The request for a query.
    pub fn of(query: &'q Query) -> Self {
        let authority = query.authority();
        let host = match query.header("host") {
            Some(written) => Query::parse(&format!("http://{written}")).ok().and_then(|query| query.hostname()),
            None => query.hostname(),
        };
        QueryRequest { query, authority, host, sni: query.hostname() }
    }

    /// The connection of the request. If the router requests a client certificate, the client has a valid one.
    pub fn via(&self) -> Via<'_> {
        let tls = || ViaTls { sni: self.sni.as_ref(), has_same_client_policy: true, admitted: true, is_newest: true };
        Via { client: self.client(), tls: (self.query.protocol == QueryProtocol::Https).then(tls) }
    }

    /// True for a gRPC call; errors are then gRPC statuses.
    pub fn is_grpc(&self) -> bool {
        self.query.header("content-type").is_some_and(|value| type_is_grpc(value.as_bytes()))
    }

    /// Address of the client; `None` for any client.
    pub fn client(&self) -> Option<IpAddr> {
        self.query.from
    }

    /// The host or address, for messages.
    pub fn name(&self) -> &str {
        self.host.as_ref().map_or(&*self.query.host, |host| host.as_str())
    }
}

impl Request for QueryRequest<'_> {
    fn method(&self) -> &str {
        self.query.method()
    }

    fn path(&self) -> &str {
        self.query.path()
    }

    fn query(&self) -> Option<&str> {
        self.query.query.as_deref()
    }

    fn header(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        if name == "host" {
            return Some(Cow::Borrowed(self.authority.as_bytes()));
        }
        joined(name, self.query.headers(name).map(str::as_bytes))
    }
}
