//! Which object's status is written next. Kinds take turns, and a kind whose writes are slow has half of the requests at a
//! time, so that a slow or failing webhook of one kind does not delay others. Two writes of an object never overlap.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Bound;
use std::time::{Duration, Instant};

use router_model::kind::Kind;
use router_model::object::ObjectRef;

use crate::status::tokens::Tokens;

/// Maximum number of writes at a time, and of those of one kind.
const MAX_WRITES: usize = 8;
const MAX_OF_KIND: usize = 4;
/// Mean number of writes a second, and how many may follow one another at once.
const RATE: f64 = 50.0;
const BURST: f64 = 200.0;
/// Delay before a failed write is repeated; it doubles with each failure.
const FIRST_RETRY: Duration = Duration::from_millis(20);
const LONGEST_RETRY: Duration = Duration::from_secs(60);
/// Shortest and longest pause after the API server asked for fewer requests.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The objects to look at.
#[derive(Debug)]
pub struct Queue {
    /// By kind, the first first.
    ready: BTreeMap<Kind, VecDeque<ObjectRef>>,
    queued: HashSet<ObjectRef>,
    /// Objects that are being written, and whether they are to be looked at again after that.
    writing: HashMap<ObjectRef, bool>,
    /// The kind whose turn was last.
    turn: Option<Kind>,
    /// Objects to look at later.
    delayed: HashMap<ObjectRef, Delayed>,
    /// Nothing is written before.
    paused: Option<Instant>,
    /// The API server has asked for fewer requests, and none has succeeded since: one at a time.
    is_throttled: bool,
    /// The API server answers no request.
    is_out: bool,
    tokens: Tokens,
}

/// When to look at an object again, unless it is queued already, and how often its write failed.
#[derive(Debug, Default)]
struct Delayed {
    until: Option<Instant>,
    failures: u32,
}

impl Queue {
    /// An empty queue.
    pub fn new(now: Instant) -> Self {
        Queue {
            ready: BTreeMap::new(),
            queued: HashSet::new(),
            writing: HashMap::new(),
            turn: None,
            delayed: HashMap::new(),
            paused: None,
            is_throttled: false,
            is_out: false,
            tokens: Tokens::new(RATE, BURST, now),
        }
    }

    /// Queues an object that has changed, with no regard to earlier failures: a newer version may be accepted.
    pub fn add(&mut self, object: ObjectRef) {
        self.delayed.remove(&object);
        self.enqueue(object);
    }

    fn enqueue(&mut self, object: ObjectRef) {
        if let Some(again) = self.writing.get_mut(&object) {
            *again = true;
        } else if self.queued.insert(object.clone()) {
            self.ready.entry(object.kind).or_default().push_back(object);
        }
    }

    /// The next object that may be written now.
    pub fn next(&mut self, now: Instant) -> Option<ObjectRef> {
        let due = |delayed: &Delayed| delayed.until.is_some_and(|until| until <= now);
        let due: Vec<ObjectRef> =
            self.delayed.iter().filter(|(_, delayed)| due(delayed)).map(|(object, _)| object.clone()).collect();
        for object in due {
            // Its number of failures stays until a write succeeds.
            if let Some(delayed) = self.delayed.get_mut(&object) {
                delayed.until = None;
            }
            self.enqueue(object);
        }
        if !self.has_room() || self.starts_at(now) > now {
            return None;
        }
        let kind = self.next_kind()?;
        let object = self.ready.get_mut(&kind)?.pop_front()?;
        self.queued.remove(&object);
        self.turn = Some(kind);
        Some(object)
    }

    fn has_room(&self) -> bool {
        self.writing.len() < if self.is_throttled { 1 } else { MAX_WRITES }
    }

    /// The kind after the last one that has an object to write.
    fn next_kind(&self) -> Option<Kind> {
        let is_free = |kind: Kind| self.writing.keys().filter(|object| object.kind == kind).count() < MAX_OF_KIND;
        let after = self.turn.map_or(Bound::Unbounded, Bound::Excluded);
        let kinds = self.ready.range((after, Bound::Unbounded)).chain(&self.ready);
        kinds.filter(|(_, objects)| !objects.is_empty()).map(|(kind, _)| *kind).find(|kind| is_free(*kind))
    }

    fn starts_at(&self, now: Instant) -> Instant {
        self.paused.map_or(now, |paused| paused.max(now)).max(self.tokens.ready(now))
    }

