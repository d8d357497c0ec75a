//! Possible outcomes of a query, for programs.

use std::collections::BTreeSet;

use router_table::decide::grpc_has_words_for;
use router_table::flag::Flag;
use router_table::table::{Endpoint, Endpoints, NO_ENDPOINTS, ResolvedRoute, RouterTable, WeightedService};
use serde::{Deserialize, Serialize};

use super::request::QueryRequest;
use crate::explain::facts::Facts;

/// A possible outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryOutcome {
    /// The outcome.
    #[serde(flatten)]
    pub kind: OutcomeKind,
    /// The case in which it applies, if the query does not decide it; `None`: any other case, or whenever it is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
}

/// What the client gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum OutcomeKind {
    /// The response of one of these endpoints.
    Endpoints {
        /// `address:port`, in order.
        endpoints: Vec<String>,
    },
    /// A response by the router.
    Response {
        /// Status code; 200 for gRPC errors.
        status: u16,
        /// `Location` of a redirect.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        location: Option<String>,
        /// The cause, as in `docs/causes.md`.
        cause: String,
    },
    /// No response: the connection is refused, closed or reset.
    Close {
        /// The cause, as in `docs/causes.md`; `None` if no router has the port.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<String>,
    },
    /// No answer: the XDP gate drops the packets.
    Dropped {
        /// The reason, as in `sluice bpf stats`.
        cause: String,
    },
    /// A TLS handshake; the SNI decides.
    Handshake,
}

impl From<OutcomeKind> for QueryOutcome {
    fn from(kind: OutcomeKind) -> Self {
        QueryOutcome { kind, when: None }
    }
}

impl QueryOutcome {
    /// The cause of an error; `None` if there is none.
    pub fn cause(&self) -> Option<&str> {
        match &self.kind {
            OutcomeKind::Response { cause, .. }
            | OutcomeKind::Close { cause: Some(cause) }
            | OutcomeKind::Dropped { cause } => Some(&**cause).filter(|cause| *cause != Flag::Fine.cause()),
            OutcomeKind::Close { cause: None } | OutcomeKind::Endpoints { .. } | OutcomeKind::Handshake => None,
        }
    }

    /// A short description.
    pub fn answer(&self) -> String {
        match &self.kind {
            OutcomeKind::Endpoints { endpoints } => endpoints.join(", "),
            OutcomeKind::Response { status, location: Some(location), .. } => format!("{status} to {location}"),
            OutcomeKind::Response { status, .. } => status.to_string(),
            OutcomeKind::Close { .. } => "the connection is reset".to_owned(),
            OutcomeKind::Dropped { .. } => "no answer".to_owned(),
            OutcomeKind::Handshake => "TLS ends here".to_owned(),
        }
    }

    /// Limits this outcome to one case.
    pub fn when(self, when: impl Into<String>) -> Self {
        QueryOutcome { when: Some(when.into()), ..self }
    }
}

impl OutcomeKind {
    /// A redirect, or another intended response.
    pub fn answer(status: u16, location: Option<String>) -> Self {
        OutcomeKind::Response { status, location, cause: Flag::Fine.cause().to_owned() }
    }

    /// The connection is closed without a response.
    pub fn close(flag: Flag) -> Self {
        OutcomeKind::Close { cause: Some(flag.cause().to_owned()) }
    }
}

/// Context of an outcome: the router, the request, and how errors are reported.
#[derive(Clone, Copy)]
pub struct QueryContext<'a> {
    /// The router.
    pub router: &'a RouterTable,
    /// The request.
    pub request: &'a QueryRequest<'a>,
    /// Trusted CAs, and state of endpoints.
    pub facts: Facts<'a>,
    /// True if the connection is forwarded as bytes, without HTTP.
    pub is_stream: bool,
}

