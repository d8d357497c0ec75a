//! HAProxy, nginx and Envoy as HTTP routers by host: a thread or worker for each core, no logs, connections to backends
//! that stay, and the forwarded fields that Sluice sets.

use std::fs;
use std::path::Path;

use anyhow::Result;

use self::setting::PeerSetting;
use super::names::{Hosts, SelfSignedCertificate};
use crate::bench::network::Middle;
use crate::bench::programs::Peer;
use crate::bench::tools::Tools;
use crate::process::{Running, Server};

mod envoy;
mod haproxy;
mod nginx;
mod setting;

/// Starts one. It is ready when requests are answered.
pub fn start(tools: &Tools, peer: Peer, hosts: Hosts, middle: &Middle, folder: &Path) -> Result<Running> {
    SelfSignedCertificate::generate()?.write(folder)?;
    let setting = PeerSetting { cores: tools.cores, folder, middle, hosts };
    let mut command = middle.netns.command(peer.program(&tools.root)?)?;
    let (name, file, config) = match peer {
        Peer::HaProxy => {
            fs::write(folder.join("hosts.map"), haproxy::map(&setting))?;
            let file = folder.join("haproxy.cfg");
            command.arg("-db").arg("-f").arg(&file);
            ("haproxy", file, haproxy::configuration(&setting))
        }
        Peer::Nginx => {
            let file = folder.join("nginx.conf");
            command.arg("-p").arg(folder).arg("-c").arg(&file).args(["-e", "stderr"]);
            ("nginx", file, nginx::configuration(&setting))
        }
        Peer::Envoy => {
            fs::write(folder.join("routes.yaml"), envoy::routes(&setting))?;
            let file = folder.join("envoy.yaml");
            command.arg("-c").arg(&file).args(["--concurrency", &tools.cores.to_string(), "--log-level", "error"]);
            command.args(["--use-dynamic-base-id", "--disable-hot-restart"]);
            // Envoy needs a node id to read routes from files.
            command.args(["--service-node", "bench", "--service-cluster", "bench"]);
            ("envoy", file, envoy::configuration(&setting))
        }
    };
    fs::write(file, config)?;
    Ok(Server::start(name, &mut command)?.echo())
}
