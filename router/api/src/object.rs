//! Objects of all kinds that are read.

use std::sync::Arc;

use router_model::field::FieldError;
use router_model::for_kinds;
use router_model::kind::Kind;
use router_model::object::{Meta, ObjectKey, Uid};

use crate::contour::types::{ContourProxy, TlsCertificateDelegation};
use crate::gateway_api::types::{BackendTlsPolicy, Gateway, GatewayClass, GatewayRoute, ReferenceGrant, RouteSlot};
use crate::kubernetes::config_map::ConfigMap;
use crate::kubernetes::endpoints::{EndpointSlice, Service};
use crate::kubernetes::secret::{Namespace, Secret};
use crate::openshift::ingress_controller::IngressController;
use crate::openshift::route::Route;

/// A CustomResourceDefinition, as far as it matters.
#[derive(Clone, Debug)]
pub struct CustomResourceDefinition {
    /// Metadata.
    pub meta: Meta,
    /// It is that of HTTPRoute, and rules of its stored version may have `allowedRoutes`
    /// (docs/delegation.md#carrier-b).
    pub has_inclusions: bool,
}

macro_rules! define {
    ($($(#[$about:meta])* $kind:ident $name:literal $versions:tt
        $scope:ident, $type:ident in $collection:ident, $status:ident;)*) => {
        /// A parsed object of any kind.
        #[derive(Clone, Debug)]
        pub enum Object {
            $($(#[$about])* $kind(Arc<$type>),)*
        }

        impl Object {
            /// Its kind.
            pub fn kind(&self) -> Kind {
                match self {
                    $(Object::$kind(_) => Kind::$kind,)*
                }
            }

            /// Its metadata.
            pub fn meta(&self) -> &Meta {
                match self {
                    $(Object::$kind(object) => &object.meta,)*
                }
            }
        }
    };
}

for_kinds!(define);

impl Object {
    /// Its key.
    pub fn key(&self) -> &ObjectKey {
        &self.meta().key
    }

    /// Its `metadata.uid`; empty when absent.
    pub fn uid(&self) -> &Uid {
        &self.meta().uid
    }

    /// What makes the object unservable although the API server would store it: TLS material that is no good.
    pub fn material_errors(&self) -> &[FieldError] {
        match self {
            Object::Route(route) => route.material_errors(),
            _ => &[],
        }
    }
}
