//! Objects of an API server as JSON.

use std::borrow::Cow;
use std::fmt;

use kube::Resource;
use kube::api::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope, GroupVersionKind};
use router_model::kind::Kind;
use router_model::object::ObjectKey;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Members of `metadata` that are not read: they are half of an object that several clients write.
const UNUSED: &str = "managedFields";

/// An object of an API server, without `metadata.managedFields`. `Debug` prints only its name: it may contain keys.
#[derive(Clone)]
pub struct ApiObject {
    /// What kube needs: name, namespace and resource version.
    meta: ObjectMeta,
    /// The object. Items of lists have neither `apiVersion` nor `kind`.
    pub value: Value,
}

impl ApiObject {
    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        let text = |text: &Option<String>| text.as_deref().unwrap_or_default().to_owned();
        ObjectKey::new(&text(&self.meta.namespace), &text(&self.meta.name))
    }

    /// The object with `apiVersion` and `kind`, which items of lists lack.
    pub fn into_value(self, resource: &ApiResource) -> Value {
        let mut value = self.value;
        if let Value::Object(members) = &mut value {
            for (name, text) in [("apiVersion", &resource.api_version), ("kind", &resource.kind)] {
                members.entry(name).or_insert_with(|| Value::String(text.clone()));
            }
        }
        value
    }
}

impl fmt::Debug for ApiObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiObject({})", self.key())
    }
}

impl Resource for ApiObject {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

/// The resource of a kind in one of its [`Kind::api_versions`].
pub fn resource_of(kind: Kind, api_version: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind.name()))
}

impl<'de> Deserialize<'de> for ApiObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Members { depth: 0 }.deserialize(deserializer)?;
        let text = |name: &str| value.pointer("/metadata")?.get(name)?.as_str().map(str::to_owned);
        let meta = ObjectMeta {
            name: text("name"),
            namespace: text("namespace"),
            resource_version: text("resourceVersion"),
            ..ObjectMeta::default()
        };
        Ok(ApiObject { meta, value })
    }
}

/// Reads an object (depth 0) or its `metadata` (depth 1), and skips [`UNUSED`].
struct Members {
    depth: u8,
}

impl<'de> DeserializeSeed<'de> for Members {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            match (self.depth, &*name) {
                (0, "metadata") => {
                    let metadata = map.next_value_seed(Members { depth: 1 })?;
                    members.insert(name, metadata);
                }
                (1, UNUSED) => drop(map.next_value::<IgnoredAny>()?),
                _ => drop(members.insert(name, map.next_value()?)),
            }
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn managed_fields_are_skipped_and_lists_items_get_their_kind() {
        let text = r#"{"metadata":{"name":"a","namespace":"n","resourceVersion":"7","managedFields":[{"x":1}],"labels":{"managedFields":"kept"}},"spec":{"managedFields":1}}"#;
        let object: ApiObject = serde_json::from_str(text).unwrap();
        assert_eq!((object.key(), object.meta.resource_version.as_deref()), (ObjectKey::new("n", "a"), Some("7")));
        let expected = json!({
            "metadata": {"name": "a", "namespace": "n", "resourceVersion": "7", "labels": {"managedFields": "kept"}},
            "spec": {"managedFields": 1},
            "apiVersion": "route.openshift.io/v1",
            "kind": "Route",
        });
        assert_eq!(object.into_value(&resource_of(Kind::Route, Kind::Route.api_version())), expected);
    }

    #[test]
    fn resources_have_the_plurals_of_their_definitions() {
        let plurals = Kind::ALL.map(|kind| resource_of(kind, kind.api_version()).plural);
        let expected = [
            "ingresscontrollers",
            "routes",
            "services",
            "endpointslices",
            "secrets",
            "namespaces",
            "configmaps",
            "customresourcedefinitions",
            "gatewayclasses",
            "gateways",
            "httproutes",
            "grpcroutes",
            "tlsroutes",
            "referencegrants",
            "backendtlspolicies",
            "routeslots",
            "ingressroutes",
            "httpproxies",
            "tlscertificatedelegations",
        ];
        assert_eq!(plurals, expected);
    }
}
