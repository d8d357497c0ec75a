//! Statuses and Events in an API server, while this process holds the Lease.

use std::sync::Arc;

use kube::api::Api;
use tokio::sync::watch;

use crate::kubernetes::client::ApiServer;
use crate::leader::{self, Candidate};
use crate::published::Published;
use crate::status::StatusInput;
use crate::status::api_writer::ApiStatusWriter;
use crate::status::events::{Events, publish};
use crate::status::expiry;

/// Writes statuses and Events while this process holds the Lease, until the sender of inputs is dropped. None is written
/// of a snapshot of an earlier agent.
pub async fn write(
    server: ApiServer,
    lease: String,
    inputs: watch::Receiver<Arc<StatusInput>>,
    mut published: watch::Receiver<Arc<Published>>,
) {
    if published.wait_for(|published| published.as_of.is_none()).await.is_err() {
        return;
    }
    let (leads, leading) = watch::channel(false);
    let client = server.client.clone();
    let leases = Api::namespaced(client.clone(), client.default_namespace());
    let identity = leader::identity();
    let candidate = Candidate::new(leases, &lease, identity.clone());
    let (events, notices) = Events::channel();
    let mut translations = inputs.clone();
    let write = async move {
        tokio::select! {
            () = expiry::report(inputs.clone(), leading.clone(), events.clone()) => {}
            () = ApiStatusWriter::new(server, &lease, events).run(inputs, leading) => {}
            () = publish(client, identity, notices) => {}
            // What is queued is the next leader's.
            () = async { while translations.changed().await.is_ok() {} } => {}
        }
    };
    // When the writer ends, the candidate releases the Lease.
    tokio::join!(write, candidate.run(leads));
}