    /// When to call [`Queue::next`] again, if nothing else happens before.
    pub fn wakes_at(&self, now: Instant) -> Option<Instant> {
        let start = (self.has_room() && self.next_kind().is_some()).then(|| self.starts_at(now));
        self.delayed.values().filter_map(|delayed| delayed.until).chain(start).min()
    }

    /// Notes that an object is being written.
    pub fn begin(&mut self, object: ObjectRef, now: Instant) {
        self.tokens.take(now);
        self.writing.insert(object, false);
    }

    /// Notes that an object's status is as it should be. The API server has answered.
    pub fn done(&mut self, object: &ObjectRef) {
        (self.is_throttled, self.is_out) = (false, false);
        self.settle(object);
        self.end(object);
    }

    /// Notes that there is nothing to write for an object.
    pub fn settle(&mut self, object: &ObjectRef) {
        self.delayed.remove(object);
    }

    /// Notes a write that the API server's answer fails, to be repeated after a delay; by default one that doubles with
    /// each failure. Returns the delay and the number of failures before.
    pub fn fail(&mut self, object: ObjectRef, delay: Option<Duration>, now: Instant) -> (Duration, u32) {
        let delayed = self.delayed.entry(object.clone()).or_default();
        let failures = delayed.failures;
        let delay = delay.unwrap_or_else(|| FIRST_RETRY.saturating_mul(1 << failures.min(12)).min(LONGEST_RETRY));
        *delayed = Delayed { until: Some(now + delay), failures: failures.saturating_add(1) };
        self.is_out = false;
        self.end(&object);
        (delay, failures)
    }

    /// Notes that the API server asks for fewer requests: writes nothing for a while, and then one at a time until one
    /// succeeds. Returns the length of the pause.
    pub fn throttle(&mut self, object: ObjectRef, after: Option<Duration>, now: Instant) -> Duration {
        let pause = after.unwrap_or_default().clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        (self.is_throttled, self.is_out) = (true, false);
        self.pause(now + pause);
        self.end(&object);
        self.enqueue(object);
        pause
    }

    /// The same if the API server does not answer. Returns true if it answered before.
    pub fn unanswered(&mut self, object: ObjectRef, now: Instant) -> bool {
        let was_out = self.is_out;
        self.throttle(object, None, now);
        self.is_out = true;
        !was_out
    }

    /// Writes nothing before a time.
    pub fn pause(&mut self, until: Instant) {
        self.paused = self.paused.max(Some(until));
    }

    /// Looks at an object at a time, not before.
    pub fn defer(&mut self, object: ObjectRef, until: Instant) {
        self.delayed.insert(object, Delayed { until: Some(until), failures: 0 });
    }

