//! The hosts of a story: addresses of clients and of the router, and the backends with their Services.
//!
//! A backend is a line: its name, its protocol, and options. `for=NAMESPACE/SERVICE:PORT` makes it an endpoint of a
//! Service; a Service that several backends name has all of them as endpoints.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::placeholders::Certificates;
use crate::echo::{Answer, Backend, Instead, Speaks};

/// Address of the router.
pub const ROUTER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
/// Default port of backends; no router of a story has it.
const PORT: u16 = 3000;
/// Default address of clients.
pub const CLIENT: &str = "192.0.2.1";
/// Addresses of the namespace's loopback interface: the router's and the clients'.
pub const ADDRESSES: &[&str] =
    &["10.0.0.1/32", "192.0.2.1/32", "192.0.2.2/32", "198.51.100.7/32", "fd00::1/128", "2001:db8::1/128"];

/// An endpoint: a backend, or an address without one.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: SocketAddr,
    /// The backend, if there is one.
    pub backend: Option<Backend>,
    /// True if the address does not reject connections: packets to it are lost.
    pub is_silent: bool,
    /// Whether it receives copies of requests, which arrive at any time.
    pub is_mirror: bool,
    service: Option<Service>,
}

#[derive(Clone, Debug)]
struct Service {
    namespace: String,
    name: String,
    port: u16,
    app_protocol: Option<String>,
}

/// Parses the lines of a `backends` section, without empty lines and comments.
///
/// # Errors
/// A line is invalid, or a certificate cannot be made.
pub fn members(lines: &[String], certificates: &mut Certificates) -> Result<Vec<Member>> {
    let lines = lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut members = Vec::new();
    for line in lines {
        let line = &certificates.fill(line, None, |_| None)?;
        let number = u8::try_from(members.len() + 1)?;
        let address = SocketAddr::from(([10, 1, 0, number], PORT));
        members.push(member(line, address, certificates).with_context(|| format!("backend {line:?}"))?);
    }
    Ok(members)
}

fn member(line: &str, mut address: SocketAddr, certificates: &mut Certificates) -> Result<Member> {
    let (name, rest) = line.split_once(':').context("write NAME: MODE")?;
    let words = shlex::split(rest).context("a quote is not closed")?;
    let (mode, attributes) = words.split_first().context("write what it speaks after its name")?;
    let (speaks, tls, mut alpn) = match mode.as_str() {
        "http" | "absent" | "silent" => (Speaks::Http, false, ""),
        "https" => (Speaks::Http, true, "http/1.1"),
        "h2" => (Speaks::Http, true, "h2,http/1.1"),
        "h2c" => (Speaks::H2c, false, ""),
        "grpc" => (Speaks::Grpc, false, ""),
        "grpcs" => (Speaks::Grpc, true, "h2"),
        "bytes" => (Speaks::Bytes, false, ""),
        "udp" => (Speaks::Datagrams, false, ""),
        other => bail!("{other:?} is no mode; write http, https, h2, h2c, grpc, grpcs, bytes, udp, absent or silent"),
    };
    let mut answer = Answer::default();
    let (mut service, mut app_protocol, mut proxied, mut is_mirror) = (None, None, false, false);
    let mut certificate = name;
    for attribute in attributes {
        let (key, value) = attribute.split_once('=').unwrap_or((attribute, ""));
        match key {
            "for" => service = Some(service_of(value)?),
            "app" => app_protocol = Some(value.to_owned()),
            "at" => address = value.parse().context("write at=ADDRESS:PORT")?,
            "cert" => certificate = value,
            "alpn" => alpn = value,
            "proxied" => proxied = true,
            "mirror" => is_mirror = true,
            "status" => answer.statuses = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "reason" => answer.reason = Some(value.to_owned()),
            "body" => answer.body = Some(value.to_owned()),
            "grpc-status" => answer.grpc_status = value.parse()?,
            "delay" => answer.delay = Duration::from_millis(value.strip_suffix("ms").unwrap_or(value).parse()?),
            "close" => answer.instead = Some(Instead::Close),
            "hold" => answer.instead = Some(Instead::Hold),
            "send" => answer.instead = Some(Instead::Send(unescaped(value).into_bytes())),
            "header" => {
                let (name, value) = value.split_once(": ").context("write \"header=NAME: VALUE\"")?;
                answer.fields.push((name.to_owned(), value.to_owned()));
            }
            other => bail!("{other:?} is no attribute of a backend"),
        }
    }
    let alpn: Vec<&str> = alpn.split(',').filter(|name| !name.is_empty()).collect();
    let tls = if tls { Some(certificates.leaf(certificate)?.server(&alpn)?) } else { None };
    let backend = Backend { name: name.to_owned(), address, speaks, tls, proxied, answer };
    Ok(Member {
        name: name.to_owned(),
        address,
        backend: (!["absent", "silent"].contains(&mode.as_str())).then_some(backend),
        is_silent: mode == "silent",
        is_mirror,
        service: service.map(|service| Service { app_protocol, ..service }),
    })
}

fn service_of(text: &str) -> Result<Service> {
    let (namespace, rest) = text.split_once('/').context("write for=NAMESPACE/SERVICE:PORT")?;
    let (name, port) = rest.split_once(':').unwrap_or((rest, "80"));
    Ok(Service { namespace: namespace.to_owned(), name: name.to_owned(), port: port.parse()?, app_protocol: None })
}

/// Resolves `\r`, `\n` and `\0` in a backend's bytes.
fn unescaped(text: &str) -> String {
    text.replace("\\r", "\r").replace("\\n", "\n").replace("\\0", "\0")
}

/// The manifests of the backends' Services; each backend has an EndpointSlice of its own.
///
/// # Errors
/// When two backends do not agree on a port.
pub fn services(members: &[Member]) -> Result<String> {
    let mut ports: BTreeMap<(&str, &str), BTreeMap<u16, Option<&str>>> = BTreeMap::new();
    let mut text = String::new();
    for (number, member) in members.iter().enumerate() {
        let Some(Service { namespace, name, port, app_protocol }) = &member.service else { continue };
        let app = app_protocol.as_deref();
        let known = *ports.entry((namespace, name)).or_default().entry(*port).or_insert(app);
        ensure!(known == app, "backend {}: app= differs from that of another backend of {name}", member.name);
        text += &format!(
            "---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}-{number}, namespace: {namespace}, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: {family}
endpoints: [{{addresses: [{address:?}]}}]
ports: [{{name: p{port}, port: {endpoint}{app}}}]
",
            family = if member.address.is_ipv6() { "IPv6" } else { "IPv4" },
            address = member.address.ip().to_string(),
            endpoint = member.address.port(),
            app = with_app(app),
        );
    }
    for ((namespace, name), ports) in ports {
        let port = |(port, app): (&u16, &Option<&str>)| format!("{{name: p{port}, port: {port}{}}}", with_app(*app));
        let ports: Vec<String> = ports.iter().map(port).collect();
        text += &format!(
            "---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{ports: [{}]}}
",
            ports.join(", ")
        );
    }
    Ok(text)
}

fn with_app(protocol: Option<&str>) -> String {
    protocol.map(|protocol| format!(", appProtocol: {protocol}")).unwrap_or_default()
}
