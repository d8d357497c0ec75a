//! A thousand odd requests, each followed by another one for another host: no endpoint gets a request of another host,
//! none gets one twice, and the next client gets its own response. The endpoints are nginx, aiohttp, and one that
//! accepts anything.

mod requests;

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use router_common::verdict::DialCounter;
use tests::nginx::Nginx;
use tests::pinned;
use tests::process::Process;
use tests::python;
use tests::sluice::DataPath;
use tests::stream::{self, joined};
use tests::wait::PATIENCE;

use super::stage::{HTTP, Stage, Tls, at};
use requests::Random;

const REQUESTS: usize = 1_500;
/// Concurrent requests.
const CLIENTS: usize = 12;
/// After this time without a byte, no more are expected.
const QUIET: Duration = Duration::from_millis(120);
/// Seed of the requests, which are always the same.
const SEED: u64 = 0x51_0c_e5;

const ORIGINS: [&str; 3] = ["nginx", "aiohttp", "lenient"];
/// Destination of the requests after the odd ones.
const VICTIM: &str = "victim";

/// Routes that the kernel may carry.
const PLAIN: [(&str, &str); 2] = [
    ("haproxy.router.openshift.io/set-forwarded-headers", "never"),
    ("haproxy.router.openshift.io/disable_cookies", "true"),
];

struct Origins {
    nginx: Nginx,
    others: Vec<(&'static str, Process)>,
}

impl Origins {
    /// Their routes have no setting that prevents the kernel from carrying their clear text.
    fn start(stage: &Stage) -> Result<Origins> {
        let block = format!(
            "log_format story \"$http_host\\t$request_method\\t$request\";\nserver {{ listen {}; access_log file/log story; \
             keepalive_requests 1000000; location / {{ default_type text/plain; \
             return 200 \"[nginx\\t$http_host\\t$request_method\\t$request_uri]\"; }} }}\n",
            at(9001)
        );
        let nginx = Nginx::with(&stage.netns, &[at(9001)], &block)?;
        let mut others = Vec::new();
        for (name, program, port) in [
            ("aiohttp", "recording_origin", "9002"),
            ("lenient", "lenient_origin", "9003"),
            (VICTIM, "lenient_origin", "9004"),
        ] {
            others.push((name, python::server(&stage.netns, program, &[name, port])?));
        }
        for (name, port) in ORIGINS.into_iter().chain([VICTIM]).zip(9001..) {
            stage.service(name, &[at(port)])?;
            stage.route(name, name, Tls::Without, &PLAIN)?;
        }
        Ok(Origins { nginx, others })
    }

