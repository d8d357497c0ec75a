//! State of a running router: `sluice get`, and the status files of `--state`.

use std::fs;
use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use serde_json::Value;
use tests::client::Client;
use tests::netns::Netns;
use tests::sluice::{DataPath, Options, Sluice};
use tests::{folder, workspace};

#[test]
fn get_shows_routes_listeners_endpoints_and_certificates() -> Result<()> {
    let netns = Netns::new("get")?;
    let manifests = workspace().join("examples/quickstart");
    let sluice = Sluice::start(&netns, &manifests, &Options::loopback(DataPath::Kernel))?;

    let routes = rows(&sluice, "routes")?;
    let row = |row: &Value| ["name", "host", "termination", "state"].map(|field| text(row, field));
    let host = |name: &str| format!("{name}.apps.localhost");
    let expected = [("edge", "edge"), ("hello", "none"), ("passthrough", "passthrough"), ("reencrypt", "reencrypt")];
    assert_eq!(
        routes.iter().map(row).collect::<Vec<_>>(),
        expected.map(|(name, tls)| [name.to_owned(), host(name), tls.to_owned(), "admitted".to_owned()])
    );

    let listeners = rows(&sluice, "listeners")?;
    let row = |row: &Value| ["protocol", "address", "state"].map(|field| text(row, field));
    let expected = [("http", "0.0.0.0:8080"), ("http", "[::]:8080"), ("https", "0.0.0.0:8443"), ("https", "[::]:8443")];
    assert_eq!(
        listeners.iter().map(row).collect::<Vec<_>>(),
        expected.map(|(protocol, address)| [protocol, address, "bound"].map(str::to_owned))
    );

    let endpoints = rows(&sluice, "endpoints")?;
    let row = |row: &Value| ["route", "address"].map(|field| text(row, field));
    let expected = [("edge", 18081), ("hello", 18080), ("passthrough", 18443), ("reencrypt", 18444)];
    assert_eq!(
        endpoints.iter().map(row).collect::<Vec<_>>(),
        expected.map(|(name, port)| [format!("demo/{name}"), format!("127.0.0.1:{port}")])
    );

    let certificates = rows(&sluice, "certs")?;
    for name in ["edge", "reencrypt"] {
        let found = certificates.iter().find(|row| row["host"] == host(name)).context("a certificate")?;
        assert!(text(found, "subject").ends_with(&format!("CN={}", host(name))), "{found}");
    }
    assert!(!certificates.iter().any(|row| row["host"] == host("passthrough")), "that one is the backend's");
    Ok(())
}

#[test]
fn status_files_say_what_a_cluster_would_show() -> Result<()> {
    let netns = Netns::new("status")?;
    let manifests = folder::quickstart(Ipv4Addr::LOCALHOST.into())?;
    // A younger route for a claimed host.
    let late = folder::route("late", "edge.apps.localhost", "nobody", "").replace("2026-01-01", "2026-02-01");
    fs::write(manifests.path().join("late.yaml"), late)?;
    let early = fs::read_to_string(manifests.path().join("20-edge.yaml"))?.replacen(
        "  name: edge\n",
        "  name: edge\n  creationTimestamp: \"2026-01-01T00:00:00Z\"\n",
        1,
    );
    fs::write(manifests.path().join("20-edge.yaml"), early)?;
    let sluice = Sluice::start(&netns, manifests.path(), &Options::loopback(DataPath::UserSpace))?;
    let status = |object: &str| {
        let file = sluice.state().join("status").join(format!("{object}.yaml"));
        tests::wait::wait_for(&format!("{object} has a status"), tests::wait::PATIENCE, || {
            fs::read_to_string(&file).ok()
        })
    };
    let (hello, _) = status("route.demo.hello")?;
    for part in ["host: hello.apps.localhost", "routerName: default", "type: Admitted", "status: \"True\""] {
        assert!(hello.contains(part), "{part:?} is not in the status:\n{hello}");
    }
    let (late, _) = status("route.test.late")?;
    for part in ["reason: HostAlreadyClaimed", "status: \"False\"", "type: Admitted"] {
        assert!(late.contains(part), "{part:?} is not in the status:\n{late}");
    }
    assert!(!late.contains("demo"), "a foreign namespace is never named:\n{late}");
    // The older route serves: it responds with 302, while the younger one has no TLS and would respond otherwise.
    let client = Client::of(&netns, Ipv4Addr::LOCALHOST.into());
    assert_eq!(client.get("http://edge.apps.localhost:8080/")?.status, 302);
    Ok(())
}

fn rows(sluice: &Sluice, what: &str) -> Result<Vec<Value>> {
    sluice.get(what)?.as_array().cloned().with_context(|| format!("`sluice get {what} -o json` prints a list"))
}

fn text(row: &Value, field: &str) -> String {
    row[field].as_str().unwrap_or_default().to_owned()
}
