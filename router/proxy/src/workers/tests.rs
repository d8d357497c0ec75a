//! Workers and their shutdown.

use std::future::pending;

use router_access_log::{AccessLog, AccessLogForm};

use super::super::ProxyConfig;
use super::super::upstream_tls::UpstreamTls;
use super::*;

const PATIENCE: Duration = Duration::from_secs(30);

fn workers(count: usize) -> Workers {
    let counters = Arc::default();
    let common = ProcessContext {
        config: ProxyConfig::default(),
        upstream_tls: UpstreamTls::new(None, None),
        log: AccessLog::start(AccessLogForm::Off, Arc::clone(&counters)),
        counters,
        balancer: Default::default(),
        pools: Default::default(),
    };
    Workers::start(count, &Arc::new(common))
}

#[tokio::test]
async fn connections_go_to_the_least_busy_worker() {
    let workers = workers(2);
    let (one, other) = (&workers.workers[0], &workers.workers[1]);
    assert!(workers.less_busy_than(&one.shared).is_none(), "as busy as the other");
    one.spawn(pending());
    assert_eq!(workers.less_busy_than(&one.shared).map(|worker| worker.shared.worker), Some(1));
    assert!(workers.less_busy_than(&other.shared).is_none());
    other.spawn(pending());
    other.spawn(pending());
    assert_eq!(workers.less_busy_than(&other.shared).map(|worker| worker.shared.worker), Some(0));
    assert_eq!(workers.connections(), 3);
    for _ in 0..7 {
        one.spawn(pending());
        other.spawn(pending());
    }
    assert!(workers.less_busy_than(&other.shared).is_none(), "9 to 8 is not worth a wake-up");
}

#[tokio::test]
async fn each_worker_has_a_thread_that_its_tasks_stay_on() {
    let workers = workers(2);
    for worker in workers.iter() {
        let name = || thread::current().name().map(str::to_owned);
        let task = worker.handle.spawn(async move {
            let begun = name();
            tokio::task::yield_now().await;
            (begun, name(), tokio::spawn(async move { name() }).await.unwrap())
        });
        let own = Some(format!("worker-{}", worker.shared.worker));
        assert_eq!(task.await.unwrap(), (own.clone(), own.clone(), own));
    }
}

#[tokio::test]
async fn a_stop_waits_for_tasks_to_be_gone() {
    struct Gone(Option<std::sync::mpsc::Sender<()>>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.take().unwrap().send(()).unwrap();
        }
    }
    let workers = workers(1);
    let (sender, gone) = std::sync::mpsc::channel();
    let guard = Gone(Some(sender));
    workers.workers[0].spawn(async move {
        let _guard = guard;
        pending::<()>().await;
    });
    assert_eq!(workers.connections(), 1);
    tokio::time::timeout(PATIENCE, workers.stop()).await.expect("the thread ends");
    gone.try_recv().expect("the task was dropped before");
    assert_eq!(workers.connections(), 0);
    // A second stop has no effect.
    workers.stop().await;
}

#[tokio::test]
async fn idle_comes_with_the_end_of_the_last_task() {
    let workers = workers(2);
    let (release, released) = oneshot::channel::<()>();
    workers.workers[1].spawn(async move {
        let _ = released.await;
    });
    let idle = workers.idle();
    tokio::pin!(idle);
    assert!(futures_util::poll!(idle.as_mut()).is_pending());
    drop(release);
    tokio::time::timeout(PATIENCE, idle).await.expect("nothing is left");
}

#[tokio::test]
async fn without_a_thread_the_callers_runtime_serves() {
    let workers = workers(0);
    let worker = &workers.workers[0];
    assert_eq!(worker.handle.id(), Handle::current().id());
    worker.spawn(async {});
    tokio::time::timeout(PATIENCE, workers.idle()).await.expect("it is served");
}
