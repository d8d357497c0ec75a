//! Index of Routes by the Secret of their certificate (`spec.tls.externalCertificate`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_model::object::ObjectKey;

use crate::engine::route_revision::RouteRevision;
use crate::openshift::claims::material::secret_of;

/// Names of Routes by Secret; both are of one namespace.
#[derive(Debug, Default)]
pub struct SecretUsers(BTreeMap<ObjectKey, BTreeSet<Arc<str>>>);

impl SecretUsers {
    /// Applies changed Routes.
    pub fn update(&mut self, changes: &[RouteRevision<'_>]) {
        for route in changes.iter().filter_map(|change| change.old) {
            let Some(secret) = secret_of(route) else { continue };
            let Some(users) = self.0.get_mut(&secret) else { continue };
            users.remove(&route.meta.key.name);
            if users.is_empty() {
                self.0.remove(&secret);
            }
        }
        for route in changes.iter().filter_map(|change| change.new) {
            if let Some(secret) = secret_of(route) {
                self.0.entry(secret).or_default().insert(route.meta.key.name.clone());
            }
        }
    }

    /// The Routes that use a Secret.
    pub fn of(&self, secret: &ObjectKey) -> impl Iterator<Item = ObjectKey> {
        let key = |name: &Arc<str>| ObjectKey { namespace: secret.namespace.clone(), name: name.clone() };
        self.0.get(secret).into_iter().flatten().map(key)
    }
}
