//! Domains for stories: a router on 8080 and 8443, and the namespaces `corp`, `team` and `other`. Each has a Service
//! `web` with a clear-text endpoint that identifies itself by the namespace, and a Service `raw` with a TLS endpoint
//! that has its own certificate.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::*;

/// The namespaces, and ports of `web` and `raw`.
const NAMESPACES: [(&str, u16, u16); 3] = [("corp", 9001, 9011), ("team", 9002, 9012), ("other", 9003, 9013)];

/// A router with objects of Contour and Secrets.
pub struct Domains {
    netns: Netns,
    manifests: TempDir,
    sluice: Sluice,
    _nginx: Nginx,
    /// Owner of each certificate: `namespace/secret`, or `raw`.
    known: BTreeMap<String, String>,
    _ca: Ca,
}

fn object(api_version: &str, kind: &str, id: &str, spec: &Value) -> Value {
    let (namespace, name) = id.split_once('/').unwrap_or_default();
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": { "namespace": namespace, "name": name },
        "spec": spec,
    })
}

/// An IngressRoute, `namespace/name`.
pub fn ingress(id: &str, spec: &Value) -> Value {
    object("contour.heptio.com/v1beta1", "IngressRoute", id, spec)
}

/// An HTTPProxy.
pub fn proxy(id: &str, spec: &Value) -> Value {
    object("projectcontour.io/v1", "HTTPProxy", id, spec)
}

/// The root of `.DOMAIN` with its certificate, `corp/DOMAIN`, which delegates names to `namespace/name`.
pub fn domain(name: &str, subdomains: &[(&str, &str)]) -> Value {
    zone(&format!("corp/{name}"), &format!(".{name}"), &json!({ "secretName": name }), subdomains)
}

/// The root of a domain with this `tls`.
pub fn zone(id: &str, fqdn: &str, tls: &Value, subdomains: &[(&str, &str)]) -> Value {
    let subdomains = subdomains.iter().map(|(name, delegate)| {
        let (namespace, object) = delegate.split_once('/').unwrap_or_default();
        json!({ "subdomain": name, "delegate": { "name": object, "namespace": namespace } })
    });
    let subdomains: Vec<Value> = subdomains.collect();
    ingress(id, &json!({ "virtualhost": { "fqdn": fqdn, "tls": tls }, "subdomains": subdomains }))
}

/// `services` of one Service.
pub fn to(service: &str) -> Value {
    json!([{ "name": service, "port": 80 }])
}

/// An IngressRoute that sends all paths to `web` of its namespace.
pub fn team(id: &str, virtual_host: &Value) -> Value {
    with(ingress(id, &json!({ "routes": [{ "match": "/", "services": to("web") }] })), "virtualhost", virtual_host)
}

/// An object with a further member of its `spec`; `null` removes the member.
pub fn with(mut object: Value, member: &str, value: &Value) -> Value {
    if !value.is_null() {
        object["spec"][member] = value.clone();
    }
    object
}

/// Permits a namespace to reference a Secret of `corp`.
pub fn lend(secret: &str, to: &str) -> Value {
    let spec = json!({ "delegations": [{ "secretName": secret, "targetNamespaces": [to] }] });
    object("projectcontour.io/v1", "TLSCertificateDelegation", &format!("corp/lend-{secret}"), &spec)
}

/// Documents of a file.
fn text(objects: &[Value]) -> String {
    objects.iter().map(|object| format!("---\n{object}\n")).collect()
}

