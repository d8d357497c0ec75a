//! Admitted attempts, and addresses that stay known.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn client(last: u8) -> IpAddr {
    [192, 0, 2, last].into()
}

fn limits(concurrent: u32, connections: u32, requests: u32) -> SourceLimits {
    let [concurrent, connections, requests] = [concurrent, connections, requests].map(NonZeroU32::new);
    SourceLimits { concurrent, connections, requests }
}

struct Stage(Arc<ClientTable>);

impl Stage {
    fn new() -> Self {
        Stage(Arc::default())
    }

    fn admit(&self, limits: &SourceLimits, client: IpAddr, seconds: f64) -> Result<Option<Visit>, TooMany> {
        self.0.admit(limits, client, self.0.start + Duration::from_secs_f64(seconds))
    }

    fn known(&self) -> usize {
        self.0.by_address.len()
    }
}

#[test]
fn as_many_at_the_same_time_as_the_limit_for_each_address() {
    let (stage, two) = (Stage::new(), limits(2, 0, 0));
    let first = stage.admit(&two, client(1), 0.0).unwrap();
    let _second = stage.admit(&two, client(1), 0.0).unwrap().unwrap();
    assert_eq!(stage.admit(&two, client(1), 0.0).unwrap_err(), TooMany);
    // In any form of the address; another address has its own limit.
    assert!(stage.admit(&two, "::ffff:192.0.2.1".parse().unwrap(), 0.0).is_err());
    assert!(stage.admit(&two, client(2), 0.0).is_ok());
    assert!(stage.admit(&two, "2001:db8::1".parse().unwrap(), 0.0).is_ok());
    drop(first);
    assert!(stage.admit(&two, client(1), 0.0).is_ok());
}

#[test]
fn rates_slide_and_what_is_refused_counts() {
    for (limits, window) in [(limits(0, 10, 0), 3.0), (limits(0, 0, 10), 10.0)] {
        let stage = Stage::new();
        let admitted = |from: f64, count: usize| {
            (0..count).filter(|_| stage.admit(&limits, client(1), from * window).is_ok()).count()
        };
        assert_eq!(admitted(0.0, 15), 10);
        assert_eq!(admitted(0.9, 1), 0);
        // Half of the sixteen of the window before still count.
        assert_eq!(admitted(1.5, 20), 2);
        assert_eq!(admitted(3.9, 20), 10, "nothing counts after two windows");
        assert!(stage.admit(&limits, client(2), 0.0).unwrap().is_none(), "nothing to keep");
    }
}

#[test]
fn without_limits_everybody_is_let_through() {
    let stage = Stage::new();
    assert!((0..1_000).all(|_| stage.admit(&limits(0, 0, 0), client(1), 0.0).unwrap().is_none()));
}

#[test]
fn memory_is_bounded_and_those_who_are_there_stay_known() {
    let stage = Stage(Arc::new(ClientTable::with_capacity(128)));
    let one = limits(1, 0, 0);
    let address = |number: u32| IpAddr::from((0x0a00_0000 + number).to_be_bytes());
    let held: Vec<_> = (0..16).map(|number| stage.admit(&one, address(number), 0.0).unwrap()).collect();
    for number in 100..5_000 {
        drop(stage.admit(&one, address(number), 0.001).unwrap());
        assert!(stage.known() <= 128);
    }
    assert!((0..16).all(|number| stage.admit(&one, address(number), 0.002).is_err()), "none was forgotten");
    drop(held);
    let _others: Vec<_> = (10_000..11_000).map(|number| stage.admit(&one, address(number), 60.0).unwrap()).collect();
    // All known addresses are at their limit: the next one is admitted and not counted.
    assert!(stage.known() <= 128);
    assert!((20_000..20_100).all(|number| stage.admit(&one, address(number), 60.1).unwrap().is_none()));
}

#[test]
fn an_address_that_keeps_retrying_stays_known_among_new_ones() {
    let stage = Stage(Arc::new(ClientTable::with_capacity(1_000)));
    let two = limits(0, 2, 0);
    let address = |number: u32| IpAddr::from((0x0a00_0000 + number).to_be_bytes());
    assert!((0..2).all(|_| stage.admit(&two, client(1), 0.0).is_ok()));
    for number in 0..100_000 {
        stage.admit(&two, address(number), 0.0).unwrap();
        if number % 500 == 0 {
            assert_eq!(stage.admit(&two, client(1), 0.0).unwrap_err(), TooMany, "after {number} others");
        }
    }
    assert_eq!(stage.known(), 1_000);
}

