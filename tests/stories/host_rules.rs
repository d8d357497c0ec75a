//! Rules of the host's netfilter apply to connections through the router on either data path.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use tests::sluice::DataPath;
use tests::steering::{BACK, BACKEND_PORT, FRONT, Family, HOST, ROUTER_PORT, Setup, Stage, hello};
use tests::stream::{self, Pair};

use crate::ways_out::{AGAIN_WITHIN, all, explained, gets_nothing, steered_again, steered_within};

#[test]
fn an_endpoint_that_a_rule_drops_gets_nothing_until_the_rule_goes() -> Result<()> {
    all(|stage| {
        let endpoint = stage.family.address(BACK, 2);
        rules(stage, &chain("filter", "output", &format!("{} daddr {endpoint} drop", version(stage))))?;
        explained(stage, "rule 3 of chain c in table inet story may drop packets to it")?;
        gets_nothing(stage)?;
        flush(stage)?;
        steered_again(stage)
    })
}

#[test]
fn answers_that_a_rule_rejects_do_not_arrive() -> Result<()> {
    all(|stage| {
        let rule = format!("tcp sport {BACKEND_PORT} ct state established reject");
        rules(stage, &chain("filter", "input", &rule))?;
        explained(stage, "rule 3 of chain c in table inet story may reject packets from it")?;
        let mut client = stream::open(&stage.client, stage.address)?;
        client.write_all(&hello()?)?;
        let answer = client.read(&mut [0; 16]);
        ensure!(!matches!(answer, Ok(length) if length > 0), "{answer:?}");
        Ok(())
    })
}

#[test]
fn an_endpoint_sees_the_address_that_a_rule_gives() -> Result<()> {
    all(|stage| {
        let given = stage.family.address(BACK, 9);
        let bits = if given.is_ipv4() { 24 } else { 64 };
        let own = stage.family.address(BACK, 1);
        let mut address =
            vec!["address".to_owned(), "add".into(), format!("{given}/{bits}"), "dev".into(), "back".into()];
        // It must not become the source address of dials.
        address.extend(
            given.is_ipv6().then_some(["nodad", "preferred_lft", "0"]).into_iter().flatten().map(str::to_owned),
        );
        stage.router.ip(&address.iter().map(String::as_str).collect::<Vec<_>>())?;
        let family = family(stage);
        let rule = format!("{} saddr {own} oifname back snat {family} to {given}", version(stage));
        rules(stage, &chain("nat", "postrouting", &rule))?;
        explained(stage, "rule 2 of chain c in table inet story may translate addresses or ports of packets to it")?;
        let pair = relayed(stage)?;
        ensure!(pair.origin.peer_addr()?.ip() == given, "{:?}", pair.origin.peer_addr());
        pair.exchange(3, 200_000, 200_000)
    })
}

#[test]
fn another_endpoint_gets_what_a_rule_sends_there() -> Result<()> {
    all(|stage| {
        let [endpoint, other] = [2, 3].map(|host| stage.family.address(BACK, host));
        let (version, family) = (version(stage), family(stage));
        rules(stage, &chain("nat", "output", &format!("{version} daddr {endpoint} dnat {family} to {other}")))?;
        explained(stage, "rule 2 of chain c in table inet story may translate addresses or ports of packets to it")?;
        let pair = relayed(stage)?;
        ensure!(pair.origin.local_addr()?.ip() == other, "{:?}", pair.origin.local_addr());
        pair.exchange(4, 200_000, 200_000)
    })
}

#[test]
fn another_machine_gets_the_clients_that_a_rule_sends_there() -> Result<()> {
    all(|stage| {
        stage.router.set("ipv6/conf/all/forwarding", "1")?;
        let (version, family) = (version(stage), family(stage));
        let (clients, other) = (stage.family.address(FRONT, 0), stage.family.address(BACK, 3));
        let bits = if other.is_ipv4() { 24 } else { 64 };
        let to = if other.is_ipv4() { format!("{other}:{BACKEND_PORT}") } else { format!("[{other}]:{BACKEND_PORT}") };
        let divert = format!("tcp dport {ROUTER_PORT} dnat {family} to {to}");
        let back = format!("{version} saddr {clients}/{bits} oifname back masquerade");
        let text =
            chain("nat", "prerouting", &divert) + &chain("nat", "postrouting", &back).replace("chain c", "chain d");
        rules(stage, &text)?;
        if stage.steers() {
            let reason = "rule 2 of chain c in table inet story may translate addresses or ports of packets to it";
            // Every address of the router has a listener; each is named.
            let [front, back] = [FRONT, BACK].map(|link| SocketAddr::new(stage.family.address(link, 1), ROUTER_PORT));
            for address in [front, back] {
                explained(stage, &format!("{address}"))?;
            }
            explained(stage, reason)?;
        }
        let pair = stream::connect(&stage.client, stage.address, &stage.listener, HOST)?;
        ensure!(pair.origin.local_addr()?.ip() == other, "{:?}", pair.origin.local_addr());
        pair.exchange(5, 200_000, 200_000)?;
        flush(stage)?;
        steered_again(stage)
    })
}

