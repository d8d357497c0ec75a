//! Leader election by a Lease (Kubernetes, coordination.k8s.io/v1): one process writes statuses.
//!
//! A candidate takes a Lease that nobody has renewed for its duration, by the candidate's own clock since the last change
//! that it saw. The leader stops well before that if it cannot renew, so two never write at a time. Traffic does not
//! depend on it.

use std::pin::pin;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::runtime::watcher::watch_object;
use tokio::sync::watch;
use tokio::time::{sleep, timeout_at};

use crate::causes::with_causes;
use crate::kubernetes::in_time;
use crate::random;

/// A Lease without a renewal for this long may be taken.
const DURATION: Duration = Duration::from_secs(30);
/// Interval of renewals.
const RENEW: Duration = Duration::from_secs(5);
/// A leader that could not renew for this long stops to lead.
const GIVE_UP: Duration = Duration::from_secs(20);
/// Maximum random delay before an expired Lease is taken, in milliseconds.
const SPREAD: u32 = 2_000;

/// A candidate for a Lease.
pub struct Candidate {
    api: Api<Lease>,
    name: String,
    identity: String,
}

impl Candidate {
    /// A candidate; `identity` is unique among all.
    pub fn new(api: Api<Lease>, name: &str, identity: String) -> Self {
        Candidate { api, name: name.to_owned(), identity }
    }

    /// Sends true while this candidate leads. Ends when every receiver is dropped; then it releases the Lease.
    pub async fn run(self, leads: watch::Sender<bool>) {
        loop {
            let lease = tokio::select! {
                lease = self.acquire() => lease,
                () = leads.closed() => return,
            };
            tracing::info!(
                lease = self.name,
                identity = self.identity,
                "this process writes statuses: it holds the Lease"
            );
            leads.send_replace(true);
            let held = tokio::select! {
                () = self.hold(lease) => None,
                () = leads.closed() => Some(()),
            };
            if held.is_some() {
                self.release().await;
                return;
            }
            leads.send_replace(false);
            tracing::warn!(
                lease = self.name,
                "the Lease was lost, or could not be renewed: this process writes no statuses"
            );
        }
    }

    /// Waits until the Lease can be taken, and takes it.
    async fn acquire(&self) -> Lease {
        let mut changes = pin!(watch_object(self.api.clone(), &self.name));
        let mut known: Option<Lease> = None;
        let mut expiry = None;
        loop {
            let wait = async {
                match expiry {
                    Some(at) => tokio::time::sleep_until(tokio::time::Instant::from_std(at)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                change = changes.next() => match change {
                    Some(Ok(lease)) => {
                        expiry = Some(self.free_at(lease.as_ref(), known.as_ref(), expiry));
                        known = lease;
                    }
                    Some(Err(error)) => {
                        tracing::debug!(error = with_causes(&error), "the Lease cannot be watched");
                        sleep(RENEW).await;
                    }
                    None => sleep(RENEW).await,
                },
                () = wait => {
                    match self.write(known.clone(), Some(&self.identity)).await {
                        Ok(lease) => return lease,
                        // Another one took it, or the API server cannot be reached: the watch says which.
                        Err(error) => {
                            tracing::debug!(error, "the Lease was not taken");
                            expiry = Some(Instant::now() + RENEW);
                        }
                    }
                }
            }
        }
    }

    /// When a Lease may be taken.
    fn free_at(&self, lease: Option<&Lease>, known: Option<&Lease>, expiry: Option<Instant>) -> Instant {
        let spec = lease.and_then(|lease| lease.spec.as_ref());
        let holder = spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default();
        if holder.is_empty() || holder == self.identity {
            return Instant::now();
        }
        let version = |lease: Option<&Lease>| lease.and_then(|lease| lease.metadata.resource_version.clone());
        match expiry {
            // Listed again, and not renewed since.
            Some(expiry) if version(lease) == version(known) => expiry,
            _ => {
                let seconds = spec.and_then(|spec| spec.lease_duration_seconds).and_then(|it| u64::try_from(it).ok());
                let spread = Duration::from_millis(random::within(0..SPREAD).into());
                Instant::now() + seconds.map_or(DURATION, Duration::from_secs) + spread
            }
        }
    }

    /// Renews until the Lease is lost, or could not be renewed for [`GIVE_UP`].
    async fn hold(&self, mut lease: Lease) {
        let mut renewed = Instant::now();
        while let Ok(Some((new, begin))) = timeout_at((renewed + GIVE_UP).into(), self.renew(&lease)).await {
            (lease, renewed) = (new, begin);
        }
    }

    /// Renews the Lease once, after a while. Returns it, and when the successful request began; `None` if it is another's.
    async fn renew(&self, lease: &Lease) -> Option<(Lease, Instant)> {
        let mut lease = lease.clone();
        loop {
            sleep(RENEW).await;
            let begin = Instant::now();
            match self.write(Some(lease.clone()), Some(&self.identity)).await {
                Ok(new) => return Some((new, begin)),
                Err(error) => tracing::debug!(error, "the Lease was not renewed"),
            }
            if let Ok(Some(other)) = in_time(self.api.get_opt(&self.name)).await {
                if self.holder(&other) != Some(&*self.identity) {
                    return None;
                }
                // The answer of an earlier renewal was lost.
                lease = other;
            }
        }
    }

    fn holder<'l>(&self, lease: &'l Lease) -> Option<&'l str> {
        lease.spec.as_ref()?.holder_identity.as_deref()
    }

    async fn release(&self) {
        if let Ok(Some(lease)) = in_time(self.api.get_opt(&self.name)).await
            && self.holder(&lease) == Some(&*self.identity)
        {
            let _ = self.write(Some(lease), None).await;
        }
    }

    /// Writes the Lease with this holder.
    async fn write(&self, known: Option<Lease>, holder: Option<&str>) -> Result<Lease, String> {
        let now = MicroTime(Timestamp::now());
        let before = known.as_ref().and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let is_same = before.holder_identity.as_deref() == holder;
        let spec = LeaseSpec {
            holder_identity: Some(holder.unwrap_or_default().to_owned()),
            lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
            renew_time: Some(now.clone()),
            acquire_time: if is_same { before.acquire_time } else { Some(now) },
            lease_transitions: Some(before.lease_transitions.unwrap_or_default() + i32::from(!is_same)),
            ..LeaseSpec::default()
        };
        let parameters = PostParams::default();
        let write = async {
            match known {
                Some(lease) => {
                    let lease = Lease { metadata: lease.metadata, spec: Some(spec) };
                    self.api.replace(&self.name, &parameters, &lease).await
                }
                None => {
                    let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
                    self.api.create(&parameters, &Lease { metadata, spec: Some(spec) }).await
                }
            }
        };
        in_time(write).await.map_err(|error| with_causes(&error))
    }
}

/// A name for this process: its host, its process id, and a random part.
pub fn identity() -> String {
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    format!("{host}_{}_{:08x}", std::process::id(), random::within(0..u32::MAX))
}
