//! Index of EndpointSlices by Service: endpoints and protocols of a Service's ports.

pub mod absence;
pub mod addresses;
pub mod services;

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

use router_api::kubernetes::endpoints::protocol::AppProtocol;
use router_api::kubernetes::endpoints::{EndpointSlice, SlicePort};
use router_api::openshift::route::backends::TargetPort;
use router_api::resources::Resources;
use router_model::object::ObjectKey;
use router_table::table::{Endpoint, EndpointsKey, PortChoice};

use crate::endpoints::addresses::{EndpointAddresses, is_usable};

/// True if a choice selects a port of a slice.
pub fn is_chosen(choice: &PortChoice, port: &SlicePort) -> bool {
    let is_target =
        |target: Option<&Arc<str>>| target.is_none_or(|it| TargetPort(it.clone()).matches(&port.name, port.number));
    match choice {
        PortChoice::Target(target) => is_target(target.as_ref()),
        PortChoice::Service { name, target, .. } if name.is_empty() => {
            port.name.is_empty() || is_target(target.as_ref())
        }
        PortChoice::Service { name, .. } => *name == port.name,
    }
}

/// A port of a slice with a protocol: name, number, protocol.
type PortProtocol = (Arc<str>, u16, AppProtocol);

/// EndpointSlices, indexed by Service.
#[derive(Debug)]
pub struct EndpointIndex {
    /// In order of key.
    slices: HashMap<ObjectKey, Vec<Arc<EndpointSlice>>>,
    addresses: EndpointAddresses,
}

impl EndpointIndex {
    /// Indexes these EndpointSlices.
    pub fn new(resources: &Resources, addresses: EndpointAddresses) -> Self {
        let mut index = EndpointIndex { slices: HashMap::with_capacity(resources.endpoint_slices.len()), addresses };
        for slice in resources.endpoint_slices.iter() {
            index.put(slice.clone());
        }
        index
    }

    /// Replaces the version `old` of a slice by `new`; `None`: the slice did not exist, or is removed. Returns the
    /// Services whose endpoints may differ, and those of them whose [`EndpointIndex::protocols`] may differ.
    pub fn replace(
        &mut self,
        old: Option<Arc<EndpointSlice>>,
        new: Option<Arc<EndpointSlice>>,
    ) -> (BTreeSet<ObjectKey>, BTreeSet<ObjectKey>) {
        let services: BTreeSet<ObjectKey> =
            [&old, &new].into_iter().flatten().filter_map(|slice| service_of(slice)).collect();
        let before: Vec<BTreeSet<PortProtocol>> = services.iter().map(|service| self.port_protocols(service)).collect();
        if let Some((service, slice)) = old.as_ref().and_then(|slice| Some((service_of(slice)?, slice)))
            && let Some(slices) = self.slices.get_mut(&service)
        {
            slices.retain(|known| known.meta.key != slice.meta.key);
            if slices.is_empty() {
                self.slices.remove(&service);
            }
        }
        new.into_iter().for_each(|slice| self.put(slice));
        let differing = services.iter().zip(before).filter(|(service, before)| self.port_protocols(service) != *before);
        let differing = differing.map(|(service, _)| service.clone()).collect();
        (services, differing)
    }

    fn put(&mut self, slice: Arc<EndpointSlice>) {
        if let Some(service) = service_of(&slice) {
            let slices = self.slices.entry(service).or_insert_with(|| Vec::with_capacity(1));
            match slices.binary_search_by(|known| known.meta.key.cmp(&slice.meta.key)) {
                Ok(at) => slices.splice(at..=at, [slice]).for_each(drop),
                Err(at) => slices.insert(at, slice),
            }
        }
    }

    fn slices(&self, service: &ObjectKey) -> impl Iterator<Item = &Arc<EndpointSlice>> {
        self.slices.get(service).into_iter().flatten()
    }

    fn port_protocols(&self, service: &ObjectKey) -> BTreeSet<PortProtocol> {
        let ports = self.slices(service).flat_map(|slice| &slice.ports);
        ports.filter_map(|port| Some((port.name.clone(), port.number, port.protocol.clone()?))).collect()
    }

    /// Protocols that the slices of a service give for a port, each once.
    pub fn protocols(&self, service: &ObjectKey, choice: &PortChoice) -> BTreeSet<AppProtocol> {
        let ports = self.slices(service).flat_map(|slice| &slice.ports);
        ports.filter(|port| is_chosen(choice, port)).filter_map(|port| port.protocol.clone()).collect()
    }

    /// Usable endpoints of a service port, deduplicated, in order of address: the ready ones, or if there is none, the
    /// draining ones.
    pub fn find(&self, key: &EndpointsKey) -> Arc<[Endpoint]> {
        let service = ObjectKey { namespace: key.namespace.clone(), name: key.service.clone() };
        let (mut ready, mut draining) = (Vec::new(), Vec::new());
        for slice in self.slices(&service) {
            for port in slice.ports.iter().filter(|port| is_chosen(&key.ports, port)) {
                let h2c = match key.ports {
                    PortChoice::Service { h2c: Some(h2c), .. } => h2c,
                    PortChoice::Service { .. } | PortChoice::Target(_) => port.h2c,
                };
                for endpoint in &slice.endpoints {
                    let usable = endpoint.addresses.iter().filter(|address| is_usable(**address, self.addresses));
                    let endpoints = if endpoint.is_draining { &mut draining } else { &mut ready };
                    endpoints.extend(usable.map(|address| Endpoint {
                        address: SocketAddr::new(*address, port.number),
                        target: endpoint.target.clone(),
                        h2c,
                    }));
                }
            }
        }
        let mut endpoints = if ready.is_empty() { draining } else { ready };
        endpoints.sort();
        endpoints.dedup_by(|a, b| a.address == b.address);
        endpoints.into()
    }
}

fn service_of(slice: &EndpointSlice) -> Option<ObjectKey> {
    let name = slice.service.clone()?;
    Some(ObjectKey { namespace: slice.meta.key.namespace.clone(), name })
}
