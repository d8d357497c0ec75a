//! The document's example over real TLS: `mail` and `www` of mycompany.com with the wildcard certificate of mycompany's
//! Secret, `mail` in a namespace of its own that can neither read nor name it.

mod certificates;
mod conflicts;
mod domains;
mod names;
mod refused;

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use tests::client::{Answer, Client};
use tests::folder::{self, replace, service};
use tests::netns::Netns;
use tests::nginx::{Nginx, Server};
use tests::pki::Ca;
use tests::sluice::{DataPath, Options, Sluice};
use tests::wait::{PATIENCE, wait_for};

const SECRET: &str = "mycompany-wildcard-tls";
const MAIL: &str = "mail.mycompany.com";
const WWW: &str = "www.mycompany.com";

fn at(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn ingress_route(namespace: &str, name: &str, spec: &str) -> String {
    format!(
        "---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {{name: {name}, namespace: {namespace}}}
spec:
{spec}"
    )
}

const ROOT: &str = "  virtualhost:
    fqdn: .mycompany.com
    tls:
      secretName: mycompany-wildcard-tls
  subdomains:
  - subdomain: mail.mycompany.com
    delegate:
      name: mail
      namespace: msexchange
  - subdomain: www.mycompany.com
    delegate:
      name: wordpress
";

/// The delegate in `msexchange`, with these lines of its virtual host.
fn mail(virtual_host: &str) -> String {
    let routes = "  routes:
  - match: /
    services: [{name: owa, port: 80}]
  - match: /open
    permitInsecure: true
    services: [{name: owa, port: 80}]
";
    ingress_route("msexchange", "mail", &format!("{virtual_host}{routes}"))
}

struct Stage {
    netns: Netns,
    manifests: TempDir,
    sluice: Sluice,
    _nginx: Nginx,
}

impl Stage {
    fn new(ca: &Ca) -> Result<Stage> {
        let netns = Netns::new("delegation")?;
        let server = |name, port| Server { name, listen: at(port), certificate: None };
        let nginx = Nginx::start(&netns, &[server("owa", 9001), server("php", 9002)])?;
        let manifests = TempDir::new()?;
        let of = |namespace: &str, text: String| text.replace("namespace: test", &format!("namespace: {namespace}"));
        let company = ingress_route("mycompany", "domain-root", ROOT)
            + &ingress_route("mycompany", "wordpress", "  routes: [{match: /, services: [{name: php, port: 80}]}]\n")
            + &of("mycompany", service("php", at(9002)))
            + &of("msexchange", service("owa", at(9001)))
            + &ca.leaf("*.mycompany.com")?.secret("mycompany", SECRET);
        std::fs::write(manifests.path().join("all.yaml"), folder::router() + &company)?;
        std::fs::write(manifests.path().join("mail.yaml"), mail(""))?;
        let sluice = Sluice::start(&netns, manifests.path(), &Options::loopback(DataPath::UserSpace))?;
        Ok(Stage { netns, manifests, sluice, _nginx: nginx })
    }

    /// A response to curl that trusts only this CA.
    fn curl(&self, ca: &Ca, url: &str) -> Result<Answer> {
        let file = ca.file();
        let client = Client::of(&self.netns, Ipv4Addr::LOCALHOST.into());
        client.curl(url, &["--cacert", file.to_str().context("a path")?])
    }

    /// The status file of an IngressRoute, once it contains this text.
    fn status(&self, object: &str, text: &str) -> Result<String> {
        let file = self.sluice.state().join("status").join(format!("ingressroute.{object}.yaml"));
        let has_it = || std::fs::read_to_string(&file).ok().filter(|status| status.contains(text));
        Ok(wait_for(&format!("{object} is told {text:?}"), PATIENCE, has_it)?.0)
    }
}

#[test]
fn the_wildcard_certificate_serves_what_is_delegated_and_nothing_else() -> Result<()> {
    let ca = Ca::new()?;
    let stage = Stage::new(&ca)?;
    for (host, backend) in [(MAIL, "nginx owa"), (WWW, "nginx php")] {
        let answer = stage.curl(&ca, &format!("https://{host}:8443/x"))?;
        ensure!(answer.status == 200 && answer.body.starts_with(backend), "{host}: {answer:?}");
        let redirect = stage.curl(&ca, &format!("http://{host}:8080/x"))?;
        ensure!(redirect.status == 301, "{host}: {redirect:?}");
        ensure!(
            redirect.header("location").is_some_and(|to| to.starts_with(&format!("https://{host}"))),
            "{redirect:?}"
        );
    }
    let open = stage.curl(&ca, &format!("http://{MAIL}:8080/open"))?;
    ensure!(open.status == 200 && open.body.starts_with("nginx owa"), "{open:?}");
    // The certificate would cover this name, but it is not delegated.
    ensure!(stage.curl(&ca, "https://ftp.mycompany.com:8443/").is_err(), "the wildcard certificate is shown for ftp");
    let nobodys = Client::of(&stage.netns, Ipv4Addr::LOCALHOST.into())
        .curl("https://ftp.mycompany.com:8443/", &["--insecure"])?;
    ensure!(nobodys.status == 404, "{nobodys:?}");

    let root = stage.status("mycompany.domain-root", "valid IngressRoute (2 of 2 subdomains)")?;
    ensure!(root.contains("currentStatus: valid"), "{root}");
    let delegate = stage.status("msexchange.mail", "currentStatus: valid")?;
    ensure!(delegate.contains("fqdn: mail.mycompany.com"), "{delegate}");
    ensure!(
        !delegate.contains(SECRET) && !delegate.contains("Secret"),
        "the delegate is told of the Secret:\n{delegate}"
    );
    Ok(())
}

#[test]
fn tls_of_its_own_wins_as_a_whole_and_the_domains_secret_cannot_be_named() -> Result<()> {
    let (company, exchange) = (Ca::new()?, Ca::new()?);
    let stage = Stage::new(&company)?;
    let mail_is = |ca: &Ca| stage.curl(ca, &format!("https://{MAIL}:8443/")).ok().filter(|answer| answer.status == 200);
    ensure!(mail_is(&company).is_some());

    let own = "  virtualhost:\n    fqdn: mail.mycompany.com\n    tls: {secretName: own-tls}\n";
    let file = stage.manifests.path().join("mail.yaml");
    replace(&file, &(mail(own) + &exchange.leaf(MAIL)?.secret("msexchange", "own-tls")))?;
    wait_for("the delegate's own certificate", PATIENCE, || mail_is(&exchange))?;
    ensure!(mail_is(&company).is_none(), "the domain's certificate is still shown");
    ensure!(stage.curl(&company, &format!("https://{WWW}:8443/"))?.status == 200, "www has nothing to do with it");

    let theirs = format!("  virtualhost:\n    tls: {{secretName: mycompany/{SECRET}}}\n");
    replace(&file, &mail(&theirs))?;
    stage.status("msexchange.mail", "certificate delegation not permitted")?;
    wait_for("nothing is served without a certificate", PATIENCE, || {
        (mail_is(&company).is_none() && mail_is(&exchange).is_none()).then_some(())
    })?;
    ensure!(stage.curl(&company, &format!("https://{WWW}:8443/"))?.status == 200, "www has nothing to do with it");

    let lent = "---
apiVersion: projectcontour.io/v1
kind: TLSCertificateDelegation
metadata: {name: lend, namespace: mycompany}
spec: {delegations: [{secretName: mycompany-wildcard-tls, targetNamespaces: [msexchange]}]}
";
    replace(&stage.manifests.path().join("lent.yaml"), lent)?;
    wait_for("what is lent may be named", PATIENCE, || mail_is(&company))?;
    Ok(())
}

#[test]
fn a_delegate_that_is_taken_away_is_missed_and_one_that_comes_is_served() -> Result<()> {
    let ca = Ca::new()?;
    let stage = Stage::new(&ca)?;
    let mail_answers =
        |status: u16| stage.curl(&ca, &format!("https://{MAIL}:8443/")).ok().filter(|answer| answer.status == status);
    ensure!(mail_answers(200).is_some());
    let file = stage.manifests.path().join("mail.yaml");
    std::fs::remove_file(&file)?;
    wait_for("the missing delegate's answer", PATIENCE, || mail_answers(502))?;
    stage.status("mycompany.domain-root", "delegate msexchange/mail not found")?;
    ensure!(stage.curl(&ca, &format!("https://{WWW}:8443/"))?.status == 200, "www has nothing to do with it");
    replace(&file, &mail(""))?;
    wait_for("the delegate that came back", PATIENCE, || mail_answers(200))?;
    Ok(())
}

#[test]
fn a_subdomain_passes_tls_through_beside_those_that_terminate() -> Result<()> {
    let (ca, exchange) = (Ca::new()?, Ca::new()?);
    let stage = Stage::new(&ca)?;
    let folder = TempDir::new()?;
    let [certificate, _] = exchange.leaf(MAIL)?.write(folder.path(), "mail")?;
    let servers = [Server { name: "imap", listen: at(9003), certificate: Some(certificate) }];
    let _nginx = Nginx::start(&stage.netns, &servers)?;
    let spec = "  virtualhost:\n    tls: {passthrough: true}\n  tcpproxy: {services: [{name: imap, port: 80}]}\n";
    let manifests = ingress_route("msexchange", "mail", spec)
        + &service("imap", at(9003)).replace("namespace: test", "namespace: msexchange");
    replace(&stage.manifests.path().join("mail.yaml"), &manifests)?;
    let (answer, _) = wait_for("the endpoint's own certificate", PATIENCE, || {
        stage.curl(&exchange, &format!("https://{MAIL}:8443/")).ok().filter(|answer| answer.status == 200)
    })?;
    ensure!(answer.body.starts_with("nginx imap") && answer.body.contains(&format!("sni={MAIL}")), "{answer:?}");
    ensure!(stage.curl(&ca, &format!("https://{WWW}:8443/"))?.status == 200, "www is terminated as before");
    Ok(())
}
