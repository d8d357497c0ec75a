//! What a watch reports.

use router_model::object::ObjectKey;
use serde_json::Value;

use super::scope::Scope;

/// A report of a watch. It may contain keys, and has no `Debug`.
pub struct Update {
    /// The watch.
    pub scope: Scope,
    /// What it reports.
    pub event: WatchEvent,
}

/// An event of a watch.
pub enum WatchEvent {
    /// A list begins: objects follow, then [`WatchEvent::Listed`].
    Listing,
    /// A list is complete. Objects of the scope that were not in it no longer exist.
    Listed,
    /// A new or changed object.
    Object {
        /// Namespace and name.
        key: ObjectKey,
        /// The object, with `apiVersion` and `kind`.
        value: Box<Value>,
    },
    /// An object that was read by itself. A newer version may have been reported since.
    Fetched {
        /// Namespace and name.
        key: ObjectKey,
        /// The object, with `apiVersion` and `kind`.
        value: Box<Value>,
    },
    /// A deleted object.
    Deleted {
        /// Namespace and name.
        key: ObjectKey,
        /// Its last resource version.
        version: u64,
    },
    /// A list follows, with versions that cannot be compared with those so far.
    Restored,
    /// The API server does not serve the kind.
    NotInstalled,
    /// The API server cannot be asked, or rejects the request.
    Failed(WatchFailure),
}

/// Why a watch cannot proceed at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchFailure {
    /// 403: missing rights.
    Denied(String),
    /// Everything else.
    Unreachable(String),
}
