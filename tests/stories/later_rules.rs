//! Rules and policies added while a connection is carried apply to it on both data paths: banned clients, network
//! policies, IPsec.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tests::sluice::DataPath;
use tests::steering::{BACK, FRONT, Family, HOST, Setup, Stage};
use tests::stream::{self, Pair};
use tests::wait::{PATIENCE, hold, wait_until};

use crate::ways_out::steered_within;

/// Time-out for a change to apply to carried connections; in-kernel sets change without notification.
const HOLDS_WITHIN: Duration = Duration::from_secs(10);
/// Time during which a forbidden event must not occur.
const SILENCE: Duration = Duration::from_millis(700);

/// State of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// No data arrived, and its own data do not arrive.
    Silent,
    /// It was reset.
    Reset,
}

/// A rule in the input of a program; `{client}`, `{endpoint}` and `{ip}` (`ip` or `ip6`) stand for the stage's values.
struct Rule {
    program: &'static [&'static str],
    text: &'static str,
}

const fn nft(text: &'static str) -> Rule {
    Rule { program: &["nft", "-f", "-"], text }
}

const fn iptables(text: &'static str) -> Rule {
    Rule { program: &["iptables"], text }
}

impl Rule {
    fn load(&self, stage: &Stage, pair: &Pair) -> Result<()> {
        let client = pair.client.local_addr()?.ip().to_string();
        let (ip, restore, inet) = match stage.family {
            Family::V4 => ("ip", "iptables-nft-restore", "inet"),
            Family::V6 => ("ip6", "ip6tables-nft-restore", "inet6"),
        };
        let endpoint = stage.family.address(BACK, 2).to_string();
        let values = [("{client}", client.as_str()), ("{endpoint}", &endpoint), ("{ip}", ip), ("{inet}", inet)];
        let text = values.iter().fold(self.text.to_owned(), |text, (name, value)| text.replace(name, value));
        match self.program {
            ["iptables"] => stage.router.feed(&[restore, "--noflush"], &text),
            program => stage.router.feed(program, &text),
        }
    }
}

/// Runs a story for each IP version, on each data path, with a connection in mid-transfer.
fn all(story: impl Fn(&Stage, Pair) -> Result<()>) -> Result<()> {
    for family in [Family::V4, Family::V6] {
        for data_path in [DataPath::Kernel, DataPath::UserSpace] {
            let stage = Stage::new(data_path, Setup::new(family))?;
            let pair = stage.connect()?;
            pair.greet()?;
            story(&stage, pair).with_context(|| format!("{family:?}, {data_path:?}"))?;
        }
    }
    Ok(())
}

/// A rule against a client is added: its packets do not arrive, and it observes `end`. On the kernel's path the
/// endpoint is reset; the relay's endpoint would wait.
fn banned(before: &[Rule], ban: &Rule, lift: &Rule, end: End) -> Result<()> {
    all(|stage, pair| {
        before.iter().try_for_each(|rule| rule.load(stage, &pair))?;
        pair.greet()?;
        ban.load(stage, &pair)?;
        stops(stage, &pair, end)?;
        if stage.steers() {
            ensure!(state(&pair.origin)? == End::Reset, "the endpoint waits");
            ended_by_rule(stage)?;
        }
        lift.load(stage, &pair)?;
        // The banned connection has ended on the kernel's path; new ones are carried.
        drop(pair);
        if stage.steers() {
            return steered_within(stage, HOLDS_WITHIN);
        }
        stream::connect(&stage.client, stage.address, &stage.listener, HOST)?.exchange(1, 200_000, 200_000)
    })
}

/// Waits until a client's bytes no longer arrive, and checks the client's end.
fn stops(stage: &Stage, pair: &Pair, end: End) -> Result<()> {
    if stage.steers() {
        no_flow_is_left(stage)?;
    }
    let sent = (&pair.client).write_all(b"anybody there?");
    ensure!(end == End::Reset || sent.is_ok(), "{sent:?}");
    arrives_nothing(&pair.origin)?;
    let seen = state(&pair.client)?;
    ensure!(seen == end, "the client is {seen:?} instead of {end:?}");
    Ok(())
}

fn no_flow_is_left(stage: &Stage) -> Result<()> {
    let flows = || stage.sluice.get("flows");
    wait_until("the kernel carries the connection no more", HOLDS_WITHIN, || {
        flows().is_ok_and(|flows| flows.as_array().is_some_and(Vec::is_empty))
    })
    .map(drop)
    .with_context(|| format!("{:?}", flows()))
}

