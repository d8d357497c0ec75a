//! Decision of the kernel and its map entries; filled in by an agent that runs the kernel data path.

use serde::{Deserialize, Serialize};

/// The kernel's decision and map entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KernelDecision {
    /// `kernel` or `userspace`.
    pub mode: String,
    /// The kernel program's verdict with its reason, or why there is no kernel data path.
    pub verdict: String,
    /// Map look-ups in order, with the entries found.
    pub keys: Vec<MapKey>,
    /// Entries of `allowlists` for the routes found.
    pub allow: Vec<MapNet>,
}

/// One look-up in a kernel map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapKey {
    /// Name of the map.
    pub map: String,
    /// Id of the router.
    pub router: u32,
    /// Host as encoded in the key.
    pub host: String,
    /// Description of the entry; `None` if there is none.
    pub value: Option<String>,
    /// The same, as `sluice bpf dump` shows it.
    pub entry: Option<serde_json::Value>,
    /// How the entry differs from the intended one, or why it cannot be read; `None` if it is as intended.
    pub problem: Option<String>,
}

/// A network in the kernel's map of allow-lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapNet {
    /// Id of the route.
    pub route: u32,
    /// The allowed source network.
    pub source: String,
    /// How the entry differs from the intended one; `None` if it is as intended.
    pub problem: Option<String>,
}
