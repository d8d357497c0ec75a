//! What may become of a question's request or connection, for programs.

use std::collections::BTreeSet;

use router_table::decide::grpc_has_words_for;
use router_table::flag::Flag;
use router_table::table::{Endpoint, Endpoints, NO_ENDPOINTS, ResolvedRoute, RouterTable, ServiceEndpoints};
use serde::{Deserialize, Serialize};

use super::asked::Asked;
use crate::explain::facts::Facts;

/// Something that may become of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// What.
    #[serde(flatten)]
    pub fate: Fate,
    /// In which case, where the question leaves that open; `None`: in any other, or whenever it is its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
}

/// What a client gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Fate {
    /// What one of these endpoints answers, whatever that is.
    Endpoints {
        /// `address:port`, in order.
        endpoints: Vec<String>,
    },
    /// A response that the router makes.
    Response {
        /// Its status; 200 for errors of gRPC.
        status: u16,
        /// `Location` of a redirect.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        location: Option<String>,
        /// Why, in the word of `docs/causes.md`.
        cause: String,
    },
    /// No response: the connection is refused, closed or reset.
    Close {
        /// Why, in the word of `docs/causes.md`; `None`: no router has it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<String>,
    },
    /// TLS with the client is made here; what it asks for in it decides.
    Handshake,
}

impl From<Fate> for Outcome {
    fn from(fate: Fate) -> Self {
        Outcome { fate, when: None }
    }
}

impl Outcome {
    /// What went wrong, in a word; `None`: nothing.
    pub fn cause(&self) -> Option<&str> {
        match &self.fate {
            Fate::Response { cause, .. } | Fate::Close { cause: Some(cause) } => {
                Some(&**cause).filter(|cause| *cause != Flag::Fine.cause())
            }
            Fate::Close { cause: None } | Fate::Endpoints { .. } | Fate::Handshake => None,
        }
    }

    /// In a word or two.
    pub fn answer(&self) -> String {
        match &self.fate {
            Fate::Endpoints { endpoints } => endpoints.join(", "),
            Fate::Response { status, location: Some(location), .. } => format!("{status} to {location}"),
            Fate::Response { status, .. } => status.to_string(),
            Fate::Close { .. } => "the connection is reset".to_owned(),
            Fate::Handshake => "TLS ends here".to_owned(),
        }
    }

    /// The same in one case alone.
    pub fn when(self, when: impl Into<String>) -> Self {
        Outcome { when: Some(when.into()), ..self }
    }
}

impl Fate {
    /// A redirect, or another answer that is as it should be.
    pub fn answer(status: u16, location: Option<String>) -> Self {
        Fate::Response { status, location, cause: Flag::Fine.cause().to_owned() }
    }

    /// The connection ends without a word.
    pub fn close(flag: Flag) -> Self {
        Fate::Close { cause: Some(flag.cause().to_owned()) }
    }
}

/// Who is asked, and how those who are refused are told.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    /// The router.
    pub router: &'a RouterTable,
    /// The request.
    pub asked: &'a Asked<'a>,
    /// What endpoints are verified with, and what is known of them.
    pub facts: Facts<'a>,
    /// Whether bytes are carried, and no request is read.
    pub is_stream: bool,
}

impl Ground<'_> {
    /// What the router says instead of an endpoint: its own page, if the operator has not given it another; a stream ends.
    pub fn refused(&self, status: u16, flag: Flag) -> Fate {
        if self.is_stream {
            return Fate::close(flag);
        }
        let page = self.router.policy.pages.of(status);
        let status = match page {
            _ if self.asked.is_grpc() && grpc_has_words_for(status) => 200,
            Some(page) => page.status,
            None => status,
        };
        Fate::Response { status, location: None, cause: flag.cause().to_owned() }
    }

    /// What may become of something that a route has, once its client is let in.
    pub fn forwarded(&self, route: &ResolvedRoute) -> Vec<Outcome> {
        let shares = || route.cluster.services.iter().filter(|service| service.weight > 0);
        let is_verified = |service: &&ServiceEndpoints| self.facts.trust.missing(route, service).is_none();
        let mut all: Vec<Outcome> = Vec::new();
        let is_well = |service: &ServiceEndpoints, endpoint: &Endpoint| {
            self.facts.live.and_then(|live| live.trouble(route, service, endpoint)).is_none()
        };
        let known = &self.facts.table.endpoints;
        let well = endpoints(known, shares().filter(is_verified), is_well);
        let has_well = well.is_some();
        // Those that are not well are tried where no other is left.
        all.extend(well.or_else(|| endpoints(known, shares().filter(is_verified), |_, _| true)).map(Outcome::from));
        if !all.is_empty() && !has_well {
            let down = Outcome::from(self.refused(503, Flag::BackendsDown));
            all.push(down.when("none of them connects at once: all have failed lately"));
        }
        if shares().any(|service| service.is_usable(known) && !is_verified(&service)) {
            let refused = Outcome::from(self.refused(503, Flag::NoDestinationCa));
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
        let kept = route.cluster.services.iter().filter(|service| service.weight == 0).filter(is_verified);
        all.extend(
            endpoints(known, kept, |_, _| true).map(|fate| Outcome::from(fate).when("its cookie names one of them")),
        );
        self.limited(route, &mut all);
        all
    }

    /// What limits make of it.
    fn limited(&self, route: &ResolvedRoute, all: &mut Vec<Outcome>) {
        let limits = route.policy.source_limits;
        let most = [
            limits.concurrent.map(|most| format!("{most} connections at once")),
            limits.connections.map(|most| format!("{most} connections in 3 s")),
            limits.requests.filter(|_| !self.is_stream).map(|most| format!("{most} requests in 10 s")),
        ];
        let most: Vec<String> = most.into_iter().flatten().collect();
        if !most.is_empty() {
            let when = format!("the client's address has more than {}", most.join(", or "));
            all.push(Outcome::from(self.refused(429, Flag::RateLimited)).when(when));
        }
        if let Some(most) = route.policy.endpoint_connections {
            let what = if self.is_stream { "connections" } else { "requests" };
            let when = format!("every endpoint has {most} {what} and none ends in time");
            all.push(Outcome::from(self.refused(503, Flag::Busy)).when(when));
        }
    }
}

/// The endpoints of these services that pass, each once.
fn endpoints<'s>(
    known: &'s Endpoints,
    services: impl Iterator<Item = &'s ServiceEndpoints>,
    passes: impl Fn(&ServiceEndpoints, &Endpoint) -> bool,
) -> Option<Fate> {
    let usable = services.filter(|service| service.is_usable(known));
    let all = usable.flat_map(|service| known.of(service).iter().map(move |endpoint| (service, endpoint)));
    let addresses: BTreeSet<_> =
        all.filter(|(service, endpoint)| passes(service, endpoint)).map(|(_, endpoint)| endpoint.address).collect();
    let endpoints: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    (!endpoints.is_empty()).then_some(Fate::Endpoints { endpoints })
}
