//! The host's handling of outgoing packets applies to those of steered connections too, or the connections are relayed,
//! with the reason.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::command;
use tests::sluice::{self, DataPath};
use tests::steering::{BACK, FRONT, Family, HOST, Setup, Stage, alike, hello};
use tests::stream;
use tests::wait::{PATIENCE, wait_until};

/// Number of the other link between client and router.
const SECOND: u8 = 3;
/// Time-out for the kernel to carry connections again, once the last obstacle is removed.
pub const AGAIN_WITHIN: Duration = Duration::from_secs(5);
/// Optional protection: applies only with a key, which does not exist.
const OPTIONAL: [&str; 7] = ["tmpl", "proto", "esp", "mode", "transport", "level", "use"];

/// Runs a story for each IP version, on each data path.
pub fn all(story: impl Fn(&Stage) -> Result<()>) -> Result<()> {
    let world = |data_path, family| Stage::new(data_path, Setup::new(family));
    alike(world, |stage| {
        stage.connect()?.greet()?;
        story(stage)
    })
}

#[test]
fn an_endpoint_that_an_ipsec_policy_is_for_is_relayed() -> Result<()> {
    all(|stage| {
        policy(stage, BACK, &OPTIONAL)?;
        relayed(stage, "an IPsec policy applies to packets to it")?;
        stage.router.ip(&["xfrm", "policy", "flush"])?;
        steered_again(stage)
    })
}

#[test]
fn an_endpoint_that_an_ipsec_policy_blocks_gets_nothing() -> Result<()> {
    all(|stage| {
        policy(stage, BACK, &["action", "block"])?;
        explained(stage, "an IPsec policy applies to packets to it")?;
        gets_nothing(stage)
    })
}

#[test]
fn clients_of_an_address_that_an_ipsec_policy_is_for_are_relayed() -> Result<()> {
    all(|stage| {
        policy(stage, FRONT, &OPTIONAL)?;
        let address = stage.address;
        relayed(stage, &format!("the agent takes all connections at {address}: an IPsec policy applies"))?;
        stage.router.ip(&["xfrm", "policy", "flush"])?;
        steered_again(stage)
    })
}

#[test]
fn an_endpoint_whose_answers_an_ipsec_policy_is_for_is_relayed() -> Result<()> {
    all(|stage| {
        let family = stage.family;
        let [own, other] = [1, 2].map(|host| family.address(BACK, host).to_string());
        let policy = ["xfrm", "policy", "add", "src", &other, "dst", &own, "dir", "in"];
        stage.router.ip(&[&policy[..], &OPTIONAL].concat())?;
        relayed(stage, "an IPsec policy applies to packets from it")?;
        stage.router.ip(&["xfrm", "policy", "flush"])?;
        steered_again(stage)
    })
}

#[test]
fn where_ipsec_blocks_what_no_policy_allows_nothing_is_steered() -> Result<()> {
    all(|stage| {
        let default = |action| stage.router.ip(&["xfrm", "policy", "setdefault", "out", action]);
        default("block")?;
        explained(stage, "IPsec blocks packets that no policy allows")?;
        // Not even the handshake's packets.
        let client = stage.client.run(|| Ok(TcpStream::connect_timeout(&stage.address, Duration::from_secs(1))))?;
        ensure!(client.is_err(), "a client has connected");
        default("accept")?;
        steered_again(stage)
    })
}

/// A routing rule that matches a socket's packets: they use another link to the endpoint's other address.
#[test]
fn an_endpoint_that_a_rule_of_routing_leads_elsewhere_is_relayed() -> Result<()> {
    let rules: [&[&str]; 4] =
        [&["ipproto", "tcp", "dport", "9000"], &["sport", "1-65534"], &["fwmark", "0x51ce0001"], &["oif", "back"]];
    all(|stage| {
        let family = stage.family;
        let version = if family == Family::V4 { "-4" } else { "-6" };
        // Through a machine that forwards packets to the backend.
        stage.backend.set(if family == Family::V4 { "ipv4/ip_forward" } else { "ipv6/conf/all/forwarding" }, "1")?;
        let via = family.address(BACK, 3).to_string();
        stage.router.ip(&[version, "route", "add", "default", "via", &via, "dev", "back", "table", "77"])?;
        let endpoint = family.address(BACK, 2).to_string();
        for rule in rules {
            let change =
                |verb| stage.router.ip(&[&[version, "rule", verb, "to", &endpoint], rule, &["table", "77"]].concat());
            change("add")?;
            relayed(stage, "a routing rule matches packets to it by more than their addresses")
                .with_context(|| format!("{family:?} {rule:?}"))?;
            change("delete")?;
            steered_again(stage)?;
        }
        // For another port, another protocol, or an incoming interface: not for dials.
        for rule in
            [&["ipproto", "tcp", "dport", "9001"][..], &["ipproto", "udp", "sport", "1-65534"], &["iif", "front"]]
        {
            let own = family.address(BACK, 1).to_string();
            stage
                .router
                .ip(&[&[version, "rule", "add", "from", &own, "to", &endpoint], rule, &["table", "77"]].concat())?;
        }
        stage.router.ip(&[version, "rule", "add", "to", &endpoint, "sport", "1-65534", "table", "77"])?;
        explained(stage, "a routing rule matches packets to it")?;
        stage.router.ip(&[version, "rule", "delete", "to", &endpoint, "sport", "1-65534", "table", "77"])?;
        steered_again(stage)
    })
}

