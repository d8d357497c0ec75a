//! TLS with third-party clients: renewed Secrets, session resumption, client certificates.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;

use anyhow::{Result, ensure};
use tempfile::TempDir;
use tests::client::Client;
use tests::folder::{self, replace, route, service};
use tests::netns::Netns;
use tests::nginx::{Nginx, Server};
use tests::pki::{Ca, Leaf};
use tests::sluice::{DataPath, Options, Sluice};
use tests::wait::{PATIENCE, wait_for};

const HOST: &str = "tls.apps.test";

fn at(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn indented(pem: &str) -> String {
    pem.lines().map(|line| format!("    {line}\n")).collect()
}

/// A router whose IngressController has these further lines, with one edge route that has its certificate in a Secret.
struct Stage {
    netns: Netns,
    manifests: TempDir,
    _nginx: Nginx,
    _sluice: Sluice,
}

impl Stage {
    fn new(controller: &str, leaf: &Leaf) -> Result<Stage> {
        let netns = Netns::new("tls")?;
        let nginx = Nginx::start(&netns, &[Server { name: "app", listen: at(9001), certificate: None }])?;
        let manifests = TempDir::new()?;
        let tls = "  tls:\n    termination: edge\n    externalCertificate: {name: renewed}\n";
        let routes = service("app", at(9001)) + &route("app", HOST, "app", tls);
        std::fs::write(manifests.path().join("all.yaml"), folder::router() + controller + &routes)?;
        std::fs::write(manifests.path().join("secret.yaml"), leaf.secret("test", "renewed"))?;
        let sluice = Sluice::start(&netns, manifests.path(), &Options::loopback(DataPath::UserSpace))?;
        Ok(Stage { netns, manifests, _nginx: nginx, _sluice: sluice })
    }

    /// The status of a request by curl; curl's error if there is none.
    fn curl(&self, ca: &Ca, arguments: &[&str]) -> Result<u16> {
        let file = ca.file();
        let trusted = ["--cacert", file.to_str().unwrap_or_default()];
        let client = Client::of(&self.netns, Ipv4Addr::LOCALHOST.into());
        Ok(client.curl(&format!("https://{HOST}:8443/"), &[&trusted[..], arguments].concat())?.status)
    }
}

#[test]
fn a_renewed_secret_is_what_new_connections_see() -> Result<()> {
    let (before, after) = (Ca::new()?, Ca::new()?);
    let stage = Stage::new("", &before.leaf(HOST)?)?;
    ensure!(stage.curl(&before, &[])? == 200);
    ensure!(stage.curl(&after, &[]).is_err(), "nobody has signed it anew yet");
    replace(&stage.manifests.path().join("secret.yaml"), &after.leaf(HOST)?.secret("test", "renewed"))?;
    wait_for("the renewed certificate", PATIENCE, || stage.curl(&after, &[]).ok().filter(|status| *status == 200))?;
    ensure!(stage.curl(&before, &[]).is_err(), "the old one is still shown");
    Ok(())
}

/// With `--http1.0`, curl offers only `http/1.0`.
#[test]
fn every_version_of_http_is_spoken_over_tls() -> Result<()> {
    let ca = Ca::new()?;
    let stage = Stage::new("", &ca.leaf(HOST)?)?;
    for version in ["--http1.0", "--http1.1", "--http2", "--no-alpn"] {
        ensure!(stage.curl(&ca, &[version])? == 200, "{version}");
    }
    Ok(())
}

/// docs/limits.md lists what is incompatible with rustls; these are the requirements on clients.
#[test]
fn openssl_agrees_on_the_groups_and_suites_that_the_readme_names() -> Result<()> {
    let ca = Ca::new()?;
    let stage = Stage::new("", &ca.leaf(HOST)?)?;
    let agrees = |arguments: &[&str]| -> Result<bool> {
        let mut command = stage.netns.command("openssl")?;
        command.args(["s_client", "-connect", "127.0.0.1:8443", "-servername", HOST, "-verify_return_error"]);
        let output = command.arg("-CAfile").arg(ca.file()).args(arguments).stdin(Stdio::null()).output()?;
        Ok(output.status.success())
    };
    for good in ["X25519", "P-256", "P-384", "P-521:P-256", "X448:X25519"] {
        ensure!(agrees(&["-tls1_3", "-groups", good])?, "{good}");
        // Under TLS 1.2, the certificate's curve, P-256, must be one of the client's groups too (RFC 8422 §5.1).
        let good = format!("{good}:P-256").replace("P-256:P-256", "P-256");
        ensure!(agrees(&["-tls1_2", "-groups", &good])?, "{good} in TLS 1.2");
    }
    for (what, arguments) in [
        ("P-521", ["-tls1_3", "-groups", "P-521"]),
        ("P-521 in TLS 1.2", ["-tls1_2", "-groups", "P-521"]),
        ("X448", ["-tls1_3", "-groups", "X448"]),
        ("CBC", ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA256:ECDHE-RSA-AES128-SHA256"]),
        ("DHE", ["-tls1_2", "-cipher", "DHE-RSA-AES128-GCM-SHA256"]),
        ("static RSA", ["-tls1_2", "-cipher", "AES128-GCM-SHA256"]),
    ] {
        ensure!(!agrees(&arguments)?, "{what} is agreed on; docs/limits.md says that it is not");
    }
    Ok(())
}

#[test]
fn openssl_goes_on_with_its_sessions() -> Result<()> {
    let ca = Ca::new()?;
    let stage = Stage::new("", &ca.leaf(HOST)?)?;
    for how in [&["-tls1_2"][..], &["-tls1_2", "-no_ticket"]] {
        let mut command = stage.netns.command("openssl")?;
        command.args(["s_client", "-connect", "127.0.0.1:8443", "-servername", HOST, "-verify_return_error"]);
        command.arg("-CAfile").arg(ca.file()).args(how).arg("-reconnect").stdin(Stdio::null());
        let text = String::from_utf8_lossy(&command.output()?.stdout).into_owned();
        let count = |word: &str| text.lines().filter(|line| line.starts_with(word)).count();
        ensure!((count("New, TLSv1.2"), count("Reused, TLSv1.2")) == (1, 5), "{how:?}: {text}");
    }
    Ok(())
}

#[test]
fn clients_show_certificates() -> Result<()> {
    let (server, clients, others) = (Ca::new()?, Ca::new()?, Ca::new()?);
    let controller = format!(
        "  clientTLS:
    clientCertificatePolicy: Required
    clientCA: {{name: clients}}
    allowedSubjectPatterns: [\"/CN=ada$\"]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: clients, namespace: openshift-config}}
data:
  ca-bundle.pem: |
{}",
        indented(&clients.pem())
    );
    let stage = Stage::new(&controller, &server.leaf(HOST)?)?;
    let folder = TempDir::new()?;
    let show = |ca: &Ca, name: &str, file: &str| -> Result<u16> {
        let [certificate, key] = ca.leaf(name)?.write(folder.path(), file)?;
        let (certificate, key) = (certificate.display().to_string(), key.display().to_string());
        stage.curl(&server, &["--cert", &certificate, "--key", &key])
    };
    ensure!(show(&clients, "ada", "ada")? == 200);
    ensure!(show(&clients, "grace", "grace")? == 403, "her name is not among the patterns");
    ensure!(show(&others, "ada", "impostor").is_err(), "signed by somebody else");
    ensure!(stage.curl(&server, &[]).is_err(), "without a certificate");
    Ok(())
}
