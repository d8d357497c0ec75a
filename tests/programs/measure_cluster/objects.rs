//! The objects of a measurement. Statuses are there already, as an agent would write them: else a start would be followed by
//! one write for each Route, at a limited rate.

use std::thread;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tests::cluster::ControlPlane;
use tests::cluster::site::{ONE, ROUTES, Server, Site, route_object};
use tests::folder;
use tests::stream::joined;

use crate::agents::Agent;

/// Number of Services to which Routes lead, if not each has its own.
pub const SERVICES: usize = 100;
/// Collection of the EndpointSlices.
pub const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/test/endpointslices";

/// Numbers of objects.
#[derive(Clone, Copy)]
pub struct Objects {
    pub routes: usize,
    pub services: usize,
}

/// Name of a Route.
pub fn route(number: usize) -> String {
    format!("r{number}")
}

/// Host of a Route.
pub fn host(number: usize) -> String {
    format!("r{number}.apps.test")
}

impl Objects {
    /// Creates them.
    pub fn create(self, site: &Site) -> Result<()> {
        eprintln!("{} Routes and {} Services are made", self.routes, self.services);
        let services = (0..self.services).map(|number| folder::service(&service(number), (site.address(), ONE).into()));
        site.apply(&services.collect::<String>())?;
        let first = route_object(&route(0), &service(0));
        let status = match &site.server {
            Server::Mock(server) => server.apply(&first).map(drop),
            Server::Real(plane) => plane.api().create(ROUTES, &first).map(drop),
        };
        status?;
        let template = first_status(site)?;
        let with_status = |number: usize| -> Result<(String, Value, Value)> {
            let name = route(number);
            let status: Value = serde_json::from_str(&template.replace(&host(0), &host(number)))?;
            Ok((name.clone(), route_object(&name, &service(number % self.services)), status))
        };
        match &site.server {
            Server::Mock(server) => (1..self.routes).try_for_each(|number| {
                let (_, mut object, status) = with_status(number)?;
                object["status"] = status;
                server.apply(&object).map(drop)
            }),
            Server::Real(plane) => create_all(plane, site, self.routes, &with_status),
        }
    }
}

/// Creates the Routes from the second one, over several connections.
fn create_all(
    plane: &ControlPlane,
    site: &Site,
    routes: usize,
    object: &(impl Fn(usize) -> Result<(String, Value, Value)> + Sync),
) -> Result<()> {
    const CONNECTIONS: usize = 4;
    thread::scope(|scope| {
        let create = |first: usize| {
            let api = plane.client(&site.netns)?;
            (1 + first..routes).step_by(CONNECTIONS).try_for_each(|number| {
                let (name, object, status) = object(number)?;
                api.create(ROUTES, &object)?;
                api.patch(&format!("{ROUTES}/{name}/status"), &json!({ "status": status })).map(drop)
            })
        };
        let threads: Vec<_> = (0..CONNECTIONS).map(|first| scope.spawn(move || create(first))).collect();
        threads.into_iter().try_for_each(joined)
    })
}

/// The status of the first Route as an agent writes it.
fn first_status(site: &Site) -> Result<String> {
    let agent = Agent::start(site, &[])?;
    let stored = site.wait_for_admitted(&route(0), "True")?;
    // So are the other statuses.
    agent.settle()?;
    let status = stored.get("status").context("the Route has a status")?;
    Ok(status.to_string())
}

/// Name of a Service.
pub fn service(number: usize) -> String {
    format!("web{number}")
}

/// The EndpointSlice of a Service, as `folder::service` has it, with this port.
pub fn slice(site: &Site, service: &str, port: u16) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": format!("{service}-1"),
            "namespace": "test",
            "labels": {"kubernetes.io/service-name": service},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [site.address()]}],
        "ports": [{"name": "main", "port": port}],
    })
}
