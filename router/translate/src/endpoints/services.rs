//! Resolves a port of a Service, as Gateway API and Contour objects name it, to endpoints.

use std::collections::BTreeSet;
use std::sync::Arc;

use router_api::kubernetes::endpoints::ServicePort;
use router_api::kubernetes::endpoints::protocol::AppProtocol;
use router_api::resources::Resources;
use router_model::object::ObjectKey;
use router_table::table::{EndpointsKey, PortChoice};

use crate::endpoints::EndpointIndex;

/// Services and their endpoints.
#[derive(Clone, Copy, Debug)]
pub struct Services<'r> {
    resources: &'r Resources,
    endpoints: &'r EndpointIndex,
}

/// Why a port of a Service has no endpoints. The messages name no object, so any status can include them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum ServiceError {
    /// The Service does not exist.
    #[error("there is no such Service")]
    NotFound,
    /// The Service has no port of this number.
    #[error("the Service has no such port")]
    PortNotFound,
    /// The port is not TCP.
    #[error("the Service's port is not of protocol TCP")]
    UnsupportedProtocol,
    /// The Service is an alias of a DNS name.
    #[error("the Service is of type ExternalName, which has no endpoints")]
    ExternalName,
}

impl<'r> Services<'r> {
    /// Services among these objects.
    pub fn new(resources: &'r Resources, endpoints: &'r EndpointIndex) -> Self {
        Services { resources, endpoints }
    }

    /// The key of the endpoints of a Service's port, which are looked up by the port's name
    /// (`EndpointSlice.ports[].name`). They get HTTP/2 without TLS if `http2` is set, or the `appProtocol` of the
    /// Service's port is `kubernetes.io/h2c` or `h2c`, or, without one, that of the slice.
    ///
    /// # Errors
    /// See [`ServiceError`].
    pub fn key(&self, service: &ObjectKey, port: u16, http2: bool) -> Result<Arc<EndpointsKey>, ServiceError> {
        Ok(key_of(service, self.port(service, port)?, http2))
    }

    /// Protocols of the endpoints of a Service's port: its `appProtocol`, or else those of its slices. Empty if
    /// unknown.
    pub fn protocols(&self, service: &ObjectKey, port: &ServicePort) -> BTreeSet<AppProtocol> {
        match &port.protocol {
            Some(own) => BTreeSet::from([own.clone()]),
            None => self.endpoints.protocols(service, &choice(port, false)),
        }
    }

    /// Name of a Service's port, empty if it has none; `None` if there is no such port.
    pub fn port_name(&self, service: &ObjectKey, port: u16) -> Option<Arc<str>> {
        let service = self.resources.services.get(service)?;
        service.ports.iter().find(|known| known.number == port).map(|known| known.name.clone())
    }

    /// A port of a Service.
    ///
    /// # Errors
    /// See [`ServiceError`].
    pub fn port(&self, key: &ObjectKey, number: u16) -> Result<&'r ServicePort, ServiceError> {
        port(self.resources, key, number)
    }
}

/// The key of the endpoints of a Service's port; see [`Services::key`].
pub fn key_of(service: &ObjectKey, port: &ServicePort, http2: bool) -> Arc<EndpointsKey> {
    let (namespace, service) = (service.namespace.clone(), service.name.clone());
    EndpointsKey { namespace, service, ports: choice(port, http2) }.shared()
}

/// The ports of slices that belong to this port of a Service.
fn choice(port: &ServicePort, http2: bool) -> PortChoice {
    let own = port.protocol.as_ref().map(AppProtocol::is_h2c);
    PortChoice::Service {
        name: port.name.clone(),
        target: port.target.as_ref().map(|target| target.0.clone()),
        h2c: if http2 { Some(true) } else { own },
    }
}

fn port<'r>(resources: &'r Resources, key: &ObjectKey, number: u16) -> Result<&'r ServicePort, ServiceError> {
    let service = resources.services.get(key).ok_or(ServiceError::NotFound)?;
    if service.is_external {
        return Err(ServiceError::ExternalName);
    }
    let mut ports = service.ports.iter().filter(|port| port.number == number).peekable();
    if ports.peek().is_none() {
        return Err(ServiceError::PortNotFound);
    }
    // A number may occur once for each protocol.
    ports.find(|port| port.is_tcp).ok_or(ServiceError::UnsupportedProtocol)
}

#[cfg(test)]
mod tests;
