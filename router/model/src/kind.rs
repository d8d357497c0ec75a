//! The kinds of object that are read.

use std::fmt;

/// Calls a macro with one line for each kind, in the order of [`Kind::ALL`]:
///
/// `/// description` `Variant "kind" ["apiVersion", …] scope, Type in collection, status;`
///
/// `status` is `admitted` (admission by each router), `conditions` (those of its own API) or `none` (no status is
/// written). The variant names the kind in `Kind` and `Object`; the collection is a field of `Resources`. The first
/// `apiVersion` is the storage version, or the newest. To add a kind, add its line here and the files of its API.
#[macro_export]
macro_rules! for_kinds {
    ($then:ident) => {
        $then! {
            /// OpenShift's routers.
            IngressController "IngressController" ["operator.openshift.io/v1"]
                namespaced, IngressController in ingress_controllers, admitted;
            /// OpenShift's Routes.
            Route "Route" ["route.openshift.io/v1"]
                namespaced, Route in routes, admitted;
            /// Services.
            Service "Service" ["v1"]
                namespaced, Service in services, none;
            /// Endpoints of Services.
            EndpointSlice "EndpointSlice" ["discovery.k8s.io/v1"]
                namespaced, EndpointSlice in endpoint_slices, none;
            /// Certificates and keys.
            Secret "Secret" ["v1"]
                namespaced, Secret in secrets, none;
            /// Namespaces; one without an object has no labels.
            Namespace "Namespace" ["v1"]
                cluster, Namespace in namespaces, none;
            /// CA certificates and error pages.
            ConfigMap "ConfigMap" ["v1"]
                namespaced, ConfigMap in config_maps, none;
            /// CustomResourceDefinitions: they show which fields the cluster's HTTPRoute has.
            CustomResourceDefinition "CustomResourceDefinition" ["apiextensions.k8s.io/v1"]
                cluster, CustomResourceDefinition in definitions, none;
            /// Classes of Gateways.
            GatewayClass "GatewayClass" ["gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1beta1"]
                cluster, GatewayClass in gateway_classes, conditions;
            /// Gateways.
            Gateway "Gateway" ["gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1beta1"]
                namespaced, Gateway in gateways, conditions;
            /// Routes of HTTP requests.
            HttpRoute "HTTPRoute" ["gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1beta1"]
                namespaced, GatewayRoute in http_routes, conditions;
            /// Routes of gRPC calls.
            GrpcRoute "GRPCRoute" ["gateway.networking.k8s.io/v1"]
                namespaced, GatewayRoute in grpc_routes, conditions;
            /// Routes of TLS connections.
            TlsRoute "TLSRoute" ["gateway.networking.k8s.io/v1"]
                namespaced, GatewayRoute in tls_routes, conditions;
            /// Permission to refer to objects of another namespace.
            ReferenceGrant "ReferenceGrant" ["gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1beta1"]
                namespaced, ReferenceGrant in reference_grants, none;
            /// TLS with the endpoints of Services.
            BackendTlsPolicy "BackendTLSPolicy" ["gateway.networking.k8s.io/v1"]
                namespaced, BackendTlsPolicy in backend_tls_policies, conditions;
            /// Attachment point of child routes; Sluice's own kind.
            RouteSlot "RouteSlot" ["gateway.sluice.dev/v1alpha1"]
                namespaced, RouteSlot in route_slots, conditions;
            /// Contour's older routes.
            IngressRoute "IngressRoute" ["contour.heptio.com/v1beta1"]
                namespaced, ContourProxy in ingress_routes, conditions;
            /// Contour's routes.
            HttpProxy "HTTPProxy" ["projectcontour.io/v1"]
                namespaced, ContourProxy in http_proxies, conditions;
            /// Permission to use certificates of another namespace.
            TlsCertificateDelegation "TLSCertificateDelegation" ["projectcontour.io/v1", "contour.heptio.com/v1beta1"]
                namespaced, TlsCertificateDelegation in certificate_delegations, conditions;
        }
    };
}

macro_rules! define {
    ($($(#[$about:meta])* $kind:ident $name:literal [$($version:literal),+]
        $scope:ident, $type:ident in $collection:ident, $status:ident;)*) => {
        /// The kinds that are read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind {
            $($(#[$about])* $kind,)*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: [Kind; [$($name),*].len()] = [$(Kind::$kind),*];

            /// `kind`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Kind::$kind => $name,)*
                }
            }

            /// The indefinite article of the name, as it is spoken.
            pub fn article(self) -> &'static str {
                let vowel = ["A", "E", "HTTP", "I", "O"].iter().any(|sound| self.name().starts_with(sound));
                if vowel { "an" } else { "a" }
            }

            /// Supported `apiVersion`s; the storage version, or the newest, comes first.
            pub const fn api_versions(self) -> &'static [&'static str] {
                match self {
                    $(Kind::$kind => &[$($version),+],)*
                }
            }

            /// Whether objects of this kind live in a namespace.
            pub const fn is_namespaced(self) -> bool {
                match self {
                    $(Kind::$kind => define!(@$scope),)*
                }
            }
        }
    };
    (@namespaced) => { true };
    (@cluster) => { false };
}

for_kinds!(define);

impl Kind {
    /// The kind of this `apiVersion` and `kind`, if it is read.
    pub fn of(api_version: &str, kind: &str) -> Option<Kind> {
        Self::ALL.into_iter().find(|known| known.name() == kind && known.api_versions().contains(&api_version))
    }

    /// The first of [`Kind::api_versions`].
    pub const fn api_version(self) -> &'static str {
        match self.api_versions() {
            [first, ..] => first,
            [] => "",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
