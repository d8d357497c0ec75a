//! `sluice controller`: statuses without a data path, beside agents that never lead.

use std::time::Duration;

use anyhow::{Result, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};
use tests::cluster::Definitions;
use tests::folder;
use tests::process::Process;
use tests::sluice::binary;
use tests::wait::{PATIENCE, hold, wait_until};

use super::site::{CALM, Site};

/// Time for a process to become ready, or to end.
const START: Duration = Duration::from_secs(30);

fn controller(site: &Site) -> Result<Process> {
    let mut command = site.netns.command("env")?;
    command.arg(binary()?).args(["controller", "--kubeconfig"]).arg(site.kubeconfig());
    command.args(["--publish-address", "192.0.2.7,lb.example.com"]);
    let mut process = Process::start("controller", &mut command)?;
    process.wait_for_line("sluice: ready", START)?;
    Ok(process)
}

fn gateway() -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"namespace": "test", "name": "edge"},
        "spec": {"gatewayClassName": "sluice", "listeners": [{"name": "http", "port": 8080, "protocol": "HTTP"}]},
    })
}

#[test]
fn a_controller_writes_what_agents_that_never_lead_serve() -> Result<()> {
    let site = Site::mock_with_route()?;
    let server = site.mocked()?;
    server.install(Definitions::GatewayStandard)?;
    site.apply(folder::gateway_class())?;
    server.apply(&gateway())?;
    let agent = site.serve_with(&["--leader", "never"])?;
    site.wait_for("a.apps.test", "one")?;
    hold(CALM, || {
        let writes = site.status_writes()?;
        ensure!(writes == 0, "{writes} writes");
        Ok(())
    })?;
    let mut first = controller(&site)?;
    site.wait_for_admitted("a", "True")?;
    let addresses =
        json!([{"type": "IPAddress", "value": "192.0.2.7"}, {"type": "Hostname", "value": "lb.example.com"}]);
    let has_addresses = || server.get(&gateway()).is_ok_and(|gateway| gateway["status"]["addresses"] == addresses);
    wait_until("the Gateway has the published addresses", PATIENCE, has_addresses)?;
    ensure!(!agent.has_line("holds the Lease"), "{:#?}", agent.output());
    ensure!(!first.output().iter().any(|line| line.contains("listens on")), "{:#?}", first.output());

    // At its end it releases the Lease, so another one need not wait.
    ensure!(first.terminate(START)?.success(), "{:#?}", first.output());
    let second = controller(&site)?;
    site.route("b", "web")?;
    site.wait_for_admitted("b", "True")?;
    assert_eq!(site.wait_for_status_writes(2)?, 2);

    second.signal(Signal::KILL)?;
    site.route("c", "web")?;
    site.wait_for("c.apps.test", "one")?;
    assert_eq!(site.get("a.apps.test")?, (200, "one".to_owned()));
    assert_eq!(site.status_writes()?, 2);
    Ok(())
}
