//! Faults of the connection and of answers that a start or a long run meets.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http::StatusCode;
use rustix::process::Signal;
use serde_json::json;
use tests::cluster::mock::{self, Interrupt, MockApiServer, Then, Verb, When};
use tests::cluster::{Definitions, aggregated};
use tests::netns::Netns;
use tests::wait::{PATIENCE, hold, wait_until};

use super::site::{CALM, ONE, Site, TWO, route_object};

/// Maximum time until a connection on which nothing comes is given up: a PING after 30 s, and 15 s for its answer.
const SILENCE: Duration = Duration::from_secs(45);

#[test]
fn pages_that_expire_are_listed_from_the_first() -> Result<()> {
    /// More than a page of kube's watcher, which has 500.
    const ROUTES: usize = 1_200;
    let site = Site::mock_with_route()?;
    let server = site.mocked()?;
    for i in 0..ROUTES {
        server.apply(&route_object(&format!("r{i}"), "web"))?;
    }
    let unprocessable = Then::fail(StatusCode::UNPROCESSABLE_ENTITY);
    server.fault(When::verbs(&[Verb::StreamingList]).of("routes"), unprocessable);
    let pages = When::verbs(&[Verb::List]).of("routes").continued(true);
    let expired = server.fault(pages.times(1), Then::fail(StatusCode::GONE));
    let sluice = site.serve()?;
    assert_eq!(expired.met(), 1);
    assert_eq!(sluice.get("status")?["routes"], ROUTES + 1);
    for route in ["a", "r0", "r1199"] {
        assert_eq!(site.get(&format!("{route}.apps.test"))?, (200, "one".to_owned()));
    }
    Ok(())
}

#[test]
fn a_streaming_list_that_is_rejected_after_another_failure_is_replaced_by_pages() -> Result<()> {
    let site = Site::mock_with_route()?;
    let server = site.mocked()?;
    let lists = || When::verbs(&[Verb::StreamingList]).of("routes");
    let failed = server.fault(lists().times(1), Then::fail(StatusCode::INTERNAL_SERVER_ERROR));
    let refused = server.fault(lists(), Then::fail(StatusCode::UNPROCESSABLE_ENTITY));
    let _sluice = site.serve()?;
    assert_eq!((failed.met(), refused.met()), (1, 1));
    assert_eq!(site.get("a.apps.test")?, (200, "one".to_owned()));
    Ok(())
}

#[test]
fn a_connection_on_which_nothing_comes_is_replaced() -> Result<()> {
    let site = Site::mock_with_route()?;
    let _sluice = site.serve()?;
    site.wait_for_admitted("a", "True")?;
    let server = site.mocked()?;
    let made = server.connections_made();
    let lists = server.log().count_of(Verb::StreamingList, "routes");
    server.stall_connections();
    site.service("web", TWO)?;
    assert_eq!(site.get("a.apps.test")?, (200, "one".to_owned()));
    let noticed = wait_until("another connection is made", PATIENCE, || server.connections_made() > made)?;
    ensure!(noticed <= SILENCE + Duration::from_secs(5), "noticed after {noticed:?}");
    site.wait_for("a.apps.test", "two")?;
    let again = server.log().count_of(Verb::StreamingList, "routes");
    assert_eq!(again, lists, "watches go on from their versions");
    Ok(())
}

#[test]
fn a_pause_that_outlasts_the_history_costs_one_list_of_each_kind() -> Result<()> {
    let site = Site::mock_with_route()?;
    let sluice = site.serve()?;
    site.wait_for_admitted("a", "True")?;
    let server = site.mocked()?;
    let kinds = ["routes", "services", "endpointslices", "namespaces", "ingresscontrollers"];
    let lists = || kinds.map(|kind| server.log().count_of(Verb::StreamingList, kind));
    let before = lists();
    sluice.signal(Signal::STOP)?;
    // Sockets go on to receive.
    server.interrupt(None, Interrupt::Cut);
    wait_until("nothing is watched", PATIENCE, || kinds.iter().all(|kind| server.watches(kind) == 0))?;
    site.service("web", TWO)?;
    site.delete_route("a")?;
    site.route("b", "web")?;
    server.compact(None);
    sluice.signal(Signal::CONT)?;
    site.wait_for("b.apps.test", "two")?;
    wait_until("a is gone", PATIENCE, || site.get("a.apps.test").is_ok_and(|(status, _)| status == 503))?;
    // Those of which nothing changed may go on from the last version.
    hold(CALM, || {
        let again: Vec<usize> = lists().iter().zip(before).map(|(now, before)| now - before).collect();
        ensure!((again[0], again[2]) == (1, 1) && again.iter().all(|lists| *lists <= 1), "{kinds:?}: {again:?}");
        Ok(())
    })
}

