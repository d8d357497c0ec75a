//! One watch: kube's watcher, and what it lacks (kube-runtime 5.0.0, `watcher.rs`).
//!
//! - A streaming list that the API server rejects, as an aggregated one may, is retried for ever (`WatchStartFailed` with
//!   `State::default()`); here the kind is then listed in pages.
//! - HTTP 410 at the start of a watch keeps the old resource version (`State::InitListed`); here the list begins anew.
//! - It does not wait before it retries, and does not tell apart why.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use kube::api::{Api, PartialObjectMeta};
use kube::core::{ApiResource, Status};
use kube::runtime::watcher::{self, Event};
use kube::{Client, Resource};
use router_model::kind::Kind;
use router_model::object::ObjectKey;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{sleep, timeout};

use super::revision::Revision;
use super::scope::Scope;
use super::update::{Update, WatchEvent, WatchFailure};
use crate::causes::with_causes;
use crate::kubernetes::api_object::{ApiObject, resource_of};
use crate::kubernetes::reachability::Reachability;
use crate::kubernetes::{in_time, retry_after, version_in, version_of};
use crate::random;

/// First and longest delay before a retry; the delay is random up to a limit that doubles.
const FIRST_RETRY: Duration = Duration::from_millis(800);
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// Shortest delay after an API server asked for fewer requests (429), and did not say for how long.
const BUSY_RETRY: Duration = Duration::from_secs(1);
/// A watch that lasted this long is not repeated too soon if it begins anew.
const HEALTHY: Duration = Duration::from_secs(10);
/// Maximum time without an object while a list is read, and without any event of a watch: longer than [`LIFETIME`].
const LIST_SILENCE: Duration = Duration::from_secs(60);
const WATCH_SILENCE: Duration = Duration::from_secs(320);
/// Delay after a request was denied: rights are granted by hand.
const DENIED_RETRY: Duration = Duration::from_secs(30);
/// Delay before a kind that is not installed is asked for again; a change of the definitions ends it.
const ABSENT_RETRY: Duration = Duration::from_secs(60);
/// Shortest and longest lifetime of a watch request, in seconds; kube allows less than 295.
const LIFETIME: std::ops::Range<u32> = 200..290;

/// One watch.
pub struct Watch {
    /// Its objects.
    pub scope: Scope,
    /// The API server.
    pub client: Client,
    /// Whether it answers.
    pub reachability: Reachability,
    /// Where reports go.
    pub updates: mpsc::Sender<Update>,
    /// Changes with a definition.
    pub definitions: watch::Sender<()>,
    /// Notified when the list is to be read anew.
    pub relist: Arc<Notify>,
    /// The newest version of the API server.
    pub revision: Arc<Revision>,
}

/// Why a watcher ended.
enum End {
    /// The receiver of the reports is gone.
    Closed,
    /// Begin with a list.
    Anew,
    /// Begin with a list: the API server's versions went back.
    Restored,
    /// The API server rejects a streaming list.
    NoStreamingList,
    /// The API server does not serve this version of the kind.
    Absent,
    /// The request was denied.
    Denied(String),
}

impl Watch {
    /// Reports until the receiver is dropped.
    pub async fn run(self) {
        let versions = self.scope.kind.api_versions();
        let (mut version, mut streaming, mut lists) = (0, true, 0);
        let mut definitions = self.definitions.subscribe();
        // From the beginning, so that nothing that happens between two watchers is missed.
        let mut restored = self.revision.restored();
        loop {
            let Some(api_version) = versions.get(version) else {
                if self.report(WatchEvent::NotInstalled).await.is_err() {
                    return;
                }
                // It may have come since it was asked for.
                tokio::select! {
                    _ = definitions.changed() => {}
                    () = self.relist.notified() => {}
                    () = sleep(ABSENT_RETRY) => {}
                }
                definitions.mark_unchanged();
                version = 0;
                continue;
            };
            let begin = Instant::now();
            match self.follow(&resource_of(self.scope.kind, api_version), streaming, &mut restored).await {
                End::Closed => return,
                // A list that does not lead to a watch must not follow on another at once.
                End::Anew if begin.elapsed() < HEALTHY => {
                    lists += 1;
                    sleep(delay(lists)).await;
                }
                End::Anew => lists = 0,
                End::Restored => {
                    if self.report(WatchEvent::Restored).await.is_err() {
                        return;
                    }
                }
                End::NoStreamingList => streaming = false,
                End::Absent => version += 1,
                End::Denied(message) => {
                    if self.report(WatchEvent::Failed(WatchFailure::Denied(message))).await.is_err() {
                        return;
                    }
                    sleep(DENIED_RETRY).await;
                }
            }
        }
    }

