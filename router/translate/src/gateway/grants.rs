//! ReferenceGrants: the references across namespaces that they permit.

use std::collections::HashMap;
use std::sync::Arc;

use router_api::gateway_api::types::{GROUP, ReferenceGrant};
use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::object::ObjectKey;

/// ReferenceGrants by their namespace, which is that of the referenced objects.
#[derive(Clone, Debug, Default)]
pub struct Grants(HashMap<Arc<str>, Vec<Arc<ReferenceGrant>>>);

/// The referring object, of a kind of Gateway API.
#[derive(Clone, Copy, Debug)]
pub struct Referrer<'a> {
    kind: Kind,
    namespace: &'a str,
}

impl<'a> Referrer<'a> {
    /// The object of this kind and key.
    pub fn new(kind: Kind, key: &'a ObjectKey) -> Self {
        Referrer { kind, namespace: &key.namespace }
    }
}

impl Grants {
    /// Grants among these objects.
    pub fn new(resources: &Resources) -> Self {
        let mut grants = Grants::default();
        for grant in resources.reference_grants.iter() {
            grants.0.entry(grant.meta.key.namespace.clone()).or_default().push(Arc::clone(grant));
        }
        grants
    }

    /// True if an object may refer to another one: always within its namespace, else if a grant in the namespace of the
    /// referenced object allows it.
    pub fn allows(&self, from: &Referrer<'_>, kind: Kind, to: &ObjectKey) -> bool {
        if *from.namespace == *to.namespace {
            return true;
        }
        let grants = self.0.get(&to.namespace).map_or(&[][..], Vec::as_slice);
        grants.iter().any(|grant| {
            let is_from = grant.from.iter().any(|(group, kind, namespace)| {
                **group == *GROUP && **kind == *from.kind.name() && **namespace == *from.namespace
            });
            let is_to = grant.to.iter().any(|(group, name_of_kind, name)| {
                **group == *group_of(kind)
                    && **name_of_kind == *kind.name()
                    && name.as_ref().is_none_or(|name| *name == to.name)
            });
            is_from && is_to
        })
    }
}

/// The API group of a kind; empty for the core group.
fn group_of(kind: Kind) -> &'static str {
    kind.api_version().split_once('/').map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use router_api::resources::Versions;
    use router_model::object::Meta;

    use super::*;

    fn meta(namespace: &str, name: &str) -> Meta {
        Meta {
            key: ObjectKey::new(namespace, name),
            labels: Default::default(),
            created: Default::default(),
            uid: Default::default(),
            generation: 0,
            origin: Default::default(),
        }
    }

    #[test]
    fn a_grant_lists_permitted_referrers_and_targets() {
        let grant = |name: &str, from: (&str, &str, &str), to: (&str, &str, Option<&str>)| ReferenceGrant {
            meta: meta("secrets", name),
            from: vec![(from.0.into(), from.1.into(), from.2.into())],
            to: vec![(to.0.into(), to.1.into(), to.2.map(Into::into))],
        };
        let mut resources = Resources::default();
        for grant in [
            grant("one", (GROUP, "Gateway", "shop"), ("", "Secret", Some("tls"))),
            grant("all", (GROUP, "HTTPRoute", "shop"), ("", "Service", None)),
            grant("odd", ("example.com", "Gateway", "red"), ("", "Secret", None)),
        ] {
            let versions = Versions { accepted: Some(Arc::new(grant.clone())), rejected: None };
            resources.reference_grants.insert(grant.meta.key.clone(), versions);
        }
        let grants = Grants::new(&resources);
        for (kind, from, to_kind, to, allowed) in [
            (Kind::Gateway, "shop/g", Kind::Secret, "secrets/tls", true),
            (Kind::Gateway, "shop/g", Kind::Secret, "secrets/other", false),
            (Kind::Gateway, "shop/g", Kind::Secret, "elsewhere/tls", false),
            (Kind::Gateway, "blue/g", Kind::Secret, "secrets/tls", false),
            (Kind::Gateway, "red/g", Kind::Secret, "secrets/tls", false),
            (Kind::Gateway, "shop/g", Kind::Service, "secrets/tls", false),
            (Kind::HttpRoute, "shop/r", Kind::Secret, "secrets/tls", false),
            (Kind::HttpRoute, "shop/r", Kind::Service, "secrets/any", true),
            (Kind::GrpcRoute, "shop/r", Kind::Service, "secrets/any", false),
            (Kind::GrpcRoute, "secrets/r", Kind::Service, "secrets/any", true),
        ] {
            let key = |text: &str| text.split_once('/').map(|(ns, name)| ObjectKey::new(ns, name)).unwrap();
            let from_key = key(from);
            let found = grants.allows(&Referrer::new(kind, &from_key), to_kind, &key(to));
            assert_eq!(found, allowed, "{kind} {from} → {to_kind} {to}");
        }
    }
}
