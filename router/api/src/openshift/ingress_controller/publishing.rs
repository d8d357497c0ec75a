//! `endpointPublishingStrategy`: ports, and the PROXY protocol
//! (docs/openshift.md#fields-of-ingresscontrollers).

use router_model::field::Findings;

use crate::fields::Fields;

/// How clients reach a router.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Publishing {
    /// `type`.
    pub kind: PublishingKind,
    /// `hostNetwork.httpPort`.
    pub http_port: Option<u16>,
    /// `hostNetwork.httpsPort`.
    pub https_port: Option<u16>,
    /// `hostNetwork.statsPort`.
    pub stats_port: Option<u16>,
    /// `<type>.protocol: PROXY`: connections begin with a PROXY protocol header.
    pub proxy_protocol: bool,
}

/// `type`; an agent always listens on its host's ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PublishingKind {
    /// Ports of the host.
    #[default]
    HostNetwork,
    /// Behind a load balancer.
    LoadBalancerService,
    /// On node ports.
    NodePortService,
    /// Not published.
    Private,
}

/// Reads `endpointPublishingStrategy`. `None` after an error in its type.
pub fn parse(mut strategy: Fields<'_>, findings: &mut Findings) -> Option<Publishing> {
    let kind = match strategy.text("type", findings) {
        None | Some("HostNetwork") => Some(PublishingKind::HostNetwork),
        Some("LoadBalancerService") => Some(PublishingKind::LoadBalancerService),
        Some("NodePortService") => Some(PublishingKind::NodePortService),
        Some("Private") => Some(PublishingKind::Private),
        Some(other) => {
            let message = format!(
                "Unsupported value: {other:?}; write one of HostNetwork, LoadBalancerService, NodePortService, Private"
            );
            findings.error(strategy.path("type"), message);
            None
        }
    };
    let mut network = strategy.mapping("hostNetwork", findings);
    let mut port = |name| network.number(name, 1, 65535, findings).and_then(|number| u16::try_from(number).ok());
    let ports = [port("httpPort"), port("httpsPort"), port("statsPort")];
    for (i, name) in ["httpPort", "httpsPort", "statsPort"].iter().enumerate() {
        if ports[i].is_some() && ports[..i].contains(&ports[i]) {
            findings.error(network.path(name), "Invalid value: the port is used twice; write three different ports");
        }
    }
    let mut proxy_protocol = protocol(&mut network, findings);
    network.finish(findings);
    for name in ["nodePort", "private"] {
        let mut fields = strategy.mapping(name, findings);
        proxy_protocol |= protocol(&mut fields, findings);
        fields.finish(findings);
    }
    strategy.ignore(&["loadBalancer"]);
    strategy.finish(findings);
    let [http_port, https_port, stats_port] = ports;
    Some(Publishing { kind: kind?, http_port, https_port, stats_port, proxy_protocol })
}

/// Whether `protocol` is PROXY.
fn protocol(fields: &mut Fields<'_>, findings: &mut Findings) -> bool {
    match fields.text("protocol", findings) {
        Some("PROXY") => return true,
        None | Some("TCP") => {}
        Some(other) => {
            findings.error(fields.path("protocol"), format!("Unsupported value: {other:?}; write TCP or PROXY"));
        }
    }
    false
}
