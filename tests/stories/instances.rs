//! Two agents on one host, each with its own instance, dial from separate port ranges.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use router_common::maps::names;
use router_common::verdict::DialCounter;
use tempfile::TempDir;
use tests::netns::Netns;
use tests::sluice::{DataPath, Options, Sluice};
use tests::{folder, pinned, stream};

const HOST: &str = "raw.apps.test";

#[test]
fn a_second_agent_dials_from_other_ports_or_does_not_start() -> Result<()> {
    let netns = Netns::new("instances")?;
    let listener = netns.run(|| Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 9000))?))?;
    let endpoint = listener.local_addr()?;
    let (first, second) = (TempDir::new()?, TempDir::new()?);
    manifests(first.path(), endpoint, [8080, 8443])?;
    manifests(second.path(), endpoint, [8081, 8444])?;
    let one = Sluice::start(&netns, first.path(), &Options::loopback(DataPath::Kernel))?;
    let taken = ports(&one)?;

    let mut options = Options::loopback(DataPath::Kernel);
    options.arguments = vec!["--snat-ports".to_owned(), format!("{0}-{0}", taken.0)];
    let refused = Sluice::start(&netns, second.path(), &options).err().context("it starts")?.to_string();
    let reason = format!("{}-{}) have ports in common", taken.0, taken.1);
    ensure!(refused.contains(&reason), "{refused}");

    let two = Sluice::start(&netns, second.path(), &Options::loopback(DataPath::Kernel))?;
    let others = ports(&two)?;
    ensure!(others.1 < taken.0 || taken.1 < others.0, "{taken:?} and {others:?}");
    for (seed, sluice, port) in [(1, &one, 8443), (2, &two, 8444)] {
        let pair = stream::connect(&netns, SocketAddr::new(endpoint.ip(), port), &listener, HOST)?;
        pair.exchange(seed, 200_000, 200_000)?;
        ensure!(pinned::dial_counter(sluice, DialCounter::Dialed)? == 1, "port {port} was not steered");
    }
    Ok(())
}

/// One route on a router with these ports, and a port for statistics.
pub fn manifests(folder: &Path, endpoint: SocketAddr, [http, https]: [u16; 2]) -> Result<()> {
    let stats = 1936 + http - 8080;
    let router = folder::router().replace("8080", &http.to_string()).replace("8443", &https.to_string());
    let text = router.replace("1936", &stats.to_string())
        + &folder::service("raw", endpoint)
        + &folder::route("raw", HOST, "raw", folder::PASSTHROUGH);
    folder::replace(&folder.join("all.yaml"), &text)
}

/// The lowest and the highest port from which an agent dials.
fn ports(sluice: &Sluice) -> Result<(u64, u64)> {
    let config = sluice.dump(names::CONFIG)?;
    let number = |member: &str| config[0][member].as_u64().with_context(|| format!("{config}"));
    Ok((number("firstPort")?, number("firstPort")? + number("ports")? - 1))
}
