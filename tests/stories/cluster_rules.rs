//! Rules that are common on nodes of a cluster do not prevent the kernel from carrying connections to pods; a policy
//! among them applies.

use std::time::Duration;

use anyhow::Result;
use tests::sluice::DataPath;
use tests::steering::{BACK, BACKEND_PORT, Family, Setup, Stage};

use crate::host_rules::stays_steered;
use crate::ways_out::{all, explained, gets_nothing, relayed, steered_within};

/// The kernel does not notify about changes of ipsets and `iptables-legacy` tables: they are polled every 5 s.
const SETS_AGAIN_WITHIN: Duration = Duration::from_secs(8);

#[test]
fn kube_proxys_rules_for_iptables_leave_pods_steered() -> Result<()> {
    iptables(include_str!("rules/kube-proxy.iptables"))
}

#[test]
fn kube_proxys_rules_for_nftables_leave_pods_steered() -> Result<()> {
    let policy = "table {family} policies { chain c { type filter hook output priority 0;
        {family} daddr {pod} tcp dport 9000 drop\n}\n}\n";
    rules(|_| vec!["nft", "-f", "-"], include_str!("rules/kube-proxy.nft"), |_| vec!["nft", "-f", "-"], policy)
}

#[test]
fn flannels_rules_leave_pods_steered() -> Result<()> {
    iptables(include_str!("rules/flannel.iptables"))
}

#[test]
fn calicos_rules_leave_pods_steered() -> Result<()> {
    iptables(include_str!("rules/calico.iptables"))
}

#[test]
fn rules_by_ipsets_are_for_what_is_in_them() -> Result<()> {
    let stage = Stage::new(DataPath::Kernel, Setup::new(Family::V4))?;
    let set = |command: &str| stage.router.feed(&["ipset", "restore"], &format!("{command}\n"));
    set("create banned hash:net\nadd banned 10.81.2.64/26\nadd banned 10.81.2.3")?;
    let rule = "*filter\n-A OUTPUT -m set --match-set banned dst -j DROP\nCOMMIT\n";
    stays_steered(&stage, &[restore(&stage)], rule)?;
    set("add banned 10.81.2.0/29")?;
    explained(&stage, "of chain OUTPUT in table ip filter may drop packets to it")?;
    gets_nothing(&stage)?;
    set("del banned 10.81.2.0/29")?;
    steered_within(&stage, SETS_AGAIN_WITHIN)
}

#[test]
fn tables_of_iptables_legacy_that_do_something_have_everything_relayed() -> Result<()> {
    all(|stage| {
        let command = if stage.family == Family::V4 { "iptables-legacy" } else { "ip6tables-legacy" };
        let run = |arguments: &[&str]| stage.router.feed(&[&[command][..], arguments].concat(), "");
        // Listing creates the empty table.
        run(&["-t", "nat", "-L"])?;
        stays_steered(stage, &["nft", "-f", "-"], "")?;
        run(&["-A", "OUTPUT", "-p", "udp", "-j", "DROP"])?;
        explained(stage, &format!("table filter of {command} has rules, which are not read"))?;
        relayed(stage, command)?;
        run(&["-F", "OUTPUT"])?;
        steered_within(stage, SETS_AGAIN_WITHIN)?;
        run(&["-P", "INPUT", "DROP"])?;
        explained(stage, &format!("table filter of {command} has rules, which are not read"))
    })
}

fn iptables(text: &str) -> Result<()> {
    let policy = "*filter\n-A OUTPUT -d {pod} -p tcp -m comment --comment policy -m tcp --dport 9000 -j DROP\nCOMMIT\n";
    rules(|stage| vec![restore(stage)], text, |stage| vec![restore(stage), "--noflush"], policy)
}

fn restore(stage: &Stage) -> &'static str {
    if stage.family == Family::V4 { "iptables-nft-restore" } else { "ip6tables-nft-restore" }
}

/// With the rules, the kernel carries connections to the pod; with the policy they are dropped.
fn rules(
    load: impl Fn(&Stage) -> Vec<&'static str>,
    text: &str,
    load_policy: impl Fn(&Stage) -> Vec<&'static str>,
    policy: &str,
) -> Result<()> {
    all(|stage| {
        let family = stage.family;
        let inet = one(family, "inet", "inet6");
        let sets = ["masq-pools", "all-pools"].map(|set| {
            filled(&format!("create {{{set}}} hash:net family {inet}\nadd {{{set}}} {{cluster}}\n"), family)
        });
        stage.router.feed(&["ipset", "restore"], &sets.concat())?;
        stays_steered(stage, &load(stage), &filled(text, family))?;
        stage.router.feed(&load_policy(stage), &filled(policy, family))?;
        explained(stage, "may drop packets to it")?;
        gets_nothing(stage)
    })
}

fn one(family: Family, v4: &'static str, v6: &'static str) -> &'static str {
    if family == Family::V4 { v4 } else { v6 }
}

/// A rule set with the stage's addresses: the node is the router, the pods are on the link to the backend.
fn filled(text: &str, family: Family) -> String {
    let [node, pod, other] = [1, 2, 3].map(|host| family.address(BACK, host).to_string());
    let port = |address: &str| match family {
        Family::V4 => format!("{address}:{BACKEND_PORT}"),
        Family::V6 => format!("[{address}]:{BACKEND_PORT}"),
    };
    let one = |v4: &'static str, v6: &'static str| one(family, v4, v6).to_owned();
    let values = [
        ("family", one("ip", "ip6")),
        ("type", one("ipv4_addr", "ipv6_addr")),
        ("service", one("10.96.0.10", "fd96::10")),
        ("idle-service", one("10.96.0.11", "fd96::11")),
        ("service-range", one("10.96.0.0/16", "fd96::/112")),
        ("cluster", one("10.81.0.0/16", "fd81::/16")),
        ("pods", one("10.81.2.0/24", "fd81:2::/64")),
        ("loopback", one("127.0.0.0/8", "::1")),
        ("masq-pools", one("cali40masq-ipam-pools", "cali60masq-ipam-pools")),
        ("all-pools", one("cali40all-ipam-pools", "cali60all-ipam-pools")),
        ("multicast", one("224.0.0.0/4", "ff00::/8")),
        ("pod-port", port(&pod)),
        ("other-port", port(&other)),
        ("node", node),
        ("pod", pod),
        ("other", other),
    ];
    values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}
