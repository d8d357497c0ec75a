//! Reads what became referenced: the watches reported it earlier, if ever, and it was not held.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::Client;
use kube::api::{Api, ListParams};
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use serde_json::Value;
use tokio::sync::mpsc;

use super::scope::Scope;
use super::update::{Update, WatchEvent};
use crate::causes::with_causes;
use crate::kubernetes::api_object::{ApiObject, resource_of};
use crate::kubernetes::in_time;

/// Delay before a failed request is repeated.
const RETRY: Duration = Duration::from_secs(2);

/// Reads the EndpointSlices of Services, and Secrets; repeats what fails until the receiver is dropped.
pub async fn fetch(client: Client, wanted: BTreeSet<ObjectRef>, updates: mpsc::Sender<Update>) {
    for object in wanted {
        let objects = loop {
            match read(&client, &object).await {
                Ok(objects) => break objects,
                // Without the right to read them, the watch has said so.
                Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => break Vec::new(),
                Err(error) => tracing::debug!(%object, error = with_causes(&error), "cannot be read; repeated"),
            }
            tokio::select! {
                () = tokio::time::sleep(RETRY) => {}
                () = updates.closed() => return,
            }
        };
        for (kind, key, value) in objects {
            let scope = Scope::of(&ObjectRef { kind, key: key.clone() });
            let event = WatchEvent::Fetched { key, value: Box::new(value) };
            if updates.send(Update { scope, event }).await.is_err() {
                return;
            }
        }
    }
}

async fn read(client: &Client, object: &ObjectRef) -> Result<Vec<(Kind, ObjectKey, Value)>, kube::Error> {
    let ObjectRef { kind, key } = object;
    let kind = if *kind == Kind::Service { Kind::EndpointSlice } else { *kind };
    let resource = resource_of(kind, kind.api_version());
    let api: Api<ApiObject> = Api::namespaced_with(client.clone(), &key.namespace, &resource);
    let objects = match kind {
        Kind::EndpointSlice => {
            let of_service = ListParams::default().labels(&format!("kubernetes.io/service-name={}", key.name));
            in_time(api.list(&of_service)).await?.items
        }
        _ => in_time(api.get_opt(&key.name)).await?.into_iter().collect(),
    };
    Ok(objects.into_iter().map(|object| (kind, object.key(), object.into_value(&resource))).collect())
}