/// Checks that no data arrives from the peer, though the connection may have been reset.
fn arrives_nothing(mut stream: &TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(SILENCE))?;
    match stream::read_once(&mut stream) {
        Ok(read) => bail!("{read} bytes came"),
        Err(error) if is_silence(&error) || is_reset(&error) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn is_silence(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn is_reset(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

/// State of an end, including an unread error.
fn state(mut stream: &TcpStream) -> Result<End> {
    stream.set_read_timeout(Some(SILENCE))?;
    match stream::read_once(&mut stream) {
        // After a reset that was already reported, reads return the end of the stream.
        Ok(0) => Ok(End::Reset),
        Ok(read) => bail!("{read} bytes came"),
        Err(error) if is_silence(&error) => Ok(End::Silent),
        Err(error) if is_reset(&error) => Ok(End::Reset),
        Err(error) => Err(error.into()),
    }
}

/// The access log names the cause.
fn ended_by_rule(stage: &Stage) -> Result<()> {
    let lines = || stage.sluice.output().into_iter().filter(|line| line.contains(" access: ")).collect::<Vec<_>>();
    wait_until("the access log tells the end", PATIENCE, || lines().iter().any(|line| line.contains("flags=\"HR\"")))
        .map(drop)
        .with_context(|| format!("{:?}", lines()))
}

const LIFT_IPTABLES: Rule = iptables("*filter\n-D INPUT -s {client} -j DROP\nCOMMIT\n");

#[test]
fn a_client_that_iptables_bans_hears_nothing_more() -> Result<()> {
    banned(&[], &iptables("*filter\n-I INPUT -s {client} -j DROP\nCOMMIT\n"), &LIFT_IPTABLES, End::Silent)
}

#[test]
fn a_client_that_iptables_resets_is_reset() -> Result<()> {
    let rule =
        |verb: &str| format!("*filter\n{verb} INPUT -s {{client}} -p tcp -j REJECT --reject-with tcp-reset\nCOMMIT\n");
    let [ban, lift] = ["-I", "-D"].map(|verb| iptables(rule(verb).leak()));
    banned(&[], &ban, &lift, End::Reset)
}

/// With an ICMP error, as firewalls reject by default: TCP does not abort because of one (RFC 1122 §4.2.3.9). On the
/// kernel's path the client is reset.
#[test]
fn a_client_that_a_rule_rejects_is_cut_off() -> Result<()> {
    let rule = "table inet late { chain c { type filter hook input priority 0; {ip} saddr {client} reject\n}\n}\n";
    all(|stage, pair| {
        nft(rule).load(stage, &pair)?;
        stops(stage, &pair, if stage.steers() { End::Reset } else { End::Silent })?;
        let lift = nft("delete table inet late\n");
        lift.load(stage, &pair)?;
        if stage.steers() {
            ensure!(state(&pair.origin)? == End::Reset, "the endpoint waits");
            ended_by_rule(stage)?;
            return steered_within(stage, HOLDS_WITHIN);
        }
        // Retransmitted bytes arrive.
        arrives(&pair, b"anybody there?")?;
        pair.exchange(3, 200_000, 200_000)
    })
}

/// The same at the endpoint's own host, unknown to this host's rules: both data paths wait, and continue.
#[test]
fn what_an_endpoints_host_rejects_in_mid_transfer_arrives_when_it_does_no_more() -> Result<()> {
    all(|stage, pair| {
        let rules = |text: &str| stage.backend.feed(&["nft", "-f", "-"], text);
        rules("table inet late { chain c { type filter hook input priority 0; tcp dport 9000 reject\n}\n}\n")?;
        (&pair.client).write_all(b"anybody there?")?;
        arrives_nothing(&pair.origin)?;
        ensure!(state(&pair.client)? == End::Silent, "the client was reset");
        rules("delete table inet late\n")?;
        arrives(&pair, b"anybody there?")?;
        pair.exchange(4, 200_000, 200_000)
    })
}

/// Checks that the endpoint receives its client's bytes.
fn arrives(pair: &Pair, text: &[u8]) -> Result<()> {
    pair.origin.set_read_timeout(Some(PATIENCE))?;
    pair.client.set_read_timeout(Some(PATIENCE))?;
    let mut received = vec![0; text.len()];
    (&pair.origin).read_exact(&mut received)?;
    ensure!(received == text, "{received:?} has come");
    Ok(())
}

#[test]
fn a_client_that_nftables_bans_hears_nothing_more() -> Result<()> {
    let table = "table inet f2b { set banned { type {ip}v_addr; }\n chain c { type filter hook input priority -1;
        tcp dport 8443 {ip} saddr @banned drop\n}\n}\n";
    all(|stage, pair| {
        let table = table.replace("{ip}v_addr", if stage.family == Family::V4 { "ipv4_addr" } else { "ipv6_addr" });
        nft(table.leak()).load(stage, &pair)?;
        pair.greet()?;
        nft("add element inet f2b banned { {client} }").load(stage, &pair)?;
        stops(stage, &pair, End::Silent)?;
        nft("delete element inet f2b banned { {client} }").load(stage, &pair)?;
        drop(pair);
        if stage.steers() { steered_within(stage, HOLDS_WITHIN) } else { Ok(()) }
    })
}

#[test]
fn a_client_that_nftables_bans_for_a_time_hears_nothing_more() -> Result<()> {
    all(|stage, pair| {
        let kind = if stage.family == Family::V4 { "ipv4_addr" } else { "ipv6_addr" };
        let table = format!(
            "table inet f2b {{ set banned {{ type {kind}; flags timeout; timeout 1h; }}
                chain c {{ type filter hook prerouting priority -1; iifname front goto zone\n}}
                chain zone {{ {{ip}} saddr @banned drop\n}}\n}}\n"
        );
        nft(table.leak()).load(stage, &pair)?;
        pair.greet()?;
        nft("add element inet f2b banned { {client} }").load(stage, &pair)?;
        stops(stage, &pair, End::Silent)
    })
}

