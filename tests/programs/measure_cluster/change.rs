//! One change of an object, on the real API server: to the proxy, to the kernel's map and to its status.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use router_common::maps::names;
use serde_json::json;
use tests::cluster::Api;
use tests::cluster::site::{ROUTES, Server, Site};
use tests::pinned::Hosts;
use tests::sluice::DataPath;
use tests::wait::PATIENCE;

use crate::agents::{Agent, written, written_since};
use crate::load;
use crate::objects::route;
use crate::row;

/// Number of changes of which the median is taken.
const CHANGES: usize = 21;
const PROXY: Duration = Duration::from_millis(50);
const KERNEL: Duration = Duration::from_millis(50);
const STATUS: Duration = Duration::from_millis(200);

/// Changes the host of a Route.
pub fn change_host(api: &Api, route: &str, host: &str) -> Result<()> {
    api.patch(&format!("{ROUTES}/{route}"), &json!({"spec": {"host": host}})).map(drop)
}

/// The host in a Route's status.
fn host_of_status(api: &Api, route: &str) -> Result<String> {
    let route = api.get(&format!("{ROUTES}/{route}"))?;
    Ok(route.pointer("/status/ingress/0/host").and_then(|host| host.as_str()).unwrap_or_default().to_owned())
}

/// Measures.
pub fn measure(site: &Site) -> Result<()> {
    let Server::Real(plane) = &site.server else { bail!("the API server is the mock") };
    let agent = Agent::start_in(&site.netns, site.kubeconfig(), DataPath::Kernel, &[])?;
    agent.settle()?;
    let before = written(site)?.len();
    let (api, router) = (plane.api(), SocketAddr::new(site.address(), 8080));
    let map = Hosts::of(&agent.sluice, names::HTTP_BE)?;
    let (mut number, mut stored) = (0, Vec::new());
    let mut change = |arrived: &dyn Fn(&str, &str) -> Result<bool>| -> Result<Duration> {
        number += 1;
        let (name, host) = (route(number), format!("changed-{number}.apps.test"));
        ensure!(!arrived(&name, &host)?, "{host} is served before it is written");
        let begin = Instant::now();
        change_host(api, &name, &host)?;
        stored.push(begin.elapsed());
        while !arrived(&name, &host)? {
            ensure!(begin.elapsed() < PATIENCE, "{host} is not in force after {PATIENCE:?}");
            thread::sleep(Duration::from_micros(200));
        }
        let took = begin.elapsed();
        // The next change finds an agent at rest.
        while host_of_status(api, &name)? != host {
            ensure!(begin.elapsed() < PATIENCE, "the status of {host} is not written after {PATIENCE:?}");
        }
        thread::sleep(Duration::from_millis(100));
        Ok(took)
    };
    let in_proxy = |_: &str, host: &str| load::serves(&site.netns, router, host);
    let proxy: Vec<_> = (0..CHANGES).map(|_| change(&in_proxy)).collect::<Result<_>>()?;
    let in_kernel = |_: &str, host: &str| map.has(host);
    let kernel: Vec<_> = (0..CHANGES).map(|_| change(&in_kernel)).collect::<Result<_>>()?;
    let in_status = |name: &str, host: &str| Ok(host_of_status(api, name)? == host);
    let status: Vec<_> = (0..CHANGES).map(|_| change(&in_status)).collect::<Result<_>>()?;
    let (stored, ..) = row::summary(stored);
    row::print_median(
        &format!("a change of a Route ({} of it until the API server has it), to the proxy", row::text(stored)),
        proxy,
        PROXY,
    );
    row::print_median("the same, to the kernel's map", kernel, KERNEL);
    row::print_median("the same, to its status", status, STATUS);
    let (changes, writes) = (3 * CHANGES, written_since(site, before, 3 * CHANGES)?);
    row::print("writes for it", &format!("{writes} for {changes} changes"), "1 for each", writes == changes);
    Ok(())
}
