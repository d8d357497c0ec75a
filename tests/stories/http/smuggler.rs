//! The 1,768 spellings of `Transfer-Encoding` that the public tool “smuggler” tries, before nginx, HAProxy, Node's
//! server and gunicorn: router and origin always see the same requests, each origin gets only those of its own host,
//! and every client gets its own response. The tool measures time; here each probe hides a request, and every origin
//! reports the requests that it received.

mod mutations;
mod origins;
mod probes;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use router_common::verdict::DialCounter;
use tests::netns::Netns;
use tests::pinned;
use tests::python;
use tests::sluice::DataPath;
use tests::stream::{joined, read_some};
use tests::wait::PATIENCE;

use super::stage::{HTTP, Stage, Tls, at};
use mutations::Mutation;
use origins::{Manner, Origin, Request, Seen};
use probes::{HIDDEN, Kind, Probe, SHAPES, Shape};

/// Concurrent requests.
const CLIENTS: usize = 16;
/// One in this many rejected requests is followed by one on another connection.
const OTHERS: usize = 7;
/// After this time without a response, more bytes must be sent.
const QUIET: Duration = Duration::from_millis(120);
/// Port of the lenient proxy in the control experiment.
const CONTROL: u16 = 8081;

/// Routes that the kernel may carry.
const PLAIN: [(&str, &str); 2] = [
    ("haproxy.router.openshift.io/set-forwarded-headers", "never"),
    ("haproxy.router.openshift.io/disable_cookies", "true"),
];

#[test]
fn no_spelling_of_the_tool_desynchronises_an_origin() -> Result<()> {
    through_the_router(DataPath::UserSpace, Manner::Usual, Sending::AtOnce)
}

#[test]
fn nor_one_that_is_as_lenient_as_it_can_be() -> Result<()> {
    through_the_router(DataPath::UserSpace, Manner::Lenient, Sending::AtOnce)
}

#[test]
fn nor_where_the_kernel_may_carry_what_comes_later() -> Result<()> {
    through_the_router(DataPath::Kernel, Manner::Usual, Sending::AtOnce)
}

#[test]
fn nor_where_the_kernel_carries_the_odd_request_itself() -> Result<()> {
    through_the_router(DataPath::Kernel, Manner::Usual, Sending::InParts)
}

fn through_the_router(data_path: DataPath, manner: Manner, sending: Sending) -> Result<()> {
    let stage = Stage::new("smuggler", "")?;
    let origins = origins::start(&stage.netns, manner, 9001)?;
    for Origin { name, port, .. } in &origins {
        stage.service(name, &[at(*port)])?;
        stage.route(name, name, Tls::Without, &PLAIN)?;
    }
    let sluice = stage.serve_by(data_path)?;
    let probes = probes(&origins, mutations::all(), &SHAPES);
    // Each connection that the kernel carries has one origin.
    let way = Way { sending, witness_stays: data_path == DataPath::UserSpace, patience: PATIENCE };
    let run = attack(&stage.netns, at(HTTP), &origins, &probes, way)?;
    eprintln!("{} probes of {} spellings: {}", probes.len(), mutations::all().len(), run.summary());
    ensure!(run.findings.is_empty(), "{} findings, among them:\n{}", run.findings.len(), run.some().join("\n"));
    let count = |kind, name| run.answered.iter().filter(|((_, of), owner)| (*of, **owner) == (kind, name)).count();
    if data_path == DataPath::Kernel {
        let laters: usize = origins.iter().map(|origin| count(Kind::Later, origin.name)).sum();
        let dialed = usize::try_from(pinned::dial_counter(&sluice, DialCounter::Dialed)?)?;
        eprintln!("the kernel carried {dialed} connections, of which {laters} had the well-formed request");
        let odd = if sending == Sending::InParts { 64 } else { 0 };
        ensure!(dialed >= laters + odd, "the kernel carried {dialed} connections");
    }
    // The story would show nothing if no requests got through, or all did.
    for name in origins.iter().map(|origin| origin.name) {
        let through = count(Kind::Odd, name);
        ensure!(sending == Sending::InParts || through >= 16, "{name} answered {through}");
        ensure!(through < probes.len() / 32, "{name} answered {through}");
    }
    Ok(())
}