    /// The requests that each has received, as lines of host, method and target.
    fn seen(&self) -> Result<Vec<(&'static str, Vec<String>)>> {
        let log = std::fs::read(self.nginx.files().join("log"))?;
        let lines = String::from_utf8_lossy(&log).lines().map(str::to_owned).collect();
        let others = self.others.iter().map(|(name, process)| {
            let lines = process.output().into_iter().filter(|line| line.matches('\t').count() == 2);
            // Their error logs have the same format.
            (*name, lines.collect())
        });
        Ok([("nginx", lines)].into_iter().chain(others).collect())
    }
}

/// Sends bytes on a connection of their own; returns the bytes received until none follow.
fn send(stage: &Stage, bytes: &[u8]) -> Result<String> {
    let mut stream = stream::open(&stage.netns, at(HTTP))?;
    // The router may close before it has read everything.
    let _ = stream.write_all(bytes);
    stream.set_read_timeout(Some(QUIET))?;
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    loop {
        match stream::read_some(&mut stream, &mut part) {
            Ok(0) | Err(_) => break,
            Ok(read) => answer.extend_from_slice(&part[..read]),
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// A valid request by another client.
fn ask(stage: &Stage, origin: &str, target: &str) -> Result<()> {
    let mut stream = stream::open(&stage.netns, at(HTTP))?;
    write!(stream, "GET {target} HTTP/1.1\r\nHost: {origin}.apps.test\r\nConnection: close\r\n\r\n")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut answer = String::new();
    let mut part = [0; 4096];
    // Some endpoints do not close the connection on request, and the kernel does not close it instead.
    while !answer.ends_with(']') {
        let read = stream::read_some(&mut stream, &mut part)?;
        ensure!(read > 0, "the connection ends after {answer:?}");
        answer.push_str(std::str::from_utf8(&part[..read])?);
    }
    let own = format!("[{origin}\t{origin}.apps.test\tGET {target}]").replace("GET ", "GET\t");
    ensure!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with(&own), "got somebody else's answer: {answer:?}");
    Ok(())
}

/// The numbers in targets of a kind, such as `/odd-12-12`, if the target is undamaged.
fn numbers<'t>(text: &'t str, kind: &'t str) -> impl Iterator<Item = usize> + 't {
    text.split(kind).skip(1).filter_map(|rest| {
        let mut numbers = rest.split(|c: char| !c.is_ascii_digit());
        let number = numbers.next().filter(|number| numbers.next() == Some(number))?;
        number.parse().ok()
    })
}

#[test]
fn no_odd_request_reaches_an_endpoint_of_another_host_or_disturbs_the_next_one() -> Result<()> {
    smuggle(DataPath::UserSpace)
}

#[test]
fn nor_where_the_kernel_may_carry_them() -> Result<()> {
    smuggle(DataPath::Kernel)
}

fn smuggle(data_path: DataPath) -> Result<()> {
    let stage = Stage::new("smuggling", "")?;
    let origins = Origins::start(&stage)?;
    let sluice = stage.serve_by(data_path)?;
    let next = AtomicUsize::new(0);
    let answered = thread::scope(|scope| -> Result<usize> {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| -> Result<usize> {
                    let mut answered = 0;
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= REQUESTS {
                            return Ok(answered);
                        }
                        let origin = ORIGINS[number % ORIGINS.len()];
                        let request = requests::odd(&mut Random::new(SEED, number), number, origin, VICTIM);
                        let story = || format!("request {number}: {:?}", String::from_utf8_lossy(&request));
                        let answer = send(&stage, &request).with_context(story)?;
                        for kind in ["/odd-", "/hidden-", "/after-"] {
                            let foreign = numbers(&answer, kind).find(|found| *found != number);
                            ensure!(foreign.is_none(), "{}\ngot somebody else's answer: {answer:?}", story());
                        }
                        answered += usize::from(answer.contains("HTTP/1.1 200 "));
                        for (target, host) in [("after", origin), ("later", VICTIM)] {
                            ask(&stage, host, &format!("/{target}-{number}-{number}")).with_context(story)?;
                        }
                    }
                })
            })
            .collect();
        clients.into_iter().map(joined).sum()
    })?;
    let mut times: HashMap<(&str, usize), usize> = HashMap::new();
    for (name, lines) in origins.seen()? {
        for line in &lines {
            let (host, rest) = line.split_once('\t').with_context(|| format!("{name}: {line:?}"))?;
            let host = host.split(':').next().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
            // nginx logs no host for a request whose request line it rejects, such as one with the method "get".
            let refused = host == "-" && name == "nginx" && rest.contains("/odd-");
            ensure!(
                refused || host == format!("{name}.apps.test"),
                "{name} got a request that is not its own: {line:?}"
            );
            for kind in ["/odd-", "/hidden-", "/after-", "/later-"] {
                for number in numbers(rest, kind) {
                    *times.entry((kind, number)).or_default() += 1;
                }
            }
        }
    }
    let count = |kind: &str| times.keys().filter(|(found, _)| *found == kind).count();
    eprintln!(
        "of {REQUESTS} odd requests {answered} were answered and {} reached an endpoint; {} hidden ones did",
        count("/odd-"),
        count("/hidden-")
    );
    if data_path == DataPath::Kernel {
        // At least those of other clients.
        let dialed = pinned::dial_counter(&sluice, DialCounter::Dialed)?;
        ensure!(dialed >= 2 * REQUESTS as u64, "the kernel carried {dialed} connections");
    }
    let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
    ensure!(twice.is_empty(), "requests that an endpoint got twice: {twice:?}");
    assert_eq!((count("/after-"), count("/later-")), (REQUESTS, REQUESTS));
    // The story would show nothing if nothing got through, or everything did.
    let through = count("/odd-");
    ensure!(through > REQUESTS / 20 && through < REQUESTS * 9 / 10, "{through} of {REQUESTS} got through");
    Ok(())
}
