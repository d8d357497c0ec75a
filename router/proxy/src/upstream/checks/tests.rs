//! The schedule of checks, and a check itself.

use router_model::names::RouteId;
use router_table::policy::{RoutePolicy, Timeouts};
use tokio::net::TcpListener;

use super::*;
use crate::upstream::testing::{self, address, route, router};

const FIVE: Duration = Duration::from_secs(5);

fn named(name: &str, ports: &[u16], interval: Option<Duration>) -> Arc<ResolvedRoute> {
    let policy = RoutePolicy { health_check: interval, ..RoutePolicy::default() };
    let id = RouteId::of_route("shop", name);
    Arc::new(ResolvedRoute { id, ..route(&[(1, ports)], policy) })
}

/// A router with these routes and this interval.
fn table(routes: &[Arc<ResolvedRoute>], interval: Duration) -> Arc<RoutingTable> {
    let timeouts = Timeouts { health_check: interval, ..Timeouts::default() };
    Arc::new(testing::table(vec![router("default", routes, timeouts)]))
}

impl Schedule {
    /// Ports with their intervals in ms, after a check of the schedule's consistency.
    fn ports(&self) -> Vec<(u16, u128)> {
        let times: BTreeSet<_> = self.watched.iter().map(|(address, watched)| (watched.next, *address)).collect();
        assert_eq!(times, self.by_time);
        let ports = self.watched.iter().map(|(address, watched)| (address.port(), watched.interval().as_millis()));
        ports.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

#[test]
fn endpoints_that_stand_alone_are_not_checked_and_others_once_for_all_routes() {
    let (now, mut schedule) = (Instant::now(), Schedule::default());
    let quick = Some(Duration::from_secs(1));
    let empty = RoutingTable::default();
    let one = table(&[named("alone", &[9], None), named("a", &[1, 2], None), named("b", &[2, 3], quick)], FIVE);
    schedule.follow(&empty, &one, now);
    assert_eq!(schedule.ports(), [(1, 5000), (2, 1000), (3, 1000)]);
    assert!(schedule.watched.values().all(|watched| watched.next <= now + watched.interval()));
    let without_b = table(&[named("a", &[1, 2], None)], FIVE);
    schedule.follow(&one, &without_b, now);
    assert_eq!(schedule.ports(), [(1, 5000), (2, 5000)]);
    // The router's interval applies to all services without one.
    let slow = table(&[named("a", &[1, 2], None)], Duration::from_secs(60));
    schedule.follow(&without_b, &slow, now);
    assert_eq!(schedule.ports(), [(1, 60_000), (2, 60_000)]);
    schedule.follow(&slow, &empty, now);
    assert_eq!(schedule.ports(), []);
}

#[test]
fn what_stays_keeps_its_turn() {
    let (now, mut schedule) = (Instant::now(), Schedule::default());
    let one = table(&[named("a", &[1, 2], None)], FIVE);
    schedule.follow(&RoutingTable::default(), &one, now);
    let before = schedule.watched[&address(1)].next;
    let two = table(&[named("a", &[1, 3], None)], FIVE);
    schedule.follow(&one, &two, now + Duration::from_millis(1));
    assert_eq!(schedule.watched[&address(1)].next, before);
    assert_eq!(schedule.ports(), [(1, 5000), (3, 5000)]);
}

#[test]
fn everything_has_its_turn_in_an_interval_and_the_rate_is_bounded() {
    let (start, mut schedule) = (Instant::now(), Schedule::default());
    let few = table(&[named("a", &(1..=10).collect::<Vec<_>>(), None)], FIVE);
    schedule.follow(&RoutingTable::default(), &few, start);
    // A check is delayed by at most a step, after the one before it.
    let (mut checked, end) = (BTreeMap::<u16, Vec<Instant>>::new(), start + 2 * (FIVE + STEP));
    while let Some(at) = schedule.next().filter(|at| *at < end) {
        for (address, interval) in schedule.due(at, usize::MAX) {
            assert_eq!(interval, FIVE);
            checked.entry(address.port()).or_default().push(at);
        }
    }
    assert_eq!(checked.len(), 10);
    for (port, times) in &checked {
        let first = times[0] - start;
        assert!(first < FIVE + STEP && times.len() >= 2, "{port}: first after {first:?}, {} in all", times.len());
        let mut gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.all(|gap| (FIVE..=FIVE + STEP).contains(&gap)), "{port}: {times:?}");
    }

    let many = table(&[named("b", &(1..=20_000).collect::<Vec<_>>(), None)], FIVE);
    let start = start + 3 * FIVE;
    schedule.follow(&few, &many, start);
    let mut count = 0;
    while let Some(at) = schedule.next().filter(|at| *at < start + FIVE) {
        count += schedule.due(at, usize::MAX).len();
    }
    assert!((4_000..=5_100).contains(&count), "{count} in 5 s");
}

#[tokio::test]
async fn without_any_client_an_endpoint_becomes_unhealthy_and_healthy_again() {
    let live = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    let dead = socket.local_addr().unwrap().as_socket().unwrap();
    let ports = [live.local_addr().unwrap().port(), dead.port()];
    let table = table(&[named("a", &ports, Some(Duration::from_millis(20)))], FIVE);
    let (_tables, receiver) = watch::channel(table);
    let balancer = Arc::<Balancer>::default();
    let checks = tokio::spawn(run(Arc::clone(&balancer), receiver));
    let rests = || balancer.health.view().is_some_and(|view| view.is_ejected(dead, || None));
    eventually(rests).await;
    assert!(!balancer.health.view().unwrap().is_ejected(address(ports[0]), || None));
    live.accept().await.unwrap();
    socket.listen(16).unwrap();
    eventually(|| balancer.health.view().is_none()).await;
    checks.abort();
}

async fn eventually(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "it does not come to hold");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
