//! Invalid entries of a domain root serve nothing, and do not affect the other entries.

use super::*;

const ENTRIES: &str = "  virtualhost:
    fqdn: .mycompany.com
    tls:
      secretName: mycompany-wildcard-tls
      minimumProtocolVersion: \"1.3\"
  subdomains:
  - {subdomain: www.mycompany.com, delegate: {name: wordpress}}
  - {subdomain: mail.other.com, delegate: {name: mail, namespace: msexchange}}
  - {subdomain: \"*.mycompany.com\", delegate: {name: mail, namespace: msexchange}}
  - {subdomain: twice.mycompany.com, delegate: {name: wordpress}}
  - {subdomain: twice.mycompany.com, delegate: {name: mail, namespace: msexchange}}
  - {subdomain: named.mycompany.com, delegate: {name: named}}
";

#[test]
fn what_is_not_well_delegated_serves_nothing() -> Result<()> {
    let ca = Ca::new()?;
    let stage = Stage::new(&ca)?;
    let routes = "  routes: [{match: /, permitInsecure: true, services: [{name: php, port: 80}]}]\n";
    let weak = format!("  virtualhost: {{tls: {{secretName: {SECRET}, minimumProtocolVersion: \"1.2\"}}}}\n{routes}");
    let all = std::fs::read_to_string(stage.manifests.path().join("all.yaml"))?;
    let changed =
        all.replace(ROOT, ENTRIES).replace("  routes: [{match: /, services: [{name: php, port: 80}]}]\n", &weak)
            + &ingress_route("mycompany", "named", &format!("  virtualhost: {{fqdn: other.mycompany.com}}\n{routes}"))
            + &ingress_route("evil", "sneaky", &format!("  virtualhost: {{fqdn: sneaky.mycompany.com}}\n{routes}"))
            + &service("php", at(9002)).replace("namespace: test", "namespace: evil");
    ensure!(changed.contains("sneaky") && changed.contains(&weak) && !changed.contains(ROOT));
    replace(&stage.manifests.path().join("all.yaml"), &changed)?;
    stage.status("mycompany.domain-root", "valid IngressRoute (1 of 6 subdomains)")?;
    stage.status("evil.sneaky", "sneaky.mycompany.com is within .mycompany.com")?;

    let www = format!("https://{WWW}:8443/");
    wait_for("www is served", PATIENCE, || stage.curl(&ca, &www).ok().filter(|answer| answer.status == 200))?;
    // A delegate cannot lower the domain's requirements.
    let file = ca.file();
    let older = ["--tls-max", "1.2", "--cacert", file.to_str().context("a path")?];
    let client = Client::of(&stage.netns, Ipv4Addr::LOCALHOST.into());
    ensure!(client.curl(&www, &older).is_err(), "TLS 1.2 is spoken below the domain's floor");
    for host in [
        "mycompany.com",
        "mail.other.com",
        "any.mycompany.com",
        "twice.mycompany.com",
        "named.mycompany.com",
        "other.mycompany.com",
        "sneaky.mycompany.com",
    ] {
        ensure!(stage.curl(&ca, &format!("https://{host}:8443/")).is_err(), "{host} has a certificate");
        let clear = client.get(&format!("http://{host}:8080/"))?;
        ensure!([404, 503].contains(&clear.status), "{host} is served: {clear:?}");
    }
    Ok(())
}
