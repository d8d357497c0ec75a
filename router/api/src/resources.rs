//! All objects, parsed, by kind and key. Cheap to clone: a clone shares every object, and every kind that is not
//! changed afterwards.

use std::sync::Arc;

use router_model::kind::Kind;
use router_model::object::{Manifest, ObjectKey, ObjectRef, TextMap};
use router_model::persistent::{Changed, Same, Sorted};
use serde_json::Value;

use crate::contour::types::{TlsCertificateDelegation, Vertex};
use crate::gateway_api::types::{BackendTlsPolicy, Gateway, GatewayClass, GatewayRoute, ReferenceGrant, RouteSlot};
use crate::kubernetes::config_map::ConfigMap;
use crate::kubernetes::endpoints::{EndpointSlice, Service};
use crate::kubernetes::secret::{Namespace, Secret};
use crate::object::{CustomResourceDefinition, Object};
use crate::openshift::ingress_controller::IngressController;
use crate::openshift::route::{Route, WildcardPolicy};

/// The parsed objects.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    /// Routes.
    pub routes: Objects<Route>,
    /// IngressControllers.
    pub ingress_controllers: Objects<IngressController>,
    /// Services.
    pub services: Objects<Service>,
    /// EndpointSlices.
    pub endpoint_slices: Objects<EndpointSlice>,
    /// Secrets.
    pub secrets: Objects<Secret>,
    /// Namespaces; a namespace without an object is one without labels.
    pub namespaces: Objects<Namespace>,
    /// ConfigMaps.
    pub config_maps: Objects<ConfigMap>,
    /// CustomResourceDefinitions.
    pub definitions: Objects<CustomResourceDefinition>,
    /// GatewayClasses.
    pub gateway_classes: Objects<GatewayClass>,
    /// Gateways.
    pub gateways: Objects<Gateway>,
    /// HTTPRoutes.
    pub http_routes: Objects<GatewayRoute>,
    /// GRPCRoutes.
    pub grpc_routes: Objects<GatewayRoute>,
    /// TLSRoutes.
    pub tls_routes: Objects<GatewayRoute>,
    /// ReferenceGrants.
    pub reference_grants: Objects<ReferenceGrant>,
    /// BackendTLSPolicies.
    pub backend_tls_policies: Objects<BackendTlsPolicy>,
    /// RouteSlots.
    pub route_slots: Objects<RouteSlot>,
    /// IngressRoutes.
    pub ingress_routes: Objects<Vertex>,
    /// HTTPProxies.
    pub http_proxies: Objects<Vertex>,
    /// TLSCertificateDelegations.
    pub certificate_delegations: Objects<TlsCertificateDelegation>,
}

/// Objects of one kind by key.
#[derive(Debug)]
pub struct Objects<T>(Sorted<ObjectKey, Slot<T>>);

impl<T> Clone for Objects<T> {
    fn clone(&self) -> Self {
        Objects(self.0.clone())
    }
}

impl<T> Default for Objects<T> {
    fn default() -> Self {
        Objects(Sorted::default())
    }
}

/// What is known under one key: the version that is in force, and what is wrong with a newer one.
#[derive(Debug)]
pub struct Slot<T> {
    /// The last good version.
    pub good: Option<Arc<T>>,
    /// Present when the newest version was refused.
    pub refused: Option<Arc<Refused>>,
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        Slot { good: self.good.clone(), refused: self.refused.clone() }
    }
}

impl<T> Same for Slot<T> {
    fn same(&self, other: &Self) -> bool {
        self.good.same(&other.good) && self.refused.same(&other.refused)
    }
}

/// A version of an object that was refused.
#[derive(Clone, Debug)]
pub struct Refused {
    /// `<file>:<line>: <field>: <what is wrong>`, without secrets.
    pub problem: String,
    /// The object as it was written.
    pub manifest: Manifest,
}

impl Refused {
    /// `spec.host` as it was written; empty when there is none.
    pub fn host(&self) -> String {
        let manifest = self.manifest.value();
        manifest.pointer("/spec/host").and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// `metadata.labels`; `None` when they are not texts by name.
    pub fn labels(&self) -> Option<TextMap> {
        let manifest = self.manifest.value();
        let Some(labels) = manifest.pointer("/metadata/labels").filter(|labels| !labels.is_null()) else {
            return Some(TextMap::default());
        };
        labels.as_object()?.iter().map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect()
    }

    /// `spec.wildcardPolicy` of a Route; `None` where it says nothing that is known.
    pub fn wildcard_policy(&self) -> WildcardPolicy {
        let manifest = self.manifest.value();
        match manifest.pointer("/spec/wildcardPolicy").and_then(Value::as_str) {
            Some("Subdomain") => WildcardPolicy::Subdomain,
            _ => WildcardPolicy::None,
        }
    }
}

impl<T> Objects<T> {
    /// Objects in force, by key.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.0.values().filter_map(|slot| slot.good.as_ref())
    }

