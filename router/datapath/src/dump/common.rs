//! Shared by the dumps of several maps.

use std::net::SocketAddr;

use aya::maps::MapError;
use router_common::maps::{FlowKey, PROTOCOL_TLS};
use router_common::verdict::Reason;
use serde_json::{Value, json};

use crate::address::address;
use crate::pin_folder::PinError;

/// Why a map cannot be dumped.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// There is no such map.
    #[error("no map is called `{0}`; `sluice bpf maps` lists them")]
    Unknown(String),
    /// The map is not pinned, or must not be read.
    #[error(transparent)]
    Open(#[from] PinError),
    /// Reading failed.
    #[error("cannot read the map")]
    Read(#[from] MapError),
}

pub(super) fn socket(ip: &[u8; 16], port: u16) -> String {
    SocketAddr::new(address(ip), port).to_string()
}

pub(super) fn protocol(code: u8) -> &'static str {
    if code == PROTOCOL_TLS { "tls" } else { "http" }
}

pub(super) fn flow(key: &FlowKey) -> Value {
    json!({
        "client": socket(&key.source, key.source_port),
        "listener": socket(&key.destination, key.destination_port),
    })
}

pub(super) fn merge(mut left: Value, right: Value) -> Value {
    if let (Value::Object(left), Value::Object(right)) = (&mut left, right) {
        left.extend(right);
    }
    left
}

pub(super) fn reason(code: u16) -> &'static str {
    Reason::from_code(code).map_or("unknown", Reason::text)
}
