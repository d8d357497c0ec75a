//! Objects of all supported kinds.

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

/// A CustomResourceDefinition.
#[derive(Clone, Debug)]
pub struct CustomResourceDefinition {
    /// Metadata.
    pub meta: Meta,
    /// `gateway.networking.k8s.io/bundle-version`.
    pub bundle_version: Option<BundleVersion>,
    /// It defines HTTPRoute, and rules of its stored version may have `allowedRoutes` (docs/delegation.md#carrier-b).
    pub has_inclusions: bool,
}

/// A version of Gateway API's definitions, such as `v1.6.1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleVersion {
    /// As it is written.
    pub text: Box<str>,
    /// The minor version; `None` if the major version is not 1, or the text is not a version.
    pub minor: Option<u32>,
}

impl BundleVersion {
    /// Parses the annotation.
    pub fn new(text: &str) -> Self {
        let mut numbers = text.trim_start_matches('v').split(['.', '-']).map(|number| number.parse::<u32>().ok());
        let minor = if numbers.next() == Some(Some(1)) { numbers.next().flatten() } else { None };
        BundleVersion { text: text.into(), minor }
    }
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

    /// Errors that the API server would not find, but for which the object cannot be served: invalid TLS material.
    pub fn material_errors(&self) -> &[FieldError] {
        match self {
            Object::Route(route) => route.material_errors(),
            _ => &[],
        }
    }
}