#[test]
fn a_list_that_breaks_off_or_is_no_json_is_asked_for_again() -> Result<()> {
    let site = Site::mock_with_route()?;
    let server = site.mocked()?;
    let lists = || When::verbs(&[Verb::StreamingList]).times(1);
    let faults = [
        server.fault(lists().of("routes"), Then::Answer("{\"type\": \"ADDED\", \"object\": {\"meta".into())),
        server.fault(lists().of("services"), Then::Answer("<html>Bad Gateway</html>\n".into())),
        server.fault(lists().of("endpointslices"), Then::Cut(30)),
    ];
    let _sluice = site.serve()?;
    assert_eq!(site.get("a.apps.test")?, (200, "one".to_owned()));
    assert_eq!(faults.map(|fault| fault.met()), [1, 1, 1]);
    Ok(())
}

#[test]
fn no_kind_is_asked_for_sooner_than_the_api_server_says() -> Result<()> {
    /// Seconds after which requests are to be repeated.
    const AFTER: u64 = 2;
    let site = Site::mock_with_route()?;
    let _sluice = site.serve()?;
    site.wait_for_admitted("a", "True")?;
    let server = site.mocked()?;
    let busy = server.fault(When::verbs(&[Verb::StreamingList, Verb::Watch]), Then::too_many(AFTER));
    let asked = || ["routes", "services", "endpointslices"].map(|kind| server.log().count_of(Verb::Watch, kind));
    let before = asked();
    let begin = Instant::now();
    server.interrupt(None, Interrupt::End);
    wait_until("three rounds", PATIENCE, || asked().iter().zip(before).all(|(now, before)| now - before >= 3))?;
    let took = begin.elapsed();
    // The first request of three comes at once.
    ensure!(took >= Duration::from_secs(2 * AFTER), "three rounds took {took:?}");
    busy.release();
    site.service("web", TWO)?;
    site.wait_for("a.apps.test", "two")
}

/// 429 as API Priority and Fairness answers it to everything but the Lease, for a while.
#[test]
fn a_busy_api_server_has_a_request_a_second_of_each_stream() -> Result<()> {
    const WHILE: Duration = Duration::from_secs(15);
    /// Number of writes that may be under way when the first one is rejected.
    const IN_FLIGHT: usize = 8;
    /// Each has one stream; Namespaces are listed beside theirs.
    const KINDS: [&str; 4] = ["routes", "services", "endpointslices", "ingresscontrollers"];
    let site = Site::mock_with_route()?;
    let server = site.mocked()?;
    let names: Vec<String> = (0..20).map(|i| format!("r{i}")).collect();
    names.iter().try_for_each(|name| site.route(name, "web"))?;
    let writes = server.fault(When::verbs(&[Verb::Patch]), Then::Busy(1));
    let _sluice = site.serve()?;
    wait_until("a write is rejected", PATIENCE, || writes.met() > 0)?;
    let reads = [Verb::List, Verb::StreamingList, Verb::Watch];
    let busy = server.fault(When::verbs(&reads), Then::Busy(1));
    let asked = || KINDS.map(|kind| reads.iter().map(|verb| server.log().count_of(*verb, kind)).sum::<usize>());
    let (before, written, begin) = (asked(), writes.met(), Instant::now());
    server.interrupt(None, Interrupt::End);
    hold(WHILE, || {
        let of_kinds = asked().iter().zip(before).map(|(now, before)| now - before).collect::<Vec<_>>();
        let of_writes = writes.met() - written;
        // Those at the begin and at the end, and one each second.
        let most = 2 + usize::try_from(begin.elapsed().as_secs())?;
        ensure!(of_kinds.iter().all(|asked| *asked <= most), "{KINDS:?}: {of_kinds:?} in {:?}", begin.elapsed());
        ensure!(of_writes <= most + IN_FLIGHT, "{of_writes} writes in {:?}", begin.elapsed());
        Ok(())
    })?;
    assert_eq!(site.get("r19.apps.test")?, (200, "one".to_owned()));
    for (kind, (now, before)) in KINDS.iter().zip(asked().iter().zip(before)) {
        ensure!(now - before >= 3, "{kind} is asked for {} times in {WHILE:?}", now - before);
    }
    busy.release();
    writes.release();
    site.service("web", TWO)?;
    site.wait_for("r19.apps.test", "two")?;
    names.iter().try_for_each(|name| site.wait_for_admitted(name, "True").map(drop))
}

#[test]
fn an_enormous_object_costs_a_bounded_amount_of_memory_and_no_snapshot() -> Result<()> {
    /// Length of a text in the object, in bytes; an API server's limit of an object is 3 MiB.
    const LENGTH: usize = 50 << 20;
    /// Maximum growth of resident memory in bytes: the text is received, parsed, kept, and written.
    const LIMIT: u64 = 8 * LENGTH as u64;
    let site = Site::mock_with_route()?;
    let sluice = site.serve()?;
    let before = sluice.resident()?;
    let server = site.mocked()?;
    let mut route = route_object("enormous", "web");
    route["metadata"]["annotations"] = json!({"text": "x".repeat(LENGTH)});
    server.apply(&route)?;
    site.route("b", "web")?;
    site.wait_for("b.apps.test", "one")?;
    let grown = sluice.peak()? - before;
    ensure!(grown < LIMIT, "{} MiB", grown >> 20);
    site.service("web", TWO)?;
    site.wait_for("a.apps.test", "two")?;
    server.delete(&route)?;
    // What follows it in the snapshot is read.
    let is_written = || {
        let snapshot = std::fs::read(sluice.state().join("objects")).unwrap_or_default();
        let name = b"\"name\":\"late\"";
        snapshot.windows(name.len()).any(|text| text == name)
    };
    site.route("late", "web")?;
    wait_until("the snapshot has a later object", PATIENCE, is_written)?;
    server.stop()?;
    let state = sluice.kill()?;
    let second = site.serve_after(Some(state), &[])?;
    assert_eq!(site.get("late.apps.test")?, (200, "two".to_owned()));
    ensure!(!second.has_line("the snapshot is damaged"), "{:#?}", second.output());
    Ok(())
}

