//! Time from a changed manifest to the first request that it decides on, as a user sees it.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::launch::{Launched, SETTING};
use crate::bench::folder;
use crate::bench::summary::{Summary, summary};

/// Changes, which alternate between two endpoints.
const CHANGES: usize = 21;
/// Time between two changes: the agent is at rest again.
const PAUSE: Duration = Duration::from_millis(300);
/// When to give up on a change.
const PATIENCE: Duration = Duration::from_secs(5);
/// The route that is changed.
const ROUTE: usize = 5_000;

/// Changes one EndpointSlice again and again: writes its file beside the old one and renames it. Returns the times until a
/// request is answered by the new endpoint.
pub fn measure(launched: &Launched) -> Result<Summary> {
    let file = folder::file(&launched.manifests, ROUTE);
    let times = launched.netns.run(|| {
        let endpoints =
            [1, 2].map(|last| SocketAddr::new(Ipv4Addr::new(127, 0, 0, last).into(), SETTING.endpoint.port()));
        for (name, endpoint) in ["a", "b"].into_iter().zip(endpoints) {
            let listener = TcpListener::bind(endpoint)?;
            thread::spawn(move || listener.incoming().flatten().for_each(|client| drop(answer(client, name))));
        }
        let turns = ["b", "a"].into_iter().zip(endpoints.into_iter().rev()).cycle().take(CHANGES);
        turns.map(|(name, endpoint)| change(&file, name, endpoint)).collect::<Result<Vec<_>>>()
    })?;
    summary(times).context("no changes")
}

fn change(file: &Path, name: &str, endpoint: SocketAddr) -> Result<Duration> {
    thread::sleep(PAUSE);
    let temporary = file.with_extension("yaml.tmp");
    fs::write(&temporary, folder::http_route(ROUTE, endpoint))?;
    let begin = Instant::now();
    fs::rename(&temporary, file)?;
    while ask()? != name {
        ensure!(begin.elapsed() < PATIENCE, "a changed EndpointSlice takes no effect in {PATIENCE:?}");
    }
    Ok(begin.elapsed())
}

fn ask() -> Result<String> {
    let mut router = TcpStream::connect((Ipv4Addr::LOCALHOST, SETTING.http))?;
    router.write_all(
        format!("GET / HTTP/1.1\r\nHost: route-{ROUTE}.bench.test\r\nConnection: close\r\n\r\n").as_bytes(),
    )?;
    let mut response = String::new();
    router.read_to_string(&mut response)?;
    let (_, body) = response.split_once("\r\n\r\n").with_context(|| format!("the router answers {response:?}"))?;
    Ok(body.to_owned())
}

fn answer(mut client: TcpStream, name: &str) -> Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut part = [0; 1024];
        let length = client.read(&mut part)?;
        ensure!(length > 0, "the request is not complete");
        request.extend_from_slice(&part[..length]);
    }
    let length = name.len();
    client.write_all(
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{name}").as_bytes(),
    )?;
    Ok(())
}
