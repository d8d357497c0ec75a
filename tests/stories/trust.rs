//! Trust in backends: the backend of a re-encrypt route must present a certificate of the route's destination CA.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use anyhow::Result;
use tests::client::Client;
use tests::netns::Netns;
use tests::nginx::{Nginx, Server};
use tests::sluice::{DataPath, Options, Sluice};
use tests::{command, demo_ca, folder};

#[test]
fn a_reencrypt_backend_of_another_ca_gets_no_request() -> Result<()> {
    let netns = Netns::new("trust")?;
    // It has the demo backend's name, but a self-signed certificate.
    let keys = tempfile::TempDir::new()?;
    let (certificate, key) = (keys.path().join("own.crt"), keys.path().join("own.key"));
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]);
    openssl.args(["-subj", "/CN=reencrypt.demo.svc", "-addext", "subjectAltName=DNS:reencrypt.demo.svc"]);
    command::output(openssl.arg("-out").arg(&certificate).arg("-keyout").arg(&key))?;

    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let _good = Nginx::start(
        &netns,
        &[Server { name: "good", listen: at(9001), certificate: Some("demo-only-reencrypt-backend".into()) }],
    )?;
    let _impostor = Nginx::start(
        &netns,
        &[Server { name: "impostor", listen: at(9002), certificate: Some(keys.path().join("own")) }],
    )?;
    let ca = std::fs::read_to_string(demo_ca())?.replace('\n', "\n      ");
    let tls = format!("  tls:\n    termination: reencrypt\n    destinationCACertificate: |\n      {}\n", ca.trim_end());
    let manifests = tempfile::TempDir::new()?;
    let text = folder::router()
        + &folder::service("good", at(9001))
        + &folder::route("good", "good.apps.test", "good", &tls)
        + &folder::service("impostor", at(9002))
        + &folder::route("impostor", "impostor.apps.test", "impostor", &tls);
    std::fs::write(manifests.path().join("all.yaml"), text)?;
    let _sluice = Sluice::start(&netns, manifests.path(), &Options::loopback(DataPath::UserSpace))?;

    let client = Client::of(&netns, Ipv4Addr::LOCALHOST.into());
    // These routes have no certificate, so the router presents its default one, which is self-signed.
    let get = |host: &str| client.curl(&format!("https://{host}.apps.test:8443/"), &["--insecure"]);
    let good = get("good")?;
    assert!(good.status == 200 && good.body.starts_with("nginx good tls=TLSv1.3 "), "{good:?}");
    let refused = get("impostor")?;
    assert!([502, 503].contains(&refused.status) && !refused.body.contains("nginx"), "{refused:?}");
    Ok(())
}