#[test]
fn unreferenced_endpoints_cost_no_memory() -> Result<()> {
    /// Number of endpoints of each slice, the most that the API server accepts.
    const EACH: usize = 1_000;
    /// Number of slices that are on their way at a time, and of these batches in each round.
    const BATCH: usize = 10;
    const BATCHES: usize = 20;
    /// Number of rounds that warm the allocator, and of those that must not add to it.
    const WARM: usize = 2;
    const ROUNDS: usize = 8;
    /// Maximum growth in bytes. Slices that are held would need 130 MiB, 85 bytes for each endpoint; sizes differ by 10 MiB.
    const GROWTH: u64 = 24 << 20;
    /// Number of sizes of which the least counts: memory that was on its way is given back later.
    const SIZES: usize = 5;
    let site = Site::mock_with_route()?;
    let sluice = site.serve()?;
    site.wait_for_admitted("a", "True")?;
    let server = site.mocked()?;
    let slice = |name: &str, round: usize| {
        let endpoint = |i: usize| json!({"addresses": [format!("10.{round}.{}.{}", i / 250, i % 250 + 1)]});
        json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"namespace": "foreign", "name": name, "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4",
            "endpoints": (0..EACH).map(endpoint).collect::<Vec<_>>(),
            "ports": [{"name": "main", "port": 8080}],
        })
    };
    // One watch reports all slices: once this one is served, those before it have been read.
    let mut ports = [(TWO, "two"), (ONE, "one")].into_iter().cycle();
    let mut all_read = || -> Result<u64> {
        let (port, name) = ports.next().context("ports go on")?;
        site.service("web", port)?;
        site.wait_for("a.apps.test", name)?;
        sluice.resident()
    };
    let mut round = |round: usize| -> Result<u64> {
        for batch in 0..BATCHES {
            for i in 0..BATCH {
                server.apply(&slice(&format!("s{round}-{batch}-{i}"), round))?;
            }
            all_read()?;
        }
        let sizes = (0..SIZES).map(|_| all_read()).collect::<Result<Vec<_>>>()?;
        sizes.into_iter().min().context("sizes")
    };
    let sizes = (0..WARM + ROUNDS).map(&mut round).collect::<Result<Vec<_>>>()?;
    let (before, after) = (sizes[WARM - 1], sizes[WARM + ROUNDS - 1]);
    ensure!(after < before + GROWTH, "{} MiB became {} MiB", before >> 20, after >> 20);
    Ok(())
}

#[test]
fn routes_of_an_aggregated_server_without_streaming_lists_are_served() -> Result<()> {
    let mut site = Site::real()?;
    let group = "route.openshift.io";
    let netns = Netns::new("aggregated")?;
    let address = SocketAddr::new(site.plane()?.network().join(&netns, "eth0")?.into(), 8443);
    let options = mock::Options { address, names: vec![aggregated::host(group)], ..mock::Options::default() };
    let server = MockApiServer::start(Some(&netns), options)?;
    server.install(Definitions::Sluice)?;
    let unprocessable = Then::fail(StatusCode::UNPROCESSABLE_ENTITY);
    let refused = server.fault(When::verbs(&[Verb::StreamingList]), unprocessable);

    let api = site.api()?;
    api.delete(&format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/routes.{group}"))?;
    let service = format!("/apis/apiregistration.k8s.io/v1/apiservices/v1.{group}");
    let is_gone = || {
        let answer = api.request(http::Method::GET, &service, "", String::new());
        answer.is_ok_and(|(status, _)| status == StatusCode::NOT_FOUND)
    };
    wait_until("the API server does not serve Routes itself", PATIENCE, is_gone)?;
    aggregated::register(&api, group, "v1", address, &server.ca_pem())?;

    site.service("web", ONE)?;
    server.apply(&route_object("a", "web"))?;
    let _sluice = site.serve()?;
    assert_eq!(site.get("a.apps.test")?, (200, "one".to_owned()));
    assert_eq!(refused.met(), 1);
    server.apply(&route_object("b", "web"))?;
    site.wait_for("b.apps.test", "one")?;
    let status =
        || server.get(&route_object("b", "")).is_ok_and(|it| it["status"]["ingress"][0]["host"] == "b.apps.test");
    wait_until("the status is in the aggregated server", PATIENCE, status).map(drop)
}
