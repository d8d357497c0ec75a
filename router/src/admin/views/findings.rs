//! What the kernel data path leaves to the agent although it might carry it, and settings of this host that affect it;
//! each with the reason and a remedy.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use router_access_log::Flag;
use router_common::verdict::Reason;
use router_datapath::image::{MapImage, RelayReason};
use router_datapath::reconciler::gate::GateReport;
use router_datapath::reconciler::programmed::Programmed;
use router_datapath::{PinFolder, instances};
use router_table::table::RoutingTable;
use serde_json::{Value, json};

const SETTINGS: &str = "/proc/sys/net";
/// Strict mode of `rp_filter` (Linux, ip-sysctl): a source must be reachable through the interface.
const STRICT: u8 = 1;

/// Things with one reason in common.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// Kind of the things named.
    what: &'static str,
    names: Vec<String>,
    /// The reason's label in the program's counters.
    reason: Option<&'static str>,
    why: String,
    remedy: String,
}

/// All findings, those on listeners and endpoints first.
pub fn findings(programmed: &Programmed, pins: &PinFolder) -> Vec<Value> {
    let relayed = programmed.look(relayed);
    let host = interfaces(&programmed.left_alone)
        .into_iter()
        .chain(gate(&programmed.gate))
        .chain(settings(Path::new(SETTINGS)))
        .chain(others(pins));
    relayed.into_iter().chain(host).map(|finding| finding.shown()).collect()
}

/// The only finding of an agent without kernel programs.
pub fn without_programs(reason: &str) -> Vec<Value> {
    let remedy = "with --data-path kernel the agent ends instead; `sluice bpf verify` loads the programs for a trial";
    let (names, why) = (vec!["all connections".to_owned()], reason.to_owned());
    vec![Finding { what: "host", names, reason: None, why, remedy: remedy.to_owned() }.shown()]
}

/// Endpoints that lead back to this router, with the route of each; neither data path connects to them.
pub fn leading_back(table: &RoutingTable, is_own: impl Fn(SocketAddr) -> bool) -> Option<Value> {
    let (mut checked, mut names) = (HashMap::new(), BTreeSet::new());
    for route in table.routers.iter().flat_map(|router| router.routes.values()) {
        for endpoint in route.cluster.services.iter().flat_map(|service| table.endpoints.of(service)) {
            if *checked.entry(endpoint.address).or_insert_with(|| is_own(endpoint.address)) {
                names.insert(format!("{} of {}", endpoint.address, route.id));
            }
        }
    }
    let finding = Finding {
        what: "endpoint",
        names: names.into_iter().collect(),
        reason: Some(Flag::OwnListener.cause()),
        why: "this router listens there itself, so nothing is sent to it".to_owned(),
        remedy: "let the Service or EndpointSlice name the pods".to_owned(),
    };
    (!finding.names.is_empty()).then(|| finding.shown())
}

impl Finding {
    fn shown(self) -> Value {
        let Finding { what, names, reason, why, remedy } = self;
        json!({"what": what, "names": names, "reason": reason, "why": why, "remedy": remedy})
    }
}

/// Listeners and endpoints that the programs leave to the agent, grouped by reason.
fn relayed(image: &MapImage) -> Vec<Finding> {
    let mut listeners: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for ((address, port), listener) in &image.unsteered {
        listeners.entry(&listener.why).or_default().push(SocketAddr::new(*address, *port).to_string());
    }
    let listeners = listeners.into_iter().map(|(why, names)| Finding {
        what: "listener",
        names,
        reason: None,
        why: why.text().to_owned(),
        remedy: why.remedy().to_owned(),
    });
    // An endpoint may belong to many routes.
    let mut endpoints: BTreeMap<&str, (&str, BTreeSet<SocketAddr>)> = BTreeMap::new();
    for RelayReason { endpoint, obstacle } in image.relayed.values() {
        endpoints.entry(obstacle.text()).or_insert((obstacle.remedy(), BTreeSet::new())).1.insert(*endpoint);
    }
    let endpoints = endpoints.into_iter().map(|(why, (remedy, endpoints))| Finding {
        what: "endpoint",
        names: endpoints.iter().map(SocketAddr::to_string).collect(),
        reason: Some(Reason::NoEndpoint.text()),
        why: why.to_owned(),
        remedy: remedy.to_owned(),
    });
    listeners.chain(endpoints).collect()
}

