//! Endpoints, indexed by Service.

pub mod absence;
pub mod addresses;
pub mod services;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

use router_api::kubernetes::endpoints::protocol::AppProtocol;
use router_api::kubernetes::endpoints::{EndpointSlice, ServicePort, SlicePort};
use router_api::openshift::route::Route;
use router_api::openshift::route::backends::{Backend, TargetPort};
use router_api::resources::Resources;
use router_model::object::ObjectKey;
use router_table::table::Endpoint;

use crate::endpoints::addresses::{EndpointAddresses, is_usable};

/// Number of results that may be cached for Services without slices.
pub(crate) const KEPT: usize = 4096;

/// Selects ports of a Service's slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortChoice {
    /// Ports whose name or number is a Route's `targetPort`; `None` for every port.
    Target(Option<TargetPort>),
    /// Ports that belong to this port of the Service.
    Service {
        /// The port. Slices refer to it by name. A port without a name also matches the number of its `targetPort`,
        /// since hand-written slices name their ports.
        port: ServicePort,
        /// The endpoints speak HTTP/2 without TLS, whatever the port's protocol (for gRPC).
        http2: bool,
    },
}

impl PortChoice {
    fn matches(&self, port: &SlicePort) -> bool {
        let is_target = |target: Option<&TargetPort>| target.is_none_or(|it| it.matches(&port.name, port.number));
        match self {
            PortChoice::Target(target) => is_target(target.as_ref()),
            PortChoice::Service { port: own, .. } if own.name.is_empty() => {
                port.name.is_empty() || is_target(own.target.as_ref())
            }
            PortChoice::Service { port: own, .. } => own.name == port.name,
        }
    }

    fn is_h2c(&self, port: &SlicePort) -> bool {
        match self {
            PortChoice::Target(_) => port.h2c,
            PortChoice::Service { port: own, http2 } => {
                *http2 || own.protocol.as_ref().map_or(port.h2c, AppProtocol::is_h2c)
            }
        }
    }
}

/// Usable endpoints of a service for a choice of ports.
pub(crate) type Found = (PortChoice, Arc<[Endpoint]>);

/// EndpointSlices, indexed by Service.
#[derive(Debug)]
pub struct EndpointIndex {
    slices: HashMap<ObjectKey, BTreeMap<ObjectKey, Arc<EndpointSlice>>>,
    addresses: EndpointAddresses,
    /// Results cached since the service's slices last changed, by choice of ports.
    pub(crate) known: RefCell<HashMap<ObjectKey, Vec<Found>>>,
}

impl EndpointIndex {
    /// Indexes these EndpointSlices.
    pub fn new(resources: &Resources, addresses: EndpointAddresses) -> Self {
        let mut index = EndpointIndex { slices: HashMap::new(), addresses, known: RefCell::default() };
        for slice in resources.endpoint_slices.iter() {
            index.replace(None, Some(slice.clone()));
        }
        index
    }

    /// Replaces one version of a slice; returns the Services whose endpoints changed.
    pub fn replace(&mut self, old: Option<Arc<EndpointSlice>>, new: Option<Arc<EndpointSlice>>) -> BTreeSet<ObjectKey> {
        let mut services = BTreeSet::new();
        if let Some((service, slice)) = old.as_ref().and_then(|slice| Some((service_of(slice)?, slice))) {
            if let Some(slices) = self.slices.get_mut(&service) {
                slices.remove(&slice.meta.key);
                if slices.is_empty() {
                    self.slices.remove(&service);
                }
            }
            services.insert(service);
        }
        if let Some((service, slice)) = new.and_then(|slice| Some((service_of(&slice)?, slice))) {
            self.slices.entry(service.clone()).or_default().insert(slice.meta.key.clone(), slice);
            services.insert(service);
        }
        for service in &services {
            self.known.get_mut().remove(service);
        }
        services
    }

    /// Usable endpoints of a Route's backend; see [`EndpointIndex::of_service`].
    pub fn endpoints(&self, route: &Route, backend: &Backend) -> Arc<[Endpoint]> {
        let service = ObjectKey { namespace: route.meta.key.namespace.clone(), name: backend.service.clone() };
        self.of_service(service, PortChoice::Target(route.target_port.clone()))
    }

    /// Protocols that the slices of a service give for a port, each once.
    pub fn protocols(&self, service: &ObjectKey, port: &ServicePort) -> BTreeSet<AppProtocol> {
        let choice = PortChoice::Service { port: port.clone(), http2: false };
        let ports = self.slices.get(service).into_iter().flat_map(BTreeMap::values).flat_map(|slice| &slice.ports);
        ports.filter(|port| choice.matches(port)).filter_map(|port| port.protocol.clone()).collect()
    }

    /// Usable endpoints of a service, deduplicated, in order of address: the ready ones, or if there is none, the
    /// draining ones. Callers share the slice.
    pub fn of_service(&self, service: ObjectKey, choice: PortChoice) -> Arc<[Endpoint]> {
        let mut known = self.known.borrow_mut();
        // Evicts Services that no object names any more.
        if known.len() > 2 * self.slices.len() + KEPT {
            known.clear();
        }
        let found = known.get(&service).and_then(|found| found.iter().find(|(known, _)| *known == choice));
        if let Some((_, endpoints)) = found {
            return Arc::clone(endpoints);
        }
        let endpoints: Arc<[Endpoint]> = self.find(&service, &choice).into();
        known.entry(service).or_default().push((choice, Arc::clone(&endpoints)));
        endpoints
    }

    fn find(&self, service: &ObjectKey, choice: &PortChoice) -> Vec<Endpoint> {
        let (mut ready, mut draining) = (Vec::new(), Vec::new());
        for slice in self.slices.get(service).into_iter().flat_map(BTreeMap::values) {
            for port in slice.ports.iter().filter(|port| choice.matches(port)) {
                for endpoint in &slice.endpoints {
                    let usable = endpoint.addresses.iter().filter(|address| is_usable(**address, self.addresses));
                    let endpoints = if endpoint.is_draining { &mut draining } else { &mut ready };
                    endpoints.extend(usable.map(|address| Endpoint {
                        address: SocketAddr::new(*address, port.number),
                        target: endpoint.target.clone(),
                        h2c: choice.is_h2c(port),
                    }));
                }
            }
        }
        let mut endpoints = if ready.is_empty() { draining } else { ready };
        endpoints.sort();
        endpoints.dedup_by(|a, b| a.address == b.address);
        endpoints
    }
}

pub(crate) fn service_of(slice: &EndpointSlice) -> Option<ObjectKey> {
    let name = slice.service.clone()?;
    Some(ObjectKey { namespace: slice.meta.key.namespace.clone(), name })
}
