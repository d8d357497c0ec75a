//! The kinds of object that are read.

use std::fmt;

/// The kinds that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `operator.openshift.io/v1`.
    IngressController,
    /// `route.openshift.io/v1`.
    Route,
    /// `v1`.
    Service,
    /// `discovery.k8s.io/v1`.
    EndpointSlice,
    /// `v1`.
    Secret,
    /// `v1`.
    Namespace,
    /// `v1`.
    ConfigMap,
    /// `apiextensions.k8s.io/v1`: only to see which fields a cluster's HTTPRoute has.
    CustomResourceDefinition,
    /// `gateway.networking.k8s.io/v1`.
    GatewayClass,
    /// `gateway.networking.k8s.io/v1`.
    Gateway,
    /// `gateway.networking.k8s.io/v1`.
    HttpRoute,
    /// `gateway.networking.k8s.io/v1`.
    GrpcRoute,
    /// `gateway.networking.k8s.io/v1`.
    TlsRoute,
    /// `gateway.networking.k8s.io/v1`, `v1beta1`.
    ReferenceGrant,
    /// `gateway.networking.k8s.io/v1`.
    BackendTlsPolicy,
    /// `gateway.sluice.dev/v1alpha1`.
    RouteSlot,
    /// `contour.heptio.com/v1beta1`.
    IngressRoute,
    /// `projectcontour.io/v1`.
    HttpProxy,
    /// `projectcontour.io/v1`, `contour.heptio.com/v1beta1`.
    TlsCertificateDelegation,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 19] = [
        Kind::IngressController,
        Kind::Route,
        Kind::Service,
        Kind::EndpointSlice,
        Kind::Secret,
        Kind::Namespace,
        Kind::ConfigMap,
        Kind::CustomResourceDefinition,
        Kind::GatewayClass,
        Kind::Gateway,
        Kind::HttpRoute,
        Kind::GrpcRoute,
        Kind::TlsRoute,
        Kind::ReferenceGrant,
        Kind::BackendTlsPolicy,
        Kind::RouteSlot,
        Kind::IngressRoute,
        Kind::HttpProxy,
        Kind::TlsCertificateDelegation,
    ];

    /// The kind of this `apiVersion` and `kind`, if it is read.
    pub fn of(api_version: &str, kind: &str) -> Option<Kind> {
        Self::ALL.into_iter().find(|known| known.name() == kind && known.api_versions().contains(&api_version))
    }

    /// `kind`.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::IngressController => "IngressController",
            Kind::Route => "Route",
            Kind::Service => "Service",
            Kind::EndpointSlice => "EndpointSlice",
            Kind::Secret => "Secret",
            Kind::Namespace => "Namespace",
            Kind::ConfigMap => "ConfigMap",
            Kind::CustomResourceDefinition => "CustomResourceDefinition",
            Kind::GatewayClass => "GatewayClass",
            Kind::Gateway => "Gateway",
            Kind::HttpRoute => "HTTPRoute",
            Kind::GrpcRoute => "GRPCRoute",
            Kind::TlsRoute => "TLSRoute",
            Kind::ReferenceGrant => "ReferenceGrant",
            Kind::BackendTlsPolicy => "BackendTLSPolicy",
            Kind::RouteSlot => "RouteSlot",
            Kind::IngressRoute => "IngressRoute",
            Kind::HttpProxy => "HTTPProxy",
            Kind::TlsCertificateDelegation => "TLSCertificateDelegation",
        }
    }

    /// `apiVersion`s that are read, that of the API's own storage or newest version first.
    pub const fn api_versions(self) -> &'static [&'static str] {
        match self {
            Kind::IngressController => &["operator.openshift.io/v1"],
            Kind::Route => &["route.openshift.io/v1"],
            Kind::EndpointSlice => &["discovery.k8s.io/v1"],
            Kind::Service | Kind::Secret | Kind::Namespace | Kind::ConfigMap => &["v1"],
            Kind::CustomResourceDefinition => &["apiextensions.k8s.io/v1"],
            Kind::GatewayClass | Kind::Gateway | Kind::HttpRoute | Kind::ReferenceGrant => {
                &["gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1beta1"]
            }
            Kind::GrpcRoute | Kind::TlsRoute | Kind::BackendTlsPolicy => &["gateway.networking.k8s.io/v1"],
            Kind::RouteSlot => &["gateway.sluice.dev/v1alpha1"],
            Kind::IngressRoute => &["contour.heptio.com/v1beta1"],
            Kind::HttpProxy => &["projectcontour.io/v1"],
            Kind::TlsCertificateDelegation => &["projectcontour.io/v1", "contour.heptio.com/v1beta1"],
        }
    }

    /// `apiVersion` as it is written.
    pub const fn api_version(self) -> &'static str {
        match self.api_versions() {
            [first, ..] => first,
            [] => "",
        }
    }

    /// Whether objects of this kind live in a namespace.
    pub const fn is_namespaced(self) -> bool {
        !matches!(self, Kind::Namespace | Kind::GatewayClass | Kind::CustomResourceDefinition)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