#[test]
fn an_eviction_looks_up_a_bounded_number_of_entries() {
    let stage = Stage(Arc::new(ClientTable::with_capacity(1_000)));
    let one = limits(0, 1, 0);
    let address = |number: u32| IpAddr::from((0x0a00_0000 + number).to_be_bytes());
    let hand = || stage.0.ring.lock().unwrap().hand;
    for number in 0..1_000 {
        stage.admit(&one, address(number), 0.0).unwrap();
        // All are referenced; slot 20 has the oldest entry of the first ones.
        let at = if number == 20 { 1.0 } else { 2.0 };
        assert_eq!(stage.admit(&one, address(number), at).unwrap_err(), TooMany);
    }
    stage.admit(&one, address(5_000), 2.0).unwrap();
    assert_eq!((hand(), stage.known()), (MAX_LOOKUPS, 1_000));
    assert!(!stage.0.by_address.contains_key(&address(20)) && stage.0.by_address.contains_key(&address(5_000)));
    // No entry was referenced again since the hand passed: the next one takes a single look-up.
    stage.0.ring.lock().unwrap().hand = 0;
    stage.admit(&one, address(5_001), 2.0).unwrap();
    assert_eq!(hand(), 1);
    assert!(!stage.0.by_address.contains_key(&address(0)));
}

#[test]
fn threads_that_add_the_same_addresses_keep_map_and_ring_the_same() {
    let stage = Stage(Arc::new(ClientTable::with_capacity(100)));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (stage, ten) = (&stage, limits(10, 0, 0));
            scope.spawn(move || {
                let address = |number: u32| IpAddr::from((0x0a00_0000 + number).to_be_bytes());
                let mut held = std::collections::VecDeque::new();
                for number in 0..3_000_u32 {
                    held.extend(stage.admit(&ten, address(number * (thread % 2 + 1) % 300), 0.0).ok());
                    if held.len() > 10 {
                        held.pop_front();
                    }
                }
            });
        }
    });
    let ring = stage.0.ring.lock().unwrap();
    let slots: std::collections::HashSet<_> = ring.slots.iter().copied().collect();
    assert_eq!((slots.len(), ring.slots.len(), stage.known()), (100, 100, 100));
    assert!(stage.0.by_address.iter().all(|entry| slots.contains(entry.key()) && entry.active == 0));
}

#[test]
fn threads_together_keep_to_the_limit() {
    let (stage, five) = (Stage::new(), limits(5, 0, 0));
    let under_way = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                use std::sync::atomic::Ordering::SeqCst;
                for _ in 0..500 {
                    let Ok(visit) = stage.admit(&five, client(1), 0.0) else { continue };
                    assert!(under_way.fetch_add(1, SeqCst) < 5);
                    std::thread::yield_now();
                    under_way.fetch_sub(1, SeqCst);
                    drop(visit);
                }
            });
        }
    });
    assert!((0..5).map(|_| stage.admit(&five, client(1), 0.0)).collect::<Vec<_>>().iter().all(Result::is_ok));
}

proptest! {
    /// No window has more than twice the limit, whatever the times; and an attempt within the rate is never rejected.
    #[test]
    fn windows_hold(gaps in prop::collection::vec(0..4_000_u64, 1..200), limit in 1..20_u32) {
        let (mut window, mut now, mut admitted) = (Window::default(), 0, Vec::new());
        for gap in gaps {
            now += gap;
            if window.add(now, 3_000) < limit {
                admitted.push(now);
            }
            let recent = admitted.iter().filter(|at| **at + 3_000 > now).count();
            prop_assert!(recent <= 2 * limit as usize, "{recent} of {limit}");
        }
    }

    #[test]
    fn an_even_rate_below_the_limit_is_never_refused(limit in 2..50_u32, start in 0..10_000_u64) {
        let mut window = Window::default();
        let step = 3_000_u64.div_ceil(u64::from(limit) - 1).max(1);
        for number in 0..300 {
            let before = window.add(start + number * step, 3_000);
            prop_assert!(before < limit, "{before} of {limit} at number {number}");
        }
    }
}