#[test]
fn clients_of_a_listener_whose_answers_a_rule_of_routing_tells_apart_are_relayed() -> Result<()> {
    all(|stage| {
        let family = stage.family;
        let version = if family == Family::V4 { "-4" } else { "-6" };
        let own = stage.address.ip().to_string();
        let rule = |verb| {
            stage.router.ip(&[version, "rule", verb, "from", &own, "ipproto", "tcp", "sport", "8443", "table", "main"])
        };
        rule("add")?;
        let address = stage.address;
        relayed(stage, &format!("the agent takes all connections at {address}: a routing rule matches its answers"))?;
        rule("delete")?;
        steered_again(stage)
    })
}

/// Packets of the programs pass through egress chains of the interface.
#[test]
fn a_chain_of_what_leaves_by_an_interface_holds_on_both_paths() -> Result<()> {
    all(|stage| {
        let family = stage.family;
        let (ip, endpoint) = (if family == Family::V4 { "ip" } else { "ip6" }, family.address(BACK, 2));
        let rule = format!("{ip} daddr {endpoint} tcp dport 9000 drop");
        let table = format!(
            "table netdev leaving {{ chain c {{ type filter hook egress device back priority 0; {rule}\n}}\n}}\n"
        );
        stage.router.feed(&["nft", "-f", "-"], &table)?;
        explained(stage, "rule 2 of chain c in table netdev leaving may drop packets to it")?;
        gets_nothing(stage)?;
        stage.router.feed(&["nft", "-f", "-"], "delete table netdev leaving")?;
        steered_again(stage)
    })
}

#[test]
fn an_endpoint_behind_an_encapsulating_route_is_relayed() -> Result<()> {
    let stage = Stage::new(DataPath::Kernel, Setup::new(Family::V6))?;
    for setting in ["all", "eth0"] {
        stage.backend.set(&format!("ipv6/conf/{setting}/seg6_enabled"), "1")?;
    }
    stage.connect()?;
    let [endpoint, segment] = [2, 3].map(|host| Family::V6.address(BACK, host).to_string());
    let network = format!("{endpoint}/128");
    stage.router.ip(&["route", "add", &network, "encap", "seg6", "mode", "encap", "segs", &segment, "dev", "back"])?;
    relayed(&stage, "its route encapsulates packets")?;
    stage.router.ip(&["route", "delete", &network])?;
    steered_again(&stage)
}

/// Neither the client nor the endpoint receives anything.
pub fn gets_nothing(stage: &Stage) -> Result<()> {
    let mut client = stream::open(&stage.client, stage.address)?;
    client.write_all(&hello()?)?;
    let answer = client.read(&mut [0; 16]);
    ensure!(!matches!(answer, Ok(length) if length > 0), "{answer:?}");
    stage.listener.set_nonblocking(true)?;
    let came = stage.listener.accept();
    ensure!(came.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "the endpoint got {came:?}");
    Ok(stage.listener.set_nonblocking(false)?)
}

/// Two uplinks: clients use one of them, and responses leave through the other.
#[test]
fn clients_whose_answers_leave_by_another_interface_are_relayed() -> Result<()> {
    all(|stage| {
        let family = stage.family;
        let (bits, forwarding) = match family {
            Family::V4 => (24, "ipv4/ip_forward"),
            Family::V6 => (64, "ipv6/conf/all/forwarding"),
        };
        // On a host that does not forward, the programs' route look-ups fail.
        stage.router.set(forwarding, "1")?;
        let [own, other] = [1, 2].map(|host| family.address(SECOND, host).to_string());
        let network = |address: &str| format!("{address}/{bits}");
        stage.client.link(("eth1", &[&network(&other)]), &stage.router, ("second", &[&network(&own)]))?;
        for (netns, interface) in [(&stage.router, "front"), (&stage.client, "eth1")] {
            netns.set(&format!("ipv4/conf/{interface}/rp_filter"), "0")?;
        }
        let attached = || Ok::<_, anyhow::Error>(stage.sluice.get("status")?["dataPath"]["interfaces"].to_string());
        wait_until("the second uplink is attached to", PATIENCE, || {
            !stage.steers() || attached().is_ok_and(|all| all.contains("second"))
        })?;
        let pair = stage.connect()?;
        let client = pair.client.local_addr()?.ip();
        pair.exchange(1, 200_000, 200_000)?;
        stage.router.ip(&["route", "add", &client.to_string(), "via", &other])?;
        passed_up_as(stage, "other-way-back")?;
        stage.router.ip(&["route", "delete", &client.to_string(), "via", &other])?;
        steered_again(stage)
    })
}

