//! Events about certificates that expire soon, by the leader: of each Secret in use, and of each Route with its own.
//!
//! Each certificate's time is read when its object changes, and they are kept in order: a change costs what it touches.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use router_api::kubernetes::secret::Secret;
use router_api::openshift::route::Route;
use router_api::openshift::route::traffic::{CertificateSource, Traffic};
use router_api::resources::Resources;
use router_model::certificate::{Certificate, expiry};
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use tokio::sync::watch;
use tokio::time::sleep;

use super::StatusInput;
use super::events::{Events, Notice};

/// Time before the end of a certificate's validity from which there are Events, in seconds. Issuers renew before: of 90 days
/// at the last 30.
const SOON: i64 = 14 * DAY;
/// Interval of the Events of one certificate, in seconds; an API server keeps one for an hour.
const DAY: i64 = 24 * 3600;
/// Maximum delay after which the time is looked at again: the clock may be set.
const LOOK: Duration = Duration::from_secs(600);
/// Delay after which Events that are due are sent, if there was no room for them.
const NO_ROOM: Duration = Duration::from_secs(10);

/// Sends Events while this process leads, until a sender is dropped.
pub async fn report(mut inputs: watch::Receiver<Arc<StatusInput>>, mut leads: watch::Receiver<bool>, events: Events) {
    let mut expiries = Expiries::default();
    loop {
        if !*leads.borrow_and_update() {
            expiries = Expiries::default();
            if leads.changed().await.is_err() {
                return;
            }
            continue;
        }
        let resources = Arc::clone(&inputs.borrow_and_update().resources);
        // At first it reads every certificate.
        let taken = tokio::task::spawn_blocking(move || {
            expiries.take(resources);
            expiries
        });
        match taken.await {
            Ok(taken) => expiries = taken,
            // A bug, which must not end the writer of statuses.
            Err(error) => {
                tracing::error!(%error, "reading certificates was aborted; no Event says that one expires soon");
                return std::future::pending().await;
            }
        }
        let now = Timestamp::now().as_second();
        expiries.due(now, events.room()).into_iter().for_each(|notice| events.send(notice));
        tokio::select! {
            changed = inputs.changed() => if changed.is_err() { return },
            changed = leads.changed() => if changed.is_err() { return } else { leads.mark_changed() },
            () = sleep(expiries.wait(now)) => {}
        }
    }
}

/// The times of certificates, in seconds since the epoch.
#[derive(Debug, Default)]
struct Expiries {
    resources: Arc<Resources>,
    /// When the next Event of an object is due.
    due: BTreeSet<(i64, ObjectRef)>,
    /// The same by object, of those that had one.
    repeated: HashMap<ObjectRef, i64>,
}

impl Expiries {
    /// Follows the objects that differ.
    fn take(&mut self, resources: Arc<Resources>) {
        let old = std::mem::replace(&mut self.resources, Arc::clone(&resources));
        for changed in resources.secrets.in_force_since(&old.secrets) {
            self.change(Kind::Secret, changed.key, changed.old.and_then(of_secret), changed.new.and_then(of_secret));
        }
        for changed in resources.routes.in_force_since(&old.routes) {
            self.change(Kind::Route, changed.key, changed.old.and_then(of_route), changed.new.and_then(of_route));
        }
    }

    fn change(&mut self, kind: Kind, key: &ObjectKey, old: Option<&Certificate>, new: Option<&Certificate>) {
        // Only certificates that differ are parsed.
        if old == new {
            return;
        }
        let time = |certificate: Option<&Certificate>| expiry(certificate?);
        let (old, new) = (time(old), time(new));
        if old == new {
            return;
        }
        let object = ObjectRef { kind, key: key.clone() };
        if let Some(old) = old {
            let due = self.repeated.remove(&object).unwrap_or(old - SOON);
            self.due.remove(&(due, object.clone()));
        }
        if let Some(new) = new {
            self.due.insert((new - SOON, object));
        }
    }

    /// When [`Expiries::due`] has something again.
    fn next(&self) -> Option<i64> {
        self.due.first().map(|(at, _)| *at)
    }

    /// How long [`Expiries::due`] has nothing new.
    fn wait(&self, now: i64) -> Duration {
        match self.next().map(|at| u64::try_from(at - now)) {
            None => LOOK,
            Some(Ok(seconds @ 1..)) => Duration::from_secs(seconds).min(LOOK),
            Some(_) => NO_ROOM,
        }
    }

    /// At most so many of the Events that are due; the others remain due.
    fn due(&mut self, now: i64, most: usize) -> Vec<Notice> {
        let mut notices = Vec::new();
        while notices.len() < most
            && let Some((_, object)) = self.due.first().filter(|(at, _)| *at <= now).cloned()
        {
            self.due.pop_first();
            notices.extend(self.notice(&object, now));
            self.repeated.insert(object.clone(), now + DAY);
            self.due.insert((now + DAY, object));
        }
        notices
    }

