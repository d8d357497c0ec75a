//! Ejections, probes, and expiry of state.

use super::*;

fn address(last: u8) -> SocketAddr {
    ([192, 0, 2, last], 80).into()
}

fn tcp(last: u8) -> ConnectStage {
    ConnectStage::Tcp(address(last))
}

struct Stage(Health);

impl Stage {
    fn new() -> Self {
        Stage(Health::default())
    }

    fn at(&self, seconds: f64) -> Instant {
        self.0.start + Duration::from_secs_f64(seconds)
    }

    fn fail(&self, times: usize, seconds: f64) {
        (0..times).for_each(|_| self.0.failed(&tcp(1), self.at(seconds)));
    }

    fn is_ejected(&self, seconds: f64) -> bool {
        self.0.view().is_some_and(|view| view.at(&self.0, self.at(seconds)).is_ejected(address(1), || None))
    }

    fn may_connect(&self, seconds: f64) -> bool {
        self.0.view().is_none_or(|view| view.at(&self.0, self.at(seconds)).may_connect(address(1), || None))
    }
}

#[test]
fn no_endpoint_is_ejected_before_enough_failures_in_a_row() {
    let stage = Stage::new();
    assert!(stage.0.view().is_none());
    stage.fail(2, 1.0);
    assert!(!stage.is_ejected(1.0) && stage.may_connect(1.0) && stage.may_connect(1.0));
    stage.0.succeeded(&tcp(1));
    assert!(stage.0.view().is_none());
    stage.fail(2, 2.0);
    assert!(!stage.is_ejected(2.0));
    stage.fail(1, 2.0);
    assert!(stage.is_ejected(2.0) && stage.is_ejected(2.9) && !stage.may_connect(2.9));
    assert!(!stage.0.view().unwrap().at(&stage.0, stage.at(2.0)).is_ejected(address(2), || None));
}

#[test]
fn after_an_ejection_one_request_probes_for_all() {
    let stage = Stage::new();
    stage.fail(3, 0.0);
    assert!(stage.is_ejected(0.99) && !stage.is_ejected(1.01));
    assert!(stage.may_connect(1.01));
    assert!(!stage.may_connect(1.02) && stage.is_ejected(5.9), "the second one waits for what the first one finds");
    // The probe failed: two seconds more. A failure of an attempt that began earlier does not count.
    stage.fail(1, 1.5);
    stage.fail(40, 1.6);
    assert!(stage.is_ejected(3.49) && !stage.is_ejected(3.51));
    // The prober went away without a result: after a while another one probes.
    assert!(stage.may_connect(3.51) && !stage.may_connect(8.5) && stage.may_connect(8.52));
    stage.0.succeeded(&tcp(1));
    assert!(stage.may_connect(8.53) && stage.may_connect(8.53));
}

#[test]
fn a_checked_endpoint_is_unhealthy_until_a_check_succeeds() {
    let stage = Stage::new();
    stage.fail(2, 0.0);
    stage.0.extend_ejection(address(1), stage.at(0.0), Duration::from_secs(10));
    assert!(!stage.is_ejected(0.0), "two failures are none");
    stage.fail(1, 0.0);
    stage.0.extend_ejection(address(1), stage.at(0.0), Duration::from_secs(10));
    assert!(stage.is_ejected(9.9) && !stage.may_connect(9.9));
    stage.0.succeeded(&tcp(1));
    assert!(stage.may_connect(9.9));
}

#[test]
fn tls_ejects_its_peer_alone_whatever_connects() {
    let stage = Stage::new();
    let peer = |service: &str| TlsPeer::Service { ca: None, service: service.into(), namespace: "shop".into() };
    let tls = ConnectStage::Tls(address(1), peer("cart"));
    (0..3).for_each(|_| stage.0.failed(&tls, stage.at(0.0)));
    stage.0.succeeded(&tcp(1));
    let view = |seconds| stage.0.view().unwrap().at(&stage.0, stage.at(seconds));
    let rests = |service: &str| view(0.5).is_ejected(address(1), || Some(peer(service)));
    assert!(rests("cart") && !rests("till") && !stage.is_ejected(0.5));
    let may = |seconds, service: &str| view(seconds).may_connect(address(1), || Some(peer(service)));
    assert!(!may(0.5, "cart") && may(0.5, "till") && stage.may_connect(0.5));
    // Without a connection, TLS is not probed.
    stage.fail(3, 0.5);
    assert!(!may(1.4, "cart"));
    stage.0.succeeded(&tcp(1));
    assert!(may(1.4, "cart") && !may(1.4, "cart"));
    stage.0.succeeded(&tls);
    assert!(stage.0.view().is_none());
}

#[test]
fn ejections_grow_to_a_bound() {
    let stage = Stage::new();
    stage.fail(3, 0.0);
    let mut now = 0.0;
    for rest in [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0] {
        assert!(stage.is_ejected(now + rest - 0.01), "{rest}");
        now += rest + 0.01;
        assert!(stage.may_connect(now), "{rest}");
        stage.fail(1, now);
    }
}

#[test]
fn unused_endpoints_are_forgotten() {
    let stage = Stage::new();
    stage.fail(3, 0.0);
    stage.0.forget(&HashSet::new(), stage.at(299.0));
    assert!(stage.0.view().is_some());
    stage.0.failed(&tcp(2), stage.at(299.0));
    stage.0.forget(&HashSet::new(), stage.at(301.0));
    assert_eq!(stage.0.known.load().failed.keys().collect::<Vec<_>>(), [&tcp(2)]);
    stage.0.forget(&HashSet::from([address(2), address(3)]), stage.at(301.0));
    assert!(stage.0.view().is_none());
}

#[test]
fn simultaneous_failures_of_threads_count_once_an_ejection() {
    let stage = Stage::new();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| stage.fail(50, 0.0));
        }
    });
    // Eight threads may have passed the check before any of them ejects the address.
    assert!(stage.0.failures(&tcp(1)).in_a_row.load(Ordering::Relaxed) <= THRESHOLD + 8);
    assert!(stage.is_ejected(0.5));
}
