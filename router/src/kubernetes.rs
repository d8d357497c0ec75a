//! Access to a Kubernetes API server: the client, and objects as JSON.

use std::time::Duration;

use kube::core::Status;
use serde_json::Value;
use tokio::time::timeout;

pub mod api_object;
pub mod client;
pub mod reachability;

/// Maximum time of a request for one object, or the objects of one Service.
const REQUEST: Duration = Duration::from_secs(5);

/// The result of a request, within the time that it may take.
///
/// # Errors
/// Of the request, or that there was no answer in time.
pub async fn in_time<T>(request: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    match timeout(REQUEST, request).await {
        Ok(answer) => answer,
        Err(elapsed) => Err(kube::Error::Service(elapsed.into())),
    }
}

/// `metadata.resourceVersion`: decimal and growing (Kubernetes 1.35, API concepts); 0 if it is not.
pub fn version_of(text: Option<&str>) -> u64 {
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// `metadata.resourceVersion` of an object, as of [`version_of`].
pub fn version_in(object: &Value) -> u64 {
    version_of(object.pointer("/metadata/resourceVersion").and_then(Value::as_str))
}

/// `details.retryAfterSeconds` of a status.
pub fn retry_after(status: &Status) -> Option<Duration> {
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}
