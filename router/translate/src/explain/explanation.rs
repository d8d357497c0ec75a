//! An explanation: the decisions about one query, as data.

use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::explain::data_path::DataPath;
use crate::explain::outcome::Outcome;
use crate::explain::query::Query;
use crate::explain::settings::Setting;

/// The decisions about one query, in the order in which traffic meets them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The question.
    pub query: Query,
    /// Name of the router that the port belongs to.
    pub router: Option<String>,
    /// The decisions.
    pub steps: Vec<Step>,
    /// Whether a backend of a route gets it, or a redirect that the route asks for.
    pub served: bool,
    /// What happens, in a sentence.
    pub verdict: String,
    /// What to change, when it is not served.
    pub fix: Option<String>,
    /// What may become of it, for programs: several where the router chooses, or where the question leaves something
    /// open.
    pub outcome: Vec<Outcome>,
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "camelCase")]
pub enum Step {
    /// Which router's port.
    Listener {
        /// All of them, the one that fits first.
        candidates: Vec<Candidate>,
    },
    /// Which host, most specific first.
    Host {
        /// The names that could have matched.
        candidates: Vec<Candidate>,
    },
    /// Which path of the host, longest first.
    Path {
        /// The host's routes of this protocol.
        candidates: Vec<Candidate>,
    },
    /// The rule that has it, of an object of another kind than Route.
    Rule {
        /// The listener, or whatever the object hangs on.
        listener: String,
        /// The way from there to the rule: each object that includes the next one.
        path: Vec<String>,
        /// What is done.
        action: String,
    },
    /// The object that has it.
    Route(Owner),
    /// Objects that would have it, if they were not refused or shadowed.
    Losers {
        /// In order of name.
        routes: Vec<Loser>,
    },
    /// Who may connect.
    Filter {
        /// The networks of the route's allow-list; `None`: it has no list.
        allow: Option<Vec<String>>,
        /// What that means for the client of the query.
        client: Option<Client>,
    },
    /// How it is carried.
    Settings {
        /// What holds for the route on this router.
        settings: Vec<Setting>,
    },
    /// Where it goes.
    Backends {
        /// Its services; one of weight 0 serves only clients whose cookie names an endpoint of it.
        services: Vec<Service>,
    },
    /// Who carries the connection; a running agent alone knows.
    DataPath(DataPath),
}

/// Something that may fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// What it is.
    pub what: String,
    /// Whether it is the one.
    pub taken: bool,
    /// Why, or why not.
    pub why: String,
}

/// An object, where it stands, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// Kind.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// `file:line` in the folder of manifests; `None` when it comes from a server.
    pub source: Option<String>,
    /// `creationTimestamp`; an object without one is younger than all that have one.
    pub created: Option<Timestamp>,
    /// Its conditions on the router: type, status, reason, message.
    pub conditions: Vec<Fact>,
}

impl Owner {
    /// Whether this is the same object.
    pub(super) fn is(&self, other: &Owner) -> bool {
        (&self.kind, &self.namespace, &self.name) == (&other.kind, &other.namespace, &other.name)
    }
}

/// A condition of a status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fact {
    /// `type`.
    pub r#type: String,
    /// `True` or `False`.
    pub status: String,
    /// `reason`.
    pub reason: String,
    /// `message`.
    pub message: String,
}

/// A route that wants the host and is not served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loser {
    /// The route.
    pub route: Owner,
    /// Whom it lost to.
    pub winner: Option<Owner>,
    /// Why, in words.
    pub why: String,
    /// What to write, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// A client, and what an allow-list says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// Its address.
    pub address: IpAddr,
    /// Whether it may connect.
    pub admitted: bool,
    /// The network that lets it in; `None` as well where there is no list.
    pub by: Option<String>,
}

/// A service of the route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Name, in the route's namespace or with its own in front.
    pub name: String,
    /// Weight, 0 – 256; of rules, up to 1,000,000.
    pub weight: u32,
    /// Ready endpoints, `address:port`; draining ones where none is ready.
    pub endpoints: Vec<String>,
    /// Why there are no endpoints; empty when there are some.
    pub problem: String,
    /// Endpoints that get nothing while there are others, each with why; a running agent alone knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<String>,
}