    fn notice(&self, object: &ObjectRef, now: i64) -> Option<Notice> {
        let Resources { secrets, routes, .. } = &*self.resources;
        let (meta, certificate) = match object.kind {
            Kind::Secret => secrets.get(&object.key).map(|secret| (&secret.meta, of_secret(secret)))?,
            _ => routes.get(&object.key).map(|route| (&route.meta, of_route(route)))?,
        };
        let at = expiry(certificate?)?;
        let when = Timestamp::from_second(at).ok()?;
        let expires = if at < now { "expired" } else { "expires" };
        Some(Notice {
            regarding: ObjectReference {
                api_version: Some(object.kind.api_version().to_owned()),
                kind: Some(object.kind.name().to_owned()),
                namespace: Some(object.key.namespace.to_string()),
                name: Some(object.key.name.to_string()),
                uid: Some(meta.uid.to_string()).filter(|uid| !uid.is_empty()),
                ..ObjectReference::default()
            },
            reason: "CertificateExpiresSoon".to_owned(),
            action: "ReadCertificate",
            note: format!("the certificate {expires} at {when}; renew it"),
        })
    }
}

fn of_secret(secret: &Arc<Secret>) -> Option<&Certificate> {
    secret.pair.as_ref()
}

/// A Route's own certificate; one of a Secret is the Secret's.
fn of_route(route: &Arc<Route>) -> Option<&Certificate> {
    let Traffic::Http { tls: Some(tls), .. } = &route.traffic else { return None };
    let CertificateSource::Inline(certificate) = &tls.material.as_ref().ok()?.certificate else { return None };
    Some(certificate)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::input;
    use super::*;

    fn edge(name: &str, tls: Value) -> Value {
        json!({
            "apiVersion": "route.openshift.io/v1",
            "kind": "Route",
            "metadata": {"namespace": "n", "name": name},
            "spec": {"host": format!("{name}.test"), "to": {"name": "web"}, "tls": tls},
        })
    }

    /// A Route with a certificate that is valid until a time.
    fn route(name: &str, end: i64) -> Value {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new([format!("{name}.test")]).unwrap();
        params.not_after = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(end.try_into().unwrap());
        let certificate = params.self_signed(&key).unwrap().pem();
        edge(name, json!({"termination": "edge", "certificate": certificate, "key": key.serialize_pem()}))
    }

    /// Names and notes of the Events that are due.
    fn due(expiries: &mut Expiries, now: i64) -> Vec<(String, String)> {
        let notices = expiries.due(now, usize::MAX).into_iter();
        notices.map(|notice| (notice.regarding.name.unwrap_or_default(), notice.note)).collect()
    }

    fn event(name: &str, note: &str) -> (String, String) {
        (name.to_owned(), format!("the certificate {note}; renew it"))
    }

    #[test]
    fn a_certificate_has_an_event_each_day_from_two_weeks_before_its_end() {
        let mut expiries = Expiries::default();
        let end = 20_000 * DAY;
        let (early, late) = (route("early", end), route("late", end + DAY));
        let without = edge("without", json!({"termination": "edge"}));
        let take = |expiries: &mut Expiries, routes: &[&Value]| {
            let routes = routes.iter().map(|route| (*route).clone()).collect();
            expiries.take(Arc::clone(&input(routes).resources));
        };
        take(&mut expiries, &[&early, &late, &without]);
        let begin = end - 14 * DAY;
        assert_eq!((due(&mut expiries, begin - 1), expiries.next()), (vec![], Some(begin)));
        let expires = || event("early", "expires at 2024-10-04T00:00:00Z");
        assert_eq!(due(&mut expiries, begin), [expires()]);
        // Neither time nor other objects repeat it within a day.
        take(&mut expiries, &[&early, &late]);
        assert_eq!((due(&mut expiries, begin + DAY - 1), expiries.next()), (vec![], Some(begin + DAY)));
        let both = [expires(), event("late", "expires at 2024-10-05T00:00:00Z")];
        assert_eq!(due(&mut expiries, begin + DAY), both);
        assert_eq!(due(&mut expiries, end + 1)[0], event("early", "expired at 2024-10-04T00:00:00Z"));
        // One is renewed, and the other removed.
        take(&mut expiries, &[&route("early", end + 90 * DAY)]);
        assert_eq!((expiries.due.len(), expiries.repeated.len()), (1, 0));
        assert_eq!((due(&mut expiries, end + 2 * DAY), expiries.next()), (vec![], Some(end + 76 * DAY)));
    }

    #[test]
    fn events_that_there_is_no_room_for_stay_due() {
        let mut expiries = Expiries::default();
        let end = 20_000 * DAY;
        let routes = ["a", "b", "c", "d", "e"].map(|name| route(name, end));
        expiries.take(Arc::clone(&input(routes.to_vec()).resources));
        let names = |notices: Vec<Notice>| -> Vec<String> {
            notices.into_iter().filter_map(|notice| notice.regarding.name).collect()
        };
        let now = end - DAY;
        assert_eq!((names(expiries.due(now, 0)), expiries.wait(now)), (vec![], NO_ROOM));
        assert_eq!(
            (names(expiries.due(now, 3)), expiries.wait(now)),
            (vec!["a".into(), "b".into(), "c".into()], NO_ROOM)
        );
        let later = now + 10;
        assert_eq!((names(expiries.due(later, 3)), expiries.wait(later)), (vec!["d".into(), "e".into()], LOOK));
        let again = now + DAY;
        assert_eq!(expiries.wait(again - 7), Duration::from_secs(7));
        assert_eq!(names(expiries.due(again, 4)), ["a", "b", "c"]);
    }
}
