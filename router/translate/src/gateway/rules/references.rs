//! References of routes to Services: permissions, protocols and endpoints.

use std::collections::BTreeSet;
use std::sync::Arc;

use router_api::gateway_api::types::{Filter, GatewayRoute, ObjectReference};
use router_api::kubernetes::endpoints::ServicePort;
use router_api::kubernetes::endpoints::protocol::{AppProtocol, EndpointProtocol};
use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::object::ObjectKey;
use router_table::rule::BackendTls;
use router_table::table::EndpointsKey;

use crate::endpoints::services::{ServiceError, Services, key_of};
use crate::gateway::backend_payload::BackendPayload;
use crate::gateway::backend_tls::BackendTlsPolicies;
use crate::gateway::conditions::ReferenceErrors;
use crate::gateway::grants::{Grants, Referrer};
use crate::gateway::inclusion::slots::is_slot;
use crate::status::condition::Condition;

/// Resolves references.
pub struct Resolver<'r> {
    /// All objects.
    pub resources: &'r Resources,
    /// ReferenceGrants.
    pub grants: &'r Grants,
    /// Services with their endpoints.
    pub services: &'r Services<'r>,
    /// BackendTLSPolicies.
    pub tls: &'r BackendTlsPolicies,
}

/// A usable backend.
#[derive(Clone, Debug)]
pub struct UsableBackend {
    /// The key of its endpoints.
    pub key: Arc<EndpointsKey>,
    /// TLS to the endpoints; `None` for clear text.
    pub tls: Option<BackendTls>,
    /// The BackendTLSPolicy is invalid: nothing may be sent to the endpoints.
    pub fails: bool,
}

/// A backend that a route may use.
struct Allowed<'r> {
    key: ObjectKey,
    port: &'r ServicePort,
    protocols: BTreeSet<AppProtocol>,
    /// The BackendTLSPolicy in force; see [`BackendTlsPolicies::tls_for`].
    policy: Option<Result<BackendTls, String>>,
}