/// Control experiment: with a lenient proxy before every origin, the checks detect smuggled requests.
#[test]
fn what_a_lenient_proxy_lets_through_is_found() -> Result<()> {
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    for reading in ["length", "chunks"] {
        let netns = Netns::new("smuggler")?;
        let origins = origins::start(&netns, Manner::Lenient, 9001)?;
        let port = CONTROL.to_string();
        let endpoints: Vec<String> =
            origins.iter().map(|origin| format!("{}={}", origin.host(), origin.port)).collect();
        let arguments =
            [&[port.as_str(), reading][..], &endpoints.iter().map(String::as_str).collect::<Vec<_>>()].concat();
        let _proxy = python::server(&netns, "lenient_proxy", &arguments)?;
        // A sample is enough.
        let probes = probes(&origins, mutations::all().into_iter().take(134), &HIDDEN);
        let way = Way { sending: Sending::AtOnce, witness_stays: true, patience: Duration::from_secs(1) };
        let run = attack(&netns, at(CONTROL), &origins, &probes, way)?;
        eprintln!("{reading}: {} probes: {}", probes.len(), run.summary());
        for finding in run.some() {
            eprintln!("  {finding}");
        }
        for (name, finding) in run.findings {
            if finding.starts_with("got ") && finding.contains("/hidden-") {
                *found.entry(name).or_default() += 1;
            }
        }
    }
    eprintln!("hidden requests that an origin got: {found:?}");
    ensure!(found.len() == 4, "before some nothing was found: {found:?}");
    Ok(())
}

/// Each spelling in each shape for each origin; a hidden request is for the next origin. The tool sends non-ASCII
/// characters as UTF-8; with a hidden request they are also tried as single bytes.
fn probes(origins: &[Origin], mutations: impl IntoIterator<Item = Mutation>, shapes: &[Shape]) -> Vec<Probe> {
    let mut probes = Vec::new();
    for mutation in mutations {
        let (utf8, raw) = (mutation.utf8().to_vec(), mutation.bytes());
        for shape in shapes {
            let lines = if utf8 != raw && HIDDEN.contains(shape) { vec![&utf8, &raw] } else { vec![&utf8] };
            for line in lines {
                for (index, Origin { name: origin, .. }) in origins.iter().enumerate() {
                    let victim = origins[(index + 1) % origins.len()].name;
                    probes.push(Probe { number: probes.len(), origin, victim, shape: *shape, line: line.clone() });
                }
            }
        }
    }
    probes
}

/// How a probe is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    /// All bytes at once: the proxy gets it, as the kernel carries no head that is followed by bytes at once.
    AtOnce,
    /// In parts, the bytes after the request once it is answered: if the kernel carries the connection, the origin
    /// alone decides what one request is. No other client's request is on it.
    InParts,
}

/// Parameters of sending.
#[derive(Clone, Copy)]
struct Way {
    sending: Sending,
    /// True if all well-formed requests of a client share one connection.
    witness_stays: bool,
    /// Time-out of a probe.
    patience: Duration,
}

/// Results of the probes.
#[derive(Default)]
struct Run {
    /// Requests answered with 200, each with its origin.
    answered: BTreeMap<(usize, Kind), &'static str>,
    /// Violations, each with the origin that they concern.
    findings: Vec<(&'static str, String)>,
}

impl Run {
    fn summary(&self) -> String {
        let mut times: BTreeMap<(&str, Kind), usize> = BTreeMap::new();
        for ((_, kind), origin) in &self.answered {
            *times.entry((origin, *kind)).or_default() += 1;
        }
        format!("answered {times:?}; {} findings", self.findings.len())
    }

