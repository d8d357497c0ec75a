//! The backends of a story as Services and EndpointSlices, at fixed addresses.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// An endpoint.
pub struct Member {
    name: String,
    address: SocketAddr,
    /// Namespace, name and port of the Service.
    service: Option<(String, String, u16)>,
    app_protocol: Option<String>,
}

/// Parses the lines of `backends` sections.
pub fn members<'l>(lines: impl Iterator<Item = &'l String>) -> Vec<Member> {
    let lines = lines.map(|line| line.trim()).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.zip(1..).map(|(line, number)| member(line, SocketAddr::from(([10, 1, 0, number], 3000)))).collect()
}

fn member(line: &str, address: SocketAddr) -> Member {
    let (name, rest) = line.split_once(':').unwrap();
    let mut member = Member { name: name.to_owned(), address, service: None, app_protocol: None };
    for (key, value) in rest.split_whitespace().filter_map(|word| word.split_once('=')) {
        match key {
            "for" => {
                let (namespace, rest) = value.split_once('/').unwrap();
                let (name, port) = rest.split_once(':').unwrap_or((rest, "80"));
                member.service = Some((namespace.to_owned(), name.to_owned(), port.parse().unwrap()));
            }
            "app" => member.app_protocol = Some(value.to_owned()),
            "at" => member.address = value.parse().unwrap(),
            _ => {}
        }
    }
    member
}

/// Resolves `address NAME` and `port NAME`.
pub fn place(members: &[Member], what: &str) -> Option<String> {
    let (what, name) = what.split_once(' ')?;
    let member = members.iter().find(|member| member.name == name)?;
    match what {
        "address" => Some(member.address.ip().to_string()),
        "port" => Some(member.address.port().to_string()),
        _ => None,
    }
}

/// The manifests of the backends' Services; each backend has an EndpointSlice of its own.
pub fn services(members: &[Member]) -> String {
    let mut ports: BTreeMap<(&str, &str), BTreeMap<u16, Option<&str>>> = BTreeMap::new();
    let mut text = String::new();
    for (number, member) in members.iter().enumerate() {
        let Some((namespace, name, port)) = &member.service else { continue };
        let app = member.app_protocol.as_deref();
        ports.entry((namespace, name)).or_default().entry(*port).or_insert(app);
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
    text
}

fn with_app(protocol: Option<&str>) -> String {
    protocol.map(|protocol| format!(", appProtocol: {protocol}")).unwrap_or_default()
}
