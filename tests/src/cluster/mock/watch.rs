//! Watches: events of a kind from a version on, read out of the history, so that a slow client costs no memory.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use super::body::{self, Body, PART};
use super::call::{Call, Verb};
use super::fault::{Fault, Then};
use super::list::{check_version, selector};
use super::object::{Form, Object};
use super::selector::Selector;
use super::state::{Counted, Interrupt, State};
use super::status::Failure;

/// An open watch.
struct Watch {
    state: Arc<State>,
    call: Call,
    selector: Selector,
    form: Form,
    /// Objects to send before the changes.
    initial: std::vec::IntoIter<Arc<Object>>,
    /// An item of a fault, to be sent before them.
    inserted: Option<Bytes>,
    /// Whether a bookmark says where they end.
    has_initial_end: bool,
    /// Changes up to this version have been sent.
    version: u64,
    deadline: Instant,
    changed: watch::Receiver<u64>,
    interrupts: broadcast::Receiver<(Option<String>, Interrupt)>,
    is_ended: bool,
    _counted: Counted,
}

/// Time after which a watch ends whose client names none.
const LONGEST: Duration = Duration::from_secs(3600);

/// Number of changes that are read at once.
const AT_ONCE: usize = 256;

/// The body of a watch.
///
/// # Errors
/// When the query is malformed. That its version is expired is an event, as of a real server.
pub fn watch(state: &Arc<State>, call: Call, is_metadata: bool, fault: Option<&Fault>) -> Result<Body, Failure> {
    let selector = selector(&call.query)?;
    let version = call.query.number("resourceVersion")?.unwrap_or_default();
    let is_streaming = call.verb == Verb::StreamingList;
    if is_streaming && call.query.get("resourceVersionMatch") != "NotOlderThan" {
        let message =
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        return Err(Failure::new(StatusCode::UNPROCESSABLE_ENTITY, message));
    }
    let (changed, interrupts) = (state.changed.subscribe(), state.interrupts.subscribe());
    let store = state.store();
    let mut initial = Vec::new();
    let mut version = version;
    if is_streaming || version == 0 {
        check_version(&store, &call)?;
        initial = store.objects(&call.kind, call.namespace.as_deref(), &selector);
        version = store.version();
    }
    drop(store);
    let mut inserted = None;
    match fault.map(Fault::then) {
        Some(Then::Keep(kept)) => initial.truncate(*kept),
        Some(Then::Insert(item)) => inserted = Some(item.clone()),
        _ => {}
    }
    let seconds = call.query.number("timeoutSeconds")?.filter(|seconds| *seconds > 0).map(Duration::from_secs);
    let form = match is_metadata {
        true => Form::Metadata,
        false => Form::Whole { api_version: call.kind.api_version(&call.version), kind: call.kind.name.clone() },
    };
    let watch = Watch {
        selector,
        form,
        initial: initial.into_iter(),
        inserted,
        has_initial_end: is_streaming && call.query.is_set("allowWatchBookmarks"),
        version,
        deadline: Instant::now() + seconds.unwrap_or(LONGEST).min(LONGEST),
        changed,
        interrupts,
        is_ended: false,
        _counted: state.counted(&call.kind.plural),
        state: Arc::clone(state),
        call,
    };
    Ok(body::parts(watch, async |mut watch| watch.next().await.map(|part| (part, watch))))
}

impl Watch {
    /// The next events.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if self.is_ended {
            return None;
        }
        let mut part = Vec::new();
        if let Some(item) = self.inserted.take() {
            part = [b"{\"type\":\"ADDED\",\"object\":", &item[..], b"}\n"].concat();
        }
        while part.len() < PART
            && let Some(object) = self.initial.next()
        {
            object.write_event("ADDED", &self.form, &mut part);
        }
        if part.is_empty() && std::mem::take(&mut self.has_initial_end) {
            part = self.bookmark(true);
        }
        while part.is_empty() && !self.is_ended {
            // Before the changes are read, so that none is missed.
            self.changed.borrow_and_update();
            part = self.read();
            if part.is_empty() && !self.is_ended {
                part = tokio::select! {
                    // The sender lives as long as the state.
                    _ = self.changed.changed() => Vec::new(),
                    interrupt = self.interrupts.recv() => match interrupt {
                        Ok((plural, what)) if plural.as_ref().is_none_or(|plural| *plural == self.call.kind.plural) => {
                            match self.interrupted(what) {
                                Ok(part) => part,
                                Err(error) => return Some(Err(error)),
                            }
                        }
                        Ok(_) | Err(RecvError::Lagged(_) | RecvError::Closed) => Vec::new(),
                    },
                    () = tokio::time::sleep_until(self.deadline) => self.end(),
                };
            }
        }
        (!part.is_empty()).then(|| Ok(part.into()))
    }

    /// Changes after those that have been sent.
    fn read(&mut self) -> Vec<u8> {
        let store = self.state.store();
        let (mut part, present) = (Vec::new(), store.version());
        match store.changes(&self.call.kind, self.version, AT_ONCE) {
            Ok(Some(changes)) => {
                drop(store);
                let is_all = changes.len() < AT_ONCE;
                for change in changes {
                    if let Some((what, object)) = change.seen(self.call.namespace.as_deref(), &self.selector) {
                        object.write_event(what, &self.form, &mut part);
                    }
                    self.version = change.after.version;
                }
                if is_all {
                    self.version = self.version.max(present);
                } else if part.is_empty() {
                    // There are more.
                    self.changed.mark_changed();
                }
            }
            // The kind is not served any longer.
            Ok(None) => self.is_ended = true,
            Err(expired) => {
                drop(store);
                part = self.error(&expired);
            }
        }
        part
    }

    fn interrupted(&mut self, what: Interrupt) -> io::Result<Vec<u8>> {
        Ok(match what {
            Interrupt::Bookmark if self.call.query.is_set("allowWatchBookmarks") => self.bookmark(false),
            Interrupt::Bookmark => Vec::new(),
            Interrupt::Expire => self.error(&Failure::expired(self.version, self.version + 1)),
            Interrupt::End => self.end(),
            Interrupt::Cut => return Err(io::ErrorKind::ConnectionReset.into()),
            Interrupt::Send(bytes) => bytes.to_vec(),
        })
    }

    /// Ends it in order: with a bookmark, so that the client goes on from there.
    fn end(&mut self) -> Vec<u8> {
        self.is_ended = true;
        if self.call.query.is_set("allowWatchBookmarks") { self.bookmark(false) } else { Vec::new() }
    }

    /// An event of type ERROR, the last one.
    fn error(&mut self, failure: &Failure) -> Vec<u8> {
        self.is_ended = true;
        line(&json!({"type": "ERROR", "object": failure.body()}))
    }

    fn bookmark(&self, ends_initial: bool) -> Vec<u8> {
        let mut metadata = json!({"resourceVersion": self.version.to_string(), "creationTimestamp": null});
        if ends_initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let (api_version, kind) = match &self.form {
            Form::Whole { api_version, kind } => (api_version.as_str(), kind.as_str()),
            _ => ("meta.k8s.io/v1", "PartialObjectMetadata"),
        };
        line(&json!({
            "type": "BOOKMARK",
            "object": {"apiVersion": api_version, "kind": kind, "metadata": metadata},
        }))
    }
}

fn line(event: &Value) -> Vec<u8> {
    let mut line = event.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests;