impl Domains {
    /// Starts the router with these objects and Secrets: `(namespace/name, name that the certificate is for)`.
    pub fn new(objects: &[Value], secrets: &[(&str, &str)], arguments: &[&str]) -> Result<Domains> {
        let netns = Netns::new("domains")?;
        let ca = Ca::new()?;
        let manifests = TempDir::new()?;
        let (mut base, mut servers, mut known) = (folder::router(), Vec::new(), BTreeMap::new());
        let raw = ca.leaf("raw.test")?;
        let [certificate, _] = raw.write(manifests.path(), "raw")?;
        known.insert(compact(&raw.certificate), "raw".to_owned());
        for (namespace, web, tls) in NAMESPACES {
            let of =
                |name, port| service(name, at(port)).replace("namespace: test", &format!("namespace: {namespace}"));
            base += &(of("web", web) + &of("raw", tls));
            servers.push(Server { name: namespace, listen: at(web), certificate: None });
            servers.push(Server { name: namespace, listen: at(tls), certificate: Some(certificate.clone()) });
        }
        for (id, name) in secrets {
            let (namespace, secret_name) = id.split_once('/').unwrap_or_default();
            let leaf = ca.leaf(name)?;
            base += &leaf.secret(namespace, secret_name);
            known.insert(compact(&leaf.certificate), (*id).to_owned());
        }
        let nginx = Nginx::start(&netns, &servers)?;
        std::fs::write(manifests.path().join("base.yaml"), base)?;
        std::fs::write(manifests.path().join("all.yaml"), text(objects))?;
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let options = Options { arguments, ..Options::loopback(DataPath::UserSpace) };
        let sluice = Sluice::start(&netns, manifests.path(), &options)?;
        Ok(Domains { netns, manifests, sluice, _nginx: nginx, known, _ca: ca })
    }

    /// Replaces the objects.
    pub fn change(&self, objects: &[Value]) -> Result<()> {
        replace(&self.manifests.path().join("all.yaml"), &text(objects))
    }

    /// Result of a request: the namespace that responds, or the status, and for `https` the owner of the certificate
    /// (`default`: the router's own). `-`: no connection. `… by tcp`: an endpoint that gets bytes only; `raw`: one that
    /// terminates TLS itself.
    pub fn ask(&self, url: &str, arguments: &[&str]) -> Result<String> {
        let (scheme, rest) = url.split_once("://").context("a scheme")?;
        let (host, path) = rest.split_once('/').context("a path")?;
        let port = if scheme == "https" { 8443 } else { 8080 };
        let client = Client::of(&self.netns, Ipv4Addr::LOCALHOST.into());
        let arguments = [&["--insecure", "--write-out", "%{certs}"][..], arguments].concat();
        let Ok(answer) = client.curl(&format!("{scheme}://{host}:{port}/{path}"), &arguments) else {
            return Ok("-".to_owned());
        };
        let words: Vec<&str> = answer.body.split_whitespace().collect();
        let who = match (answer.status, words.get(1)) {
            (200, Some(name)) if scheme == "https" && words.contains(&"proto=") && words.contains(&"tls=") => {
                format!("{name} by tcp")
            }
            (200, Some(name)) => (*name).to_owned(),
            (status, _) => status.to_string(),
        };
        if scheme == "http" {
            return Ok(who);
        }
        let begin = answer.body.find("-----BEGIN").with_context(|| format!("no certificate in {answer:?}"))?;
        let pem = answer.body.get(begin..).unwrap_or_default();
        let end = pem.find("-----END").context("a whole certificate")?;
        let whose =
            self.known.iter().find(|(known, _)| known.starts_with(&compact(pem.get(..end).unwrap_or_default())));
        Ok(format!("{who} with {}", whose.map_or("default", |(_, name)| name)))
    }

    /// Checks the results of requests.
    pub fn expect(&self, cases: &[(&str, &str)]) -> Result<()> {
        for (url, expected) in cases {
            let found = self.ask(url, &[])?;
            ensure!(found == *expected, "{url} comes to {found}, not to {expected}");
        }
        Ok(())
    }

    /// Waits until a request has this result.
    pub fn becomes(&self, url: &str, expected: &str) -> Result<()> {
        let is = || self.ask(url, &[]).ok().filter(|found| found == expected);
        wait_for(&format!("{url} comes to {expected}"), PATIENCE, is).map(drop)
    }

    /// The status file of an IngressRoute, `namespace/name`.
    pub fn status(&self, id: &str) -> Result<String> {
        let file = format!("ingressroute.{}.yaml", id.replace('/', "."));
        let file = self.sluice.state().join("status").join(file);
        let read = |file: &Path| std::fs::read_to_string(file).ok();
        Ok(wait_for(&format!("{id} has a status"), PATIENCE, || read(&file))?.0)
    }
}

/// PEM without line ends, and without the text around it.
fn compact(pem: &str) -> String {
    pem.split_whitespace().collect()
}