    fn end(&mut self, object: &ObjectRef) {
        if self.writing.remove(object) == Some(true) {
            self.add(object.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use router_model::object::ObjectKey;

    use super::*;

    fn object(kind: Kind, name: &str) -> ObjectRef {
        ObjectRef { kind, key: ObjectKey::new("n", name) }
    }

    fn one(object: &ObjectRef) -> Vec<ObjectRef> {
        vec![object.clone()]
    }

    fn queue(routes: usize) -> (Queue, Instant) {
        let now = Instant::now();
        let mut queue = Queue::new(now);
        (0..routes).for_each(|number| queue.add(object(Kind::Route, &number.to_string())));
        (queue, now)
    }

    /// Begins all writes that may begin.
    fn begun(queue: &mut Queue, now: Instant) -> Vec<ObjectRef> {
        let next = std::iter::from_fn(|| {
            let next = queue.next(now)?;
            queue.begin(next.clone(), now);
            Some(next)
        });
        next.collect()
    }

    #[test]
    fn a_kind_has_half_of_the_writes_and_kinds_take_turns() {
        let (mut queue, now) = queue(10);
        let gateway = object(Kind::Gateway, "g");
        queue.add(gateway.clone());
        let first = queue.next(now);
        queue.begin(first.clone().unwrap(), now);
        let second = queue.next(now);
        queue.begin(second.clone().unwrap(), now);
        assert!([first, second].contains(&Some(gateway.clone())));
        assert_eq!(begun(&mut queue, now).len(), MAX_OF_KIND - 1);
        assert_eq!(queue.wakes_at(now), None);
        queue.done(&gateway);
        assert_eq!(begun(&mut queue, now), []);
        queue.done(&object(Kind::Route, "0"));
        assert_eq!(begun(&mut queue, now), [object(Kind::Route, "4")]);
    }

    #[test]
    fn an_object_that_changes_while_it_is_written_is_written_after_that() {
        let (mut queue, now) = queue(1);
        let route = object(Kind::Route, "0");
        assert_eq!(begun(&mut queue, now), one(&route));
        queue.add(route.clone());
        assert_eq!((begun(&mut queue, now), queue.wakes_at(now)), (vec![], None));
        queue.done(&route);
        assert_eq!(begun(&mut queue, now), [route]);
    }

    #[test]
    fn a_failed_write_is_repeated_after_a_delay_that_doubles() {
        let (mut queue, mut now) = queue(1);
        let route = object(Kind::Route, "0");
        for failures in 0..14 {
            assert_eq!(begun(&mut queue, now), one(&route));
            let (delay, before) = queue.fail(route.clone(), None, now);
            assert_eq!((delay, before), ((FIRST_RETRY * (1 << failures.min(12))).min(LONGEST_RETRY), failures));
            assert_eq!((begun(&mut queue, now), queue.wakes_at(now)), (vec![], Some(now + delay)));
            now += delay;
        }
        // A change begins anew.
        queue.add(route.clone());
        assert_eq!(begun(&mut queue, now), one(&route));
        assert_eq!(queue.fail(route, None, now).1, 0);
    }

    #[test]
    fn nothing_is_written_in_a_pause_and_one_at_a_time_after_it() {
        let (mut queue, now) = queue(20);
        let first = begun(&mut queue, now);
        assert_eq!(first.len(), MAX_OF_KIND);
        let pause = Duration::from_secs(2);
        let pauses: Vec<_> = first.into_iter().map(|object| queue.throttle(object, Some(pause), now)).collect();
        assert_eq!(pauses, [pause; MAX_OF_KIND]);
        let end = now + Duration::from_secs(2);
        assert_eq!((begun(&mut queue, now), queue.wakes_at(now)), (vec![], Some(end)));
        let probe = begun(&mut queue, end);
        assert_eq!(probe.len(), 1);
        assert_eq!(queue.throttle(probe[0].clone(), None, end), SHORTEST_PAUSE);
        let later = end + SHORTEST_PAUSE;
        let probe = begun(&mut queue, later);
        assert_eq!(probe.len(), 1);
        queue.done(&probe[0]);
        assert_eq!(begun(&mut queue, later).len(), MAX_OF_KIND);
        let long = queue.throttle(object(Kind::Route, "5"), Some(Duration::from_secs(3600)), later);
        assert_eq!(long, LONGEST_PAUSE);
    }

    #[test]
    fn an_outage_begins_once_whatever_precedes_it() {
        let (mut queue, mut now) = queue(1);
        let route = object(Kind::Route, "0");
        let mut next = |queue: &mut Queue| {
            now += LONGEST_PAUSE;
            assert_eq!(begun(queue, now), one(&route));
            (route.clone(), now)
        };
        let answers: [fn(&mut Queue, ObjectRef, Instant); 3] = [
            |queue, route, now| {
                queue.throttle(route, None, now);
            },
            |queue, route, now| {
                queue.fail(route, Some(LONGEST_PAUSE), now);
            },
            |queue, route, _| {
                queue.done(&route);
                queue.add(route);
            },
        ];
        for answer in answers {
            let (route, now) = next(&mut queue);
            answer(&mut queue, route, now);
            let begins = [(); 3].map(|()| {
                let (route, now) = next(&mut queue);
                queue.unanswered(route, now)
            });
            assert_eq!(begins, [true, false, false]);
        }
    }

    #[test]
    fn a_deferred_object_waits() {
        let (mut queue, now) = queue(1);
        let route = queue.next(now).unwrap();
        let until = now + Duration::from_secs(600);
        queue.defer(route.clone(), until);
        assert_eq!((queue.next(now), queue.wakes_at(now)), (None, Some(until)));
        assert_eq!(queue.next(until), Some(route));
    }

    #[test]
    fn writes_have_a_mean_rate_after_a_burst() {
        let (mut queue, now) = queue(300);
        let mut written = 0;
        while let Some(object) = queue.next(now) {
            queue.begin(object.clone(), now);
            queue.done(&object);
            written += 1;
        }
        assert_eq!(written, 200);
        assert!(queue.wakes_at(now).is_some_and(|wake| wake > now && wake <= now + Duration::from_millis(20)));
    }
}
