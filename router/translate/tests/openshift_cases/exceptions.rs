//! Cases in which Sluice deliberately differs.

/// Why a case differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// A numbered decision: the original is a quirk, or undefined.
    Decision(u8),
    /// Permissions of users, which only the API server knows.
    Permission,
    /// The fact is outside the engine: an environment variable of the original, or a write to the API.
    NotTheEngine,
}

/// A case with this number of differing facts.
pub struct Exception {
    /// Id of the case.
    pub id: &'static str,
    /// How many facts of the case differ.
    pub facts: usize,
    /// The ground for the difference.
    pub ground: Ground,
    /// A short explanation.
    pub why: &'static str,
}

const fn exception(id: &'static str, facts: usize, ground: Ground, why: &'static str) -> Exception {
    Exception { id, facts, ground, why }
}

const SUBRESOURCE: &str = "the user may not write routes/custom-host";
const TEMPLATE: &str = "a host from ROUTER_SUBDOMAIN, which the operator never sets";

/// All of them.
pub const EXCEPTIONS: &[Exception] = &[
    exception("admission_chain_derived/009", 1, Ground::Decision(2), "a foreign namespace is never named"),
    exception("admission_chain_derived/018", 2, Ground::Decision(8), "a host is generated on load"),
    exception("admission_chain_derived/063", 2, Ground::Decision(5), "exact and wildcard of one literal host coexist"),
    exception("host_activation/006", 4, Ground::Decision(1), "the answer never depends on the order of arrival"),
    exception("host_assignment/009", 2, Ground::Permission, SUBRESOURCE),
    exception("host_assignment/012", 2, Ground::Permission, SUBRESOURCE),
    exception("host_assignment/015", 1, Ground::Permission, SUBRESOURCE),
    exception("host_assignment/021", 1, Ground::Permission, SUBRESOURCE),
    exception("host_assignment/024", 1, Ground::Permission, SUBRESOURCE),
    exception("host_assignment/027", 1, Ground::Permission, SUBRESOURCE),
    exception("host_assignment/039", 1, Ground::Permission, SUBRESOURCE),
    exception("host_assignment/045", 1, Ground::Permission, SUBRESOURCE),
    exception("host_assignment/048", 1, Ground::Permission, SUBRESOURCE),
    exception("map_files/033", 3, Ground::NotTheEngine, "the original asks the map only about what is passed through"),
    exception("request_routing_derived/003", 1, Ground::Decision(2), "the label of a wildcard may not be empty"),
    exception("request_routing_derived/012", 1, Ground::Decision(5), "the exact host wins, whatever its termination"),
    exception("rewrite_target/009", 1, Ground::NotTheEngine, "backslashes of HAProxy's configuration"),
    exception("route_validation/039", 1, Ground::Decision(8), "an empty kind is filled in before validation"),
    exception("router_host_resolution/006", 4, Ground::Decision(8), "a host is generated on load"),
    exception("router_host_resolution/012", 2, Ground::NotTheEngine, TEMPLATE),
    exception("status_clearing_derived/003", 1, Ground::Decision(4), "the entry goes when the route leaves the shard"),
    exception("status_write/027", 1, Ground::NotTheEngine, "a write conflict; the agent publishes before it writes"),
    exception("tls_validation/018", 1, Ground::Permission, "the router's account may not read the Secret"),
];