#[test]
fn rules_for_others_do_not_matter() -> Result<()> {
    for family in [Family::V4, Family::V6] {
        let stage = Stage::new(DataPath::Kernel, Setup::new(family))?;
        let version = version(&stage);
        let [endpoint, other, third] = [2, 3, 77].map(|host| family.address(BACK, host));
        let source = family.address(BACK, 1);
        let text = format!(
            "table inet others {{
                set banned {{ type {version_type}; flags interval; elements = {{ {third}, {other} }} }}
                map verdicts {{ type {version_type} . inet_service : verdict; elements = {{ {other} . 9000 : drop, {endpoint} . 9001 : drop }} }}
                chain masq {{ meta mark set meta mark | 0x4000; }}
                chain out {{ type filter hook output priority 0; policy drop;
                    meta l4proto ipv6-icmp accept
                    {version} daddr @banned drop
                    {version} daddr . tcp dport vmap @verdicts
                    tcp dport {{ 22, 1000-8999 }} reject
                    oifname {{ \"front\", \"lo\" }} accept
                    oifname != \"ba*\" drop
                    tcp flags & (fin|syn|rst|ack) == syn ct state new {version} saddr {source} accept
                    ct state vmap {{ established : accept, related : accept, invalid : drop }}
                }}
                chain in {{ type filter hook input priority 0; policy drop;
                    meta l4proto ipv6-icmp accept
                    ct state invalid drop
                    tcp flags & (fin|syn) == (fin|syn) drop
                    ct state established,related accept
                    iifname {{ lo, front }} accept
                    limit rate 5/second accept
                }}
                chain nat {{ type nat hook output priority -100;
                    {version} daddr {other} jump masq
                    {version} daddr {other} dnat {family} to {endpoint}
                    fib daddr type local tcp dport 1-1023 redirect to :1
                }}
                chain post {{ type nat hook postrouting priority 100;
                    meta mark & 0x4000 == 0x4000 masquerade
                    {version} saddr != {source} masquerade
                    oifname front masquerade
                }}
                chain pre {{ type nat hook prerouting priority -100;
                    tcp dport {{ 80, 443 }} redirect to :8080
                    {version} daddr {endpoint} dnat {family} to {other}
                }}
            }}
            table ip6 spoofed {{ chain c {{ type filter hook prerouting priority -10;
                fib saddr . mark . iif oif missing drop;
            }}
            }}",
            version_type = if version == "ip" { "ipv4_addr" } else { "ipv6_addr" },
            family = self::family(&stage),
        );
        stays_steered(&stage, &["nft", "-f", "-"], &text)?;
    }
    Ok(())
}

#[test]
fn many_rules_for_others_do_not_hold_the_agent_up() -> Result<()> {
    let stage = Stage::new(DataPath::Kernel, Setup::new(Family::V4))?;
    let mut text = "table ip many { chain c { type filter hook output priority 0;\n".to_owned();
    for number in 0..20_000_u32 {
        let address = std::net::Ipv4Addr::from(0x0a60_0000 + number);
        text += &format!("ip daddr {address} tcp dport 9000 counter drop\n");
    }
    stays_steered(&stage, &["nft", "-f", "-"], &(text + "}\n}\n"))
}

#[test]
fn an_operator_who_knows_has_rules_passed_by() -> Result<()> {
    let mut setup = Setup::new(Family::V4);
    setup.arguments = vec!["--host-firewall".into(), "bypass".into()];
    let stage = Stage::new(DataPath::Kernel, setup)?;
    rules(&stage, &chain("filter", "output", "tcp dport 9000 drop"))?;
    stage.connect()?.exchange(6, 200_000, 200_000)
}

/// Loads rules for other traffic, and waits until the agent has read them: a further rule, for the endpoint, makes the
/// agent relay, and is removed again.
pub fn stays_steered(stage: &Stage, program: &[&str], text: &str) -> Result<()> {
    stage.router.feed(program, text)?;
    let endpoint = stage.family.address(BACK, 2);
    rules(stage, &chain("filter", "output", &format!("{} daddr {endpoint} drop", version(stage))))?;
    explained(stage, "of chain c in table inet story may drop packets to it")?;
    stage.router.feed(&["nft", "-f", "-"], "delete table inet story")?;
    // All rules are read again; a debug build reads some thousands per second.
    let rules = text.lines().count() as u64;
    steered_within(stage, AGAIN_WITHIN + Duration::from_secs(rules / 1000))
}

fn version(stage: &Stage) -> &'static str {
    if stage.family == Family::V4 { "ip" } else { "ip6" }
}

/// The family that a `nat` chain in an `inet` table requires.
fn family(stage: &Stage) -> &'static str {
    version(stage)
}

/// A chain with this rule and one that never matches.
fn chain(kind: &str, hook: &str, rule: &str) -> String {
    let other = if kind == "filter" { "ip daddr 192.0.2.1 drop\n" } else { "" };
    format!("table inet story {{\nchain c {{\ntype {kind} hook {hook} priority 0\n{other}{rule}\n}}\n}}\n")
}

/// Loads rules on the router's machine.
fn rules(stage: &Stage, text: &str) -> Result<()> {
    stage.router.feed(&["nft", "-f", "-"], text)
}

fn flush(stage: &Stage) -> Result<()> {
    rules(stage, "flush ruleset")
}

/// A relayed connection.
fn relayed(stage: &Stage) -> Result<Pair> {
    let pair = stream::connect(&stage.client, stage.address, &stage.listener, HOST)?;
    ensure!(!stage.steers() || stage.check(&pair).is_err(), "the kernel carries it");
    Ok(pair)
}