/// Reason and message of `ResolvedRefs`.
type ReferenceError = (&'static str, String);

/// Reason if a backend's port does not speak the route's protocol (GEP-1911).
const UNSUPPORTED_PROTOCOL: &str = "UnsupportedProtocol";

/// Why a route does not support a backend's protocol, and what to write; `None` if it does. A TLSRoute supports every
/// protocol, but TLS to a backend is either the client's or that of a BackendTLSPolicy.
fn unsupported_protocol(
    protocol: &AppProtocol,
    kind: Kind,
    payload: BackendPayload,
    has_policy: bool,
) -> Option<String> {
    let speaks = protocol.speaks;
    let is_supported = match kind {
        Kind::TlsRoute => true,
        Kind::GrpcRoute => matches!(
            speaks,
            EndpointProtocol::Http | EndpointProtocol::Http2 | EndpointProtocol::Https | EndpointProtocol::Tls
        ),
        _ => speaks != EndpointProtocol::Other,
    };
    if !is_supported {
        let others = if kind == Kind::GrpcRoute { "" } else { ", kubernetes.io/ws" };
        return Some(format!("is not done for {kind}s; write http, kubernetes.io/h2c{others}, or leave it out"));
    }
    let is_missing = speaks.is_tls() && !has_policy && payload == BackendPayload::Content;
    is_missing.then(|| "takes TLS; write a BackendTLSPolicy for the Service".to_owned())
}

fn fault(service: &ObjectKey, port: u16, error: ServiceError) -> ReferenceError {
    let reason = match error {
        ServiceError::UnsupportedProtocol => UNSUPPORTED_PROTOCOL,
        _ => "BackendNotFound",
    };
    (reason, format!("Service {service}, port {port}: {error}"))
}

/// The Service that a reference of a route names; `None` if it names another kind.
pub fn service_of(author: &GatewayRoute, object: &ObjectReference) -> Option<ObjectKey> {
    let is_service = object.group.is_empty() && *object.kind == *Kind::Service.name();
    let namespace = object.namespace.as_ref().unwrap_or(&author.meta.key.namespace);
    is_service.then(|| ObjectKey { namespace: namespace.clone(), name: object.name.clone() })
}

impl<'r> Resolver<'r> {
    /// Resolves a backend. Without a grant, the message must not reveal whether the object exists.
    ///
    /// # Errors
    /// Reason and message of `ResolvedRefs`.
    pub fn backend(
        &self,
        author: &GatewayRoute,
        object: &ObjectReference,
        port: Option<u16>,
        payload: BackendPayload,
    ) -> Result<UsableBackend, ReferenceError> {
        let Allowed { key, port, protocols, policy } = self.check(author, object, port, payload)?;
        // gRPC needs HTTP/2, whatever the Service's `appProtocol`.
        let is_http2 =
            author.kind == Kind::GrpcRoute || protocols.iter().any(|it| it.speaks == EndpointProtocol::Http2);
        let (tls, fails) = match policy {
            None => (None, false),
            Some(Ok(tls)) => (Some(tls), false),
            // The policy's own status reports the fault.
            Some(Err(_)) => (None, true),
        };
        Ok(UsableBackend { key: key_of(&key, port, is_http2), tls, fails })
    }

    /// Checks a backend.
    ///
    /// # Errors
    /// See [`Resolver::backend`].
    fn check(
        &self,
        author: &GatewayRoute,
        object: &ObjectReference,
        port: Option<u16>,
        payload: BackendPayload,
    ) -> Result<Allowed<'r>, ReferenceError> {
        let Some(key) = service_of(author, object) else {
            let (kind, wanted) = match &*object.group {
                "" => (object.kind.to_string(), "a Service"),
                group => (format!("{}.{group}", object.kind), "a Service of the core group"),
            };
            let message = format!("{kind} {:?} cannot be a backend; name {wanted}", object.name);
            return Err(("InvalidKind", message));
        };
        if !self.grants.allows(&Referrer::new(author.kind, &author.meta.key), Kind::Service, &key) {
            let message = format!("no ReferenceGrant in {} lets this {} use Service {key}", key.namespace, author.kind);
            return Err(("RefNotPermitted", message));
        }
        let port = port.ok_or_else(|| ("BackendNotFound", format!("Service {key}: write the port")))?;
        let found = self.services.port(&key, port).map_err(|error| fault(&key, port, error))?;
        let protocols = self.services.protocols(&key, found);
        let policy = self.tls.tls_for(self.resources, &key, port);
        for protocol in &protocols {
            if let Some(why) = unsupported_protocol(protocol, author.kind, payload, policy.is_some()) {
                let name = &protocol.name;
                return Err((UNSUPPORTED_PROTOCOL, format!("Service {key}, port {port}: appProtocol {name:?} {why}")));
            }
        }
        Ok(Allowed { key, port: found, protocols, policy })
    }

    /// Condition `ResolvedRefs` of a route, for all references of its own rules except slots.
    pub fn condition(&self, route: &GatewayRoute, payload: BackendPayload, mut errors: ReferenceErrors) -> Condition {
        for (i, rule) in route.rules.iter().enumerate() {
            let mut note = |(reason, message): ReferenceError| errors.add(reason, format!("rule {i}: {message}"));
            for backend in rule.backends.iter().filter(|backend| !is_slot(backend)) {
                if let Err(error) = self.check(route, &backend.object, backend.port, payload) {
                    note(error);
                }
            }
            let backend_filters = rule.backends.iter().flat_map(|backend| &backend.filters);
            for filter in rule.filters.iter().chain(backend_filters) {
                match filter {
                    Filter::Mirror(mirror) => {
                        if let Err((reason, message)) = self.check(route, &mirror.object, mirror.port, payload) {
                            note((reason, format!("RequestMirror: {message}")));
                        }
                    }
                    Filter::Extension(object) => {
                        let message = format!(
                            "ExtensionRef {} {:?}: no kind of filter is known; requests are answered 500",
                            object.kind, object.name
                        );
                        note(("InvalidKind", message));
                    }
                    _ => {}
                }
            }
        }
        errors.condition("ResolvedRefs", "ResolvedRefs")
    }
}