impl QueryContext<'_> {
    /// A local error response, with the status of the operator's error page if there is one; a stream is closed.
    pub fn refused(&self, status: u16, flag: Flag) -> OutcomeKind {
        if self.is_stream {
            return OutcomeKind::close(flag);
        }
        let page = self.router.policy.pages.of(status);
        let status = match page {
            _ if self.request.is_grpc() && grpc_has_words_for(status) => 200,
            Some(page) => page.status,
            None => status,
        };
        OutcomeKind::Response { status, location: None, cause: flag.cause().to_owned() }
    }

    /// Possible outcomes for an admitted client of a route.
    pub fn forwarded(&self, route: &ResolvedRoute) -> Vec<QueryOutcome> {
        let shares = || route.cluster.services.iter().filter(|service| service.weight > 0);
        let is_verified = |service: &&WeightedService| self.facts.trust.missing(route, service).is_none();
        let mut all: Vec<QueryOutcome> = Vec::new();
        let is_healthy = |service: &WeightedService, endpoint: &Endpoint| {
            self.facts.live.and_then(|live| live.trouble(route, service, endpoint)).is_none()
        };
        let known = &self.facts.table.endpoints;
        let healthy = endpoints(known, shares().filter(is_verified), is_healthy);
        let has_healthy = healthy.is_some();
        // Unhealthy endpoints are tried if no other is left.
        all.extend(
            healthy.or_else(|| endpoints(known, shares().filter(is_verified), |_, _| true)).map(QueryOutcome::from),
        );
        if !all.is_empty() && !has_healthy {
            let down = QueryOutcome::from(self.refused(503, Flag::BackendsDown));
            all.push(down.when("none of them connects at once: all have failed lately"));
        }
        if shares().any(|service| service.is_usable(known) && !is_verified(&service)) {
            let refused = QueryOutcome::from(self.refused(503, Flag::NoDestinationCa));
            let is_all = all.is_empty();
            all.push(if is_all { refused } else { refused.when("all that are tried have no CA to be verified with") });
        }
        let lacks = shares().filter_map(|service| service.lack(known));
        let lacks = lacks.filter(|_| route.keeps_shares(&route.cluster));
        for (status, flag) in lacks {
            let refused = self.refused(status, flag).into();
            if !all.contains(&refused) {
                all.push(refused);
            }
        }
        if all.is_empty() {
            all.push(self.refused(NO_ENDPOINTS, Flag::NoEndpoints).into());
        }
        let cookie_only = route.cluster.services.iter().filter(|service| service.weight == 0).filter(is_verified);
        all.extend(
            endpoints(known, cookie_only, |_, _| true)
                .map(|kind| QueryOutcome::from(kind).when("its cookie names one of them")),
        );
        self.limited(route, &mut all);
        all
    }

    /// Adds outcomes of rate limits and connection limits.
    fn limited(&self, route: &ResolvedRoute, all: &mut Vec<QueryOutcome>) {
        let limits = route.policy.source_limits;
        let maximums = [
            limits.concurrent.map(|most| format!("{most} connections at once")),
            limits.connections.map(|most| format!("{most} connections in 3 s")),
            limits.requests.filter(|_| !self.is_stream).map(|most| format!("{most} requests in 10 s")),
        ];
        let maximums: Vec<String> = maximums.into_iter().flatten().collect();
        if !maximums.is_empty() {
            let when = format!("the client's address has more than {}", maximums.join(", or "));
            all.push(QueryOutcome::from(self.refused(429, Flag::RateLimited)).when(when));
        }
        if let Some(most) = route.policy.endpoint_connections {
            let what = if self.is_stream { "connections" } else { "requests" };
            let when = format!("every endpoint has {most} {what} and none ends in time");
            all.push(QueryOutcome::from(self.refused(503, Flag::Busy)).when(when));
        }
    }
}

/// Endpoints of these services that pass the filter, each once.
fn endpoints<'s>(
    known: &'s Endpoints,
    services: impl Iterator<Item = &'s WeightedService>,
    passes: impl Fn(&WeightedService, &Endpoint) -> bool,
) -> Option<OutcomeKind> {
    let usable = services.filter(|service| service.is_usable(known));
    let all = usable.flat_map(|service| known.of(service).iter().map(move |endpoint| (service, endpoint)));
    let addresses: BTreeSet<_> =
        all.filter(|(service, endpoint)| passes(service, endpoint)).map(|(_, endpoint)| endpoint.address).collect();
    let endpoints: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    (!endpoints.is_empty()).then_some(OutcomeKind::Endpoints { endpoints })
}