    async fn report(&self, event: WatchEvent) -> Result<(), ()> {
        self.updates.send(Update { scope: self.scope.clone(), event }).await.map_err(drop)
    }

    /// Lists and watches in one version of the kind.
    async fn follow(&self, resource: &ApiResource, streaming: bool, restored: &mut watch::Receiver<()>) -> End {
        let api: Api<ApiObject> = match &self.scope.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        };
        let mut config = watcher::Config::default().timeout(random::within(LIFETIME));
        if streaming {
            config = config.streaming_lists();
        }
        if let Some(name) = &self.scope.name {
            config = config.fields(&format!("metadata.name={name}"));
        } else if self.scope.kind == Kind::Secret {
            config = config.fields("type=kubernetes.io/tls");
        }
        // Only labels of Namespaces count; a definition of interest is read when it changes.
        if matches!(self.scope.kind, Kind::Namespace | Kind::CustomResourceDefinition) {
            let metadata: Api<PartialObjectMeta<ApiObject>> = Api::all_with(self.client.clone(), resource);
            let whole = (self.scope.kind == Kind::CustomResourceDefinition).then_some(api);
            self.relay(watcher::watcher(metadata, config), streaming, restored, |object| {
                self.of_metadata(object, resource, whole.clone())
            })
            .await
        } else {
            let whole = |object: ApiObject| async { Ok((object.key(), object.into_value(resource))) };
            self.relay(watcher::watcher(api, config), streaming, restored, whole).await
        }
    }

    /// A Namespace, or a definition with the parts that are read of it.
    async fn of_metadata(
        &self,
        object: PartialObjectMeta<ApiObject>,
        resource: &ApiResource,
        whole: Option<Api<ApiObject>>,
    ) -> Result<(ObjectKey, Value), kube::Error> {
        let name = object.metadata.name.clone().unwrap_or_default();
        let key = ObjectKey::new("", &name);
        if let Some(api) = whole {
            self.definitions.send_replace(());
            if name.ends_with(GATEWAY_API)
                && let Some(object) = in_time(api.get_opt(&name)).await?
            {
                return Ok((key, object.into_value(resource)));
            }
        }
        let mut metadata = serde_json::to_value(&object.metadata).unwrap_or_default();
        metadata.as_object_mut().map(|metadata| metadata.shift_remove("managedFields"));
        let value = json!({ "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata });
        Ok((key, value))
    }

    /// Relays a watcher's events until it has to begin anew.
    async fn relay<K, F>(
        &self,
        stream: impl futures_util::Stream<Item = watcher::Result<Event<K>>> + Send,
        streaming: bool,
        restored: &mut watch::Receiver<()>,
        read: impl Fn(K) -> F,
    ) -> End
    where
        K: Resource<DynamicType = ApiResource>,
        F: Future<Output = Result<(ObjectKey, Value), kube::Error>>,
    {
        let mut stream = pin!(stream);
        let (mut failures, mut is_listing) = (0, true);
        loop {
            let silence = if is_listing { LIST_SILENCE } else { WATCH_SILENCE };
            let next = tokio::select! {
                next = timeout(silence, stream.next()) => next.unwrap_or_default(),
                () = self.relist.notified() => return End::Anew,
                // The sender lives as long as `self`.
                _ = restored.changed() => return End::Restored,
                () = self.updates.closed() => return End::Closed,
            };
            let event = match next {
                None => return End::Anew,
                Some(Ok(Event::Init)) => WatchEvent::Listing,
                Some(Ok(Event::InitDone)) => WatchEvent::Listed,
                Some(Ok(Event::Apply(object) | Event::InitApply(object))) => match read(object).await {
                    Ok((key, value)) => WatchEvent::Object { key, value: Box::new(value) },
                    // The object would be missing from a list.
                    Err(error) => {
                        let failed = WatchFailure::Unreachable(with_causes(&error));
                        let closed = self.report(WatchEvent::Failed(failed)).await.is_err();
                        return if closed { End::Closed } else { End::Anew };
                    }
                },
                Some(Ok(Event::Delete(object))) => {
                    let text = |text: &Option<String>| text.clone().unwrap_or_default();
                    let meta = object.meta();
                    let key = ObjectKey::new(&text(&meta.namespace), &text(&meta.name));
                    WatchEvent::Deleted { key, version: version_of(meta.resource_version.as_deref()) }
                }
                Some(Err(error)) => {
                    let status = status_of(&error);
                    match (status.map_or(0, |status| status.code), &error) {
                        (404, _) => return End::Absent,
                        (403, _) => return End::Denied(text_of(&error)),
                        // Credentials are read anew with each request.
                        (401, _) => {}
                        (410, _) => return End::Anew,
                        (400..429, watcher::Error::WatchStartFailed(_)) if streaming => return End::NoStreamingList,
                        _ => {}
                    }
                    failures += 1;
                    self.revision.doubt();
                    let is_silent = status.is_none();
                    let asked = status.and_then(retry_after).map(|asked| asked.min(LONGEST_RETRY));
                    let least = if status.is_some_and(|it| it.code == 429) { BUSY_RETRY } else { Duration::ZERO };
                    let delay = asked.unwrap_or_else(|| delay(failures).max(least));
                    let failed = WatchFailure::Unreachable(text_of(&error));
                    if self.report(WatchEvent::Failed(failed)).await.is_err() {
                        return End::Closed;
                    }
                    match error {
                        // Nothing answered this request, but another one may be answered before the delay is over.
                        watcher::Error::InitialListFailed(_) | watcher::Error::WatchStartFailed(_) if is_silent => {
                            self.reachability.wait(delay).await;
                        }
                        _ => sleep(delay).await,
                    }
                    continue;
                }
            };
            if let WatchEvent::Object { value, .. } = &event {
                self.revision.saw(self.scope.kind, version_in(value));
            }
            match event {
                WatchEvent::Listing => is_listing = true,
                WatchEvent::Listed => (is_listing, failures) = (false, 0),
                _ => failures = 0,
            }
            if self.report(event).await.is_err() {
                return End::Closed;
            }
        }
    }
}

/// End of the names of Gateway API's definitions.
const GATEWAY_API: &str = ".gateway.networking.k8s.io";

/// The API server's status, if it answered.
fn status_of(error: &watcher::Error) -> Option<&Status> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => Some(status),
        watcher::Error::WatchError(status) => Some(status),
        _ => None,
    }
}

/// An error in one line; of an answer of the API server, its code and message.
fn text_of(error: &watcher::Error) -> String {
    match status_of(error) {
        Some(status) => format!("{} {}: {}", status.code, status.reason, status.message),
        None => with_causes(error),
    }
}

fn delay(failures: u32) -> Duration {
    let limit = FIRST_RETRY.saturating_mul(1 << failures.saturating_sub(1).min(6)).min(LONGEST_RETRY);
    Duration::from_millis(u64::from(random::within(0..u32::try_from(limit.as_millis()).unwrap_or(u32::MAX))))
}
