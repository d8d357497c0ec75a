//! Load tool of each measure: wrk for HTTP/1.1, h2load for HTTP/2, and [`super::load`] for the rest.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::lane::Lane;
use super::load::outcome::Outcome;
use super::rows::{LoadKind, Measure};
use super::ways::{HTTP_PORT, HTTPS_PORT};
use crate::bench::network::Network;
use crate::bench::programs::find;
use crate::bench::tools::Tools;
use crate::process::output;

/// wrk's threads, and h2load's.
const THREADS: &str = "2";
/// Seconds for which wrk would run if it were not interrupted.
const LONG: u64 = 3600;
/// Debian packages of load tools that are missing.
pub fn missing() -> Vec<&'static str> {
    let tools = [("wrk", "wrk"), ("h2load", "nghttp2-client")];
    tools.into_iter().filter(|(program, _)| find(program).is_none()).map(|(_, package)| package).collect()
}

/// Makes the load of a measure on a way, for some milliseconds.
pub fn carry(tools: &Tools, network: &Network, lane: &Lane, measure: &Measure, milliseconds: u64) -> Result<Outcome> {
    let connections = measure.connections.to_string();
    match measure.kind {
        LoadKind::Requests { .. } => {
            let said = output(&mut wrk(network, lane, measure, Some(milliseconds))?)?;
            of_wrk(&said)
        }
        LoadKind::Streams(streams) => {
            let mut command = network.client.command("h2load")?;
            command.args(["--threads", THREADS, "--clients", &connections]);
            command.args(["--max-concurrent-streams", &streams.to_string()]);
            command.args(["--duration", &format!("{milliseconds}ms"), "--warm-up-time", "200ms"]);
            command.args(["--npn-list", "h2", "--groups", "X25519", "--tls13-ciphers", "TLS_AES_128_GCM_SHA256"]);
            command.args(["--connect-to", &lane.address(HTTPS_PORT).to_string()]);
            command.arg("--log-file").arg(&lane.files.log).arg(format!("https://{}/", lane.name));
            // It goes on with a file that is there.
            let _ = fs::remove_file(&lane.files.log);
            let said = output(&mut command)?;
            let log = fs::read_to_string(&lane.files.log).with_context(|| format!("h2load has no log, but\n{said}"))?;
            of_log(&log, Duration::from_millis(milliseconds))
        }
        LoadKind::Handshakes | LoadKind::Messages => {
            let mut command = network.client.command(&tools.load)?;
            let (role, port) = match measure.kind {
                LoadKind::Messages => ("messages", HTTP_PORT),
                _ => ("handshakes", HTTPS_PORT),
            };
            command.args(["http-load", role, "--to", &lane.address(port).to_string()]);
            command.args(["--connections", &connections, "--milliseconds", &milliseconds.to_string()]);
            match measure.kind {
                LoadKind::Messages => command.args(["--name", &lane.name]),
                _ => command.arg("--names").arg(&lane.files.names),
            };
            Outcome::read(&output(&mut command)?)
        }
    }
}

/// wrk with the load of a measure that is its, for some milliseconds or until it is interrupted.
///
/// # Errors
/// When the measure is another's.
pub fn wrk(network: &Network, lane: &Lane, measure: &Measure, milliseconds: Option<u64>) -> Result<Command> {
    let LoadKind::Requests { tls, method, path, body } = measure.kind else {
        bail!("wrk has no load for {}", measure.title)
    };
    let mut command = network.client.command_with_hosts("wrk", &lane.files.etc_hosts)?;
    let scheme = if tls { "https" } else { "http" };
    // wrk's shortest time is a second.
    let seconds = milliseconds.map_or(LONG, |milliseconds| milliseconds.div_ceil(1000)).to_string();
    command.args(["--threads", THREADS, "--connections", &measure.connections.to_string(), "--duration", &seconds]);
    command.args(["--timeout", "10", "--script"]).arg(&lane.files.script);
    command.arg(format!("{scheme}://{}/", lane.name));
    // A connection's server name stays, and with it the host.
    let names = if tls { &lane.files.name } else { &lane.files.names };
    command.arg("--").arg(names).args([method, path, &body.to_string()]);
    command.env("OPENSSL_CONF", &lane.files.openssl);
    Ok(command)
}

/// Parses the numbers that wrk's script prints.
///
/// # Errors
/// There are none.
pub fn of_wrk(said: &str) -> Result<Outcome> {
    let line = said.lines().find_map(|line| line.strip_prefix("sluice: "));
    Outcome::read(line.with_context(|| format!("wrk printed no numbers, but\n{said}"))?)
}

/// h2load's log: start, status and microseconds of each request of the measured time.
fn of_log(log: &str, elapsed: Duration) -> Result<Outcome> {
    let (mut times, mut errors) = (Vec::new(), 0);
    for line in log.lines() {
        let mut fields = line.split('\t').skip(1);
        let (Some(status), Some(time)) = (fields.next(), fields.next()) else { continue };
        if status == "200" {
            times.push(Duration::from_micros(time.parse().with_context(|| format!("h2load logged `{line}`"))?));
        } else {
            errors += 1;
        }
    }
    ensure!(!times.is_empty(), "h2load logged no request that was answered");
    Ok(Outcome::of(times, elapsed, errors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_h2load_is_read() {
        let log = "1700000000000000\t200\t150\n1700000000000100\t200\t350\n1700000000000100\t503\t80\n";
        let outcome = of_log(log, Duration::from_millis(500)).unwrap();
        assert_eq!((outcome.units, outcome.errors, outcome.rate()), (2, 1, 4.0));
        assert_eq!(outcome.p99, Duration::from_micros(350));
        assert!(of_log("1700000000000000\t-1\t0\n", Duration::from_secs(1)).is_err(), "nothing succeeded");
    }
}
