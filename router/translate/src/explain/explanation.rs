//! The explanation of a query, as data.

use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::explain::data_path::KernelDecision;
use crate::explain::outcome::{OutcomeKind, QueryOutcome};
use crate::explain::query::Query;
use crate::explain::settings::RouteSetting;

/// The decisions about one query, in the order in which the data path makes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The query.
    pub query: Query,
    /// Name of the router that the port belongs to.
    pub router: Option<String>,
    /// The decisions.
    pub steps: Vec<ExplanationStep>,
    /// True if a backend of a route serves it, or a redirect that the route configures.
    pub served: bool,
    /// The result, in a sentence.
    pub verdict: String,
    /// What to change if it is not served.
    pub fix: Option<String>,
    /// Possible outcomes, for programs: several if the router balances, or if the query does not decide a case.
    pub outcome: Vec<QueryOutcome>,
}

impl Explanation {
    /// True if the XDP gate drops the packets of the query's client.
    pub fn is_dropped(&self) -> bool {
        self.outcome.iter().any(|outcome| matches!(outcome.kind, OutcomeKind::Dropped { .. }))
    }
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "camelCase")]
pub enum ExplanationStep {
    /// The router with the port.
    Listener {
        /// All routers, the matching one first.
        candidates: Vec<Candidate>,
    },
    /// The XDP gate.
    Gate {
        /// What its policy says.
        rules: Vec<String>,
        /// What it does to packets of the query's client.
        client: Option<String>,
    },
    /// The virtual host, most specific first.
    Host {
        /// Names that could match.
        candidates: Vec<Candidate>,
    },
    /// The path, longest first.
    Path {
        /// The host's routes of this protocol.
        candidates: Vec<Candidate>,
    },
    /// The rule that matches, of a Gateway API or Contour object.
    Rule {
        /// The listener, or the object that the rule is attached to.
        listener: String,
        /// The path from there to the rule: each object includes the next one.
        path: Vec<String>,
        /// The action.
        action: String,
    },
    /// The object that serves it.
    Route(Owner),
    /// Objects that claim the host, but were rejected or shadowed.
    Losers {
        /// In order of name.
        routes: Vec<Loser>,
    },
    /// The allow-list.
    Filter {
        /// The networks of the route's allow-list; `None` without a list.
        allow: Option<Vec<String>>,
        /// The result for the client of the query.
        client: Option<ClientAdmission>,
    },
    /// Settings.
    Settings {
        /// Settings of the route on this router.
        settings: Vec<RouteSetting>,
    },
    /// Backends.
    Backends {
        /// Services of the route; one of weight 0 serves only clients whose cookie names one of its endpoints.
        services: Vec<ServiceSummary>,
    },
    /// The data path of the connection; only a running agent knows.
    DataPath(KernelDecision),
}

/// A candidate for a decision, chosen or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its name.
    pub what: String,
    /// True if it was chosen.
    pub taken: bool,
    /// Why, or why not.
    pub why: String,
}

/// An object, with its source and age.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// Kind.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// `file:line` in the folder of manifests; `None` for an object of the API server.
    pub source: Option<String>,
    /// `creationTimestamp`; an object without one is younger than all that have one.
    pub created: Option<Timestamp>,
    /// Its conditions on the router: type, status, reason, message.
    pub conditions: Vec<OwnerCondition>,
}

impl Owner {
    /// True if both are the same object.
    pub(super) fn is(&self, other: &Owner) -> bool {
        (&self.kind, &self.namespace, &self.name) == (&other.kind, &other.namespace, &other.name)
    }
}

/// A condition of a status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerCondition {
    /// `type`.
    pub r#type: String,
    /// `True` or `False`.
    pub status: String,
    /// `reason`.
    pub reason: String,
    /// `message`.
    pub message: String,
}

/// An object that claims the host and is not served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loser {
    /// The route.
    pub route: Owner,
    /// The object that won the host.
    pub winner: Option<Owner>,
    /// Why, in a sentence.
    pub why: String,
    /// The fix, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// A client, and the allow-list's decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientAdmission {
    /// Its address.
    pub address: IpAddr,
    /// True if it may connect.
    pub admitted: bool,
    /// The network that admits it; `None` without a list.
    pub by: Option<String>,
}

/// A service of the route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceSummary {
    /// Name, with its namespace in front if that is not the route's.
    pub name: String,
    /// Weight, 0 – 256; of rules, up to 1,000,000.
    pub weight: u32,
    /// Ready endpoints, `address:port`; if none is ready, the draining ones.
    pub endpoints: Vec<String>,
    /// Why there are no endpoints; empty if there are some.
    pub problem: String,
    /// Endpoints that are skipped while others are left, each with the reason; only a running agent knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<String>,
}