/// Interfaces that the programs are not attached to, grouped by reason.
fn interfaces(left_alone: &[(String, String)]) -> Vec<Finding> {
    by_reason(left_alone, str::to_owned, "nothing, where its connections are answered")
}

/// Interfaces that lack the XDP gate though there are policies.
fn gate(gate: &GateReport) -> Vec<Finding> {
    let is_nowhere = gate.listeners > 0 && gate.attached.is_empty() && gate.failed.is_empty();
    let nowhere = is_nowhere.then(|| {
        let (why, remedy) = match gate.is_off {
            true => (
                "`--xdp off`: the annotations gate.sluice.dev have no effect",
                "run without `--xdp off`, or remove the annotations",
            ),
            false => (
                "every interface is a veth pair, which `--xdp auto` spares: of the annotations gate.sluice.dev, only \
                 connections-per-source has an effect",
                "`--xdp generic` or `--xdp native`",
            ),
        };
        Finding {
            what: "interface",
            names: vec!["all".to_owned()],
            reason: None,
            why: why.to_owned(),
            remedy: remedy.to_owned(),
        }
    });
    let why = |why: &str| format!("the gate is not attached: {why}");
    let failed = by_reason(&gate.failed, why, "what the reason says; other interfaces have the gate");
    let sweeps_only = gate.sweeps_only.as_ref().map(|why| Finding {
        what: "gate",
        names: vec!["connections-per-source".to_owned()],
        reason: None,
        why: format!("closed connections are taken off the number of their source seconds later: {why}"),
        remedy: "what the reason says".to_owned(),
    });
    let lost = gate.cookies.lost.iter().map(|(listener, rule)| Finding {
        what: "listener",
        names: vec![listener.clone()],
        reason: None,
        why: format!("SYNs of a flood are not answered with cookies: {rule} that acknowledge them"),
        remedy: "net.netfilter.nf_conntrack_tcp_loose=1, or a rule that accepts packets to the listener before it"
            .to_owned(),
    });
    let silent = (!gate.cookies.silent.is_empty()).then(|| Finding {
        what: "interface",
        names: gate.cookies.silent.clone(),
        reason: None,
        why: "XDP answers no SYNs: the other end of the veth pair has no XDP program, and would not receive the answers; the \
              TC program sends them"
            .to_owned(),
        remedy: "nothing; `--xdp generic` answers there".to_owned(),
    });
    let closed = gate.forward.as_ref().map_or(&[][..], |forward| &forward.closed);
    let why = |why: &str| format!("XDP does not forward established connections: {why}");
    let closed = by_reason(closed, why, "what the reason says; the TC program forwards there");
    nowhere.into_iter().chain(failed).chain(sweeps_only).chain(lost).chain(silent).chain(closed).collect()
}

/// A finding for each reason, with the interfaces that have it.
fn by_reason(interfaces: &[(String, String)], why: impl Fn(&str) -> String, remedy: &str) -> Vec<Finding> {
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, reason) in interfaces {
        by_reason.entry(reason).or_default().push(name.clone());
    }
    let finding = |(reason, names): (&str, _)| {
        let (why, remedy) = (why(reason), remedy.to_owned());
        Finding { what: "interface", names, reason: None, why, remedy }
    };
    by_reason.into_iter().map(finding).collect()
}

/// Sysctls of this host that affect the kernel data path.
fn settings(folder: &Path) -> Vec<Finding> {
    let number = |setting: &Path| fs::read_to_string(setting).ok().and_then(|text| text.trim().parse::<u8>().ok());
    let mut findings = Vec::new();
    for (version, setting) in [("IPv4", "ipv4/ip_forward"), ("IPv6", "ipv6/conf/all/forwarding")] {
        if number(&folder.join(setting)) == Some(0) {
            findings.push(Finding {
                what: "setting",
                names: vec![format!("net.{}=0", setting.replace('/', "."))],
                reason: None,
                why: format!(
                    "forwarding is off, so the kernel gives the programs no routes of {version}: it finds the next hop \
                     of each packet, and answers to clients leave by the interface that they came in by"
                ),
                remedy: "forwarding, where packets of others may be forwarded".to_owned(),
            });
        }
    }
    let all = folder.join("ipv4/conf");
    let filter = |interface: &str| number(&all.join(interface).join("rp_filter")).unwrap_or_default();
    let mut strict: Vec<String> = fs::read_dir(&all)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| !["all", "default", "lo"].contains(&name.as_str()))
        .filter(|name| filter(name).max(filter("all")) == STRICT)
        .collect();
    strict.sort();
    if !strict.is_empty() {
        findings.push(Finding {
            what: "setting",
            names: strict.iter().map(|name| format!("net.ipv4.conf.{name}.rp_filter=1")).collect(),
            reason: None,
            why: "the reverse path filter is not applied to answers of endpoints that the programs carry".to_owned(),
            remedy: "rules of nftables (`fib saddr . iif oif missing drop`), which are taken into account".to_owned(),
        });
    }
    findings
}