    fn some(&self) -> Vec<String> {
        self.findings.iter().take(20).map(|(origin, finding)| format!("{origin}: {finding}")).collect()
    }
}

/// Sends all probes, several at once, and checks the responses and the requests that the origins received.
fn attack(netns: &Netns, router: SocketAddr, origins: &[Origin], probes: &[Probe], way: Way) -> Result<Run> {
    let next = AtomicUsize::new(0);
    let mut run = Run::default();
    thread::scope(|scope| -> Result<()> {
        let client = || netns.run(|| client(router, probes, &next, way));
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        for client in clients {
            let part = joined(client)?;
            run.answered.extend(part.answered);
            run.findings.extend(part.findings);
        }
        Ok(())
    })?;
    judge(origins, probes, way.sending, &mut run)?;
    Ok(run)
}

/// One of several clients that share the probes.
fn client(router: SocketAddr, probes: &[Probe], next: &AtomicUsize, way: Way) -> Result<Run> {
    let mut run = Run::default();
    let mut witness = None;
    while let Some(probe) = probes.get(next.fetch_add(1, Ordering::Relaxed)) {
        let first = ask(router, probe, way);
        // For probes that are rejected at once and reach no origin, a sample is enough.
        let refused = first.as_ref().is_ok_and(Vec::is_empty);
        let later = (!refused || probe.number % OTHERS == 0).then(|| {
            let asked = ask_later(&mut witness, router, probe, way.patience);
            if asked.is_err() || !way.witness_stays {
                witness = None;
            }
            asked.map(|()| vec![Kind::Later])
        });
        for result in [first].into_iter().chain(later) {
            match result {
                Ok(kinds) => {
                    run.answered.extend(kinds.into_iter().map(|kind| ((probe.number, kind), probe.owner(kind))));
                }
                Err(error) => run.findings.push((probe.origin, story(probe, &error))),
            }
        }
    }
    Ok(run)
}

fn story(probe: &Probe, error: &anyhow::Error) -> String {
    format!("{:?} with {:?}: {error:#}", probe.shape, String::from_utf8_lossy(&probe.line))
}

/// Sends a probe on a connection of its own; returns which of its requests were answered.
fn ask(router: SocketAddr, probe: &Probe, way: Way) -> Result<Vec<Kind>> {
    let mut stream = connect(router, way.patience)?;
    let [request, behind] = probe.parts();
    let mut answer = Vec::new();
    // The router may close before it has read everything.
    if way.sending == Sending::AtOnce {
        let _ = stream.write_all(&[request, behind].concat().concat());
        receive(&mut stream, &mut answer, |_| false)?;
        return probe.answered(&answer);
    }
    stream.set_read_timeout(Some(QUIET))?;
    for part in request {
        // Each in a segment of its own: a part that arrives while the origin is being dialed may be retransmitted with
        // the next one. An origin that decodes the chunks may wait for more.
        let _ = stream.write_all(&part);
        let _ = receive(&mut stream, &mut answer, |answer| probes::end_of_answer(answer).is_some());
        if !answer.is_empty() {
            break;
        }
    }
    stream.set_read_timeout(Some(way.patience))?;
    let _ = behind.iter().try_for_each(|part| stream.write_all(part));
    receive(&mut stream, &mut answer, |_| false)?;
    probe.check_own(&answer).map(|()| Vec::new())
}

/// Reads until there are enough bytes, or the connection ends.
fn receive(stream: &mut TcpStream, answer: &mut Vec<u8>, enough: impl Fn(&[u8]) -> bool) -> Result<()> {
    let mut part = [0; 4096];
    while !enough(answer) {
        match read_some(stream, &mut part) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(&part[..read]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => bail!("hangs after {:?}: {error}", String::from_utf8_lossy(answer)),
        }
    }
    Ok(())
}

/// Sends the well-formed request on a kept-alive connection.
fn ask_later(witness: &mut Option<TcpStream>, router: SocketAddr, probe: &Probe, patience: Duration) -> Result<()> {
    let stream = match witness {
        Some(stream) => stream,
        None => witness.insert(connect(router, patience)?),
    };
    stream.write_all(probe.later().as_bytes())?;
    let mut answer = Vec::new();
    receive(stream, &mut answer, |answer| probes::end_of_answer(answer).is_some())?;
    let ended = || format!("the connection ends after {:?}", String::from_utf8_lossy(&answer));
    let (head, end) = probes::end_of_answer(&answer).with_context(ended)?;
    let body = String::from_utf8_lossy(&answer[head..end]);
    ensure!(body == probe.answer(Kind::Later), "somebody else's answer: {body:?}");
    ensure!(end == answer.len(), "more than one answer");
    Ok(())
}

fn connect(router: SocketAddr, patience: Duration) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&router, PATIENCE)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Every request that an origin received was sent, for its own host, once, and was answered; and the origins received
/// all answered requests.
fn judge(origins: &[Origin], probes: &[Probe], sending: Sending, run: &mut Run) -> Result<()> {
    let probes: HashMap<usize, &Probe> = probes.iter().map(|probe| (probe.number, probe)).collect();
    let mut got: BTreeSet<(usize, Kind)> = BTreeSet::new();
    for origin in origins {
        for seen in origin.seen()? {
            match (seen, sending) {
                // If the kernel carries the connection, the origin decides.
                (Seen::Malformed(_), Sending::InParts) => (),
                (Seen::Malformed(line), _) => run.findings.push((origin.name, format!("could not read {line:?}"))),
                (Seen::Request(request), _) => match own(origin, &request, &probes, sending) {
                    Ok(one) if got.insert(one) => (),
                    Ok(_) => run.findings.push((origin.name, format!("got this twice: {request:?}"))),
                    Err(error) => run.findings.push((origin.name, format!("got {request:?}: {error:#}"))),
                },
            }
        }
    }
    for one in got.iter().chain(run.answered.keys()).collect::<BTreeSet<_>>() {
        let what = match (got.contains(one), run.answered.contains_key(one)) {
            (false, _) => "answered, but nobody got it",
            // The kernel resets a connection while a response is in flight.
            (true, false) if sending == Sending::AtOnce => "got, but not answered",
            _ => continue,
        };
        let (probe, kind) = (probes[&one.0], one.1);
        run.findings.push((probe.owner(kind), story(probe, &anyhow::anyhow!("{kind:?} was {what}"))));
    }
    Ok(())
}

/// Identifies a request among those sent to this origin.
fn own(origin: &Origin, request: &Request, probes: &HashMap<usize, &Probe>, sending: Sending) -> Result<(usize, Kind)> {
    ensure!(request.host == origin.host(), "the host is another one's");
    let (kind, number) = Kind::of(&request.target).context("nobody sent that")?;
    // If the origin received the bytes unchanged, they may be part of the previous request.
    ensure!(sending == Sending::InParts || request.method == kind.method(), "nobody sent that");
    let probe = probes.get(&number).context("nobody sent that")?;
    ensure!(probe.owner(kind) == origin.name, "it was for another one");
    Ok((number, kind))
}