    /// Every key with what is known of it.
    pub fn slots(&self) -> impl Iterator<Item = (&ObjectKey, &Slot<T>)> {
        self.0.entries()
    }

    /// The object in force under this key.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<T>> {
        self.0.get(key).and_then(|slot| slot.good.as_ref())
    }

    /// What is known under this key.
    pub fn slot(&self, key: &ObjectKey) -> Option<&Slot<T>> {
        self.0.get(key)
    }

    /// Keys at which these objects differ from an older version of them, in order. Costs what differs.
    pub fn changes_since<'o>(&'o self, older: &'o Self) -> impl Iterator<Item = Changed<'o, ObjectKey, Slot<T>>> {
        self.0.changes_since(&older.0)
    }

    /// How many keys are known.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts a slot in the place of whatever the key had.
    pub fn insert(&mut self, key: ObjectKey, slot: Slot<T>) {
        self.0.insert(key, slot);
    }

    /// Forgets a key.
    pub fn remove(&mut self, key: &ObjectKey) {
        self.0.remove(key);
    }
}

impl<T> FromIterator<(ObjectKey, Slot<T>)> for Objects<T> {
    fn from_iter<I: IntoIterator<Item = (ObjectKey, Slot<T>)>>(items: I) -> Self {
        Objects(items.into_iter().collect())
    }
}

impl Resources {
    /// The HTTPRoute, GRPCRoute or TLSRoute in force under a key.
    pub fn gateway_route(&self, object: &ObjectRef) -> Option<&Arc<GatewayRoute>> {
        match object.kind {
            Kind::HttpRoute => self.http_routes.get(&object.key),
            Kind::GrpcRoute => self.grpc_routes.get(&object.key),
            Kind::TlsRoute => self.tls_routes.get(&object.key),
            _ => None,
        }
    }

    /// Takes a good version of an object.
    pub fn insert(&mut self, object: &Object) {
        self.set(object.key().clone(), object.kind(), Some(object), None);
    }

    /// Sets what is known under a key: the version in force and the refused newer one. With neither, the key is
    /// forgotten. A `good` of another kind than `kind` counts as none.
    pub fn set(&mut self, key: ObjectKey, kind: Kind, good: Option<&Object>, refused: Option<Arc<Refused>>) {
        macro_rules! place {
            ($field:ident, $variant:ident) => {{
                let good = match good {
                    Some(Object::$variant(object)) => {
                        Some(object.clone()).filter(|_| good.map(Object::kind) == Some(kind))
                    }
                    _ => None,
                };
                if good.is_none() && refused.is_none() {
                    self.$field.remove(&key);
                } else {
                    self.$field.insert(key, Slot { good, refused });
                }
            }};
        }
        match kind {
            Kind::Route => place!(routes, Route),
            Kind::IngressController => place!(ingress_controllers, IngressController),
            Kind::Service => place!(services, Service),
            Kind::EndpointSlice => place!(endpoint_slices, EndpointSlice),
            Kind::Secret => place!(secrets, Secret),
            Kind::Namespace => place!(namespaces, Namespace),
            Kind::ConfigMap => place!(config_maps, ConfigMap),
            Kind::CustomResourceDefinition => place!(definitions, CustomResourceDefinition),
            Kind::GatewayClass => place!(gateway_classes, GatewayClass),
            Kind::Gateway => place!(gateways, Gateway),
            Kind::HttpRoute => place!(http_routes, GatewayRoute),
            Kind::GrpcRoute => place!(grpc_routes, GatewayRoute),
            Kind::TlsRoute => place!(tls_routes, GatewayRoute),
            Kind::ReferenceGrant => place!(reference_grants, ReferenceGrant),
            Kind::BackendTlsPolicy => place!(backend_tls_policies, BackendTlsPolicy),
            Kind::RouteSlot => place!(route_slots, RouteSlot),
            Kind::IngressRoute => place!(ingress_routes, Vertex),
            Kind::HttpProxy => place!(http_proxies, Vertex),
            Kind::TlsCertificateDelegation => place!(certificate_delegations, TlsCertificateDelegation),
        }
    }