/// Other agents on this host.
fn others(pins: &PinFolder) -> Vec<Finding> {
    let others = instances::others(pins).into_iter().map(|other| Finding {
        what: "instance",
        names: vec![other.name],
        reason: None,
        why: format!("process {} has programs here too; it dials from the ports {}", other.pid, other.ports),
        remedy: "nothing, if it is to run beside this one".to_owned(),
    });
    others.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use router_common::maps::PROTOCOL_TLS;
    use tempfile::TempDir;

    use super::*;
    use router_datapath::image::Unsteered;
    use router_datapath::obstacles::{AgentAlone, Obstacle};

    #[test]
    fn what_has_one_reason_stands_together() {
        let mut image = MapImage::default();
        for host in 1..=2 {
            let why = AgentAlone::HostRule("rule 3 of chain c in table inet t may divert packets to it".into());
            image
                .unsteered
                .insert(([10, 0, 0, host].into(), 443), Unsteered { router: 1, protocol: PROTOCOL_TLS, why });
        }
        let relayed_by = |endpoint: &str, obstacle| RelayReason { endpoint: endpoint.parse().unwrap(), obstacle };
        image.relayed = Arc::new(BTreeMap::from([
            (1, relayed_by("10.0.1.1:80", Obstacle::Encapsulated)),
            (2, relayed_by("10.0.1.2:80", Obstacle::Ipsec)),
            (3, relayed_by("10.0.1.1:80", Obstacle::Encapsulated)),
        ]));
        let found = relayed(&image);
        let shown: Vec<_> = found.iter().map(|it| (it.what, it.names.join(" "), it.reason, &*it.why)).collect();
        assert_eq!(
            shown,
            [
                (
                    "listener",
                    "10.0.0.1:443 10.0.0.2:443".to_owned(),
                    None,
                    "rule 3 of chain c in table inet t may divert packets to it"
                ),
                ("endpoint", "10.0.1.2:80".to_owned(), Some("no-endpoint"), "an IPsec policy applies to packets to it"),
                ("endpoint", "10.0.1.1:80".to_owned(), Some("no-endpoint"), "its route encapsulates packets"),
            ]
        );
    }

    #[test]
    fn interfaces_without_the_gate_stand_together() {
        let failed = [("eth0", "busy"), ("eth1", "old"), ("eth2", "busy")];
        let failed = failed.map(|(name, why)| (name.to_owned(), why.to_owned())).to_vec();
        let found = gate(&GateReport { listeners: 1, failed, ..GateReport::default() });
        let shown: Vec<_> = found.iter().map(|it| (it.names.join(" "), &*it.why)).collect();
        let expected = [
            ("eth0 eth2".to_owned(), "the gate is not attached: busy"),
            ("eth1".to_owned(), "the gate is not attached: old"),
        ];
        assert_eq!(shown, expected);
        let nowhere = gate(&GateReport { listeners: 1, is_off: true, ..GateReport::default() });
        assert_eq!(nowhere[0].why, "`--xdp off`: the annotations gate.sluice.dev have no effect");
        assert_eq!(gate(&GateReport::default()), []);
    }

    #[test]
    fn settings_that_bear_on_the_programs_are_named() {
        let folder = TempDir::new().unwrap();
        let set = |setting: &str, value: &str| {
            let file = folder.path().join(setting);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, value).unwrap();
        };
        set("ipv4/ip_forward", "1\n");
        set("ipv6/conf/all/forwarding", "0\n");
        for (interface, filter) in [("all", "1\n"), ("default", "1\n"), ("eth0", "0\n"), ("eth1", "2\n")] {
            set(&format!("ipv4/conf/{interface}/rp_filter"), filter);
        }
        let names: Vec<String> = settings(folder.path()).into_iter().flat_map(|finding| finding.names).collect();
        assert_eq!(names, ["net.ipv6.conf.all.forwarding=0", "net.ipv4.conf.eth0.rp_filter=1"]);
    }
}
