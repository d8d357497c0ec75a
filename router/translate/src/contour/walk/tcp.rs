//! `tcpproxy` of both kinds: the destination of a TLS connection.

use std::sync::Arc;

use router_api::contour::types::{ContourProxy, ServiceSpec, TcpProxy, Violation};

use super::super::backends::{ServiceProblem, TCP, is_ingress_route, strategy, weighted};
use super::{DelegationStep, DelegationWalk, PathHop, own_faults};
use crate::contour::walk::tcp_target::Tcp;

impl<'r> DelegationWalk<'r> {
    /// Resolves `tcpproxy` of a path's last proxy, following its includes.
    pub fn tcp(&mut self, path: &[PathHop<'r>]) -> Option<Tcp<'r>> {
        let &PathHop { proxy, .. } = path.last()?;
        let own = own_faults(proxy);
        if !own.is_empty() {
            self.add_faults(path, own);
            return None;
        }
        match self.read_tcp(path, proxy) {
            Ok(tcp) => tcp,
            Err(fault) => {
                self.add_faults(path, [fault]);
                None
            }
        }
    }

    fn read_tcp(&mut self, path: &[PathHop<'r>], proxy: &'r Arc<ContourProxy>) -> Result<Option<Tcp<'r>>, Violation> {
        let Some(TcpProxy { services, delegate, faults, warnings }) = &proxy.tcp else {
            return Err(fault("NothingDefined", "tcpproxy: delegated to, but there is no tcpproxy here"));
        };
        self.add_warnings(path, warnings);
        let is_route = is_ingress_route(proxy);
        if let Some(fault) = faults.first() {
            return Err(fault.clone());
        }
        let Some(target) = delegate else {
            if services.is_empty() {
                let message = if is_route {
                    "tcpproxy: either services or delegate must be specified"
                } else {
                    "either services or inclusion must be specified"
                };
                return Err(fault("NothingDefined", message));
            }
            return self.tcp_services(proxy, services).map(Some);
        };
        if !services.is_empty() {
            let message = if is_route {
                "tcpproxy: cannot specify services and delegate in the same tcpproxy"
            } else {
                "cannot specify services and include in the same httpproxy"
            };
            return Err(fault("NoServicesAndInclude", message));
        }
        let (reason, message) = match self.step(path, target) {
            DelegationStep::To(next) => {
                let hop = PathHop { proxy: next, via: "tcpproxy", entry: usize::MAX };
                let path: Vec<_> = path.iter().copied().chain([hop]).collect();
                // Recorded, so that the object counts as reached.
                self.add_faults(&path, []);
                return Ok(self.tcp(&path));
            }
            DelegationStep::Missing if is_route => {
                ("IncludeNotFound", format!("tcpproxy: delegate {target} not found"))
            }
            DelegationStep::Missing => ("IncludeNotFound", format!("include {target} not found")),
            DelegationStep::Root if is_route => {
                ("RootIncludesRoot", "root ingressroute cannot delegate to another root ingressroute".to_owned())
            }
            DelegationStep::Root => {
                ("RootIncludesRoot", "root httpproxy cannot delegate to another root httpproxy".to_owned())
            }
            DelegationStep::Cycle(cycle) if is_route => {
                ("IncludeCreatesCycle", format!("tcpproxy creates a delegation cycle: {cycle}"))
            }
            DelegationStep::Cycle(cycle) => ("IncludeCreatesCycle", format!("include creates a cycle: {cycle}")),
            DelegationStep::TooMany(message) => ("TooManyIncludes", message),
        };
        Err(Violation::new("TCPProxyIncludeError", reason, message))
    }

    fn tcp_services(&self, proxy: &'r Arc<ContourProxy>, services: &[ServiceSpec]) -> Result<Tcp<'r>, Violation> {
        let namespace = &proxy.meta.key.namespace;
        let mut found = Vec::new();
        for service in services {
            found.push(self.backends.find(proxy, service).map_err(|problem| {
                let ServiceSpec { name, port, .. } = service;
                match problem {
                    ServiceProblem::Missing | ServiceProblem::Port if is_ingress_route(proxy) => fault(
                        "ServiceUnresolvedReference",
                        format!("tcpproxy: service {namespace}/{name}/{port}: not found"),
                    ),
                    problem if is_ingress_route(proxy) => problem.of_ingress_route("tcpproxy", service),
                    problem => problem.of_http_proxy(TCP, service, namespace),
                }
            })?);
        }
        let strategy = strategy(services, &mut found);
        Ok(Tcp { proxy, services: weighted(found), strategy })
    }
}

fn fault(reason: &'static str, message: impl Into<String>) -> Violation {
    Violation::new("TCPProxyError", reason, message)
}
