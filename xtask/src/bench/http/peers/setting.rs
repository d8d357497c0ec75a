//! What configurations are made of.

use std::net::SocketAddrV4;
use std::path::Path;

use super::super::backend::{ECHO_PORT, WEB_PORT};
use super::super::names::{self, Hosts};
use super::super::ways::endpoints;
use crate::bench::network::Middle;

/// What configurations are made of.
pub struct PeerSetting<'a> {
    pub cores: usize,
    pub folder: &'a Path,
    pub middle: &'a Middle,
    pub hosts: Hosts,
}

impl PeerSetting<'_> {
    /// Both services with their endpoints.
    pub fn services(&self) -> [(&'static str, Vec<SocketAddrV4>); 2] {
        [("app", WEB_PORT), ("echo", ECHO_PORT)].map(|(name, port)| (name, endpoints(self.middle, port)))
    }

    /// All hosts.
    pub fn names(&self) -> impl Iterator<Item = String> {
        names::all(self.hosts)
    }
}