    /// How many objects are known.
    pub fn len(&self) -> usize {
        let Resources {
            routes,
            ingress_controllers,
            services,
            endpoint_slices,
            secrets,
            namespaces,
            config_maps,
            definitions,
            gateway_classes,
            gateways,
            http_routes,
            grpc_routes,
            tls_routes,
            reference_grants,
            backend_tls_policies,
            route_slots,
            ingress_routes,
            http_proxies,
            certificate_delegations,
        } = self;
        let openshift = routes.len() + ingress_controllers.len();
        let core = services.len()
            + endpoint_slices.len()
            + secrets.len()
            + namespaces.len()
            + config_maps.len()
            + definitions.len();
        let gateway_api = gateway_classes.len()
            + gateways.len()
            + http_routes.len()
            + grpc_routes.len()
            + tls_routes.len()
            + reference_grants.len()
            + backend_tls_policies.len()
            + route_slots.len();
        openshift + core + gateway_api + ingress_routes.len() + http_proxies.len() + certificate_delegations.len()
    }

    /// Whether no object is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The object in force under a key.
    pub fn object(&self, kind: Kind, key: &ObjectKey) -> Option<Object> {
        macro_rules! find {
            ($field:ident, $variant:ident) => {
                self.$field.get(key).cloned().map(Object::$variant)
            };
        }
        match kind {
            Kind::Route => find!(routes, Route),
            Kind::IngressController => find!(ingress_controllers, IngressController),
            Kind::Service => find!(services, Service),
            Kind::EndpointSlice => find!(endpoint_slices, EndpointSlice),
            Kind::Secret => find!(secrets, Secret),
            Kind::Namespace => find!(namespaces, Namespace),
            Kind::ConfigMap => find!(config_maps, ConfigMap),
            Kind::CustomResourceDefinition => find!(definitions, CustomResourceDefinition),
            Kind::GatewayClass => find!(gateway_classes, GatewayClass),
            Kind::Gateway => find!(gateways, Gateway),
            Kind::HttpRoute => find!(http_routes, GatewayRoute),
            Kind::GrpcRoute => find!(grpc_routes, GatewayRoute),
            Kind::TlsRoute => find!(tls_routes, GatewayRoute),
            Kind::ReferenceGrant => find!(reference_grants, ReferenceGrant),
            Kind::BackendTlsPolicy => find!(backend_tls_policies, BackendTlsPolicy),
            Kind::RouteSlot => find!(route_slots, RouteSlot),
            Kind::IngressRoute => find!(ingress_routes, Vertex),
            Kind::HttpProxy => find!(http_proxies, Vertex),
            Kind::TlsCertificateDelegation => find!(certificate_delegations, TlsCertificateDelegation),
        }
    }

    /// The manifest of the object in force, or of the refused one when none is: what status is written into.
    pub fn manifest(&self, kind: Kind, key: &ObjectKey) -> Option<&Manifest> {
        match kind {
            Kind::Route => manifest(&self.routes, key, |route| &route.manifest),
            Kind::IngressController => manifest(&self.ingress_controllers, key, |controller| &controller.manifest),
            Kind::GatewayClass => manifest(&self.gateway_classes, key, |class| &class.manifest),
            Kind::Gateway => manifest(&self.gateways, key, |gateway| &gateway.manifest),
            Kind::HttpRoute => manifest(&self.http_routes, key, |route| &route.manifest),
            Kind::GrpcRoute => manifest(&self.grpc_routes, key, |route| &route.manifest),
            Kind::TlsRoute => manifest(&self.tls_routes, key, |route| &route.manifest),
            Kind::BackendTlsPolicy => manifest(&self.backend_tls_policies, key, |policy| &policy.manifest),
            Kind::RouteSlot => manifest(&self.route_slots, key, |slot| &slot.manifest),
            Kind::IngressRoute => manifest(&self.ingress_routes, key, |vertex| &vertex.manifest),
            Kind::HttpProxy => manifest(&self.http_proxies, key, |vertex| &vertex.manifest),
            Kind::TlsCertificateDelegation => manifest(&self.certificate_delegations, key, |it| &it.manifest),
            _ => None,
        }
    }

    /// Labels of a namespace, with the one that the API server sets on each: its name.
    pub fn namespace_labels(&self, namespace: &str) -> TextMap {
        let object = self.namespaces.get(&ObjectKey::new("", namespace));
        let labels = object.map(|object| object.meta.labels.clone()).unwrap_or_default();
        labels.with("kubernetes.io/metadata.name", namespace)
    }
}

fn manifest<'r, T>(
    objects: &'r Objects<T>,
    key: &ObjectKey,
    of: impl Fn(&'r T) -> &'r Manifest,
) -> Option<&'r Manifest> {
    let slot = objects.slot(key)?;
    match (&slot.good, &slot.refused) {
        (Some(good), _) => Some(of(good)),
        (None, Some(refused)) => Some(&refused.manifest),
        (None, None) => None,
    }
}