#[test]
fn a_client_that_an_ipset_gets_hears_nothing_more() -> Result<()> {
    let ipset = |text| Rule { program: &["ipset", "restore"], text };
    let set = ipset("create f2b hash:ip family {inet} timeout 3600\n");
    let rule = iptables("*filter\n-I INPUT -p tcp -m set --match-set f2b src -j DROP\nCOMMIT\n");
    banned(&[set, rule], &ipset("add f2b {client} timeout 600\n"), &ipset("del f2b {client}\n"), End::Silent)
}

#[test]
fn what_is_accepted_before_a_ban_goes_on() -> Result<()> {
    for family in [Family::V4, Family::V6] {
        for data_path in [DataPath::Kernel, DataPath::UserSpace] {
            accepted_before(&Stage::new(data_path, Setup::new(family))?)
                .with_context(|| format!("{family:?}, {data_path:?}"))?;
        }
    }
    Ok(())
}

fn accepted_before(stage: &Stage) -> Result<()> {
    let first = stage.connect()?;
    // Connection tracking does not know connections that are older than this rule.
    iptables("*filter\n-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\nCOMMIT\n").load(stage, &first)?;
    let pair = stage.connect()?;
    iptables("*filter\n-A INPUT -s {client} -j DROP\nCOMMIT\n").load(stage, &pair)?;
    hold(Duration::from_secs(3), || pair.greet())?;
    let late = stage.client.run(|| Ok(TcpStream::connect_timeout(&stage.address, SILENCE)));
    ensure!(late?.is_err(), "a banned client has connected anew");
    pair.exchange(2, 200_000, 200_000)
}

/// A rule that cannot be decided ends no connection: the relay would have carried all packets except the matching ones.
#[test]
fn what_may_match_some_packets_ends_no_connection() -> Result<()> {
    all(|stage, pair| {
        let rule = "table inet some { chain c { type filter hook input priority 0; limit rate over 1000000/second drop\n}\n}\n";
        nft(rule).load(stage, &pair)?;
        hold(Duration::from_secs(3), || pair.greet())
    })
}

#[test]
fn a_network_policy_that_comes_ends_connections_to_the_pod() -> Result<()> {
    let policy =
        "*filter\n-N POLICY\n-A POLICY -d {endpoint} -p tcp -m tcp --dport 9000 -j DROP\n-I OUTPUT -j POLICY\nCOMMIT\n";
    cut_off(&iptables(policy))
}

#[test]
fn answers_of_an_endpoint_that_a_rule_drops_end() -> Result<()> {
    cut_off(&nft("table inet late { chain c { type filter hook input priority 0; {ip} saddr {endpoint} drop\n}\n}\n"))
}

#[test]
fn a_chain_on_the_interface_holds_for_what_is_carried() -> Result<()> {
    let rule = nft(
        "table netdev late { chain c { type filter hook ingress device front priority 0; {ip} saddr {client} drop\n}\n}\n",
    );
    let lift = nft("delete table netdev late\n");
    banned(&[], &rule, &lift, End::Silent)
}

/// A rule between router and endpoint: nothing arrives at either end. On the kernel's path the client is reset.
fn cut_off(rule: &Rule) -> Result<()> {
    all(|stage, pair| {
        rule.load(stage, &pair)?;
        ends(stage, &pair)
    })
}

fn ends(stage: &Stage, pair: &Pair) -> Result<()> {
    if stage.steers() {
        no_flow_is_left(stage)?;
        ended_by_rule(stage)?;
        ensure!(state(&pair.client)? == End::Reset, "the client waits");
    }
    // At least one direction is blocked: a client's request gets no response.
    let _ = (&pair.client).write_all(b"question");
    pair.origin.set_read_timeout(Some(SILENCE))?;
    if stream::read_once(&mut &pair.origin).is_ok_and(|read| read > 0) {
        (&pair.origin).write_all(b"answered")?;
        arrives_nothing(&pair.client)?;
    }
    Ok(())
}

#[test]
fn an_ipsec_policy_that_comes_ends_what_it_blocks() -> Result<()> {
    for (link, direction) in [(BACK, "out"), (BACK, "in"), (FRONT, "in")] {
        all(|stage, pair| {
            let ours = stage.family.address(link, 1).to_string();
            let theirs = if link == BACK { stage.family.address(BACK, 2) } else { pair.client.local_addr()?.ip() };
            let theirs = theirs.to_string();
            let [from, to] = if direction == "out" { [&ours, &theirs] } else { [&theirs, &ours] };
            stage.router.ip(&["xfrm", "policy", "add", "src", from, "dst", to, "dir", direction, "action", "block"])?;
            ends(stage, &pair)
        })
        .with_context(|| format!("{direction} on link {link}"))?;
    }
    Ok(())
}