#[test]
fn clients_behind_an_encapsulating_route_are_relayed() -> Result<()> {
    let stage = Stage::new(DataPath::Kernel, Setup::new(Family::V6))?;
    stage.router.set("ipv6/conf/all/forwarding", "1")?;
    for setting in ["all", "eth0"] {
        stage.client.set(&format!("ipv6/conf/{setting}/seg6_enabled"), "1")?;
    }
    let client = stage.connect()?.client.local_addr()?.ip();
    let addresses = [2, 3].map(|host| Family::V6.address(FRONT, host));
    let segment = addresses.into_iter().find(|address| *address != client).context("another address")?.to_string();
    let network = format!("{client}/128");
    stage.router.ip(&["route", "add", &network, "encap", "seg6", "mode", "encap", "segs", &segment, "dev", "front"])?;
    // Nothing on the interface can match the listener's SYN-ACK among outgoing packets.
    passed_up_as(&stage, "no-handshake")?;
    stage.router.ip(&["route", "delete", &network])?;
    steered_again(&stage)
}

/// Checks that a connection is relayed, on the kernel's path for this reason, with all its bytes.
fn passed_up_as(stage: &Stage, reason: &str) -> Result<()> {
    let pair = stream::connect(&stage.client, stage.address, &stage.listener, HOST)?;
    if stage.steers() {
        ensure!(stage.check(&pair).is_err(), "the kernel carries it");
        let passed = stage.passed_up()?;
        ensure!(passed.get(reason) == Some(&1), "{passed:?}");
    }
    pair.exchange(1, 200_000, 200_000)
}

/// An IPsec policy for packets from the router to its neighbour on a link.
fn policy(stage: &Stage, link: u8, what: &[&str]) -> Result<()> {
    let [own, other] = [1, 2].map(|host| stage.family.address(link, host).to_string());
    let policy = ["xfrm", "policy", "add", "src", &own, "dst", &other, "dir", "out"];
    stage.router.ip(&[&policy[..], what].concat())
}

/// Waits until `explain` gives the reason, on the kernel's path; then connections are relayed, with all their bytes.
pub fn relayed(stage: &Stage, reason: &str) -> Result<()> {
    explained(stage, reason)?;
    let pair = stream::connect(&stage.client, stage.address, &stage.listener, HOST)?;
    ensure!(!stage.steers() || stage.check(&pair).is_err(), "the kernel carries it");
    pair.exchange(1, 200_000, 200_000)
}

/// Waits until `explain` gives the reason why the kernel does not carry connections, on the kernel's path.
pub fn explained(stage: &Stage, reason: &str) -> Result<()> {
    if !stage.steers() {
        return Ok(());
    }
    let verdict = || verdict(stage);
    wait_until("explain gives the reason", PATIENCE, || verdict().is_ok_and(|verdict| verdict.contains(reason)))
        .map(drop)
        .with_context(|| format!("{:?} does not contain {reason:?}", verdict()))
}

/// Waits until connections succeed and are steered, on the kernel's path.
pub fn steered_again(stage: &Stage) -> Result<()> {
    steered_within(stage, AGAIN_WITHIN)
}

/// Waits until connections are steered, for at most this time.
pub fn steered_within(stage: &Stage, within: Duration) -> Result<()> {
    let begin = Instant::now();
    loop {
        let pair = match stream::connect(&stage.client, stage.address, &stage.listener, HOST) {
            // The relay ejects an endpoint that did not respond for a while.
            Err(_) if !stage.steers() && begin.elapsed() < PATIENCE => continue,
            pair => pair?,
        };
        match stage.check(&pair) {
            Ok(()) => return pair.exchange(2, 200_000, 200_000),
            Err(error) => {
                ensure!(begin.elapsed() < within, "not steered within {within:?}: {error}; {:?}", verdict(stage));
            }
        }
    }
}

/// The kernel's verdict in the output of `explain`.
fn verdict(stage: &Stage) -> Result<String> {
    let mut command = Command::new(sluice::binary()?);
    command.args(["explain", HOST, "-o", "json", "--state"]).arg(stage.sluice.state());
    let explanation: Value = serde_json::from_slice(&command::output(&mut command)?.stdout)?;
    let steps = explanation["steps"].as_array().context("steps")?;
    let step = steps.iter().find(|step| step["stage"] == "dataPath").context("no step of the data path")?;
    Ok(step["verdict"].as_str().unwrap_or_default().to_owned())
}
