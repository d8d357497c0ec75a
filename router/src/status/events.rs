//! Events (events.k8s.io/v1): what happened to an object, by the leader, once for each transition.
//!
//! An Event follows a write of a status, which says what is: a restart writes none, so it makes no Event either. Events are
//! sent at a limited rate and never repeated; those that cannot be sent are dropped. Statuses do not wait for them.

mod transitions;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::sleep_until;

use super::tokens::Tokens;
use crate::causes::with_causes;
use crate::kubernetes::in_time;
pub use transitions::transitions;

/// An object has one Event of a reason in this time.
const ONCE_IN: Duration = Duration::from_secs(3600);
/// Number of these that are remembered at least.
const MIN_KNOWN: usize = 1024;
/// Maximum number of Events that wait to be sent.
const MAX_WAITING: usize = 256;
/// Mean number of Events a second, and how many may follow one another at once.
const RATE: f64 = 5.0;
const BURST: f64 = 50.0;
/// Maximum length of a note in bytes (events.k8s.io/v1, Event.note).
const MAX_NOTE: usize = 1024;
/// `reportingController`
const REPORTER: &str = "sluice";

/// What an Event says.
#[derive(Clone, Debug)]
pub struct Notice {
    /// The object.
    pub regarding: ObjectReference,
    /// Reason, in one word.
    pub reason: String,
    /// What Sluice did or refused, in one word.
    pub action: &'static str,
    /// Message for people.
    pub note: String,
}

/// Sends Events.
#[derive(Clone, Debug)]
pub struct Events(mpsc::Sender<Notice>);

impl Events {
    /// The sender, and what it sends, for [`publish`].
    pub fn channel() -> (Events, mpsc::Receiver<Notice>) {
        let (sender, notices) = mpsc::channel(MAX_WAITING);
        (Events(sender), notices)
    }

    /// How many Events may be sent now by one who can wait; the rest of the queue is for those who cannot.
    pub fn room(&self) -> usize {
        self.0.capacity().saturating_sub(MAX_WAITING / 2)
    }

    /// Sends an Event, or drops it if too many wait.
    pub fn send(&self, notice: Notice) {
        if let Err(error) = self.0.try_send(notice) {
            tracing::debug!(%error, "an Event was dropped");
        }
    }
}

/// A reference to a stored object.
pub fn reference(object: &Value) -> ObjectReference {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    ObjectReference {
        api_version: text("/apiVersion"),
        kind: text("/kind"),
        name: text("/metadata/name"),
        namespace: text("/metadata/namespace"),
        uid: text("/metadata/uid"),
        resource_version: text("/metadata/resourceVersion"),
        field_path: None,
    }
}

/// Sends Events to an API server until the sender is dropped; `instance` is the name of this process.
pub async fn publish(client: Client, instance: String, mut notices: mpsc::Receiver<Notice>) {
    let recorder = Recorder::new(client, Reporter { controller: REPORTER.to_owned(), instance: Some(instance) });
    let (mut recent, mut tokens) = (Recent::default(), Tokens::new(RATE, BURST, Instant::now()));
    while let Some(notice) = notices.recv().await {
        if !recent.is_new(&notice, Instant::now()) {
            continue;
        }
        sleep_until(tokens.ready(Instant::now()).into()).await;
        tokens.take(Instant::now());
        let Notice { regarding, reason, action, note } = notice;
        let event = Event {
            type_: EventType::Warning,
            reason,
            note: Some(shortened(note)),
            action: action.to_owned(),
            secondary: None,
        };
        if let Err(error) = in_time(recorder.publish(&event, &regarding)).await {
            tracing::debug!(reason = event.reason, error = with_causes(&error), "an Event was not sent");
        }
    }
}

fn shortened(mut note: String) -> String {
    if note.len() > MAX_NOTE {
        note.truncate(note.floor_char_boundary(MAX_NOTE - '…'.len_utf8()));
        note.push('…');
    }
    note
}

/// The Events of the last hour.
#[derive(Debug, Default)]
struct Recent {
    sent: HashMap<(String, String), Instant>,
    /// Number of these at which old ones are forgotten.
    most: usize,
}

impl Recent {
    /// Notes an Event. Returns false if the object has one of this reason.
    fn is_new(&mut self, notice: &Notice, now: Instant) -> bool {
        let ObjectReference { kind, namespace, name, uid, .. } = &notice.regarding;
        let object = [kind, namespace, name, uid].map(|part| part.as_deref().unwrap_or_default()).join("/");
        let is_old = |sent: &Instant| now.duration_since(*sent) >= ONCE_IN;
        if self.sent.len() >= self.most {
            self.sent.retain(|_, sent| !is_old(sent));
            self.most = (2 * self.sent.len()).max(MIN_KNOWN);
        }
        let before = self.sent.entry((object, notice.reason.clone()));
        match before {
            std::collections::hash_map::Entry::Occupied(before) if !is_old(before.get()) => false,
            entry => {
                entry.insert_entry(now);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn notice(name: &str, reason: &str) -> Notice {
        let object = json!({"kind": "Route", "metadata": {"namespace": "n", "name": name, "uid": name}});
        Notice { regarding: reference(&object), reason: reason.to_owned(), action: "Admit", note: String::new() }
    }

    #[test]
    fn an_object_has_one_event_of_a_reason_in_an_hour() {
        let (mut recent, now) = (Recent::default(), Instant::now());
        assert!(recent.is_new(&notice("a", "X"), now));
        assert!(recent.is_new(&notice("b", "X"), now) && recent.is_new(&notice("a", "Y"), now));
        let soon = now + ONCE_IN - Duration::from_secs(1);
        assert!(!recent.is_new(&notice("a", "X"), soon));
        // Later ones do not move the hour.
        assert!(recent.is_new(&notice("a", "X"), now + ONCE_IN));
        for number in 0..3 * MIN_KNOWN {
            let later = now + ONCE_IN * u32::try_from(number).unwrap();
            assert!(recent.is_new(&notice(&number.to_string(), "X"), later));
        }
        assert!(recent.sent.len() <= MIN_KNOWN);
    }

    #[test]
    fn who_can_wait_leaves_a_half_of_the_queue_to_others() {
        let (events, notices) = Events::channel();
        while events.room() > 0 {
            events.send(notice("a", "X"));
        }
        assert_eq!(notices.len(), MAX_WAITING / 2);
        events.send(notice("b", "X"));
        assert_eq!((events.room(), notices.len()), (0, MAX_WAITING / 2 + 1));
    }

    #[test]
    fn a_long_note_is_shortened_between_characters() {
        assert_eq!(shortened("ä".repeat(512)), "ä".repeat(512));
        let note = shortened("ä".repeat(600));
        assert!(note.len() <= MAX_NOTE && note.ends_with("ä…"), "{note}");
    }
}
