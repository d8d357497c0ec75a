//! Shared by the dumps of several maps.

use std::net::SocketAddr;

use aya::maps::MapError;
use router_common::maps::PROTOCOL_TLS;

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
