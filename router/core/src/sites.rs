//! What objects of other kinds than Route want served, in two steps: first what they want, then, when it is known who
//! gets which host, what they serve and what they are told.
//!
//! One rule decides between kinds: an exact host is stronger than a wildcard (they are different hosts, and the exact one
//! is looked up first), and of objects of different kinds that want the same host on the same router the oldest one's
//! kind has it, whole. Within a kind that kind's own rules decide.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::model::{HostMatch, Hostname, RouterName};
use crate::object::{Created, Meta, ObjectRef};
use crate::resolve::{EndpointIndex, TrafficDefaults};
use crate::resources::Resources;
use crate::table::VirtualHost;
use crate::translate::Settings;

/// What there is to work with.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'r> {
    /// All objects.
    pub resources: &'r Resources,
    /// What the operator has set.
    pub settings: &'r Settings,
    /// Endpoints of Services.
    pub endpoints: &'r EndpointIndex,
    /// The routers of IngressControllers, by name.
    pub routers: &'r [RouterPorts],
    /// Addresses that listeners are bound to, as `status.addresses` of a Gateway shows them.
    pub addresses: &'r [std::net::IpAddr],
}

/// A router that sites can hang on. A listener of a Gateway hangs on the router that has its port; where none has, a
/// router of one port is made for it (`gateway-<port>`). Contour's objects hang on the router `default`, or else the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterPorts {
    /// Its name.
    pub name: RouterName,
    /// Port for clear text.
    pub http: Option<u16>,
    /// Port for TLS.
    pub https: Option<u16>,
    /// What it does to the traffic of all routes.
    pub traffic: TrafficDefaults,
    /// Why it refuses TLS, where it does: the reason that its controller is told.
    pub tls_fault: Option<&'static str>,
}

/// A host that somebody wants on a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// The router; it may be one that is to be made.
    pub router: RouterName,
    /// The host.
    pub host: HostMatch,
    /// The oldest object of the kind that wants it.
    pub owner: ObjectRef,
    /// Its age.
    pub age: OwnedAge,
}

/// [`Meta::age`] without its object: creation, uid, then namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnedAge {
    created: Created,
    object: (String, String, String),
}

impl OwnedAge {
    /// The age of an object.
    pub fn of(meta: &Meta) -> Self {
        let uid = meta.created.0.map(|_| meta.uid.to_string()).unwrap_or_default();
        let object = (uid, meta.key.namespace.to_string(), meta.key.name.to_string());
        OwnedAge { created: meta.created, object }
    }

    /// When the object was created.
    pub fn created(&self) -> Created {
        self.created
    }

    /// Whether it was created before another: by time alone, and one without a time after all that have one.
    pub fn was_there_before(&self, other: &Self) -> bool {
        self.created < other.created
    }
}

/// An API whose objects want hosts.
pub trait Api {
    /// What they want: every host that may be served, whether or not it is another's.
    fn wants(&self) -> Vec<Want>;

    /// What they serve and are told, now that it is known which of the wanted hosts are another's.
    fn settle(&self, lost: &Lost) -> Settled;
}

/// The hosts that went to an object of another kind.
pub type Lost = BTreeMap<(RouterName, HostMatch), Winner>;

/// Who has a host that another object wants, and since when: what that one is told says both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Winner {
    /// The object.
    pub object: ObjectRef,
    /// Its `creationTimestamp`.
    pub created: Created,
}

/// What is served and said.
#[derive(Debug, Default)]
pub struct Settled {
    /// Routers that have to be made.
    pub routers: Vec<RouterPorts>,
    /// Virtual hosts, each with a site or a passthrough route; none that is lost.
    pub hosts: Vec<(RouterName, VirtualHost)>,
    /// Domains that delegate their names: what nobody has in them is not found (docs/delegation.md#s8).
    pub domains: BTreeSet<(RouterName, Hostname)>,
    /// What objects are told.
    pub statuses: BTreeMap<ObjectRef, Told>,
}

/// What an object is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Its `status`, without times of transitions: only what is ours. Of lists that have other controllers' entries
    /// (`parents`, `ancestors`), only our own.
    pub status: Value,
    /// For lists: one line for each router or parent.
    pub rows: Vec<Row>,
}

/// One line about an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The router, or what the object hangs on, e.g. `Gateway shop/public#web`.
    pub parent: String,
    /// Hosts that are wanted there; `*` for every host.
    pub hosts: Vec<String>,
    /// Whether it is served there, at least in part.
    pub admitted: bool,
    /// Reason and message of the condition that says so.
    pub reason: String,
    /// See `reason`.
    pub message: String,
    /// Objects that stand in its way (for operators: may name foreign namespaces).
    pub winners: Vec<ObjectRef>,
}

/// What conditions anywhere in a status say is wrong, though the object may be served: type, reason and message.
pub fn faults(status: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    collect_faults(status, &mut faults);
    faults
}

fn collect_faults(status: &Value, faults: &mut Vec<String>) {
    // Type, and the status that says so. What is not accepted stands in the rows.
    const BAD: [(&str, &str); 6] = [
        ("Conflicted", "True"),
        ("NotSupported", "True"),
        ("OverlappingTLSConfig", "True"),
        ("PartiallyInvalid", "True"),
        ("ResolvedRefs", "False"),
        ("SupportedVersion", "False"),
    ];
    match status {
        Value::Object(members) => {
            let text = |member: &str| members.get(member).and_then(Value::as_str).unwrap_or_default();
            if BAD.contains(&(text("type"), text("status"))) {
                faults.push(format!("{}: {}: {}", text("type"), text("reason"), text("message")));
            }
            members.values().for_each(|value| collect_faults(value, faults));
        }
        Value::Array(items) => items.iter().for_each(|value| collect_faults(value, faults)),
        _ => {}
    }
}
