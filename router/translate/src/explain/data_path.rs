//! What the kernel decides and holds; filled in by whoever runs one.

use serde::{Deserialize, Serialize};

/// The kernel's part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DataPath {
    /// `kernel` or `userspace`.
    pub mode: String,
    /// The kernel program's verdict with its reason, or why there is no kernel data path.
    pub verdict: String,
    /// Map keys in the order in which they are looked up, and what the maps hold there.
    pub keys: Vec<MapKey>,
    /// Entries of `allowlists` for the routes that these keys lead to.
    pub allow: Vec<MapNet>,
}

/// One lookup in a kernel map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapKey {
    /// Name of the map.
    pub map: String,
    /// Id of the router.
    pub router: u32,
    /// Host as the key has it.
    pub host: String,
    /// What the map holds there, in words; `None`: no entry.
    pub value: Option<String>,
    /// The same, as `sluice bpf dump` shows it.
    pub entry: Option<serde_json::Value>,
    /// How that differs from what is intended, or why it cannot be read; `None`: it does not.
    pub problem: Option<String>,
}

/// A network in the kernel's map of allow-lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapNet {
    /// Id of the route.
    pub route: u32,
    /// The network that may connect.
    pub source: String,
    /// How the map differs from what is intended; `None`: it does not.
    pub problem: Option<String>,
}
